"""From the numbers of a method, or its draws, to a fit with extras."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS
from odinfer.gp.curves import Curve
from odinfer.gp.standardisation import Units
from odinfer.paper.fgpgm import Fgpgm
from odinfer.result.assemble import assemble, named, residual_squares, stage
from odinfer.result.extras import with_extras
from odinfer.result.from_draws import Draws, thin, to_fit

T = np.linspace(0.0, 2.0, 5)


@dataclass(frozen=True)
class Guess:
    """A method in name only."""

    bounds: tuple[float, float] = (0.0, 1.0)
    steps: int = 3
    name = "guess"


@pytest.fixture(scope="module")
def problem(lv) -> od.Problem:
    """Two experiments with a missing cell; a is fixed, b bounded."""
    y = lv.states(T) + 0.1 * np.random.default_rng(0).normal(size=(5, 2))
    holes = y.copy()
    holes[1, 0] = np.nan
    parts = {"one": od.Data(T, y, lv.model.states), "two": od.Data(T, holes, lv.model.states)}
    return od.Problem(lv.model, od.Data.join(parts), fixed={"a": 2.0}, bounds={"b": (0.5, 3.0)})


@pytest.fixture(scope="module")
def curves(lv) -> list[Curve]:
    x = lv.states(T)
    return [Curve(T, x + shift, np.gradient(x, T, axis=0), np.full_like(x, 0.1)) for shift in (0.0, 0.2)]


THETA, SIGMA = np.array([2.0, 1.0, 4.0, 1.0]), np.array([0.1, 0.2])


def made(problem, curves, stages=None, **options):
    stages = stages or {"only": stage(problem, THETA, curves, SIGMA)}
    return assemble(problem, Guess(), 7, stages, curves, **{"status": "converged", "converged": True} | options)


def test_values_go_by_name_and_as_many_as_there_are_names():
    assert named("ab", np.array([1.0, 2.0])) == {"a": 1.0, "b": 2.0}
    with pytest.raises(ValueError, match="shorter"):
        named("ab", [1.0])


def test_missing_observations_leave_no_residual(problem, curves):
    x = [c.x for c in curves]
    found = residual_squares(problem, x)
    right = sum(np.nansum((e.y - v) ** 2, 0) for e, v in zip(problem.data.experiments, x, strict=True))
    np.testing.assert_allclose(found, right)


@settings(max_examples=25, deadline=None)
@given(theta=st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4))
def test_a_stage_keeps_to_the_bounds_and_gives_what_is_inside_as_it_is(problem, curves, theta):
    found = stage(problem, np.array(theta), curves, SIGMA).theta
    for name, value in zip("abcd", theta, strict=True):
        low, high = problem.limits(name)
        assert low <= found[name] <= high
        assert found[name] == value or not low <= value <= high


def test_a_stage_has_the_states_at_the_observation_times_and_their_likelihood(problem, curves):
    s = stage(problem, THETA, curves, SIGMA, objective=3.0, seconds=0.5, note="ended")
    for x, curve in zip(s.x, curves, strict=True):
        np.testing.assert_allclose(x, curve.x, rtol=1e-12)
    squares, count = residual_squares(problem, s.x), np.array([9, 10])
    best = -0.5 * count * (np.log(2 * np.pi * squares / count) + 1.0)
    assert s.loglik == pytest.approx(best.sum())
    assert (s.objective, s.seconds, s.note, s.gamma) == (3.0, 0.5, "ended", {})
    assert s.sigma == {"prey": 0.1, "predator": 0.2}
    assert list(s.states.columns) == ["prey", "predator"]


def test_a_likelihood_that_is_known_is_not_computed_again(problem, curves):
    assert stage(problem, THETA, curves, SIGMA, loglik=-1.5).loglik == -1.5


def test_a_fit_says_what_was_fitted_how_and_how_well(problem, curves):
    fit = made(problem, curves, details={"more": 1})
    assert (fit.model, fit.method, fit.seed) == ("lotka_volterra", "guess", 7)
    assert fit.equations == problem.model.text
    assert fit.options == {"bounds": [0.0, 1.0], "steps": 3}
    assert list(fit.experiments) == ["one", "two"]
    assert fit.details["fixed"] == ["a"]
    assert fit.details["observations"] == {"prey": 9, "predator": 10}
    assert fit.details["more"] == 1
    pooled = np.concatenate([fit.residuals_of(name).to_numpy() for name in fit.experiments])
    rmse = np.sqrt(np.nanmean(pooled**2, 0))
    assert [*fit.details["rmse"].values()] == pytest.approx(rmse)


def test_the_stage_that_is_used_gives_the_estimates_and_the_last_one_is_the_default(problem, curves):
    first = stage(problem, THETA, curves, SIGMA, seconds=1.0)
    last = stage(problem, THETA + 0.25, curves, 2 * SIGMA, seconds=0.5)
    stages = {"first": first, "last": last}
    fit = made(problem, curves, stages)
    assert (fit.theta, fit.sigma, fit.details["stage_used"]) == (last.theta, last.sigma, "last")
    fit = made(problem, curves, stages, used="first")
    assert (fit.theta, fit.sigma, fit.details["stage_used"]) == (first.theta, first.sigma, "first")
    assert fit.details["seconds"] == 1.5


def test_gamma_is_also_given_in_the_units_of_the_user(problem, curves):
    gamma = {"prey": 0.5, "predator": 1e-6}
    units = Units.of(problem)
    fit = made(problem, curves, {"odin": stage(problem, THETA, curves, SIGMA, gamma=gamma)}, units=units)
    assert fit.gamma == gamma
    rate = dict(zip(problem.model.states, (units.scale / units.time) ** 2, strict=True))
    assert fit.gamma_user == pytest.approx({s: gamma[s] * rate[s] for s in gamma})


def test_equations_are_judged_where_there_is_a_gamma_and_consistent_where_nothing_is_said(problem, curves):
    judged = {"odin": stage(problem, THETA, curves, SIGMA, gamma={"prey": 2.0, "predator": 1e-6})}
    fit = made(problem, curves, judged, verdicts={"prey": CONTRADICTS})
    assert fit.verdicts == {"prey": CONTRADICTS, "predator": CONSISTENT}
    assert made(problem, curves).verdicts == {}


def test_a_parameter_at_its_bound_is_warned_about_and_a_fixed_one_is_not(problem, curves):
    at_bound = {"only": stage(problem, np.array([2.0, 99.0, 4.0, 1.0]), curves, SIGMA)}
    assert made(problem, curves, at_bound).warnings == (
        "parameter 'b' is at its bound (3); widen the bound or check the model",
    )
    assert made(problem, curves, warnings=("read me",)).warnings == ("read me",)
    tight = replace(problem, bounds={"a": (2.0, 5.0)})
    assert made(tight, curves).warnings == ()


@pytest.mark.parametrize("begin", ["", "; x(0) = 0", "; x(0) > 0"])
def test_an_input_before_the_first_observation_counts_where_initial_values_are_given_earlier_and_else_it_is_said(begin):
    t, seen = np.linspace(0.0, 10.0, 101), np.arange(2.0, 11.0)
    u = np.where(t <= 1.0, 1.0, 0.0)
    x = 2.0 / 0.3 * (1.0 - np.exp(-0.3 * 1.05)) * np.exp(-0.3 * (seen - 1.05))  # about what the pulse leaves
    y = x + 0.02 * np.random.default_rng(0).normal(size=9)
    model = od.Model.from_text(f"input u; x' = b*u - k*x{begin}")
    fit = od.fit(od.Problem(model, od.Data(seen, y, ["x"], inputs={"u": (t, u)})))
    said = [note for note in fit.warnings if "before the trajectories start" in note]
    low, high = fit.interval()["b"]
    if begin == "; x(0) = 0":  # nothing else can have made what is seen
        assert not said
        assert 1.8 < low < 2.0 < high < 2.2
    elif begin:  # a pulse, or what was there before it
        assert not said
        assert low == 0.0  # b is assumed positive
        assert high < 2.2
    else:
        assert len(said) == 1
        assert "input u" in said[0]
        assert "at t = 2" in said[0]
        assert "x(0) = 0" in said[0]
        assert (low, high) == (0.0, np.inf)


METHOD = Fgpgm(sampler="metropolis", kernel="matern52", gamma=0.05)


@pytest.fixture(scope="module")
def risk(decay, decay_data):
    return METHOD.search(0.05).engine(od.Problem(decay, decay_data, scale={"k": "log"}))


def draws_of(risk, phi, **more) -> Draws:
    z = risk.mean
    return Draws(phi, z, np.full_like(z, 0.3), np.array([0.05]), {"states": 0.25}, 1.5, **more)


def chains(shift: float = 0.0, n: int = 400) -> np.ndarray:
    """log k (4, n, 1) around log 0.7, the chains apart by a shift."""
    noise = 0.05 * np.random.default_rng(0).normal(size=(4, n, 1))
    return np.log(0.7) + noise + shift * np.arange(4)[:, None, None]


def test_estimates_are_posterior_means_in_the_units_of_the_user(risk):
    phi = chains()
    fit = to_fit(METHOD, 3, risk, draws_of(risk, phi))
    k = np.exp(phi[..., 0])
    assert fit.theta["k"] == pytest.approx(k.mean())
    assert fit.details["theta_sd"]["k"] == pytest.approx(k.std())
    np.testing.assert_allclose(fit.samples["k"], k)
    np.testing.assert_allclose(fit.states.to_numpy(), risk.units.user(risk.mean), rtol=1e-9)
    np.testing.assert_allclose(fit.experiments["1"].curve.sd, 0.3 * risk.units.scale[0])
    assert (fit.method, fit.seed, fit.gamma) == ("fgpgm", 3, {"x": 0.05})
    assert fit.details["acceptance"] == {"states": 0.25}
    assert fit.stages["fgpgm"].seconds == 1.5


def test_chains_that_agree_are_converged_and_those_that_do_not_say_so(risk):
    good, bad = (to_fit(METHOD, 0, risk, draws_of(risk, chains(shift))) for shift in (0.0, 0.3))
    assert good.converged
    assert good.status.startswith("converged: R-hat at most 1.0")
    assert not bad.converged
    assert bad.status.startswith("do not use: the chains have not mixed")
    assert bad.details["r_hat"]["k"] > 1.5 > good.details["r_hat"]["k"]


def test_divergent_draws_are_counted_against_the_result(risk):
    fit = to_fit(METHOD, 0, risk, draws_of(risk, chains(), divergences=80))
    assert fit.details["divergences"] == 80
    assert fit.status == "do not use: 5% of the draws diverged"


def test_further_numbers_are_among_the_details(risk):
    assert to_fit(METHOD, 0, risk, draws_of(risk, chains(), details={"swaps": [0.2]})).details["swaps"] == [0.2]


def test_without_a_free_parameter_there_are_states_and_no_samples(decay, decay_data):
    fixed = METHOD.search(0.05).engine(od.Problem(decay, decay_data, fixed={"k": 0.7}))
    fit = to_fit(METHOD, 0, fixed, draws_of(fixed, np.empty((4, 50, 0))))
    assert fit.samples == {}
    assert fit.theta == {"k": 0.7}
    assert fit.converged


@settings(max_examples=25, deadline=None)
@given(chains=st.integers(1, 8), n=st.integers(1, 3000))
def test_what_is_kept_are_draws_of_the_first_chains_evenly_and_in_order(chains, n):
    draws = np.arange(chains * n, dtype=float).reshape(chains, n)
    kept = thin(draws)
    assert kept.shape == (min(chains, 4), min(n, 1000))
    assert (kept[:, 0] == draws[:4, 0]).all()
    assert (kept[:, -1] == draws[:4, -1]).all()
    steps = np.diff(kept, axis=1)
    assert (steps > 0).all()
    assert steps.max(initial=0.0) - steps.min(initial=np.inf) <= 1


def test_profiles_of_all_parameters_and_a_test_are_added_if_asked_for(decay, decay_data):
    fit, told = od.fit(decay, decay_data), []
    assert with_extras(fit, None, False) is fit
    more = with_extras(fit, "profile", True, progress=lambda what, share: told.append(what))
    assert set(more.profiles) == {"k"}
    assert 0 < more.details["model_test"]["p"] <= 1
    assert told[0] == "profile of k"
    assert with_extras(fit, "bootstrap", False).bootstrapped is not None


def test_a_fit_without_intervals_stays_as_it_is(decay, decay_data):
    fit = od.fit(decay, decay_data, method=od.TwoStep())
    assert with_extras(fit, "profile", True) is fit
