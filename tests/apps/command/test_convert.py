"""PEtab and SBML on the command line: converted to files of our own, checked and fitted."""

import json

import pytest

import odinfer as od
from apps.command.commands import odinfer
from odinfer.apps.command.convert import to_own
from odinfer.errors import InputError
from odinfer.io.petab_reader import nominal
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
        (("check", "drug.yaml"), "the event 'e' is triggered by more than comparisons"),
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
    run = odinfer("fit", "drug.yaml", cwd=tmp_path)
    assert run.code == 2
    assert "but not fitted" in run.stderr
