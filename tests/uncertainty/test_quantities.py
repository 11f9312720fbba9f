"""Quantities that can be held: their gradients are right, and columns are what expressions make of states."""

import numpy as np
import pytest

import odinfer as od
from odinfer.likelihood.collocation_batch import CollocationTrajectories
from odinfer.uncertainty.quantities import HeldColumn, HeldState, HeldUnknown
from uncertainty.hidden import doubled


def held_quantities(u, node: int):
    one = np.zeros(1, int)
    return {
        "parameter": HeldUnknown(u, u.phi_index[one]),
        "initial value": HeldUnknown(u, one),
        "state": HeldState(u, 0, np.array([node]), one),
        "logarithm of a state": HeldState(u, 0, np.array([node]), one, log=True),
    }


@pytest.mark.parametrize("what", ["parameter", "initial value", "state", "logarithm of a state"])
def test_gradients_of_held_quantities_equal_finite_differences(maximum, on, what):
    held = held_quantities(maximum.likelihood.unknowns, len(on.meshes[0]) // 3)[what]
    best, h = on.start(maximum.refined, 1), 1e-4
    size = np.abs(np.concatenate([maximum.refined.paths[0].x0, maximum.phi]))
    for i, d in enumerate(h * np.diag(size)):
        up, down = (held.value(on.move(best, side * d[None]))[0] for side in (1.0, -1.0))
        assert held.gradient(best)[0, i] == pytest.approx((up - down) / (2 * d[i]), rel=1e-4, abs=1e-6)


def test_a_held_column_is_what_its_expression_makes_of_a_state():
    best = od.fit(doubled()).maximum()
    on = CollocationTrajectories.of(best.likelihood, best.refined)
    node, first = np.array([0, 3, 3, 7]), np.zeros(4, int)
    batch = on.start(best.refined, 4)
    for log in (False, True):
        state = HeldState(best.likelihood.unknowns, 0, node, first, log=log)
        column = HeldColumn(best.likelihood.unknowns, 0, node, first, log=log, on=on)
        shift, factor = (np.log(2.0), 1.0) if log else (0.0, 2.0)
        np.testing.assert_allclose(column.value(batch), factor * state.value(batch) + shift)
        np.testing.assert_allclose(column.gradient(batch), factor * state.gradient(batch))
        assert column.take(np.array([2])).value(batch.take(np.array([2])))[0] == column.value(batch)[2]
