"""Sizes of what is not measured: parameters and hidden states scale as data, inputs, time and constants do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.scaling.dimensional_analysis import implied_sizes, natural_sizes, natural_sizes_of_phi

T = np.linspace(0.0, 10.0, 12)
DECADES = st.floats(-9.0, 9.0)
FEW = settings(max_examples=25, deadline=None)
LOGISTIC = od.Model.from_text("n' = r*n*(1 - n/K)")
MATERIAL = od.Model.from_text("s' = -v*s/(k + s) + b*u*exp(-d*t)\ninput u")
CHAIN = od.Model.from_text("x' = v\nv' = a*x + b*v + c*x*v^2")


def problem(text, columns, scale=1.0, time=1.0, scale_=None, **more):
    more |= {} if scale_ is None else {"scale": scale_}
    y = scale * np.stack([2.0 + np.sin(T + i) for i in range(len(columns))], -1)
    return od.Problem(od.Model.from_text(text), od.Data(time * T, y, states=columns), **more)


def decades(p):
    found = implied_sizes(p)
    return dict(zip(p.model.parameters, found.parameters, strict=True)), dict(
        zip(p.model.states, found.states, strict=True)
    )


def test_rates_have_the_unit_of_one_over_time_and_couplings_that_of_the_states():
    text = "prey' = a*prey - b*prey*predator; predator' = c*prey*predator - d*predator"
    one, _ = decades(problem(text, ["prey", "predator"]))
    other, _ = decades(problem(text, ["prey", "predator"], scale=1e4, time=1e3))
    for name, change in {"a": -3.0, "b": -7.0, "c": -7.0, "d": -3.0}.items():
        assert other[name] - one[name] == pytest.approx(change, abs=1e-3)


def test_a_hidden_state_has_the_size_of_what_it_is_made_of():
    text = "S' = -b*S*I; I' = b*S*I - g*I"
    for scale in (1.0, 1e5):
        _, states = decades(problem(text, ["I"], scale=scale))
        assert states["S"] == pytest.approx(states["I"], abs=1e-3)
        assert states["I"] == pytest.approx(np.log10(2.1 * scale), abs=0.1)


def test_constants_in_the_text_count():
    plain, _ = decades(problem("x' = -k*x*y; y' = k*x*y - m*y", ["x", "y"]))
    scaled, _ = decades(problem("x' = -k*x*y/1e6; y' = k*x*y/1e6 - m*y", ["x", "y"]))
    assert scaled["k"] - plain["k"] == pytest.approx(6.0, abs=1e-3)


def test_what_is_observed_through_a_factor_and_initial_values_have_their_units():
    text = "x' = -k*x; x(0) = a; n ~ normal(rho*x, s)"
    one, _ = decades(problem(text, ["n"], fixed={"rho": 1.0}))
    other, _ = decades(problem(text, ["n"], scale=100.0, fixed={"rho": 1e-3}))
    assert other["a"] - one["a"] == pytest.approx(5.0, abs=1e-3)
    assert other["s"] - one["s"] == pytest.approx(2.0, abs=1e-3)


def test_directions_that_nothing_fixes_follow_the_pull():
    p = problem("x' = -k*x; y ~ normal(rho*x)", ["y"])
    K, P = len(p.model.states), len(p.model.parameters)
    for pull in (-2.0, 3.0):
        found = implied_sizes(p, pull=np.concatenate([np.full(K, pull), np.zeros(P)]))
        rho = found.parameters[p.model.parameters.index("rho")]
        assert rho + found.states[0] == pytest.approx(np.log10(2.1), abs=0.1)
    shares = [implied_sizes(p, share).parameters[0] for share in (1.0, 0.1)]
    assert shares[1] - shares[0] == pytest.approx(1.0, abs=1e-3)


def test_functions_have_sizes_too():
    model = od.Model(lambda t, x, th: [-th[0] * x[0] * x[1], th[0] * x[0] * x[1]], ["x", "y"], ["k"])
    y = 1e3 * (2.0 + np.sin(T))[:, None]
    found = implied_sizes(od.Problem(model, od.Data(T, y, states=["y"]), positive=False))
    assert found.states[0] == pytest.approx(found.states[1], abs=1e-3)


def scales(model: od.Model, own: list[float], time: float, u: float = 1.0) -> dict[str, float]:
    """Of data whose states, times and inputs have just these root mean squares."""
    t = np.linspace(0.0, 1.0, 9)
    shape = 1.0 + 0.3 * np.cos(3.0 * t)
    y = np.outer(shape / np.sqrt(np.mean(shape**2)), own)
    inputs = {name: u * shape / np.sqrt(np.mean(shape**2)) for name in model.inputs}
    data = od.Data(time * t / np.sqrt(np.mean(t**2)), y, states=model.states, inputs=inputs)
    return dict(zip(model.parameters, natural_sizes(od.Problem(model, data, positive=False)), strict=True))


@FEW
@given(size=DECADES, time=DECADES)
def test_a_capacity_is_of_the_size_of_the_state_and_a_rate_one_over_time(size, time):
    found = scales(LOGISTIC, [10.0**size], 10.0**time)
    assert found["K"] == pytest.approx(10.0**size, rel=1e-3)
    assert found["r"] == pytest.approx(10.0**-time, rel=1e-3)


@FEW
@given(size=DECADES, time=st.floats(-5.0, 5.0), dose=st.floats(-5.0, 5.0))
def test_inputs_and_explicit_time_have_units_too(size, time, dose):
    found = scales(MATERIAL, [10.0**size], 10.0**time, 10.0**dose)
    expected = {"v": size - time, "k": size, "b": size - time - dose, "d": -time}
    for name, decades in expected.items():
        assert np.log10(found[name]) == pytest.approx(np.clip(decades, -15.0, 15.0), abs=0.01), name  # fifteen at most


def test_states_with_units_of_their_own_share_what_they_must():
    found = scales(CHAIN, [10.0, 1000.0], 100.0)
    assert found["a"] == pytest.approx(1000.0 / 10.0 / 100.0, rel=1e-3)
    assert found["b"] == pytest.approx(1.0 / 100.0, rel=1e-3)
    assert found["c"] == pytest.approx(1.0 / (10.0 * 1000.0 * 100.0), rel=1e-3)


def test_units_that_cannot_agree_and_parameters_without_effect_give_finite_scales():
    odd = od.Model.from_text("x' = a/(1 + x^9) - b*x + 0*c")
    found = scales(odd, [1e3], 10.0)
    assert all(0 < v < np.inf for v in found.values())
    assert found["c"] == 1.0


def test_very_many_states_start_at_one():
    system = od.systems.lorenz96(40)
    problem = od.Problem(system.model, system.sample(1.0, 0), positive=False)
    np.testing.assert_array_equal(natural_sizes(problem), [1.0])


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_a_fit_finds_parameters_of_any_scale_from_every_seed(size):
    t = 100.0 + np.arange(0.0, 71.0, 5.0)
    x = od.simulate(LOGISTIC, {"r": 0.06, "K": 9.0 * size}, [0.25 * size], t)
    y = x * (1.0 + 0.02 * np.random.default_rng(1).normal(size=x.shape))
    problem = od.Problem(LOGISTIC, od.Data(t, y, states=["n"]), positive=False)
    for seed in range(6):
        fit = od.fit(problem, seed=seed)
        assert fit.theta["K"] == pytest.approx(9.0 * size, rel=0.15)
        assert fit.verdicts == {"n": "consistent"}


def test_observed_states_keep_their_size_where_units_cannot_agree():
    p = problem("x' = a - x^9; y' = x - b*y", ["x", "y"], scale=1e3)
    np.testing.assert_allclose(implied_sizes(p).states, np.log10(np.sqrt(np.mean(p.data.experiments[0].y ** 2, 0))))


def test_sizes_of_phi_are_one_on_log_scales_and_natural_on_others():
    p = problem("x' = a - b*x; real a", ["x"], scale=1e6, scale_={"b": "log"})
    assert natural_sizes_of_phi(p)[1] == 1.0
    assert natural_sizes_of_phi(p)[0] == natural_sizes(p)[0] > 1e4
