"""Sizes of what is not measured: parameters and hidden states scale as data, inputs, time and constants do."""

import numpy as np
import pytest

import odinfer as od
from odinfer.matching.natural.sizes import sizes

T = np.linspace(0.0, 10.0, 12)


def problem(text, columns, scale=1.0, time=1.0, **more):
    y = scale * np.stack([2.0 + np.sin(T + i) for i in range(len(columns))], -1)
    return od.Problem(od.Model.from_text(text), od.Data(time * T, y, states=columns), **more)


def decades(p):
    found = sizes(p)
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
        found = sizes(p, pull=np.concatenate([np.full(K, pull), np.zeros(P)]))
        rho = found.parameters[p.model.parameters.index("rho")]
        assert rho + found.states[0] == pytest.approx(np.log10(2.1), abs=0.1)
    shares = [sizes(p, share).parameters[0] for share in (1.0, 0.1)]
    assert shares[1] - shares[0] == pytest.approx(1.0, abs=1e-3)


def test_functions_have_sizes_too():
    model = od.Model(lambda t, x, th: [-th[0] * x[0] * x[1], th[0] * x[0] * x[1]], ["x", "y"], ["k"])
    y = 1e3 * (2.0 + np.sin(T))[:, None]
    found = sizes(od.Problem(model, od.Data(T, y, states=["y"])))
    assert found.states[0] == pytest.approx(found.states[1], abs=1e-3)
