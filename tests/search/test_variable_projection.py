"""What only the measurement has is at its best for any trajectory, without integrating."""

import numpy as np
import pytest
from scipy.optimize import minimize

import odinfer as od
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.likelihood.variable_projection import VariableProjection, moving

T = np.linspace(0.0, 8.0, 17)
TEXT = (
    "x' = -k*x; x(0) = a; z ~ normal(c + b*x, s); log k, a, b, s\n"
    "1e-3 < k < 10; 1e-3 < a < 1e3; 1e-4 < b < 1e4; -9 < c < 9; 1e-3 < s < 1e2"
)


def solver():
    y = 2.0 + 3.0 * np.exp(-0.8 * T) + 0.1 * np.random.default_rng(0).normal(size=17)
    return BatchLikelihood.of(
        od.Problem(od.Model.from_text(TEXT), od.Data(T, y[:, None], states=["z"]), positive=False), 1e-6
    )


def drawn(own, count=8):
    u = own.likelihood.unknowns
    return np.random.default_rng(2).uniform(u.low, u.high, (count, u.size))


def test_parameters_of_the_measurement_are_those_that_no_trajectory_depends_on():
    own = solver()
    assert moving(own.problem.model) == {"x", "k", "a"}
    assert {own.likelihood.unknowns.names[i] for i in own.projection.places} == {"b", "c", "s"}


def test_events_move_trajectories_too():
    model = od.Model.from_text("x' = -k*x; at 3: x = x + dose; y ~ normal(s*x)")
    assert moving(model) == {"x", "k", "dose"}


def test_they_come_to_where_an_independent_optimiser_does():
    own = solver()
    u, v = own.likelihood.unknowns, drawn(own)
    found = own.solve(v, projected=True)
    places, others = own.projection.places, np.setdiff1d(np.arange(u.size), own.projection.places)
    np.testing.assert_array_equal(found.v[:, others], v[:, others])
    assert (found.worth.value <= own.solve(v).worth.value).all()
    for at, value in zip(found.v, found.worth.value, strict=True):

        def cost(g, at=at):
            other = at.copy()
            other[places] = g
            return own.solve(other[None]).worth.value[0]

        bounds = list(zip(u.low[places], u.high[places], strict=True))
        better = minimize(cost, at[places], bounds=bounds, method="L-BFGS-B")
        assert value <= better.fun + 0.02
    assert own.solve(found.v).worth.value == pytest.approx(found.worth.value)


def test_without_such_parameters_nothing_changes():
    y = np.exp(-T)[:, None]
    own = BatchLikelihood.of(
        od.Problem(od.Model.from_text("x' = -k*x; x(0) = 1; 0 < k < 9"), od.Data(T, y, states=["x"]), positive=False)
    )
    assert len(VariableProjection(own.likelihood).places) == 0
    v = np.array([[0.5], [2.0]])
    np.testing.assert_array_equal(own.solve(v, projected=True).v, v)
