"""One step: of order 4, inside of order 3, and with an error that says how far off it is."""

import numpy as np
import pytest

import odinfer as od
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.interpreter import slopes_of_tape, values_of_tape
from odinfer.ode.right_hand_side import Field
from odinfer.ode.rodas import Step, inside, step

TEXT = "x' = y + sin(3*t); y' = -x*y + t^2"


def equations(text=TEXT):
    data = od.Data(np.arange(4.0), np.arange(4.0)[:, None], states=["x"])
    p = od.Problem(od.Model.from_text(text), data, positive=False)
    return Field(Timetable.of([p.condition(0)]), p.own_index(0))


def taken(f, t, h, x, ft, theta=()):
    """One step from x (K,), whose field changes with time by ft (K,)."""
    x, theta, K = np.array(x, float), np.array(theta, float), len(x)
    r, all_, to = f.values.registers.copy(), f.by_states.registers.copy(), Step.of(K)
    r[1 + K : 1 + K + len(theta)] = theta
    all_[: 1 + K + len(theta)] = [t, *x, *theta]
    f0 = values_of_tape(f.by_states, f.drive, 0, np.array([t]), x[None], theta[None])[0]
    fx, _ = slopes_of_tape(f.by_states, all_, 0)
    step(f.values, f.drive, 0, t, h, -np.inf, np.inf, x, r, f0, fx, np.array(ft, float), to)
    return to


def walked(begin, h, steps, x=(1.0, 0.3)):
    f = equations()
    for i in range(steps):
        t = begin + i * h
        x = taken(f, t, h, x, [3.0 * np.cos(3.0 * t), 2.0 * t]).end
    return x


def test_halving_the_steps_leaves_a_sixteenth_of_the_error():
    exact = walked(0.0, 1 / 640, 640)
    coarse, fine = (np.abs(walked(0.0, 1 / n, n) - exact).max() for n in (10, 20))
    assert 11.0 < coarse / fine < 24.0


def test_inside_a_step_the_error_falls_with_its_fourth_power_at_least():
    f, x, off = equations(), np.array([1.0, 0.3]), []
    for h in (0.2, 0.1):
        whole = taken(f, 0.0, h, x, [3.0, 0.0])
        off.append(np.abs(inside(0.4, x, whole.end, whole.bend) - walked(0.0, 0.4 * h / 32, 32)).max())
        np.testing.assert_array_equal(inside(0.0, x, whole.end, whole.bend), x)
        np.testing.assert_array_equal(inside(1.0, x, whole.end, whole.bend), whole.end)
    assert off[0] / off[1] > 11.0


def test_the_error_is_no_smaller_than_what_is_made():
    whole = taken(equations(), 0.0, 0.1, [1.0, 0.3], [3.0, 0.0])
    assert np.abs(whole.error).max() > np.abs(whole.end - walked(0.0, 0.1 / 32, 32)).max()


def test_a_very_stiff_decay_ends_at_its_equilibrium_in_one_step():
    found = taken(equations("x' = -k*(x - 2)"), 0.0, 1.0, [5.0], [0.0], [1e8])
    assert found.end[0] == pytest.approx(2.0, abs=1e-6)


def test_where_no_step_can_be_solved_for_it_is_not_finite():
    assert not np.isfinite(taken(equations("x' = k*x"), 0.0, 1.0, [1.0], [0.0], [4.0]).end[0])  # 1/(γh) = 4
