"""Linear equations are solved, and a field is asked with what drives it at the time; instructions: test_tape.py."""

import numpy as np
import pytest

import odinfer as od
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.interpreter import solve_equations, values_of_tape
from odinfer.ode.right_hand_side import Field


@pytest.mark.parametrize("n", [1, 2, 5])
def test_linear_equations_are_solved_whatever_their_order(n):
    rng = np.random.default_rng(n)
    A, b = rng.normal(size=(n, n)), rng.normal(size=(n, 3))
    A[0, 0] = 0.0 if n > 1 else 2.0
    exact = np.linalg.solve(A, b)
    one, all_ = solve_equations(A, b[:, 0], b)
    np.testing.assert_allclose(one, exact[:, 0], rtol=1e-9)
    np.testing.assert_allclose(all_, exact, rtol=1e-9)


def test_equations_without_a_solution_give_what_is_not_finite():
    one, all_ = solve_equations(np.zeros((2, 2)), np.ones(2), np.ones((2, 1)))
    assert not np.isfinite(one).any()
    assert not np.isfinite(all_).any()


def test_inputs_and_infusions_are_those_of_the_time_that_is_asked_for():
    t = np.arange(5.0)
    doses = [od.Dose(time=1.0, amount=3.0, rate=2.0)]
    data = od.Data(t, t[:, None], states=["x"], inputs={"u": (t, t**2), "v": (t, t**2)}, doses=doses)
    p = od.Problem(od.Model.from_text("x' = u + 100*v - k*x; input u; step v"), data, positive=False)
    f, numbers = Field(Timetable.of([p.condition(0)]), p.own_index(0)), np.zeros((1, 3))
    for time, exact in ((0.5, 0.5), (1.5, 2.5 + 100 + 2), (2.4999, 4 + 4.9999 * 0.5 - 0.0005 + 400 + 2), (2.5, 406.5)):
        found = values_of_tape(f.values, f.drive, 0, np.array([time]), np.zeros((1, 1)), numbers)
        assert found[0, 0] == pytest.approx(exact, rel=1e-5)
