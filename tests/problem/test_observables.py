"""What is observed: columns are found, refused where they cannot be, and what nothing shows is named before a fit."""

import numpy as np
import pytest

import odinfer as od
from odinfer.problem.observables import columns_of

T = np.arange(8.0)
DECAY = "x' = -k*x"


def data(*names, values=1.0, **more):
    y = np.broadcast_to(values, (len(T), len(names))) + 0.1 * np.arange(8.0)[:, None]
    return od.Data(T, y, states=names, **more)


def test_a_column_is_a_state_a_definition_or_has_a_distribution():
    model = od.Model.from_text("x' = -k*x; y' = k*x; total = x + y; n ~ poisson(rho*x)")
    y = np.column_stack([T + 0.5, T, T**2])
    problem = od.Problem(model, od.Data(T, y, states=["total", "n", "x"]))
    assert problem.columns == ("x", "n", "total")
    assert [c.words for c in problem.observed] == ["normal", "poisson", "normal"]
    assert problem.hidden == ("y",)
    assert not problem.fully_observed_gaussian
    assert problem.estimated_noise == (True, False, True)


def test_every_state_observed_as_it_is_is_plain_and_anything_else_is_not():
    model = od.Model.from_text(DECAY)
    assert od.Problem(model, data("x")).fully_observed_gaussian
    assert od.Problem(od.Model.from_text(DECAY + "; x ~ normal(x)"), data("x")).fully_observed_gaussian
    assert od.Problem(od.Model.from_text(DECAY + "; local k"), data("x")).fully_observed_gaussian
    assert not od.Problem(od.Model.from_text(DECAY + "; x ~ normal(2*x)"), data("x")).fully_observed_gaussian
    for more in ({"initial": {"x": 1}}, {"observe": [od.Observe("x", "lognormal(x)")]}, {"events": "at 3: x = 1"}):
        assert not od.Problem(model, data("x"), **more).fully_observed_gaussian
    assert not od.Problem(model, data("x", sd=np.ones((8, 1)))).fully_observed_gaussian
    assert not od.Problem(model, data("x", doses=[(3.0, 1.0)])).fully_observed_gaussian


def test_statements_in_python_and_in_the_text_are_the_same_for_text_and_functions():
    said = "n ~ poisson(rho*x); x(0) = a; local a; at 3: x = 2*x"
    given = {
        "observe": od.Observe("n", "poisson(rho*x)"), "initial": {"x": "a"}, "local": ["a"], "events": ["at 3: x = 2*x"]
    }  # fmt: skip
    counts = od.Data(T, np.arange(8.0)[:, None], states=["n"])
    in_text = od.Problem(od.Model.from_text(f"{DECAY}; {said}"), counts)
    in_python = od.Problem(od.Model.from_text(DECAY), counts, **given)
    function = od.Model(lambda t, x, theta: [-theta[0] * x[0]], ["x"], ["k"])
    by_function = od.Problem(function, counts, **given)
    for problem in (in_text, in_python, by_function):
        assert set(problem.parameters) == {"k", "rho", "a"}
        assert problem.model.declarations.local == ("a",)
        assert [j.time for j in problem.condition(0).jumps] == [3.0]
        theta = np.array([[{"k": 0.5, "rho": 2.0, "a": 7.0}[n] for n in problem.parameters]])
        assert problem.condition(0).initial(theta, np.empty((1, 0)))[0, 0] == 7.0
        x = np.full((1, 1), 3.0)
        assert problem.observation_program.evaluate(np.zeros(1), x, theta, np.zeros((1, 0)))[0, 0] == 6.0
    f = by_function.model.evaluate(np.zeros(1), np.ones((1, 1)), np.array([0.5, 2.0, 7.0]), np.zeros((1, 0)))
    assert f[0, 0] == -0.5


@pytest.mark.parametrize(
    ("text", "columns", "values", "words"),
    [
        (DECAY + "; n ~ poisson(x)", ["n"], -3.0, "'n' is -3 at 0, but poisson data"),
        (DECAY + "; n ~ poisson(x)", ["n"], 0.5, "'n' is 0.5 at 0, but poisson data"),
        (DECAY + "; x ~ lognormal(x)", ["x"], 0.0, "'x' is 0 at 0, but lognormal data"),
        (DECAY + "; n ~ poisson(x)", ["x"], 1.0, "line 1: the data have no column 'n'"),
        (DECAY + "; n ~ poisson(x)", ["x", "n"], np.array([1.0, np.nan]), "column 'n' of the data has no value"),
        (DECAY + "; other = q*x", ["x"], 1.0, "parameter 'q' has no influence on anything observed"),
        (DECAY, ["z"], 1.0, "column 'z' of the data is no state and no definition"),
    ],
)
def test_what_cannot_be_observed_or_estimated_is_refused_by_name(text, columns, values, words):
    with pytest.raises(od.InputError, match=words):
        od.Problem(od.Model.from_text(text), data(*columns, values=values))


