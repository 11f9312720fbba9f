"""The HTML report, the folder of outputs, and what notebooks show."""

import csv
import functools
import html
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import odinfer as od
from browsers import chromium
from fits import EVIL, ODD, hidden, make_fit, refuted, uncertain
from odinfer.errors import InputError
from odinfer.result import report
from odinfer.result.notebook import notebook
from odinfer.result.report import PICTURES, write_html, write_outputs
from odinfer.result.summary import headline, state_table
from odinfer.style.html import scripts

TRUTH = {"a": 1.5, "b": 2.5, "c": 3.5, "d": 4.5}


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


# --- HTML


@pytest.mark.parametrize("name", list(ODD))
def test_the_report_has_everything(name, page_of):
    fit, page = ODD[name], Reader(page_of(name))
    for word in (*fit.parameter_names, *fit.state_names, *fit.verdicts.values(), *fit.warnings, *fit.options):
        assert word in page.text
    assert (fit.equations or "") in page.text
    assert headline(fit) in page.text
    drawn = [picture for draw in PICTURES.values() if (picture := draw(fit)) is not None]
    alts = [part.alt for picture in drawn for part in getattr(picture, "plots", (picture,))]
    found = [attributes["alt"] for tag, attributes in page.tags if tag == "img"]
    assert found == alts if len(fit.state_names) < 9 else {*found} < {*alts}


