"""Files that the command writes: conversions and examples."""

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
from odinfer.errors import InputError
from odinfer.io.native_files import to_own
from odinfer.io.petab_reader import nominal
from odinfer.model.model import Model
from odinfer.population.structure import Structure
from odinfer.problem.problem import Problem
from sbml_files import AT_3, LOW, TABLES, event, petab, sbml

pytest.importorskip("libsbml")
ROWS = "".join(f"obs_A\tlow\t{t}\t{v}\t\t0.1\n" for t, v in ((0.5, 1.52), (3, 0.43), (4, 0.3), (5, 0.1)))
PROBLEM = {"measurements": TABLES["measurements"].replace("10\t2", "5.6\t3") + ROWS}


def test_a_petab_problem_becomes_three_files_that_can_be_fitted(tmp_path):
    petab(tmp_path, PROBLEM)
    run = odinfer("convert", "drug.yaml", "own", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert sorted(p.name for p in (tmp_path / "own").iterdir()) == ["drug.csv", "drug.ode", "published.json"]
    assert json.loads((tmp_path / "own" / "published.json").read_text()) == {"k": 0.5, "sd_B": 0.2}
    checked = odinfer("check", "own/drug.ode", "own/drug.csv", cwd=tmp_path)
    assert checked.code == 0, checked.stderr
    assert "obs_A is normal about obs_A, sd by row" in checked.stdout


def test_a_petab_problem_is_fitted_by_its_name_alone(tmp_path):
    petab(tmp_path, PROBLEM)
    run = odinfer("fit", "drug.yaml", "--json", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert json.loads(run.stdout)["theta"]["k"] == pytest.approx(0.5, abs=0.05)
    assert (tmp_path / "drug-fit" / "report.html").exists()


def test_an_sbml_model_takes_data_of_its_species(tmp_path):
    sbml(tmp_path)
    (tmp_path / "data.csv").write_text("time,A\n0,2.01\n1,1.2\n2,0.75\n3,0.44\n5,0.17\n")
    run = odinfer("fit", "drug.xml", "data.csv", "--json", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert json.loads(run.stdout)["theta"]["k"] == pytest.approx(0.5, abs=0.05)
    assert odinfer("convert", "drug.xml", "own", cwd=tmp_path).code == 0
    assert "turn = blood*k*A" in (tmp_path / "own" / "drug.ode").read_text()


def test_a_model_and_data_become_petab_that_can_be_read(tmp_path):
    (tmp_path / "decay.ode").write_text("x' = -k*x\nx(0) = a\nx ~ normal(x, 0.1)\n")
    (tmp_path / "data.csv").write_text("time,x\n0,2.01\n1,1.2\n2,0.75\n3,0.44\n5,0.17\n")
    run = odinfer(
        "convert", "decay.ode", "data.csv", "--petab", "out", "--set", "k=0:5", "--start", "k=0.4", cwd=tmp_path
    )
    assert run.code == 0, run.stderr
    checked = odinfer("check", "out/problem.yaml", cwd=tmp_path)
    assert checked.code == 0, checked.stderr
    assert "0 to 5" in checked.stdout
    assert nominal(tmp_path / "out" / "problem.yaml")["k"] == 0.4


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("fit", "drug.yaml", "data.csv"), "a PEtab problem, which has its own data"),
        (("fit", "drug.yaml", "--map", "a=b"), "--map is about a data file"),
        (("fit", "drug.xml"), "needs a data file beside it"),
        (("convert", "drug.xml"), "where to?"),
        (("convert", "data.csv", "own"), "neither a PEtab problem"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path, arguments, expected):
    petab(tmp_path, EVENTS=event(AT_3.replace("geq", "eq")))
    (tmp_path / "data.csv").write_text("time,A\n0,2\n")
    run = odinfer(*arguments, cwd=tmp_path)
    assert run.code == 2
    assert expected in run.stderr
    assert run.stderr.count("\n") == 1


def test_other_files_are_not_converted(tmp_path):
    with pytest.raises(InputError, match="neither"):
        to_own(tmp_path / "x.txt", tmp_path)


def test_events_that_states_trigger_are_converted_both_ways(tmp_path):
    petab(tmp_path, PROBLEM, EVENTS=event(LOW, value="<cn>2</cn>"))
    assert odinfer("convert", "drug.yaml", "own", cwd=tmp_path).code == 0
    assert "when A < 1: A = 2" in (tmp_path / "own" / "drug.ode").read_text()
    run = odinfer("convert", "own/drug.ode", "own/drug.csv", "--petab", "out", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert odinfer("convert", "out/problem.yaml", "again", cwd=tmp_path).code == 0
    values = {"k": 0.5, "sd_B": 0.2}
    problems = [od.read_petab(tmp_path / path) for path in ("drug.yaml", "out/problem.yaml")]
    assert od.loglik(problems[0], values) == pytest.approx(od.loglik(problems[1], values), rel=1e-8)
    run = odinfer("check", "drug.yaml", cwd=tmp_path)
    assert run.code == 0, run.stderr


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
    free = set(Structure.of(problem).names if model.declarations.effects else problem.free)
    free -= {
        name for own in problem.model.declarations.unknown for name in own.parameters
    }  # no single numbers are true of these
    assert known == free if answer.name == "truth.json" else known <= free


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
