"""scaling/frequencies.py: every frequency that the data can tell apart is started from."""

import numpy as np
import pytest

import odinfer as od
from odinfer.scaling import frequencies

T = np.linspace(0.0, 6.0, 40)


def problem(text: str, **options: object) -> od.Problem:
    model = od.Model.from_text(text)
    return od.Problem(model, od.Data(T, np.cos(T)[:, None], states=model.states), **options)


@pytest.mark.parametrize(
    ("text", "name", "turned"),
    [
        ("q' = -q/tau + v*cos(w*t)", "w", lambda w: w * 6.0),
        ("q' = -q/tau + v*cos(2*pi*f*t + p)", "f", lambda f: 2 * np.pi * f * 6.0),
        ("q' = -q/tau + v*sin(2*pi*(t - p)/P)", "P", lambda P: 2 * np.pi * 6.0 / P),
    ],
)
def test_sines_turn_by_every_angle_from_one_radian_to_half_a_cycle_per_observation(text, name, turned):
    p = problem(text)
    theta = frequencies.spread(p, np.full((60, len(p.parameters)), 0.7), np.random.default_rng(0))
    angles = np.sort(turned(theta[:, p.parameters.index(name)]))
    assert angles[0] < 5.0
    assert angles[-1] > 0.9 * np.pi * 40
    assert np.diff(angles).max() < 2 * np.pi
    others = [i for i, other in enumerate(p.parameters) if other != name]
    assert (theta[:, others] == 0.7).all()


@pytest.mark.parametrize("text", ["q' = -q/tau + v*t", "q' = w*sin(q)", "q' = a*exp(-w*t)"])
def test_nothing_changes_where_no_sine_runs_with_time(text):
    p = problem(text)
    theta = np.full((5, len(p.parameters)), 0.7)
    assert frequencies.count(p) == 0
    assert (frequencies.spread(p, theta, np.random.default_rng(0)) == theta).all()


def test_frequencies_that_are_given_stay_and_bounds_are_kept():
    text = "q' = -q/tau + v*cos(w*t)"
    theta = np.full((50, 3), 0.7)
    for p in (problem(text, start={"w": 0.7}), problem(text, fixed={"w": 0.7})):
        assert (frequencies.spread(p, theta, np.random.default_rng(0)) == theta).all()
    drawn = frequencies.spread(problem(text, bounds={"w": (0.5, 2.0)}), theta, np.random.default_rng(0))[:, 2]
    assert ((drawn >= 0.5) & (drawn <= 2.0)).all()
    assert (drawn != 0.7).any()


@pytest.mark.parametrize("seed", [3, 4])
def test_the_frequency_of_a_driven_circuit_is_found_from_any_seed(seed):
    model = od.Model.from_text("q' = -q/tau + v*cos(w*t)")
    truth = np.array([0.8, 2.0, 3.0])
    x = od.simulate(model, truth, [0.0], T)
    y = x + 0.03 * x.std() * np.random.default_rng(seed).normal(size=x.shape)
    minima = od.Odin().search.run(od.Problem(model, od.Data(T, y, states=["q"]), positive=False), seed)
    assert abs(minima.solutions[0].phi[2]) == pytest.approx(3.0, rel=0.02)
