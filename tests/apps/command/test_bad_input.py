"""Bad input through the real command: exit code 2, one clear line on stderr, nothing written, no traceback."""

import os
from pathlib import Path

import pytest

from apps.command.commands import odinfer

MODEL = "prey' = a*prey - b*prey*predator\npredator' = -c*predator + d*prey*predator\n"
ROWS = ["0,5,3", "0.5,4,2.5", "1,3,2", "1.5,2.5,1.5", "2,3,1"]
DATA = "\n".join(["time,prey,predator", *ROWS])


SIMULATE = ["simulate", "m.ode", "--x0", "prey=5,predator=3", "--times", "0:1:5"]


def refused(cwd: Path, *arguments: str) -> str:
    """Run, check that the input is refused as promised, and return the line."""
    before = sorted(os.listdir(cwd))
    run = odinfer(*arguments, cwd=cwd)
    assert run.code == 2, run.stderr
    assert run.stdout == ""
    lines = run.stderr.splitlines()
    assert len(lines) == 1, run.stderr
    assert lines[0].startswith("error: ")
    assert len(lines[0]) < 500
    assert sorted(os.listdir(cwd)) == before
    return lines[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.ode").write_text(MODEL)
    (tmp_path / "d.csv").write_text(DATA)
    (tmp_path / "nested.json").write_text('{"a": {"b": [1]}}')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "gigantic.json").write_text(f'{{"a": 1{"0" * 400}}}')
    (tmp_path / "twice.csv").write_text(f"{DATA}\n2,3.1,1.1")
    return tmp_path


def rows(*changed: str, header: str = "time,prey,predator") -> str:
    return "\n".join([header, *(changed or ROWS)])


