"""`odinfer design` through the real command line."""

import json

import pytest

from odinfer.apps.command import main

ORAL = """gut' = -ka*gut
body' = ka*gut - CL/V*body
gut(0) = 100
body(0) = 0
conc ~ normal(body/V, 0.1)
"""


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["odinfer", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "oral.ode").write_text(ORAL)
    (tmp_path / "bolus.ode").write_text("body' = -CL/V*body\nbody(0) = 100\nconc ~ normal(body/V, 0.1)\n")
    (tmp_path / "oral.csv").write_text("time,conc\n0.5,1.39\n1,2.19\n2,2.72\n4,2.51\n8,1.75\n12,1.11\n24,0.41\n")
    return tmp_path


VALUES = ("--theta", "ka=1.2,CL=3,V=30", "--times", "0:24")


def test_a_design_from_values_writes_its_files_and_prints_times(folder, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "design", "oral.ode", *VALUES, "--add", 3, "--for", "CL,V")
    assert code == 0
    assert "the 3 best samples (for CL and V)" in out
    assert {p.name for p in (folder / "design").iterdir()} == {"design.json", "samples.csv", "design.png"}
    assert len(json.loads((folder / "design" / "design.json").read_text())["samples"]) == 3


def test_a_design_from_data_and_from_its_fit_file_is_the_same(folder, monkeypatch, capsys):
    assert run(monkeypatch, capsys, "fit", "oral.ode", "oral.csv", "-q")[0] == 0
    answers = [
        json.loads(run(monkeypatch, capsys, "design", "oral.ode", known, "--add", 2, "--json")[1])
        for known in ("oral.csv", "oral-fit/fit.json")
    ]
    assert [s["time"] for s in answers[0]["samples"]] == [s["time"] for s in answers[1]["samples"]]


def test_two_models_are_told_apart(folder, monkeypatch, capsys):
    code, out, _ = run(monkeypatch, capsys, "design", "oral.ode", *VALUES, "--between", "bolus.ode")
    assert code == 0
    assert "Expected difference of the log-likelihoods" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("design", "oral.ode", "--theta", "ka=1.2,CL=3,V=30"), "needs times"),
        (("design", "oral.ode", *VALUES, "--doses", "gut 100"), "--doses takes TIME:STATE=AMOUNT"),
        (("design", "oral.ode", "oral.csv", "--theta", "ka=1"), "--theta and --x0 are for a design without data"),
        (("design", "oral.ode", *VALUES, "--times", "a:b"), "--times"),
    ],
)
def test_bad_requests_end_with_one_line(folder, monkeypatch, capsys, arguments, words):
    code, _, err = run(monkeypatch, capsys, *arguments)
    assert code == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1


def test_a_fit_says_which_measurement_would_determine_what_is_not(folder, monkeypatch, capsys):
    (folder / "growth.ode").write_text("n' = r*n*(1 - n/K)\nn ~ normal(n, 0.05)\n")
    rows = [(0, 0.52), (0.25, 0.61), (0.5, 0.83), (0.75, 1.02), (1, 1.27), (1.25, 1.58)]
    (folder / "growth.csv").write_text("time,n\n" + "".join(f"{t},{n}\n" for t, n in rows))
    code, out, _ = run(monkeypatch, capsys, "fit", "growth.ode", "growth.csv")
    assert code == 0
    assert "K is not determined; the next measurement that says most about it is n at" in " ".join(out.split())
    assert "K is not determined" in (folder / "growth-fit" / "report.html").read_text()
