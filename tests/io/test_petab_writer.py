"""What is written as PEtab validates, and has the same likelihood when it is read back."""

import logging

import numpy as np
import pytest

import odinfer as od
from odinfer.errors import InputError
from odinfer.io.petab_reader import nominal
from odinfer.io.petab_writer import write_petab
from odinfer.problem.parameter_vector import ParameterVector

petab = pytest.importorskip("petab.v1")
T = np.arange(6.0)
FALL = 4.0 * np.exp(-0.4 * T) + 0.1 * np.cos(7 * T)
DECAY = "x' = -k*x\n"


def two(**more):
    """Two experiments, of which the second is half the first."""
    return {name: od.Data(T, size * FALL, ["x"], **more) for name, size in (("dry 1", 1.0), ("wet", 0.5))}


def with_input(u):
    return od.Data.join({
        name: od.Data(T, FALL, ["x"], inputs={"u": np.asarray(u) * size}) for name, size in (("a", 1.0), ("b", 2.0))
    })  # fmt: skip


ONE = od.Data(T, FALL, ["x"])
PROBLEMS = {
    "plain": (DECAY, ONE, {}),
    "log, prior, fixed": ("x' = -k*x/V\nlog k; k ~ lognormal(1, 2); V ~ normal(2, 1)\nfixed V = 2", ONE, {}),
    "known noise": (DECAY, ONE, {"sigma": {"x": 0.2}}),
    "experiments with local parameters": (DECAY + "local k; 0 < k < 9", od.Data.join(two()), {}),
    "initial values": ("x' = -k*x\ny' = k*x\nx(0) = a - y(0); 0 < y(0) < 3; x ~ normal(x/2 + y)", ONE, {}),
    "errors by row": (DECAY + "x ~ lognormal(x)", od.Data(T, FALL, ["x"], sd=0.1 + T[:, None] / 9), {}),
    "constant inputs": ("x' = -k*u*x\ninput u", with_input(np.full(6, 3.0)), {}),
    "inputs": ("x' = -k*x + u\ninput u", with_input([0, 1, 0, 2, 2, 1]), {}),
    "steps": ("x' = -k*x + u\nstep u", with_input([0, 1, 0, 2, 2, 1]), {}),
    "events, seen and not": (DECAY + "x(0) = 5; at 2: x = x + a; before 4: x *= 2\nx ~ normal(x, s)", ONE, {}),
    "doses": (DECAY, od.Data(T, FALL, ["x"], doses=[(0, 2), (2.5, 1)]), {}),
    "infusions": (DECAY + "x(0) = 1", od.Data(T, FALL, ["x"], doses=[od.Dose(1.5, 3.0, None, 2.0)]), {}),
    "a later start": ("x' = -k*x*cos(t)", od.Data(T + 3, FALL, ["x"]), {}),
    "a settled system": ("x' = a - k*x\nx(-50) = 0; before 0: x = x + 3; x ~ laplace(x, b)", ONE, {}),
    "definitions and functions": (
        "x' = -rate*x\nrate = where(t > 2 and x > 0.1, k, k/2) + min(k, 0.1)*sign(x); y ~ normal(log(hill(x, 1, 2)))",
        od.Data(T, -FALL, ["y"]),
        {},
    ),
    "names of our own": ("λ' = -pi_*λ\nλ ~ normal(λ, time_)", od.Data(T, FALL, ["λ"]), {}),
    "events of states": (DECAY + "x(0) = 5; when x < c + 1: x = x + a; x ~ normal(x, s); at 3: x /= 2", ONE, {}),
    "events of states in experiments": (
        DECAY + "local k; 0 < k < 9; n' = 0; n(0) = 0; when x < 1.2 and t > lag: n += 1, x += 1; x ~ normal(x + n, s)",
        od.Data.join(two()),
        {},
    ),
    "events of inputs": (
        "x' = -k*x + u\nstep u; when not u < 1.5: x = c; when x > b*u + 1: x -= 1", with_input([0, 1, 0, 2, 2, 1]), {}
    ),
    "events after a later start": (DECAY + "when t >= 4 + lag: x = 3*lag", od.Data(T + 3, FALL, ["x"]), {}),
    "an event and a dose at one time": (
        DECAY + "x(0) = 5; at 2: x = a; x ~ normal(x, s)", od.Data(T, FALL, ["x"], doses=[(2, 1.5)]), {}
    ),
    "conditions of time": (DECAY + "x(0) = 5; when t > 2: x += a; when t >= 3: x *= 2; x ~ normal(x, s)", ONE, {}),
    "options of events": (
        DECAY + "n' = 0; x(0) = 5; n(0) = 0; when x < 3 {delay lag, current values}: x += a; x ~ normal(x + n, s)\n"
        "when x < 2 {priority 2, cancellable, initially false}: n = x; when x < 2 {priority 1}: n = n/2",
        ONE,
        {},
    ),
    "a Laplace prior": ("x' = -k*x/V\nlog k; k ~ nearlaplace(1, 2); V ~ laplace(2, 1)\nfixed V = 2", ONE, {}),
    "steps of functions": ("x' = -k*x*(1 + floor(x)/9 + ceil(t)/99) + asinh(k)/99", ONE, {}),
    "replicates": (DECAY + "x(0) = a", None, {}),
}  # fmt: skip