BAD_DATA = {
    "empty": ("", ["empty"]),
    "header only": ("time,prey,predator\n", ["header but no data"]),
    "utf-16": (DATA.encode("utf-16"), ["UTF-16", "UTF-8"]),
    "binary": (bytes(range(256)), ["UTF-8"]),
    "decimal commas beside points": (DATA.replace(",", ";").replace(".", ",", 1), ["line 3", "decimal comma"]),
    "no time column": (rows(header="when,prey,predator"), ["no time column", "'when'"]),
    "state column missing": (rows(header="time,prey,predatr"), ["predator", "did you mean 'predatr'"]),
    "duplicate column": (rows(header="time,prey,prey"), ["'prey'", "twice"]),
    "ragged row": (rows(*ROWS, "3,1"), ["line 7", "2 cells"]),
    "text cell": (rows(*ROWS[:2], "1,high,2", *ROWS[3:]), ["line 4", "'prey'", "'high'"]),
    "infinite cell": (rows(*ROWS[:2], "1,inf,2", *ROWS[3:]), ["line 4", "'prey'", "finite"]),
    "missing time": (rows(*ROWS, "nan,1,2"), ["line 7", "time"]),
    "times that are too close": (rows(*ROWS, "1e-300,3.1,1.1"), ["two of the times", "1e-300 apart"]),
    "times far from zero": (rows(*(f"{10**15 + i},{i},{i * i}" for i in range(5))), ["last digits", "count from"]),
    "values that are too large": (rows(*ROWS, "3,1e160,2"), ["'prey'", "1e+160", "other units"]),
    "no state": (rows("0,5", "1,4", "2,3", "3,2", header="time,hares"), ["'prey'", "at least one", "--map", "'hares'"]),
    "two times": (rows(header="Year,prey,week"), ["'Year', 'week'", "--time"]),
    "three observations": (rows(*ROWS[:3], "1.5,,1.5", "2,,1"), ["'prey'", "too few", "4"]),
    "all missing": (rows("0,,", "1,,", "2,,", "3,,"), ["missing"]),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_are_refused_with_the_place_and_the_remedy(folder: Path, case: str):
    content, words = BAD_DATA[case]
    (folder / "d.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    line = refused(folder, "fit", "m.ode", "d.csv")
    for word in words:
        assert word in line


@pytest.mark.parametrize("case", ["times that are too close", "times far from zero", "no state"])
def test_check_refuses_what_fit_refuses_in_the_same_words(folder: Path, case: str):
    (folder / "d.csv").write_text(str(BAD_DATA[case][0]))
    assert refused(folder, "check", "m.ode", "d.csv") == refused(folder, "fit", "m.ode", "d.csv")


GUT = "gut' = -a*gut; blood' = a*gut - k*blood"
COUNTS = "time,n\n0,9\n1,7\n2,5\n3,4\n4,2"
# Statements about what is observed and from where it starts: model, data, words of the refusal.
BAD_STATEMENTS = {
    "a negative count": ("x' = -k*x; n ~ poisson(x)", COUNTS.replace("5", "-5"), ["'n' is -5 at 2", "whole numbers"]),
    "a count that is not whole": ("x' = -k*x; n ~ negbinomial(x)", COUNTS.replace("5", "5.5"), ["5.5 at 2", "whole"]),
    "log-normal zero": ("x' = -k*x; n ~ lognormal(x)", COUNTS.replace("5", "0"), ["'n' is 0 at 2", "positive"]),
    "two initial values": ("n' = -k*n\nn(0) = 9\nn(0) = 8", COUNTS, ["line 3", "'n(0)'", "line 2"]),
    "an event too early": ("n' = -k*n\nat -3: n = n + 1", COUNTS, ["line 2", "event at -3", "starts, at 0"]),
    "an event into no state": ("n' = -k*n\nat 1: m = 1", COUNTS, ["line 2", "'m'", "no state"]),
    "a dose into no state": (
        GUT, "time,blood,amt,cmt\n0,,5,liver\n1,2,,\n2,3,,\n3,2,,\n4,1,,", ["dose at 0", "'liver'", "gut, blood"],
    ),
    "an observable of nothing": ("x' = -k*x\nn ~ poisson(7)", COUNTS, ["line 2", "poisson(7)", "no state"]),
    "a distribution without a column": ("n' = -k*n\nm ~ poisson(n)", COUNTS, ["line 2", "no column 'm'"]),
    "an unknown distribution": ("n' = -k*n\nn ~ poison(n)", COUNTS, ["line 2", "did you mean 'poisson'"]),
    "a method that cannot": ("x' = -k*x; n ~ poisson(x)", COUNTS, ["VGM needs every state", "x is hidden"]),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_STATEMENTS)
def test_bad_statements_about_the_data_are_refused_with_the_place_and_the_remedy(folder: Path, case: str):
    model, data, words = BAD_STATEMENTS[case]
    (folder / "m.ode").write_text(model)
    (folder / "d.csv").write_text(data)
    line = refused(folder, "fit", "m.ode", "d.csv", *(["--method", "vgm"] if "method" in case else []))
    for word in words:
        assert word in line


BAD_MODELS = {
    "empty": ("", ["no equation"]),
    "binary": (bytes(range(128, 256)), ["not UTF-8"]),
    "import": ("x' = __import__('os').system('touch hacked')", ["line 1"]),
    "attribute access": ("x' = x.real", ["line 1", "x.real"]),
    "lambda": ("x' = (lambda: 1)()", ["line 1", "lambda"]),
    "comprehension": ("x' = sum([x for x in (1,2)])", ["line 1"]),
    "power tower": ("x' = 9**9**9*x", ["line 1", "finite"]),
    "huge number": ("x' = 1e400*x", ["line 1", "1e400"]),
    "a megabyte": ("x' = " + "+".join(["x"] * 500_000), ["at most"]),
    "300 brackets": ("x' = " + "(" * 300 + "x" + ")" * 300, ["line 1"]),
    "division by zero": ("x' = x*1/0", ["line 1"]),
    "reserved state": ("t' = 1", ["'t'", "reserved"]),
    "reserved word": ("exp' = 1", ["'exp'", "reserved"]),
    "unknown function": ("x' = sine(x)", ["sine", "did you mean"]),
    "two equations": ("x' = -x\nx' = -2*x", ["line 2", "'x'"]),
    "declaration without a use": ("prey' = -a*prey\nstart b = 1", ["line 2", "'b'"]),
    "state without an equation": ("prey' = -a*prey\npredator > 0", ["line 2", "'predator'"]),
    "lower above upper bound": ("prey' = -a*prey\n5 < a < 1", ["line 2", "'a'"]),
    "start outside bounds": ("prey' = -a*prey\n0 < a < 1\nstart a = 2", ["'a'", "outside"]),
    "unknown prior": ("prey' = -a*prey\na ~ weibull(1, 1)", ["line 2", "weibull"]),
}


@pytest.mark.parametrize("case", BAD_MODELS)
def test_bad_equations_are_refused_and_never_run(folder: Path, case: str):
    content, words = BAD_MODELS[case]
    (folder / "m.ode").write_bytes(content if isinstance(content, bytes) else content.encode())
    line = refused(folder, "fit", "m.ode", "d.csv")
    for word in words:
        assert word in line


BAD_FLAGS = {
    "gamma beyond squares": (["fit", "m.ode", "d.csv", "--gamma", "1e308"], ["--gamma", "1e100"]),
    "noise beyond squares": (["fit", "m.ode", "d.csv", "--sigma", "prey=1e300"], ["'prey'", "1e100"]),
    "prior below squares": (["fit", "m.ode", "d.csv", "--prior", "a~normal(0,1e-308)"], ["prior of 'a'", "1e-50"]),
    "prior beyond squares": (["fit", "m.ode", "d.csv", "--prior", "a~normal(1e300,1)"], ["prior of 'a'", "1e50"]),
    "a billion starts": (["fit", "m.ode", "d.csv", "--starts", "1000000000"], ["--starts", "at most 10,000"]),
    "a billion grid points": (["fit", "m.ode", "d.csv", "--grid", "1000000000"], ["--grid", "at most 1,000"]),
    "a billion draws": (["compare", "m.ode", "m.ode", "d.csv", "--draws", "1000000000"], ["--draws", "at most"]),
    "a hundred thousand workers": (["compare", "m.ode", "m.ode", "d.csv", "--workers", "100000"], ["workers", "most"]),
    "infinite noise": ([*SIMULATE, "--theta", "a=1,b=1,c=1,d=1", "--noise", "inf"], ["--noise", "inf"]),
    "infinite parameter": ([*SIMULATE, "--theta", "a=inf"], ["'a'", "finite"]),
    "nested JSON": ([*SIMULATE, "--theta", "nested.json"], ["nested.json", "numbers by name"]),
    "deeply nested JSON": ([*SIMULATE, "--theta", "deep.json"], ["deep.json", "numbers by name"]),
    "gigantic JSON": ([*SIMULATE, "--theta", "gigantic.json"], ["gigantic.json", "numbers by name"]),
    "a name of a hundred thousand letters": (["fit", "m.ode", "d.csv", "--set", f"{'q' * 100_000}=0:1"], ["qqq"]),
    "model missing": (["fit", "no.ode", "d.csv"], ["no.ode", "does not exist"]),
    "model is a folder": (["fit", ".", "d.csv"], ["folder"]),
    "data missing": (["fit", "m.ode", "no.csv"], ["no.csv", "No such file"]),
    "data are a folder": (["fit", "m.ode", "."], ["directory"]),
    "no arguments": (["fit"], ["MODEL"]),
    "unknown command": (["fti", "m.ode", "d.csv"], ["fti"]),
    "unknown flag": (["fit", "m.ode", "d.csv", "--sett", "a=0:1"], ["--sett"]),
    "bounds the wrong way": (["fit", "m.ode", "d.csv", "--set", "a=5:1"], ["'a'", "below"]),
    "bounds of a stranger": (["fit", "m.ode", "d.csv", "--set", "pray=0:1"], ["did you mean 'prey'"]),
    "bounds without a colon": (["fit", "m.ode", "d.csv", "--set", "a=5"], ["a=0:100"]),
    "bounds that are text": (["fit", "m.ode", "d.csv", "--set", "a=zero:1"], ["'zero'", "not a number"]),
    "bounds that are nan": (["fit", "m.ode", "d.csv", "--set", "a=nan:1"], ["'a'", "nan"]),
    "start outside bounds": (["fit", "m.ode", "d.csv", "--set", "a=0:1", "--start", "a=2"], ["start", "outside"]),
    "start of a stranger": (["fit", "m.ode", "d.csv", "--start", "q=2"], ["'q'"]),
    "fixed outside bounds": (["fit", "m.ode", "d.csv", "--set", "a=0:1", "--fixed", "a=-1"], ["fixed", "outside"]),
    "fixed twice": (["fit", "m.ode", "d.csv", "--fixed", "a=1", "--fixed", "a=2"], ["--fixed", "twice"]),
    "fixed at infinity": (["fit", "m.ode", "d.csv", "--fixed", "a=inf"], ["'a'", "finite"]),
    "log of a stranger": (["fit", "m.ode", "d.csv", "--log", "q"], ["'q'"]),
    "noise of a stranger": (["fit", "m.ode", "d.csv", "--sigma", "pray=1"], ["did you mean 'prey'"]),
    "negative noise": (["fit", "m.ode", "d.csv", "--sigma", "prey=-1"], ["'prey'", "positive"]),
    "prior that is no prior": (["fit", "m.ode", "d.csv", "--prior", "a=2"], ["--prior", "normal"]),
    "unknown prior": (["fit", "m.ode", "d.csv", "--prior", "a~weibull(1,1)"], ["weibull", "normal"]),
    "negative prior sd": (["fit", "m.ode", "d.csv", "--prior", "a~normal(0,-1)"], ["'a'", "positive"]),
    "input the model lacks": (["fit", "m.ode", "d.csv", "--input", "u"], ["'u'"]),
    "input without a column": (["fit", "m.ode", "d.csv", "--input", "a"], ["'a'", "column"]),
    "duplicate times": (["fit", "m.ode", "twice.csv", "--replicates", "error"], ["2 values at time 2", "mean"]),
    "unknown replicates": (["fit", "m.ode", "d.csv", "--replicates", "median"], ["'median'", "'mean'"]),
    "unknown method": (["fit", "m.ode", "d.csv", "--method", "newton"], ["'newton'", "odin"]),
    "unknown kernel": (["fit", "m.ode", "d.csv", "--kernel", "zzz"], ["'zzz'", "auto", "rbf", "matern52"]),
    "unknown optimizer": (["fit", "m.ode", "d.csv", "--optimizer", "zzz"], ["gauss-newton", "lbfgsb"]),
    "unknown system": (["fit", "m.ode", "d.csv", "--paper", "zzz"], ["lotka_volterra"]),
    "gamma that is text": (["fit", "m.ode", "d.csv", "--gamma", "big"], ["'learn'", "'big'"]),
    "negative gamma": (["fit", "m.ode", "d.csv", "--gamma", "-1"], ["gamma", "negative"]),
    "no starts": (["fit", "m.ode", "d.csv", "--starts", "0"], ["starts", "1"]),
    "no grid": (["fit", "m.ode", "d.csv", "--grid", "0"], ["grid", "1"]),
    "grid that is text": (["fit", "m.ode", "d.csv", "--grid", "fine"], ["--grid", "integer"]),
    "negative seed": (["fit", "m.ode", "d.csv", "--seed", "-1"], ["--seed"]),
    "truth of a stranger": (["fit", "m.ode", "d.csv", "--truth", "q=1"], ["--truth", "'q'"]),
    "truth missing": (["fit", "m.ode", "d.csv", "--truth", "no.json"], ["no.json"]),
    "truth that is no JSON": (["fit", "m.ode", "d.csv", "--truth", "d.csv"], ["d.csv", "JSON"]),
    "output is a file": (["fit", "m.ode", "d.csv", "-o", "d.csv"], ["cannot write", "d.csv"]),
    "output below a file": (["fit", "m.ode", "d.csv", "-o", "d.csv/deep/er"], ["cannot write"]),
    "output not writable": (["fit", "m.ode", "d.csv", "-o", "/proc/odinfer"], ["cannot write"]),
    "check of bad bounds": (["check", "m.ode", "d.csv", "--set", "a=5:1"], ["'a'", "below"]),
    "simulate without times": (["simulate", "m.ode", "--x0", "prey=1"], ["--times"]),
    "simulate with text times": (["simulate", "m.ode", "--x0", "prey=1,predator=1", "--times", "0:b:3"], ["'b'"]),
    "simulate without a count": (["simulate", "m.ode", "--x0", "prey=1,predator=1", "--times", "0:1"], ["COUNT"]),
    "simulate a stranger": (["simulate", "m.ode", "--x0", "pray=1", "--times", "0:1:3"], ["did you mean 'prey'"]),
    "simulate to a folder": (["simulate", "m.ode", "--x0", "prey=1", "--times", "0:1:3", "-o", "."], ["folder"]),
    "unknown example": (["example", "lotka"], ["lotka_volterra"]),
}


@pytest.mark.parametrize("case", BAD_FLAGS)
def test_bad_flags_are_refused_in_words_of_the_user(folder: Path, case: str):
    arguments, words = BAD_FLAGS[case]
    line = refused(folder, *arguments)
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "m.ode", "--x0", "prey=1,predator=1", "--times", "0:1:3", "--theta", "a=1"], ["b, c, d"]),
        (["simulate", "m.ode", "--x0", "prey=1", "--times", "0:1:3", "--theta", "a=1,b=1,c=1,d=1"], ["predator"]),
        (
            ["simulate", "m.ode", "--x0", "prey=1,predator=1", "--times", "2,1", "--theta", "a=1,b=1,c=1,d=1"],
            ["increasing"],
        ),
    ],
)
def test_simulations_that_lack_something_are_refused(folder: Path, arguments: list[str], words: list[str]):
    line = refused(folder, *arguments)
    for word in words:
        assert word in line


