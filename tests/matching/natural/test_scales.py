"""The scale of a parameter follows from the units of data and equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.matching.natural.scales import natural_scales

DECADES = st.floats(-9.0, 9.0)
FEW = settings(max_examples=25, deadline=None)
LOGISTIC = od.Model.from_text("n' = r*n*(1 - n/K)")
MATERIAL = od.Model.from_text("s' = -v*s/(k + s) + b*u*exp(-d*t)\ninput u")
CHAIN = od.Model.from_text("x' = v\nv' = a*x + b*v + c*x*v^2")


def scales(model: od.Model, sizes: list[float], time: float, u: float = 1.0) -> dict[str, float]:
    """Of data whose states, times and inputs have just these root mean squares."""
    t = np.linspace(0.0, 1.0, 9)
    shape = 1.0 + 0.3 * np.cos(3.0 * t)
    y = np.outer(shape / np.sqrt(np.mean(shape**2)), sizes)
    inputs = {name: u * shape / np.sqrt(np.mean(shape**2)) for name in model.inputs}
    data = od.Data(time * t / np.sqrt(np.mean(t**2)), y, states=model.states, inputs=inputs)
    return dict(zip(model.parameters, natural_scales(od.Problem(model, data)), strict=True))


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
    problem = od.Problem(system.model, system.sample(1.0, 0))
    np.testing.assert_array_equal(natural_scales(problem), [1.0])


@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_a_fit_finds_parameters_of_any_scale_from_every_seed(size):
    t = 100.0 + np.arange(0.0, 71.0, 5.0)
    x = od.simulate(LOGISTIC, {"r": 0.06, "K": 9.0 * size}, [0.25 * size], t)
    y = x * (1.0 + 0.02 * np.random.default_rng(1).normal(size=x.shape))
    problem = od.Problem(LOGISTIC, od.Data(t, y, states=["n"]))
    for seed in range(6):
        fit = od.fit(problem, seed=seed)
        assert fit.theta["K"] == pytest.approx(9.0 * size, rel=0.15)
        assert fit.verdicts == {"n": "consistent"}
