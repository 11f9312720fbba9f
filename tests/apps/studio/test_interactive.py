"""What is said to somebody who types: the place of an error, what the columns are, what a trajectory needs."""

import json
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from odinfer.apps.command.example import FOLDER, names
from odinfer.apps.studio import interactive
from odinfer.apps.studio.interactive import Source, choice_of, table, understand
from odinfer.errors import InputError
from odinfer.noise import FAMILIES

NOTHING = choice_of({})


def error(text: str):
    return understand(text, "m", None)["error"]


@pytest.mark.parametrize(
    ("text", "line", "marked"),
    [
        ("x' = -k*x\ny' = 3 x", 2, "3 x"),
        ("x' = -k*(x", 1, "("),
        ("x' = -k*x)", 1, ")"),
        ("x' = -k*x -", 1, "-"),
        ("x' = x[t-1]", 1, "x[t-1]"),
        ("x' = sinn(x)", 1, "sinn(x)"),
        ("x' = x^2 + foo.bar", 1, "foo.bar"),
        ("x' = 1/0*x", 1, "1/0"),
        ("x' = a*x\n# fine\n  wrong line", 3, "wrong line"),
        ("x' = a*x\nx' = 2*x", 2, "x"),
        ("x' = a*x\nb > 3", 2, "b"),
        ("x' = a*x; 1 < a < 0", 1, "a"),
        ("x' = x^2*bar(x)", 1, "bar(x)"),
    ],
)
def test_an_error_is_marked_where_it_is(text, line, marked):
    found = error(text)
    assert found["line"] == line
    content = text.split("\n")[line - 1]
    assert content[found["start"] : found["end"]] == marked


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("x = a*x\ny' = x", "write x' = ... for how fast it changes"),
        ("x' == a*x", "write one = where an equation is meant"),
        ("x' = a x", "write a*x"),
        ("x' = 2x", "write 2*x"),
        ("x' = 0,5*x", "write numbers with a point"),
        ("x' = a*x +", "something is missing after '+'"),
        ("x' = a*x^", "something is missing after '^'"),
        ("x' = a if x > 1 else b", "write where(condition, a, b)"),
        ("x' = exp -x", "write exp(...)"),
        ("x' = sin x", "write sin(x)"),
        ("x' = |x|", "write abs(x)"),
        ("x' = a*x // decay", "# before a comment"),
        ("x' = a*x\na > 0 and a < 1", "write both bounds as in 0 < a < 1"),
        ("x' = a*x\nx(0) = 1, a > 2", "one statement a line"),
        ("x' = a*x[t-1]", "optional terms"),
        ("x' = a*x\na ~ N(0, 1)", "choose from: normal"),
        ("x' = a*x\nb > 1", "not a name in the equations"),
        ("x' = sinn(x)", "did you mean 'sin'?"),
        ("x(t)' = a*x", "without (t)"),
        ("", "such as x' = -k*x"),
    ],
)
def test_the_mistakes_of_beginners_are_told_what_to_write(text, advice):
    assert advice in error(text)["message"]


def test_derivatives_in_brackets_and_names_that_are_nearly_others_are_understood():
    assert understand("d(prey)/dt = a*prey", "m", None)["states"] == ["prey"]
    assert understand("prey' = a*preyy", "m", None)["notes"] == [
        "'preyy' is taken as a parameter; did you mean 'prey'?"
    ]
    assert understand("prey' = rate_1*prey - rate_2", "m", None)["notes"] == []


@given(st.text(max_size=80))
def test_any_text_is_understood_or_marked(text):
    found = understand(text, "m", None)
    json.dumps(found, allow_nan=False)
    if found["error"] and found["error"]["line"]:
        e = found["error"]
        assert 0 <= e["start"] <= e["end"]
        assert not e["message"].startswith("line ")


@pytest.mark.parametrize("name", names())
def test_examples_are_plain_data(name):
    source = Source(FOLDER / f"{name}.csv", NOTHING)
    text = (FOLDER / f"{name}.ode").read_text()
    found = understand(text, name, source)
    json.dumps(found, allow_nan=False)
    assert found["error"] is found["data_error"] is None
    json.dumps(table(source), allow_nan=False)


