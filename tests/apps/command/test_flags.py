"""From flags and files to a problem: what the user says is what is posed, and every file is read once."""

import builtins
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from apps.command.commands import odinfer
from fits import make_fit
from odinfer.apps.command import example
from odinfer.apps.command.flags import (
    check_uncertainty,
    read_candidates,
    read_method,
    read_problem,
    read_times,
    read_values,
)
from odinfer.errors import InputError
from odinfer.methods import METHODS, method_class

NOTHING = dict.fromkeys(("bounds", "fixed", "start", "log", "real", "prior", "sigma", "input", "time", "map", "sd"))
NOTHING |= {"replicates": "keep"}
FEW = settings(max_examples=25, deadline=None)
NAMES = st.from_regex(r"[a-z]{1,4}", fullmatch=True)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A model with a parameter u, and data with a column of that name."""
    model, data = tmp_path / "m.ode", tmp_path / "d.csv"
    model.write_text("x' = -k*x + g*u\ny' = k*x - y\n")
    t = np.linspace(0.0, 3.0, 9)
    rows = [f"{a},{2 - a / 4},{a / 5},{int(a) % 2}" for a in t.tolist()]
    data.write_text("\n".join(["time,x,y,u", *rows]))
    return model, data


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was opened, by name."""
    counts: Counter[str] = Counter()
    real = io.open

    def counted(file: Any, *more: Any, **options: Any) -> Any:
        counts[Path(str(file)).name] += 1
        return real(file, *more, **options)

    monkeypatch.setattr(io, "open", counted)
    monkeypatch.setattr(builtins, "open", counted)
    return counts


# --- problems


def test_every_flag_reaches_the_problem(files):
    flags = {
        "bounds": ["k=0:10,x=:5", "y=-1:"], "fixed": ["u=2"], "start": ["k=1.5"], "log": ["k"],
        "prior": ["g~normal(2, 0.5)"], "sigma": ["x=0.1"], "real": ["g"],
    }  # fmt: skip
    notes: list[str] = []
    with pytest.warns(od.InputWarning, match="columns not used: 'u'"):
        problem = read_problem(*files, NOTHING | flags, notes)
    assert problem.free == ("k", "g")
    assert (problem.fixed, problem.start, problem.sigma) == ({"u": 2.0}, {"k": 1.5}, {"x": 0.1})
    assert (problem.limits("k"), problem.limits("x"), problem.limits("y")) == ((0, 10), (-np.inf, 5), (-1, np.inf))
    assert problem.limits("g") == (-np.inf, np.inf)
    assert problem.is_log.tolist() == [True, False]
    assert problem.prior == {"g": ("normal", 2.0, 0.5)}
    assert notes == []


def test_a_column_that_the_equations_use_becomes_an_input_and_a_note(files):
    notes: list[str] = []
    problem = read_problem(*files, NOTHING, notes)
    assert (problem.model.inputs, problem.free) == (("u",), ("k", "g"))
    assert notes == ["'u' is a column of the data, so it is a known input; write 'input u' in the model"]
    said: list[str] = []
    assert read_problem(*files, NOTHING | {"input": ["u"]}, said).model.inputs == ("u",)
    assert said == []


@pytest.mark.parametrize("flags", [{}, {"input": ["u"]}, {"fixed": ["u=1"]}], ids=["found", "given", "none"])
@pytest.mark.filterwarnings("ignore:columns not used")
def test_model_and_data_are_opened_once_also_where_a_column_becomes_an_input(files, opened, flags):
    problem = read_problem(*files, NOTHING | flags, [])
    assert problem.model.inputs == (() if "fixed" in flags else ("u",))
    assert (opened["m.ode"], opened["d.csv"]) == (1, 1)


@pytest.mark.filterwarnings("ignore:columns not used")
def test_every_file_of_several_candidates_is_opened_once(files, opened):
    model, data = files
    other = model.with_name("other.ode")
    other.write_text("x' = -k*x [+ g*u]\ny' = k*x [- y | - y^2]")
    notes: list[str] = []
    opened.clear()
    problems = read_candidates([model, other], data, NOTHING, notes)
    assert len(problems) == 1 + 4
    assert [p.model.inputs for p in problems] == [("u",), (), (), ("u",), ("u",)]
    assert {name: opened[name] for name in ("m.ode", "other.ode", "d.csv")} == {"m.ode": 1, "other.ode": 1, "d.csv": 1}
    assert "the optional terms of 'other.ode' make 4 candidates" in notes


def test_a_flag_applies_to_those_candidates_that_have_the_name(files):
    model, data = files
    less = model.with_name("less.ode")
    less.write_text("x' = -k*x\ny' = k*x - y")
    flags = NOTHING | {"bounds": ["g=0:3"], "input": ["u"]}
    with pytest.warns(od.InputWarning, match="columns not used"):
        one, two = read_candidates([model, less], data, flags, [])
    assert one.limits("g") == (0, 3)
    assert (one.model.inputs, two.model.inputs) == (("u",), ())
    assert "g" not in two.model.parameters
    for wrong, words in (({"bounds": ["q=0:1"]}, "--bounds: no candidate has 'q'"), ({"input": ["v"]}, "--input: no")):
        with pytest.raises(InputError, match=words):
            read_candidates([model, less], data, NOTHING | wrong, [])


