"""Reports: everything a user needs is in them, nothing a user named can harm, and no file is left half-written."""

import csv
import dataclasses
import functools
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import odinfer as od
from fits import EVIL, ODD, make_fit
from odinfer.errors import InputError
from odinfer.result import report
from odinfer.result.report import write_html, write_outputs
from odinfer.result.summary import headline, state_table, summary, summary_rich

TRUTH = {"a": 1.5, "b": 2.5, "c": 3.5, "d": 4.5}


@pytest.fixture(params=list(ODD))
def fit(request):
    return ODD[request.param]


class Reader(HTMLParser):
    """Collects tags with their attributes, and the visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """The report of an odd fit, written once for all tests."""
    folder = tmp_path_factory.mktemp("pages")
    return functools.cache(lambda name: html_of(ODD[name], folder))


def html_of(fit, tmp_path: Path, truth=None) -> str:
    write_html(fit, tmp_path / "report.html", truth)
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def rich_of(fit, truth=None, width=120) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(summary_rich(fit, truth))
    return console.file.getvalue()


# --- the sentence


def test_the_headline_says_what_to_believe():
    assert headline(make_fit()) == "All equations are consistent with the data."
    assert headline(make_fit(contradicting=("prey",))) == (
        "The equation for prey contradicts the data (γ = 3; consistent equations are at 1e-6)."
    )
    assert headline(make_fit(contradicting=("prey", "predator"))) == (
        "The equations for prey and predator contradict the data (γ = 3 and 3)."
    )
    assert headline(make_fit(gamma=False)) == "The equations were fitted but not judged."
    smoothed = dataclasses.replace(make_fit(gamma=False), method="gpr")
    assert headline(smoothed) == "The data were smoothed; the equations played no part."
    assert headline(ODD["infinite"]).startswith("Do not rely on these numbers: the fit did not converge")


def test_the_headline_stays_short_and_honest():
    seven = make_fit(tuple("ABCDEFG"), contradicting=tuple("ABCDEFG"))
    assert "A, B, C, D, E and 2 more contradict" in headline(seven)
    uneven = make_fit(tuple("ABC"), contradicting=("A",))
    uneven.gamma["B"] = 0.01
    assert "consistent equations are at 0.01 or less" in headline(uneven)


# --- text


def test_the_summary_names_every_parameter_state_verdict_and_warning(fit):
    text = summary(fit)
    for name in (*fit.parameter_names, *fit.state_names):
        assert name[:20] in text
    for verdict in fit.verdicts.values():
        assert verdict in text
    for warning in fit.warnings:
        assert warning in text
    assert fit.status in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_rich_summary_has_the_same_content(fit):
    plain, rich = summary(fit, TRUTH), rich_of(fit, TRUTH, 200)
    for cell in re.findall(r"\S+", "\n".join(line for line in plain.splitlines() if "---" not in line)):
        assert cell.rstrip(".") in rich or cell in ("(gamma",)


def test_the_summary_shows_both_stages_the_truth_and_what_was_fixed():
    text = summary(make_fit(), TRUTH)
    header = next(line for line in text.splitlines() if line.startswith("parameter"))
    assert header.split() == ["parameter", "estimate", "ODIN", "stage", "refined", "stage", "true"]
    row = next(line for line in text.splitlines() if line.startswith("c "))
    assert row.split() == ["c", "1.2", "1.21", "1.2", "3.5"]
    assert "d (fixed)" in text
    assert "true" not in summary(make_fit())


def test_the_summary_tells_how_it_was_found():
    text = summary(make_fit())
    for line in ("9 of 10 starts", "refined stage", "matern52", "0.8 s", "seed 0"):
        assert line in text


def test_a_summary_needs_no_details():
    assert "lotka_volterra" in summary(make_fit(details={}))


def test_the_summary_of_ascii_names_is_ascii():
    summary(make_fit(contradicting=("prey",)), TRUTH).encode("ascii")


def test_long_names_and_control_characters_do_not_break_the_terminal():
    fit = make_fit(("x" * 300, "a\x1b[31m\nb"), ("p" * 300,), model="m" * 300, contradicting=("x" * 300,))
    text = summary(fit)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in rich_of(fit)


def test_names_are_no_rich_markup():
    assert "[bold]k" in rich_of(ODD["evil names"])


def test_rmse_and_counts_skip_missing_observations():
    fit = make_fit(missing=0.4)
    e = fit.experiments["1"]
    residuals = (e.y - e.x)[:, 0]
    row = next(row for row in state_table(fit).rows if row[0] == "prey")
    assert float(row[4]) == pytest.approx(np.sqrt(np.nanmean(residuals**2)), rel=1e-2)
    assert row[5] == str(np.isfinite(residuals).sum())


# --- HTML


@pytest.mark.parametrize("name", list(ODD))
def test_the_report_has_everything(name, page_of):
    fit, page = ODD[name], Reader(page_of(name))
    for word in (*fit.parameter_names, *fit.state_names, *fit.verdicts.values(), *fit.warnings, *fit.options):
        assert word in page.text
    assert (fit.equations or "") in page.text
    assert headline(fit) in page.text
    pictures = 2 + bool(fit.gamma) + any(e.gradients is not None for e in fit.experiments.values())
    assert sum(tag == "img" for tag, _ in page.tags) == pictures


@pytest.mark.parametrize("name", list(ODD))
def test_the_report_needs_no_other_file_and_no_network(name, page_of):
    text = page_of(name)
    page = Reader(text)
    assert not re.search(r"https?:|//[a-z]", re.sub(r"base64,[^\"]*", "", text), re.IGNORECASE)
    assert "url(" not in text
    assert "@import" not in text
    for tag, attributes in page.tags:
        assert tag not in ("script", "link", "iframe", "object", "embed", "base")
        assert "href" not in attributes
        assert attributes.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
    assert ("meta", "default-src 'none'; img-src data:; style-src 'unsafe-inline'") in {
        (tag, attributes.get("content")) for tag, attributes in page.tags
    }


def test_whatever_the_user_named_is_escaped_everywhere(tmp_path: Path):
    evil = f"\"'>{EVIL}{{{{ 7*7 }}}}"
    fit = make_fit(
        (evil, "y"),
        (evil, "q"),
        experiments=(evil, "2"),
        contradicting=(evil,),
        model=evil,
        equations=evil,
        method=evil,
        status=evil,
        warnings=(evil,),
        options={evil: evil},
        details={"kernels": {evil: evil, "y": "rbf"}, "starts": evil, "starts_agreeing": evil, "fixed": [evil]},
    )
    text = html_of(fit, tmp_path, {evil: 1.0})
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    page = Reader(text)
    assert not any(tag == "script" for tag, _ in page.tags)
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    assert evil in page.text


def test_the_report_shows_the_truth_where_it_is_known(tmp_path: Path):
    assert "4.5" in Reader(html_of(make_fit(), tmp_path, TRUTH)).text
    assert "true" not in [d.strip() for d in Reader(html_of(make_fit(), tmp_path)).text.split("\n")]


def test_the_report_explains_its_words(tmp_path: Path):
    text = Reader(html_of(make_fit(), tmp_path)).text
    for word in ("γ (gamma)", "σ (sigma)", "95 % band", "ODIN stage", "Refined stage"):
        assert word in text


def test_a_report_that_cannot_be_written_is_an_input_error(tmp_path: Path):
    with pytest.raises(InputError, match="cannot write"):
        write_html(make_fit(), tmp_path / "none" / "report.html")


# --- the folder


@pytest.mark.parametrize("name", ["plain", "three experiments", "no gamma", "evil names", "infinite", "failed"])
def test_the_folder_has_every_file_and_nothing_else(name, tmp_path: Path):
    fit = ODD[name]
    folder = tmp_path / "new" / "folder"
    paths = write_outputs(fit, folder, TRUTH)
    assert [p.name for p in paths] == ["fit.json", "fit.nc", "states.csv", "plot.png", "report.html"]
    assert sorted(folder.iterdir()) == sorted(paths)
    assert all(p.stat().st_size > 100 for p in paths)
    assert od.load(paths[0]).theta.keys() == fit.theta.keys()


def test_writing_twice_gives_the_same_files(tmp_path: Path):
    one, two = (write_outputs(make_fit(), tmp_path / name) for name in "ab")
    for a, b in zip(one, two, strict=True):
        if a.suffix != ".nc":
            assert a.read_bytes() == b.read_bytes()


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_states_csv_has_estimates_and_bands_at_the_observation_times(tmp_path: Path):
    fit = make_fit()
    rows = rows_of(write_outputs(fit, tmp_path)[2])
    e = fit.experiments["1"]
    expected = fit.predict(e.t)
    assert list(rows[0]) == ["time", *expected.columns]
    for name in expected.columns:
        np.testing.assert_allclose([float(row[name]) for row in rows], expected[name], rtol=1e-12)


def test_states_csv_names_the_experiments_if_there_are_several(tmp_path: Path):
    fit = ODD["three experiments"]
    rows = rows_of(write_outputs(fit, tmp_path)[2])
    assert [row["experiment"] for row in rows] == [name for name in fit.experiments for _ in range(20)]


def test_states_csv_loses_no_state_to_a_name_that_is_taken():
    columns = report.state_columns(make_fit(("x", "x_low", "time")))
    assert list(columns)[:5] == ["time", "x", "x_low", "x_high", "x_low_"]
    assert len(columns) == 10


def test_a_folder_that_cannot_be_made_is_an_input_error(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot make the folder"):
        write_outputs(make_fit(), tmp_path / "file" / "folder")
    with pytest.raises(InputError, match="cannot make the folder"):
        write_outputs(make_fit(), tmp_path / "file")


def test_of_very_many_states_a_selection_is_shown_and_said_to_be_one(tmp_path):
    system = od.systems.lorenz96(150)
    fit = od.fit(system.model, system.sample(1.0, 0, np.linspace(0.0, 1.0, 6)), method=od.Odin(refine=False, starts=1))
    table = state_table(fit)
    assert len(table.rows) == 100
    text = fit.summary()
    assert "Tables show 100 and pictures 24 of 150 states" in " ".join(text.split())
    assert len(text.splitlines()) < 130
    paths = {p.name: p for p in report.write_outputs(fit, tmp_path)}
    assert "100 and pictures 24 of 150 states" in " ".join(paths["report.html"].read_text("utf-8").split())
    header = paths["states.csv"].read_text("utf-8").splitlines()[0].split(",")
    assert "x150" in header
    assert od.load(paths["fit.json"]).gamma == fit.gamma