@pytest.mark.parametrize("command", ["fit", "check"])
def test_equations_that_are_not_finite_at_the_data_are_refused_with_the_place(folder: Path, command: str):
    (folder / "m.ode").write_text("prey' = a*log(prey - 100)\npredator' = -c*predator")
    line = refused(folder, command, "m.ode", "d.csv")
    assert "'prey'" in line
    assert "not finite at t = 0" in line


def test_a_warning_about_other_columns_does_not_hide_the_error(folder: Path):
    (folder / "d.csv").write_text("time,prey,predator,note\n" + "\n".join(f"{row},x" for row in ROWS))
    assert "below" in refused(folder, "fit", "m.ode", "d.csv", "--set", "a=5:1")


def test_debug_shows_the_traceback_and_keeps_the_exit_code(folder: Path):
    run = odinfer("fit", "m.ode", "d.csv", "--set", "a=5:1", "--debug", cwd=folder)
    assert run.code == 2
    assert "Traceback" in run.stderr
    assert run.stderr.splitlines()[-1].startswith("error: ")


def test_an_unexpected_exception_is_one_line_and_exit_code_70(folder: Path):
    code = (
        "import odinfer.model.model as m; from odinfer.apps.command.cli import main\n"
        "def broken(*a): raise RuntimeError('oops')\nm.Model.from_text = broken; main()"
    )
    run = odinfer("fit", "m.ode", "d.csv", cwd=folder, code=code)
    assert run.code == 70
    assert run.stderr == "internal error: RuntimeError: oops (run again with --debug)\n"


def test_bad_data_and_flags_are_refused_before_jax_is_loaded(folder: Path):
    code = "import sys; from odinfer.apps.command.cli import main\ntry: main()\nfinally: print('jax' in sys.modules)"
    run = odinfer("fit", "m.ode", "d.csv", "-o", "d.csv", cwd=folder, code=code)
    assert run.code == 2
    assert run.stdout == "False\n"
