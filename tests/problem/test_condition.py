"""How an experiment starts, what drives it and where it jumps, as a trajectory meets it."""

import numpy as np
import pytest

import odinfer as od
from odinfer.problem.condition import Condition

T = np.arange(1.0, 7.0)


def condition(text, **more):
    data = od.Data(T, T[:, None], states=["x"], **more)
    return Condition.of(od.Model.from_text(text), data.experiments[0])


def test_a_trajectory_starts_at_the_first_time_or_at_zero_where_initial_values_are_given_there():
    assert condition("x' = -k*x").start == 1.0
    assert condition("x' = -k*x; x(t0) = 3").start == 1.0
    given = condition("x' = -k*x; x(0) = 3")
    assert given.start == 0.0
    np.testing.assert_array_equal(given.times, np.append(0.0, T))


def test_initial_values_follow_from_parameters_with_their_derivatives():
    own = condition("x' = -k*x*y; y' = k*x; x(0) = n*y(0) + 1; fixed n = 2")
    m = own.model
    assert m.parameters == ("k", "n", "y(0)")
    theta = np.array([[0.3, 2.0, 5.0], [0.3, 2.0, 6.0]])
    np.testing.assert_array_equal(own.initial(theta, np.empty((2, 0))), [[11.0, 5.0], [13.0, 6.0]])
    np.testing.assert_array_equal(own.initial_slopes(theta)[0], [[0.0, 5.0, 2.0], [0.0, 0.0, 1.0]])


def test_free_initial_values_stay_beside_given_ones():
    own = condition("x' = -k*x*y; y' = k*x; x(0) = a")
    assert own.model.free_initial.tolist() == [1]
    np.testing.assert_array_equal(own.initial(np.array([[1.0, 7.0]]), np.array([[4.0]])), [[7.0, 4.0]])


def test_doses_jump_into_their_state_by_name_or_number_or_into_the_first():
    for state, k in ((None, 0), ("x", 0), ("gut", 1), ("2", 1)):
        own = condition("x' = k*gut; gut' = -k*gut", doses=[od.Dose(2.0, 5.0, state)])
        (jump,) = own.jumps
        after, by_x, _ = jump.after(np.array([[1.0, 1.0]]), np.array([[0.1]]), np.empty(0))
        assert after[0, k] == 6.0
        np.testing.assert_array_equal(by_x[0], np.eye(2))
    with pytest.raises(od.InputError, match="goes into 'liver', which is no state"):
        condition("x' = -k*x", doses=[od.Dose(2.0, 5.0, "liver")])


def test_a_dose_before_the_first_observation_is_where_the_trajectory_starts():
    assert condition("x' = -k*x", doses=[od.Dose(-2.0, 5.0)]).start == -2.0
    with pytest.raises(od.InputError, match=r"starts at -2, but initial values are given at time 0; write x\(t0\)"):
        condition("x' = -k*x; x(0) = 0", doses=[od.Dose(-2.0, 5.0)])


def test_events_set_states_with_derivatives_by_states_and_parameters():
    own = condition("x' = -k*x; at 2, 4: x = d*x + 1")
    assert [j.time for j in own.jumps] == [2.0, 4.0]
    after, by_x, by_theta = own.jumped(own.jumps[0], np.array([[3.0]]), np.array([[0.1, 5.0]]))
    assert (after[0, 0], by_x[0, 0, 0]) == (16.0, 5.0)
    np.testing.assert_array_equal(by_theta[0, 0], [0.0, 3.0])
    with pytest.raises(od.InputError, match="line 1: the event at 0 lies before experiment '1' starts, at 1"):
        condition("x' = -k*x; at 0: x = 1")


def test_an_infusion_is_a_rate_between_two_corners():
    own = condition("x' = -k*x", doses=[od.Dose(2.0, 6.0, rate=3.0)])
    assert own.corners.tolist() == [2.0, 4.0]
    f = own.evaluate(np.array([1.9, 2.1, 3.9, 4.1]), np.zeros((4, 1)), np.array([1.0]))
    assert f[:, 0].tolist() == [0.0, 3.0, 3.0, 0.0]