@pytest.mark.parametrize("name", list(ODD))
def test_the_report_needs_no_other_file_and_no_network(name, page_of):
    text = page_of(name)
    page = Reader(text)
    assert not re.search(r"https?:|//[a-z]", re.sub(r"base64,[^\"]*", "", text), re.IGNORECASE)
    assert "url(" not in text
    assert "@import" not in text
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert "href" not in attributes
        assert attributes.get("src", "data:image/svg+xml;base64,").startswith("data:image/svg+xml;base64,")
        assert tag != "script" or attributes in ({}, {"type": "application/json"})
    policies = [a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a]
    hashes = " ".join(f"'sha256-{own}'" for _, own in scripts())
    assert policies == [f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {hashes}"]
    assert sum(tag == "script" and not a for tag, a in page.tags) == 2


@pytest.mark.parametrize("name", list(ODD))
def test_a_report_is_small_enough_to_be_sent(name, page_of):
    assert len(page_of(name).encode()) < 1.5e6


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
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    page = Reader(text)
    assert sum(tag == "script" and not attributes for tag, attributes in page.tags) == 2  # our own
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    assert evil in page.text


def test_the_report_shows_the_truth_where_it_is_known(tmp_path: Path):
    assert "4.5" in Reader(html_of(make_fit(), tmp_path, TRUTH)).text
    assert "reference" not in [d.strip() for d in Reader(html_of(make_fit(), tmp_path)).text.split("\n")]


def test_the_report_explains_its_words(tmp_path: Path):
    text = Reader(html_of(make_fit(), tmp_path)).text
    for word in ("γ (gamma)", "σ (sigma)", "95 % band", "ODIN (slopes)", "Maximum likelihood"):
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
    assert len(text.splitlines()) < 145
    paths = {p.name: p for p in report.write_outputs(fit, tmp_path)}
    assert "100 and pictures 24 of 150 states" in " ".join(paths["report.html"].read_text("utf-8").split())
    header = paths["states.csv"].read_text("utf-8").splitlines()[0].split(",")
    assert "x150" in header
    assert od.load(paths["fit.json"]).gamma == fit.gamma


def test_the_report_of_hidden_states_judges_the_model_as_a_whole_and_shows_the_starts(tmp_path: Path):
    page = Reader(html_of(hidden(), tmp_path))
    assert "Does the model agree with the data?" in page.text
    assert "Do the equations agree" not in page.text
    assert "typical slope error" not in page.text
    assert "Standardised residuals are normal" in page.text
    assert "5 starts, the best first: 3 agree with the best" in {a.get("alt") for _, a in page.tags}


def test_what_is_not_drawn_is_said_to_be_missing(tmp_path: Path):
    said = "Where new observations of I would lie is not shown: the standard deviation is known only at the rows"
    by_row = hidden(details={"by_row": ["I"]})
    assert said in Reader(html_of(by_row, tmp_path)).text
    assert said not in Reader(html_of(hidden(), tmp_path)).text


def folded(text: str) -> dict[str, bool]:
    """Headings of parts that fold, and whether they are folded."""
    found = re.findall(r"<details( open)?><summary>([^<]*)", text)
    return {words.strip(): not is_open for is_open, words in found}


def test_gamma_is_folded_away_where_all_is_consistent_and_settings_and_glossary_always(tmp_path: Path):
    for fit, good in ((make_fit(), True), (make_fit(contradicting=("prey",)), False)):
        parts = folded(html_of(fit, tmp_path))
        assert parts["Do the equations agree with the data?"] is good
        assert parts["How it was found, and how to get the same result"]
        assert parts["What the words mean"]
    assert "Not all of them; γ at most 3." in html_of(make_fit(contradicting=("prey",)), tmp_path)


def test_verdict_numbers_and_data_with_fit_come_before_all_else(tmp_path: Path):
    text = html_of(uncertain(), tmp_path)
    order = [text.index(words) for words in ('class="headline', "<h2>Parameters", "<h2>States and data", "<h2>Noise")]
    assert order == sorted(order)


def test_a_posterior_is_put_in_bayesian_words(tmp_path: Path):
    fit = uncertain()
    text = Reader(html_of(fit, tmp_path)).text
    for words in ("posterior sd %", "95 % credible from", "posterior mean", "R-hat", "effective draws",
                  "3.3 s, 0.8 s for the fit and 2.5 s for sampling"):  # fmt: skip
        assert words in text
    assert "95 of 100 such data sets" not in text
    plain = Reader(html_of(replace(fit, sampled=None), tmp_path)).text
    assert "95 of 100 such data sets" in plain
    assert "credible" not in plain


def test_the_page_is_drawn_by_a_browser_where_there_is_one(tmp_path: Path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no Chromium here")
    html_of(refuted(), tmp_path)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
    url = (tmp_path / "report.html").as_uri()
    dom = subprocess.run([browser, *options, url], capture_output=True, text=True, timeout=120).stdout
    assert dom.count('class="plot live"') == 2
    assert dom.count("<canvas") == 2


def test_states_csv_has_hidden_states_and_columns_that_are_no_states_once(tmp_path: Path):
    fit = hidden()
    found = report.state_columns(fit)
    ends = ("", "_low", "_high")
    assert list(found) == ["experiment", "time", *(f"{n}{e}" for n in ("S", "I", "cases", "load") for e in ends)]
    np.testing.assert_array_equal(found["cases"], np.concatenate([e.fitted[:, 1] for e in fit.experiments.values()]))
    assert (found["cases_low"] < found["cases"]).all()


@pytest.mark.browser
def test_a_panel_tells_what_is_under_the_pointer_and_a_drag_zooms(tmp_path):
    write_html(make_fit(), tmp_path / "report.html")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"file://{tmp_path}/report.html")
        panel, said = page.locator("figure.live .u-over").first, page.locator("figure.live .read").first
        box = panel.bounding_box()

        def at(share: float) -> str:
            page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
            return said.inner_text()

        early, late = (float(re.match(r"time ([\d.]+) .*fit ", at(share))[1]) for share in (0.25, 0.75))
        assert early < late
        at(0.25)
        page.mouse.down()
        at(0.5)
        page.mouse.up()
        assert float(re.match(r"time ([\d.]+)", at(0.98))[1]) < late
        page.mouse.dblclick(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
        assert float(re.match(r"time ([\d.]+)", at(0.98))[1]) > late


@pytest.mark.parametrize("name", ["plain", "refuted", "every interval", "hidden", "evil names", "failed"])
def test_a_notebook_shows_tables_with_the_picture(name):
    fit = ODD[name]
    text = notebook(fit)
    assert fit._repr_html_() == text
    for words in (headline(fit), *fit.parameter_names, *fit.state_names):
        assert words in html.unescape(text)
    assert text.count('src="data:image/svg+xml;base64,') == 1
    for tag in ("<script", "<style", "<link"):
        assert tag not in text
    assert len(text) < 2e5