def test_a_state_that_acts_through_others_or_an_event_is_no_idle_one():
    chain = "a' = -k*a; b' = k*a - k*b; x' = k*b - k*x"
    assert od.Problem(od.Model.from_text(chain), data("x")).hidden == ("a", "b")
    reset = "x' = -k*x; stock' = -q; at 3: x = x + stock"
    assert od.Problem(od.Model.from_text(reset), data("x")).hidden == ("stock",)


def test_standard_deviations_by_row_stand_in_for_one_that_is_left_out_only():
    model = od.Model.from_text(DECAY + "; x ~ normal(x, s)")
    with pytest.raises(od.InputError, match="standard deviations by row, but also a distribution"):
        columns_of(model, data("x", sd=np.ones((8, 1))))
    problem = od.Problem(od.Model.from_text(DECAY), data("x", sd=np.full((8, 1), 0.3)))
    assert problem.estimated_noise == (False,)


def test_what_is_no_statement_is_refused():
    model = od.Model.from_text(DECAY)
    with pytest.raises(od.InputError, match=r'observe takes Observe\("column"'):
        od.Problem(model, data("x"), observe=["x ~ normal(x)"])
    with pytest.raises(od.InputError, match="initial: the model has no state 'y'"):
        od.Problem(model, data("x"), initial={"y": 1})
    with pytest.raises(od.InputError, match="dictionary by state"):
        od.Problem(model, data("x"), initial=[1.0])


def test_statements_from_python_are_single_and_errors_name_them():
    model = od.Model.from_text(DECAY)
    with pytest.raises(od.InputError, match="'at 4: z = 1': "):
        od.Problem(model, data("x"), events=["at 3: x = 1", "at 4: z = 1"])
    for bad in ({"initial": {"x": "5\nk = 3"}}, {"observe": od.Observe("x", "normal(x); y = 1")}):
        with pytest.raises(od.InputError, match="more than one statement"):
            od.Problem(model, data("x"), **bad)
    with pytest.raises(od.InputError, match=r"'3': "):
        od.Problem(model, data("x"), events=[3])


def test_a_known_sigma_of_a_column_that_says_its_own_is_refused():
    model = od.Model.from_text(DECAY + "; x ~ poisson(x)")
    with pytest.raises(od.InputError, match="sigma: the distribution of 'x' says how it scatters"):
        od.Problem(model, od.Data(T, T[:, None], ["x"]), sigma={"x": 1.0})


@pytest.mark.parametrize("said", ["", "; x(0) = 2", "; x(t0) = 2", "; z(t0) = 3"])
def test_a_hidden_state_without_influence_starts_from_zero_or_its_declared_value(said):
    problem = od.Problem(od.Model.from_text(f"{DECAY}; z' = x{said}"), data("x"))
    assert problem.hidden == problem.undetermined_states == ("z",)
    theta = np.ones((1, len(problem.model.parameters)))
    x0 = problem.condition(0).initial(theta, np.ones((1, len(problem.model.free_initial))))
    assert x0[0, 1] == (3.0 if "z(" in said else 0.0)


def test_what_an_input_chooses_has_an_influence():
    model = od.Model.from_text("x' = -rate*x\nrate = piecewise(a, u == 3, b)\ninput u")
    parts = {str(u): od.Data(T, 9.0 - T, ["x"], inputs={"u": np.full(len(T), u)}) for u in (3.0, 4.0)}
    assert od.Problem(model, od.Data.join(parts)).free == ("a", "b")
    with pytest.raises(od.InputError, match="parameter 'a' has no influence"):
        od.Problem(model, parts["4.0"])


def test_what_decides_when_something_changes_has_an_influence():
    text = "x' = 1; y' = 0*x; x(0) = 0; when x > c: y = y + d; y ~ normal(y, 1)"
    problem = od.Problem(od.Model.from_text(text), od.Data(T, T, ["y"]))
    assert problem.free == ("c", "d")
    assert not problem.fully_observed_gaussian
    with pytest.raises(od.InputError, match="'b' has no influence"):
        od.Problem(od.Model.from_text(text + "; z' = b; z(0) = 0"), od.Data(T, T, ["y"]))