def test_columns_are_said_to_be_what_they_are(tmp_path: Path):
    path = tmp_path / "d.csv"
    rows = "".join(f"{i},a,{i},{i * i},0.1,\n" for i in range(6))
    path.write_text(f"Days,subject,weight [kg],y,y_sd,amt\n{rows}")
    found = table(Source(path, NOTHING))
    assert {c["name"]: c["role"] for c in found["columns"]} == {
        "Days": "time", "subject": "experiment", "weight [kg]": None, "y": None, "y_sd": "errors of y",
        "amt": "amt",
    }  # fmt: skip
    said = understand("w' = r*w", "m", Source(path, choice_of({"names": {"weight [kg]": "w"}})))
    assert said["observed"] == ["w"]
    assert said["experiments"][0]["first"] == {"w": 0.0}
    other = table(Source(path, choice_of({"time": "y"})))
    assert {c["name"]: c["role"] for c in other["columns"]}["y"] == "time"
    assert {c["name"]: c["role"] for c in other["columns"]}["Days"] is None


def test_what_the_data_lack_is_said_and_the_model_is_drawn_nevertheless(tmp_path: Path):
    path = tmp_path / "d.csv"
    path.write_text("time,z\n" + "".join(f"{i},{i}\n" for i in range(6)))
    found = understand("x' = -k*x", "m", Source(path, NOTHING))
    assert "no column 'x'" in found["data_error"]
    assert found["data_error"].endswith("choose one under Columns")
    assert str(tmp_path) not in found["data_error"]
    assert found["states"] == ["x"]
    path.write_text("a,b\n1,2\n3,4\n")
    interactive._raw.cache_clear()
    assert "choose it under Columns" in table(Source(path, NOTHING))["error"]


def test_optional_terms_are_candidates_of_which_the_longest_is_drawn():
    found = understand("x' = -k*x [+ c]", "m", None)
    assert found["candidates"] == 2
    assert [p["name"] for p in found["parameters"]] == ["k", "c"]


@pytest.mark.parametrize("given", [{"time": 3}, {"names": {"a": 1}}, {"names": {"a": "x" * 2000}}])
def test_choices_are_texts(given):
    with pytest.raises(InputError):
        choice_of(given)


def test_every_family_of_noise_is_offered_and_what_the_data_refuse_is_said(tmp_path: Path):
    (tmp_path / "d.csv").write_text("time,n,x,y,y_sd\n" + "".join(f"{i},{i},{i + 1}.5,{i},0.1\n" for i in range(6)))
    text = "x' = -k*x; y' = x\nn ~ poisson(x)\nm = x + y"
    found = understand(text, "m", Source(tmp_path / "d.csv", NOTHING))
    assert found["error"] is found["data_error"] is None
    assert set(found["families"]) == set(FAMILIES)
    assert found["families"]["student"]["defaults"] == {"df": 4.0}
    assert set(found["scatter"]["n"]["refused"]) == {"lognormal", "loglaplace"}  # there is a zero
    assert set(found["scatter"]["x"]["refused"]) == {"poisson", "negbinomial", "binomial"}
    assert found["scatter"]["y"]["by_row"]
    assert found["scatter"]["y"]["refused"]["student"] == "has errors by row"
    assert "normal" not in found["scatter"]["y"]["refused"]
    assert (found["observable"], found["silent"]) == (["x", "y", "n", "m"], ["x", "y", "m"])
    json.dumps(found)


def test_curves_with_events_that_states_make_happen_are_not_drawn_and_that_is_said(tmp_path: Path):
    (tmp_path / "d.csv").write_text("time,V\n0,0\n1,0.7\n2,0.3\n3,0.8\n")
    text = "V' = I - V\nwhen V > 1: V = 0"
    for source in (None, Source(tmp_path / "d.csv", choice_of({}))):
        found = understand(text, "m", source)
        assert (found["error"], found["data_error"], found["experiments"]) == (None, None, [])
        assert found["notes"] == ["events that states make happen are not drawn here; odinfer simulate follows them"]
