"""One step: of order 4, inside of order 3, and with an error that says how far off it is."""

import numpy as np
import pytest

from odinfer.forward.rodas import inside, step


def f(t, x):
    return np.stack([x[:, 1] + np.sin(3.0 * t), -x[:, 0] * x[:, 1] + t**2], -1)


def taken(t, h, x):
    fx = np.zeros((len(x), 2, 2))
    fx[:, 0, 1], fx[:, 1, 0], fx[:, 1, 1] = 1.0, -x[:, 1], -x[:, 0]
    ft = np.stack([3.0 * np.cos(3.0 * t), 2.0 * t], -1)
    return step(f, t, h, x, f(t, x), fx, ft)


def walked(steps):
    h, x = np.array([1.0 / steps]), np.array([[1.0, 0.3]])
    for i in range(steps):
        x = taken(np.array([i / steps]), h, x).x
    return x[0]


def test_halving_the_steps_leaves_a_sixteenth_of_the_error():
    exact = walked(640)
    coarse, fine = (np.abs(walked(n) - exact).max() for n in (10, 20))
    assert 11.0 < coarse / fine < 24.0


def test_inside_a_step_the_error_falls_with_its_fourth_power_at_least():
    x = np.array([[1.0, 0.3]])
    off = []
    for h in (0.2, 0.1):
        whole = taken(np.zeros(1), np.array([h]), x)
        part = x
        for i in range(32):
            part = taken(np.array([i * 0.4 * h / 32]), np.array([0.4 * h / 32]), part).x
        off.append(np.abs(inside(0.4, x, whole.x, whole.bend) - part).max())
        np.testing.assert_array_equal(inside(0.0, x, whole.x, whole.bend), x)
        np.testing.assert_array_equal(inside(1.0, x, whole.x, whole.bend), whole.x)
    assert off[0] / off[1] > 11.0


def test_the_error_is_no_smaller_than_what_is_made():
    x = np.array([[1.0, 0.3]])
    part, whole = x, taken(np.zeros(1), np.array([0.1]), x)
    for i in range(32):
        part = taken(np.array([i * 0.1 / 32]), np.array([0.1 / 32]), part).x
    assert np.abs(whole.error).max() > np.abs(whole.x - part).max()


def test_a_very_stiff_decay_ends_at_its_equilibrium_in_one_step():
    rate = np.array([1e8])
    found = step(lambda t, x: -rate * (x - 2.0), np.zeros(1), np.ones(1), np.array([[5.0]]), -rate[:, None] * 3.0,
                 -rate[:, None, None], None)  # fmt: skip
    assert found.x[0, 0] == pytest.approx(2.0, abs=1e-6)


def test_where_no_step_can_be_solved_for_it_is_not_a_number_and_others_are_as_they_are():
    x = np.array([[1.0], [1.0]])
    fx = np.array([[[4.0]], [[-1.0]]])  # 1/(γh) = 4
    with np.errstate(all="ignore"):
        found = step(lambda t, x: -x, np.zeros(2), np.ones(2), x, -x, fx, None)
    assert np.isnan(found.x[0, 0])
    assert found.x[1, 0] == pytest.approx(np.exp(-1.0), rel=1e-3)