def test_a_parameter_the_user_speaks_about_is_not_taken_for_a_column(tmp_path: Path):
    ode, data, _ = example.write("driven_oscillator", tmp_path)
    ode.write_text(ode.read_text().replace("input u\n", ""))
    run = odinfer("check", ode, data, "--start", "u=2", "--fixed", "gain=1", cwd=tmp_path)
    assert run.code == 0
    assert "3 parameters to estimate" in run.stdout
    assert "note:" not in run.stderr


def test_inputs_are_found_in_long_tables_too(tmp_path: Path):
    (tmp_path / "m.ode").write_text("x' = -k*x + u")
    rows = [f"{t},{name},{value}" for t in range(6) for name, value in (("x", 5 - t / 2), ("u", t % 2))]
    (tmp_path / "d.csv").write_text("\n".join(["time,observable,value", *rows]))
    run = odinfer("check", "m.ode", "d.csv", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert "1 parameter to estimate" in run.stdout
    assert "'u' is a column" in run.stderr


# --- what the columns mean


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """A model of a height, and a table with other names."""
    model, data = tmp_path / "m.ode", tmp_path / "d.csv"
    model.write_text("h' = r*h*(1 - h/K) + g*rain")
    rows = [f"{tree};{100 * i};{30 + i * i};{i % 3}" for tree in ("oak", "ash") for i in range(6)]
    data.write_text("\n".join(["Tree;Days;height, total [cm];Rain", *rows]))
    return model, data


def test_columns_are_mapped_to_states_inputs_and_roles_and_units_of_time_are_noted(trees):
    notes: list[str] = []
    maps = ["height, total [cm] = h", "Rain=rain", "Tree=experiment"]
    problem = read_problem(*trees, NOTHING | {"map": maps}, notes)
    assert [e.name for e in problem.data.experiments] == ["oak", "ash"]
    assert (problem.model.states, problem.model.inputs) == (("h",), ("rain",))
    assert problem.data.t.tolist() == [0, 100, 200, 300, 400, 500]
    assert "the column 'Days' is taken as the time" in notes
    notes.clear()
    (chosen,) = read_candidates([trees[0]], trees[1], NOTHING | {"map": maps, "time": "Days"}, notes)
    assert chosen.data.t.tolist() == problem.data.t.tolist()
    assert [note for note in notes if "Days" in note] == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"map": ["height, total [cm]"]}, "--map takes COLUMN=NAME, not 'height, total"),
        ({"map": ["=h"]}, "--map takes COLUMN=NAME, not '=h'"),
        ({"map": ["Rain=h", "Rain=rain"]}, "--map names 'Rain' twice"),
        ({"sd": ["h"]}, "--sd takes NAME=COLUMN, not 'h'"),
        ({"sd": ["h=Rain", "h=x"]}, "--sd names 'h' twice"),
        ({"sd": ["w=Rain"]}, "--sd: the model has no 'w'"),
        ({"map": ["Rain=rainfall"]}, "--map: the model has no 'rainfall'; did you mean 'rain'"),
        ({"map": ["Snow=rain"]}, r"d\.csv: columns: there is no column 'Snow'"),
        ({"time": "Day"}, r"d\.csv: time: there is no column 'Day'; did you mean 'Days'"),
        ({}, r"no column 'h'; columns found: .*at least one state"),
    ],
)
def test_columns_that_are_not_there_or_mean_nothing_are_refused(trees, flags, words):
    for read in (read_problem, lambda model, *more: read_candidates([model], *more)):
        with pytest.raises(InputError, match=words):
            read(*trees, NOTHING | flags, [])


@pytest.mark.parametrize("command", ["check", "fit", "compare"])
def test_the_commands_take_the_meaning_of_columns(trees, command):
    options = ["--map", "height, total [cm]=h", "--map", "Tree=experiment", "--time", "Days", "--fixed", "g=0"]
    bad = odinfer(command, *trees, *options, "--map", "Rain=Rainfall", cwd=trees[0].parent)
    assert (bad.code, bad.stderr.count("\n")) == (2, 1)
    assert "--map: the model has no 'Rainfall'" in bad.stderr


# --- values


@FEW
@given(
    values=st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    data=st.data(),
)
def test_values_are_read_as_they_were_written_with_or_without_spaces(values, data):
    gap = data.draw(st.sampled_from(["", " "]))
    text = f"{gap},{gap}".join(f"{name}{gap}={gap}{value!r}" for name, value in values.items())
    assert read_values("--theta", text, values) == values


