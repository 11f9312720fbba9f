"""The log-likelihood at given values is that of closed forms and of other solvers, stiff or not."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

import odinfer as od
from odinfer.errors import InputError
from odinfer.likelihood.loglik import at, loglik, solutions
from odinfer.ode.reference import reference_trajectory

T = np.array([0.0, 0.5, 1.0, 2.0])


def decay(text="", y=(3.0, 2.2, 1.4, 0.8), **more):
    return od.Problem(od.Model.from_text(f"x' = -k*x\n{text}"), od.Data(T, np.array(y), ["x"]), **more)


def test_a_plain_problem_has_the_best_noise_or_the_one_that_is_given():
    problem, y = decay(), np.array([3.0, 2.2, 1.4, 0.8])
    m = 3.1 * np.exp(-0.7 * T)
    best = stats.norm.logpdf(y, m, np.sqrt(np.mean((y - m) ** 2))).sum()
    assert loglik(problem, {"k": 0.7, "x(0)": 3.1}) == pytest.approx(best, abs=1e-7)
    given = stats.norm.logpdf(y, m, 0.2).sum()
    assert loglik(problem, {"k": 0.7, "x(0)": 3.1, "sigma x": 0.2}) == pytest.approx(given, abs=1e-7)
    assert loglik(decay(sigma={"x": 0.2}), {"k": 0.7, "x(0)": 3.1}) == pytest.approx(given, abs=1e-7)


def test_priors_have_no_part_in_it():
    one, two = decay("k ~ normal(2, 0.1)\nx(0) = 3"), decay("x(0) = 3")
    assert loglik(one, {"k": 0.7}) == loglik(two, {"k": 0.7})


def test_the_maximum_is_that_of_a_fit(lv, lv_data, lv_fit):
    best = lv_fit.maximum().refined
    x0 = {f"{name}(0)": value for name, value in zip(lv.model.states, best.paths[0].x0, strict=True)}
    value = loglik(od.Problem(lv.model, lv_data, positive=False), {**lv_fit.theta, **x0})
    assert value == pytest.approx(best.loglik, abs=1e-4)


def test_experiments_events_and_local_values_are_followed():
    model = od.Model.from_text("x' = -k*x\nlocal k\nx(0) = a\nfixed a = 4\nat 1: x = x + 1\nx ~ normal(x, 0.1)")
    data = od.Data.join({name: od.Data(T, [4.1, 2.0, 1.1, 1.5], ["x"]) for name in ("one", "two")})
    right = 0.0
    for k in (1.0, 2.0):
        before, after = 4 * np.exp(-k * T), (4 * np.exp(-k) + 1) * np.exp(-k * (T - 1))
        right += stats.norm.logpdf([4.1, 2.0, 1.1, 1.5], np.where(T > 1, after, before), 0.1).sum()
    assert loglik(od.Problem(model, data, positive=False), {"k[one]": 1.0, "k[two]": 2.0}) == pytest.approx(
        right, abs=1e-7
    )


def test_fixed_values_may_be_given_others():
    problem = decay("x(0) = 3; x ~ normal(x, s); fixed s = 1")
    assert loglik(problem, {"k": 0.7, "s": 2.0}) < loglik(problem, {"k": 0.7, "s": 0.2})


def test_stiff_equations_are_as_right_as_easy_ones():
    text = "a' = -0.04*a + e*b*c\nb' = 0.04*a - e*b*c - 3e7*b^2\nc' = 3e7*b^2\na(0) = 1; b(0) = 0; c(0) = 0\n"
    t = 10.0 ** np.arange(0, 7)
    model = od.Model.from_text(text + "b ~ lognormal(b, 0.01)")

    def field(_, x):
        r1, r2, r3 = 0.04 * x[0], 1e4 * x[1] * x[2], 3e7 * x[1] ** 2
        return [-r1 + r2, r1 - r2 - r3, r3]

    right = solve_ivp(field, (0, t[-1]), [1.0, 0, 0], "Radau", t, rtol=1e-11, atol=1e-18).y[1]
    y = right * np.exp(0.01 * np.arange(7))
    found = loglik(od.Problem(model, od.Data(t, y, ["b"]), positive=False), {"e": 1e4})
    assert found == pytest.approx(stats.lognorm.logpdf(y, 0.01, scale=right).sum(), abs=1e-3)


def test_a_trajectory_that_ends_is_impossible():
    problem = od.Problem(
        od.Model.from_text("x' = k*x^2\nx(0) = 1\nx ~ normal(x, 1)"), od.Data(T, T + 1, ["x"]), positive=False
    )
    assert loglik(problem, {"k": 5.0}) == -np.inf


def test_states_are_those_before_what_jumps_then():
    problem = decay("x(0) = 3; at 1: x = 5; before 2: x = 7; x ~ normal(x, 1)")
    (x,) = solutions(*at(problem, {"k": 0.7}))
    np.testing.assert_allclose(x[0, :, 0], [3, 3 * np.exp(-0.35), 3 * np.exp(-0.7), 7], rtol=1e-8)
    condition = problem.condition(0)
    np.testing.assert_allclose(
        reference_trajectory(condition, np.array([0.0]), np.array([3.0]), np.array([0.5])), [[3.0]]
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"k": 1.0}, "'x\\(0\\)' has no value"),
        ({"k": 1.0, "x(0)": 1.0, "kk": 1.0}, "no 'kk'; did you mean 'k'"),
        ({"k": np.nan, "x(0)": 1.0}, "the value of 'k'"),
        ({"k": -1.0, "x(0)": 1.0}, "'k' must be positive"),
    ],
)
def test_values_that_are_missing_or_of_nothing_are_refused(values, expected):
    with pytest.raises(InputError, match=expected):
        loglik(decay("log k"), values)


def test_a_system_that_has_not_settled_is_said_to_be_so():
    text = "x(-1000000) = 0; x' = {}*(k - x); y ~ normal(x, 0.1)"
    data = od.Data(T, [2.0, 2.1, 1.9, 2.0], ["y"])
    for rate in (1e-3, 1e-6):  # the steady state is solved for where it is reached slowly
        model = od.Model.from_text(text.format(rate))
        assert loglik(od.Problem(model, data, positive=False), {"k": 2.0}) == pytest.approx(
            stats.norm.logpdf([0, 1, 1, 0]).sum() + 4 * np.log(10), abs=1e-4
        )
    drift = od.Model.from_text("x(-1000000) = 0; x' = 1e-6*k; y ~ normal(x, 0.1)")
    with pytest.warns(od.InputWarning, match="x has not settled"):
        loglik(od.Problem(drift, data, positive=False), {"k": 2.0})


SPIKES = "V' = I - V; V(0) = 0; when V > c: V = 0; V ~ normal(V, 0.1); local c; fixed I = 2"


def test_events_that_states_make_happen_have_a_likelihood():
    y = [0.0, 0.7, 0.5, 0.2]
    data = od.Data.join({name: od.Data(T, y, ["V"]) for name in ("one", "two")})
    right = 0.0
    for c in (1.0, 0.6):
        right += stats.norm.logpdf(y, 2 * (1 - np.exp(-(T % np.log(2 / (2 - c))))), 0.1).sum()
    problem = od.Problem(od.Model.from_text(SPIKES), data, positive=False)
    assert loglik(problem, {"c[one]": 1.0, "c[two]": 0.6}) == pytest.approx(right, abs=1e-6)


def test_events_that_come_ever_faster_are_impossible():
    ball = od.Model.from_text("h' = v; v' = -9.81; when h < 0: h = 0, v = -r*v; h(0) = 1; v(0) = 0; h ~ normal(h, 1)")
    problem = od.Problem(ball, od.Data(T, T, ["h"]), positive=False)
    assert np.isfinite(loglik(problem, {"r": 0.9}))
    assert loglik(problem, {"r": 0.3}) == -np.inf


def test_one_time_at_the_start_is_where_it_starts():
    model = od.Model.from_text("x' = -k*x; x(0) = a; when x < 1: x = 2; x ~ normal(x, 1)")
    data = od.Data.join({"all": od.Data(T, T, ["x"]), "first": od.Data([0.0], [3.0], ["x"])})
    alone = od.Problem(model, od.Data(T, T, ["x"]), positive=False)
    values = {"k": 0.5, "a": 3.0}
    assert loglik(od.Problem(model, data, positive=False), values) == pytest.approx(
        loglik(alone, values) + stats.norm.logpdf(0)
    )