def posed(name):
    text, data, more = PROBLEMS[name]
    if data is None:
        with pytest.warns(od.InputWarning, match="independent observations"):
            data = od.Data(np.repeat(T, 2), np.repeat(FALL, 2) + np.tile([0.0, 0.2], 6), ["x"])
    return od.Problem(od.Model.from_text(text), data, **more)


def values_of(problem):
    rng = np.random.default_rng(3)
    return {name: float(v) for name in ParameterVector(problem, noise=True).names for v in [rng.uniform(0.3, 1.5)]}


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("petab").setLevel(logging.ERROR)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_it_validates_and_has_the_same_likelihood_when_it_is_read_back(name, tmp_path):
    problem = posed(name)
    values = values_of(problem)
    path, *_ = write_petab(problem, tmp_path, values)
    assert not petab.lint_problem(petab.Problem.from_yaml(str(path)))
    again = od.read_petab(path)
    assert len(again.free) == len(values)
    assert od.loglik(again, nominal(path)) == pytest.approx(od.loglik(problem, values), rel=1e-6, abs=1e-5)


def test_a_fit_writes_its_estimates(lv_fit, tmp_path):
    path = lv_fit.to_petab(tmp_path / "new" / "folder")
    values = nominal(path)
    assert values["a"] == pytest.approx(lv_fit.theta["a"])
    best = od.loglik(od.read_petab(path), values)
    assert best == pytest.approx(lv_fit.maximum().loglik, abs=1e-3)
    for name in values:
        assert od.loglik(od.read_petab(path), {**values, name: values[name] * 1.02}) < best


REFUSED = [
    ("x' = -k*x; x ~ poisson(x)", {}, {"y": np.arange(6.0)}, "'x' is poisson, which PEtab does not have"),
    (DECAY, {"limit": np.r_[-1, np.zeros(5)]}, {}, "limits of detection"),
    (DECAY + "x(0) = 1; before 2: x = 1; before 2: x += 1", {}, {}, "several events at time 2"),
]


@pytest.mark.parametrize(("text", "more", "other", "expected"), REFUSED, ids=range(len(REFUSED)))
def test_what_petab_cannot_say_is_named(text, more, other, expected, tmp_path):
    data = od.Data(T, other.get("y", FALL), ["x"], **more)
    with pytest.raises(InputError, match=expected):
        write_petab(od.Problem(od.Model.from_text(text), data), tmp_path)


def test_models_and_priors_that_are_functions_are_refused(tmp_path):
    field = od.Model(lambda t, x, theta: [-theta[0] * x[0]], ["x"], ["k"])
    with pytest.raises(InputError, match="the model is a function"):
        write_petab(od.Problem(field, ONE), tmp_path)
    with pytest.raises(InputError, match="prior that is a function"):
        write_petab(od.Problem(od.Model.from_text(DECAY), ONE, prior=lambda p: p["k"] ** 2), tmp_path)
    with pytest.raises(InputError, match="the prior of 'k'"):
        write_petab(od.Problem(od.Model.from_text(DECAY), ONE, prior={"k": lambda v: v**2}), tmp_path)
