"""Examples to try: every one can be read and fitted as it is, and none overwrites a file that differs."""

import json
import os
import statistics
from pathlib import Path

import pytest

import odinfer as od
from apps.command.commands import odinfer
from odinfer.apps.command import check as check
from odinfer.apps.command import example
from odinfer.data.reader import read_csv
from odinfer.model.model import Model
from odinfer.problem.problem import Problem

DRAWN = ("detection_limit", "repeated_doses")  # with a known truth, and more than states with Gaussian noise


def test_examples_are_listed_and_written_unless_a_file_would_be_lost(tmp_path: Path):
    listed = odinfer("example", cwd=tmp_path)
    assert listed.code == 0
    assert all(name in listed.stdout for name in example.names())
    written = odinfer("example", "sir", cwd=tmp_path)
    assert written.code == 0
    assert sorted(os.listdir(tmp_path / "sir")) == ["sir.csv", "sir.ode", "truth.json"]
    assert odinfer("example", "sir", cwd=tmp_path).code == 0
    (tmp_path / "sir" / "sir.csv").write_text("mine")
    refused = odinfer("example", "sir", "sir", cwd=tmp_path)
    assert refused.code == 2
    assert "--force" in refused.stderr
    assert (tmp_path / "sir" / "sir.csv").read_text() == "mine"
    assert odinfer("example", "sir", "sir", "--force", cwd=tmp_path).code == 0
    assert (tmp_path / "sir" / "sir.csv").read_text() != "mine"


@pytest.mark.parametrize("name", example.names())
def test_every_example_reads_without_a_finding(name: str, tmp_path: Path):
    ode, data, answer = example.write(name, tmp_path)
    model = Model.from_file(ode)
    problem = Problem(model, read_csv(data, inputs=model.inputs))
    assert check.findings(problem) == []
    known = set(problem.split.spread(json.loads(answer.read_text())))
    assert known == set(problem.free) if answer.name == "truth.json" else known <= set(problem.free)


def test_every_example_says_in_a_line_what_it_shows():
    names = example.names()
    assert len(names) >= 6
    for name, what in names.items():
        assert len(what) > 10, name
        assert not what.startswith("#")


def test_the_truth_of_an_example_is_that_of_its_data(tmp_path: Path):
    for name in ("lotka_volterra", "fitzhugh_nagumo", "protein_transduction"):
        _, _, truth = example.write(name, tmp_path / name)
        assert json.loads(truth.read_text()) == od.systems.SYSTEMS[name].theta


def fitted(name: str, folder: Path) -> tuple[od.Fit, dict[str, float]]:
    """An example written and fitted by the command, and the values that came with it."""
    assert odinfer("example", name, cwd=folder).code == 0
    (answer,) = (folder / name).glob("*.json")
    files = [answer.with_name(f"{name}.{end}") for end in ("ode", "csv")]
    run = odinfer("fit", *files, "--truth", answer, cwd=folder)
    assert run.code == 0, run.stderr
    assert "reference" in run.stdout
    return od.load(folder / f"{name}-fit" / "fit.json"), json.loads(answer.read_text())


@pytest.mark.parametrize("name", DRAWN)
def test_intervals_hold_what_the_data_of_an_example_were_drawn_from(name: str, tmp_path: Path):
    fit, truth = fitted(name, tmp_path)
    for parameter, value in truth.items():
        low, high = fit.interval()[parameter]
        assert low < value < high


def test_the_influenza_in_a_school_spreads_as_published(tmp_path: Path):
    fit, published = fitted("school_flu", tmp_path)
    assert 3.4 < fit.theta["R0"] < 3.8
    low, high = fit.interval()["R0"]
    assert low < published["R0"] < high


def test_hares_and_lynxes_have_the_published_rates(tmp_path: Path):
    fit, published = fitted("hare_lynx", tmp_path)
    assert fit.theta == pytest.approx(published, rel=0.05)


def test_the_subjects_who_took_theophylline_lie_about_what_is_published_for_all(tmp_path: Path):
    fit, published = fitted("theophylline", tmp_path)
    for parameter, value in published.items():
        subjects = [fit.theta[f"{parameter}[{i}]"] for i in range(1, 13)]
        assert statistics.median(subjects) == pytest.approx(value, rel=0.15)


def test_an_unknown_example_gets_a_suggestion_and_nothing_is_written(tmp_path: Path):
    with pytest.raises(od.InputError, match="did you mean 'lotka_volterra'"):
        example.write("lotka_voltera", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_place_that_cannot_be_written_to_is_an_input_error(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(od.InputError, match="cannot write to"):
        example.write("sir", tmp_path / "file" / "deep")