def test_values_come_from_json_also_from_that_of_a_fit(tmp_path: Path):
    (tmp_path / "plain.json").write_text(json.dumps({"a": 1, "b": 2.5}))
    assert read_values("--truth", str(tmp_path / "plain.json"), "ab") == {"a": 1.0, "b": 2.5}
    fit = make_fit()
    fit.save(tmp_path / "fit.json")
    assert read_values("--truth", str(tmp_path / "fit.json"), fit.parameter_names) == fit.theta


@FEW
@given(start=st.floats(-1e6, 1e6, allow_subnormal=False), span=st.floats(1e-3, 1e6), count=st.integers(2, 50))
def test_times_are_even_or_as_listed(start, span, count):
    t = read_times(f"{start!r}:{start + span!r}:{count}")
    np.testing.assert_array_equal(t, np.linspace(start, start + span, count))
    np.testing.assert_array_equal(read_times(",".join(map(repr, t.tolist()))), t)


@pytest.mark.parametrize("text", ["0:1", "0:1:2.5", "0:1:1", "0:1:1e7", "0:1:2:3", "0:x:3", ""])
def test_times_that_make_no_sense_are_refused_by_the_name_of_the_flag(text: str):
    with pytest.raises(InputError, match="--times"):
        read_times(text)


# --- methods


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_its_defaults_unless_something_is_said(name: str):
    cls = method_class(name)
    assert read_method(name, None, {"kernel": None, "gamma": None}) == cls()
    assert read_method(name, "lotka_volterra", {}) == cls.paper("lotka_volterra")


def test_options_are_those_of_the_method_and_gamma_is_a_number_or_a_word():
    given = {"gamma": "0.5", "grid": 3, "refine": False, "kernel": None}
    assert read_method("odin", None, given) == od.Odin(gamma=0.5, grid=3, refine=False)
    assert read_method("odin", None, {"gamma": "learn"}) == od.Odin()
    assert read_method("odin", "lotka_volterra", {"grid": 2}).grid == 2
    with pytest.raises(InputError, match="the method 'gpr' has no option 'grid'"):
        read_method("gpr", None, {"grid": 3})


def test_kinds_of_uncertainty_are_checked_before_anything_is_computed():
    for kind in (None, "profile", "bootstrap", "sample"):
        check_uncertainty(kind)
    for kind in ("likelihood", "bootstap"):
        with pytest.raises(InputError, match="--uncertainty: unknown kind"):
            check_uncertainty(kind)


@pytest.mark.parametrize("flag", [[], ["--sd", "x=err = 1"]], ids=["by name", "chosen"])
def test_errors_by_row_are_read_whether_named_or_chosen(files, flag):
    model, data = files
    lines = data.read_text().splitlines()
    column = "err = 1" if flag else "x_sd"
    data.write_text("\n".join([f"{lines[0]},{column}", *(f"{line},0.1" for line in lines[1:])]))
    run = odinfer("check", str(model), str(data), *flag, cwd=model.parent)
    assert run.code == 0
    assert "x is normal about x, sd by row." in run.stdout
    data.write_text("\n".join([f"{lines[0]},{column}", *(f"{line},0" for line in lines[1:])]))
    run = odinfer("check", str(model), str(data), *flag, cwd=model.parent)
    assert f"line 2, column '{column}': the standard deviation must be positive, not 0.0" in run.stderr


@pytest.mark.parametrize("name", ["amt", "dose"])
def test_a_column_of_doses_that_the_equations_use_is_an_input(files, name):
    model, data = files
    for path in files:
        path.write_text(path.read_text().replace("u", name))
    notes: list[str] = []
    problem = read_problem(model, data, NOTHING, notes)
    assert (problem.model.inputs, problem.data.experiments[0].doses) == ((name,), ())
    assert len(notes) == 1


def test_flags_are_about_initial_values_columns_and_local_parameters_too(tmp_path: Path):
    model, data = tmp_path / "m.ode", tmp_path / "d.csv"
    model.write_text("x' = -k*x\nz' = x - z\nobs ~ normal(z)\nx(0) = A; local k; z(0) > 0")
    rows = [f"{t},{0.5 + 0.1 * t * (t < 4)},{e}" for e in ("one", "two") for t in range(6)]
    data.write_text("\n".join(["time,obs,experiment", *rows]))
    said = {"prior": ["z(0)~lognormal(2, 0.5)"], "fixed": ["A=3"], "bounds": ["k[one]=0:9"], "sigma": ["obs=0.1"]}
    problem = read_problem(model, data, {**NOTHING, **said}, [])
    assert problem.parameters == ("k[one]", "k[two]", "A", "z(0)[one]", "z(0)[two]")
    assert problem.prior["z(0)[two]"] == ("lognormal", 2.0, 0.5)
    assert problem.limits("k[one]") == (0.0, 9.0)
    assert problem.limits("k[two]") == (0.0, np.inf)
    assert problem.sigma == {"obs": 0.1}