def test_steps_are_held_and_their_jumps_are_corners():
    own = condition("step u; x' = u - k*x", inputs={"u": ([0.0, 3.0, 5.0], [1.0, 1.0, 4.0])})
    np.testing.assert_array_equal(own.inputs_at(np.array([0.0, 4.9, 5.0, 9.0]))[:, 0], [1.0, 1.0, 4.0, 4.0])
    assert own.corners.tolist() == [5.0]
    assert own.inside(3.0, 5.0, np.array([5.0]))[0] < 5.0


def test_times_compared_with_a_constant_are_corners():
    assert condition("x' = where(t > 2.5, 1, 0) - k*x").between(1.0, 6.0).tolist() == [2.5]


@pytest.mark.parametrize("text", ["x' = -k*x^2 + 1/(k + x)", "x' = -k*x + where(t < 3, 1, 2)", "input u; x' = u - k*x"])
def test_the_quick_field_is_the_field(text):
    more = {"inputs": {"u": T}} if "input" in text else {}
    own = condition(text, **more)
    quick = own.quick(np.array([0.3]), 1.0, 6.0)
    for t, x in ((1.5, 2.0), (4.5, 0.1)):
        expected = own.evaluate(np.array([t]), np.array([[x]]), np.array([0.3]))[0]
        np.testing.assert_allclose(quick(np.array([x]), t), expected, rtol=1e-14)
    with pytest.raises((ArithmeticError, ValueError)):
        quick(np.array([np.inf]), 2.0)


def test_what_happens_before_a_time_is_seen_at_that_time_and_nothing_else_is_changed():
    own = condition("x' = -k*x; x(-100) = 3; before 2: x = 7")
    assert own.start == -100.0
    (jump,) = own.jumps
    assert 0 < 2.0 - jump.time < 1e-9
    found = od.simulate(own.model, {"k": 0.0}, {}, T)
    np.testing.assert_allclose(found[:, 0], [3, 7, 7, 7, 7, 7])
    with pytest.raises(od.InputError, match="lies before experiment '1' starts"):
        condition("x' = -k*x; x(0) = 3; before 0: x = 7")


def test_inputs_that_are_constant_are_numbers_to_the_compiled_field():
    own = condition("x' = -k*x*u; input u", inputs={"u": np.full(6, 3.0)})
    assert own.quick(np.array([0.5]), 1.0, 2.0)(np.array([2.0]), 1.5) == (-3.0,)


def test_a_start_long_before_the_data_is_not_part_of_the_time_that_is_told():
    np.testing.assert_array_equal(condition("x' = -k*x; x(0) = 3").told, np.append(0.0, T))
    np.testing.assert_array_equal(condition("x' = -k*x; x(-1000) = 3").told, T)


def test_inputs_that_change_before_a_trajectory_begins_are_named():
    early = {"u": ([0.0, 0.5, 0.6, 9.0], [1.0, 1.0, 0.0, 0.0])}
    assert condition("input u; x' = u - k*x", inputs=early).ignored_inputs == ("u",)
    assert condition("input u; x' = u - k*x; x(t0) = 3", inputs=early).ignored_inputs == ("u",)
    assert condition("input u; x' = u - k*x; x(0) = 3", inputs=early).ignored_inputs == ()
    assert condition("input u; x' = u - k*x; x(0) > 0", inputs=early).ignored_inputs == ()
    same = {"u": ([0.0, 0.5, 4.0, 9.0], [1.0, 1.0, 1.0, 0.0])}
    assert condition("input u; x' = u - k*x", inputs=same).ignored_inputs == ()
    assert condition("step u; x' = u - k*x", inputs={"u": ([0.0, 1.0, 9.0], [1.0, 0.0, 0.0])}).ignored_inputs == ("u",)
