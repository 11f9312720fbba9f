"""Events that states make happen: at the times that closed forms give, as often as they should, and never for ever."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import odinfer as od
from odinfer.data.data import Experiment
from odinfer.ode.state_events import follow
from odinfer.problem.condition import Condition

FEW = settings(max_examples=20, derandomize=True, deadline=None)


def simulated(text, theta, x0, t, **more):
    return od.simulate(od.Model.from_text(text), theta, x0, t, **more)


def bounced(t, g, r):
    """The height of a ball that falls from 1 and keeps a share r of its speed at every bounce."""
    if t <= (land := np.sqrt(2 / g)):
        return 1 - g * t**2 / 2
    speed = r * g * land
    while t > land + 2 * speed / g:
        land, speed = land + 2 * speed / g, r * speed
    return speed * (t - land) - g * (t - land) ** 2 / 2


BALL = "h' = v; v' = -g; when h < 0: v = -r*v, h = 0"


@FEW
@given(g=st.floats(1.0, 20.0), r=st.floats(0.3, 0.95))
def test_a_ball_bounces_as_its_closed_form_does(g, r):
    end = np.sqrt(2 / g) * (1 + 2 * r * (1 - r**6) / (1 - r))  # six flights after the first fall
    t = np.linspace(0.0, end, 60)
    x = simulated(BALL, {"g": g, "r": r}, {"h": 1.0, "v": 0.0}, t)
    np.testing.assert_allclose(x[:, 0], [bounced(now, g, r) for now in t], atol=1e-8)


@pytest.mark.parametrize("text", [BALL.replace("<", "<="), BALL.replace(", h = 0", "")])
def test_a_condition_that_a_bounce_leaves_at_its_edge_becomes_true_again(text):
    t = np.linspace(0.0, 2.0, 21)
    x = simulated(text, {"g": 9.81, "r": 0.8}, {"h": 1.0, "v": 0.0}, t)
    np.testing.assert_allclose(x[:, 0], [bounced(now, 9.81, 0.8) for now in t], atol=1e-8)


@FEW
@given(drive=st.floats(1.05, 10.0), threshold=st.floats(0.3, 1.0))
def test_spikes_come_when_they_should_and_are_counted(drive, threshold):
    period = np.log(drive / (drive - threshold))
    t = np.linspace(0.0, 12.3 * period, 50)
    text = "V' = I - V; n' = 0*V; when V > c: V = 0, n += 1"
    x = simulated(text, {"I": drive, "c": threshold}, {"V": 0.0, "n": 0.0}, t)
    spikes = np.floor(t / period)
    np.testing.assert_array_equal(x[:, 1], spikes)
    np.testing.assert_allclose(x[:, 0], drive * (1 - np.exp(-(t - spikes * period))), atol=1e-6)


def test_the_time_of_an_event_is_as_exact_as_the_solution():
    text = "x' = -k*x; s' = 0*x; when x < 0.1: s = t"
    for rtol in (1e-6, 1e-9, 1e-12):
        x = simulated(text, {"k": 0.7}, {"x": 3.0, "s": 0.0}, [0.0, 10.0], rtol=rtol, atol=rtol * 1e-2)
        assert x[-1, 1] == pytest.approx(np.log(30) / 0.7, rel=20 * rtol)


def test_a_thermostat_switches_between_two_temperatures():
    text = "T' = h*on - k*T; on' = 0*T; when T < 18: on = 1; when T > 22: on = 0"
    h, k = 30.0, 1.0
    warm, cool = np.log((h - 18 * k) / (h - 22 * k)) / k, np.log(22 / 18) / k
    t = np.linspace(0.0, 5.0, 101)
    x = simulated(text, {"h": h, "k": k}, {"T": 22.0, "on": 0.0}, t)
    phase = t % (warm + cool)
    falling = 22 * np.exp(-k * phase)
    rising = h / k + (18 - h / k) * np.exp(-k * (phase - cool))
    np.testing.assert_allclose(x[:, 0], np.where(phase < cool, falling, rising), atol=1e-6)
    assert set(x[:, 1]) == {0.0, 1.0}


def test_what_is_true_at_the_start_must_become_false_first():
    x = simulated("x' = cos(t); n' = 0*x; when x >= 0: n += 1", {}, {"x": 0.0, "n": 0.0}, [0.0, 3.0, 6.0, 7.0, 12.7])
    np.testing.assert_array_equal(x[:, 1], [0, 0, 0, 1, 2])
    x = simulated("x' = 1; n' = 0*x; when x > 0: n += 1", {}, {"x": 0.0, "n": 0.0}, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(x[:, 1], [0, 1, 1])  # false at the start itself


def test_an_observation_at_the_time_of_an_event_is_taken_before_it():
    x = simulated("x' = 1; when x > 1: x = 0", {}, [0.0], np.arange(41) / 2)
    np.testing.assert_allclose(x[1:, 0], np.tile([0.5, 1.0], 20), atol=1e-9)


def test_all_new_values_are_from_the_values_before():
    text = "x' = 1; y' = 0*x; z' = 0*x; when x > 1: x = y, y = x + z; when 2*x > 2: z = y"
    x = simulated(text, {}, {"x": 0.0, "y": 5.0, "z": 2.0}, [0.0, 1.5])
    np.testing.assert_allclose(x[-1], [5.5, 3.0, 5.0], atol=1e-7)


def test_what_an_event_makes_true_happens_at_once():
    text = "x' = 1; y' = 0*x; z' = 0*x; when x > 1: y = 3; when y > 2: z = y + x; at 3: y = 0; at 4: y = 5"
    x = simulated(text, {}, {"x": 0.0, "y": 0.0, "z": 0.0}, [0.0, 1.0, 2.0, 4.0, 5.0])
    np.testing.assert_allclose(x[:, 2], [0.0, 0.0, 4.0, 4.0, 9.0], atol=1e-7)


def test_steps_of_inputs_and_times_make_conditions_true():
    text = "x' = u; n' = 0*x; m' = 0*x; step u; when u > 2: n += 1; when t > lag: m = x"
    inputs = {"u": ([0.0, 1.0, 2.0, 3.0], [0.0, 3.0, 1.0, 4.0])}
    x = simulated(text, {"lag": 2.5}, [0.0, 0.0, 0.0], [0.0, 1.0, 1.5, 2.0, 3.0, 3.5], inputs=inputs)
    np.testing.assert_array_equal(x[:, 1], [0, 1, 1, 1, 2, 2])  # the input has its new value at the time of its step
    np.testing.assert_allclose(x[:, 2], [0, 0, 0, 0, 3.5, 3.5], atol=1e-7)


def test_conditions_may_be_joined():
    text = "x' = 1; n' = 0*x; when x > 1 and t < 2 or not x < 5: n += 1, x = x - 2"
    x = simulated(text, {}, [0.0, 0.0], [0.0, 0.9, 1.5, 6.9, 7.1])
    np.testing.assert_array_equal(x[:, 1], [0, 0, 1, 1, 2])


@pytest.mark.parametrize("level", [0.9, 0.999, 0.99999])
def test_short_visits_beyond_a_level_are_not_stepped_over(level):
    text = f"x' = y; y' = -x; n' = 0*x; when x > {level}: n += 1"
    t = np.pi * np.arange(1, 40, 3)
    x = simulated(text, {}, {"x": 0.0, "y": 1.0, "n": 0.0}, t - t[0])
    np.testing.assert_array_equal(x[:, 2], np.floor((t - t[0] + 1.5 * np.pi) / (2 * np.pi)))


def test_an_event_keeps_states_where_the_equations_are_finite():
    x = simulated("x' = -a*sqrt(x); when x < 1e-9: x = 0", {"a": 1.0}, [1.0], [0.0, 1.0, 1.5, 2.0, 3.0])
    np.testing.assert_allclose(x[:, 0], [1.0, 0.25, 0.0625, 0.0, 0.0], atol=1e-8)


def test_stiff_systems_have_events_too():
    text = "a' = -0.04*a + 1e4*b*c; b' = 0.04*a - 1e4*b*c - 3e7*b^2; c' = 3e7*b^2; s' = 0*a; when c > a: s = t"
    x = simulated(text, {}, [1.0, 0.0, 0.0, 0.0], [0.0, 1e4])
    at = x[-1, 3]
    a, _, c = simulated(text.replace("when c > a: s = t", ""), {}, [1.0, 0.0, 0.0, 0.0], [0.0, at])[-1, :3]
    assert a == pytest.approx(c, rel=1e-5)


ENDLESS = {
    "a ball that comes to rest": (BALL, {"g": 9.81, "r": 0.8}, [1.0, 0.0]),
    "a ball whose height is left as it is": (BALL.replace(", h = 0", ""), {"g": 9.81, "r": 0.1}, [1.0, 0.0]),
    "a switch at one level": ("x' = -s; s' = 0*x; when x < 0: s = -1; when x > 0: s = 1", {}, [1.0, 1.0]),
    "events that undo each other": ("x' = 1; when x > 1: x = 2 - x; when x < 1: x = 2 - x", {}, [0.0]),
    "an event that makes things infinite": ("x' = 1; when x > 1: x = 1/(x - x)", {}, [0.0]),
    "a blow-up after an event": ("x' = x^2; when x > 2: x = 3", {}, [1.0]),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_never_ends_gives_rows_that_are_not_numbers_before_long(what):
    text, theta, x0 = ENDLESS[what]
    begun = time.process_time()
    x = simulated(text, theta, x0, np.linspace(0.0, 8.0, 33))
    assert time.process_time() - begun < 20
    alive = np.isfinite(x).all(1)
    assert alive[0]
    assert not alive[-1]
    assert (np.diff(alive.astype(int)) <= 0).all()


def test_doses_and_events_at_times_are_followed_along():
    model = od.Model.from_text("x' = -k*x; n' = 0*x; when x > 3: n += 1; at 2: x = x/2; when x < 1: x += 2.5")
    doses = (od.Dose(1.0, 3.0, "x"), od.Dose(3.0, 4.0, "x", 2.0))
    t = np.array([0.0, 1.0, 2.0, 3.0, 5.0])
    condition = Condition.of(model, Experiment("e", t, np.empty((5, 0)), {}, doses=doses))
    stops = np.unique(np.concatenate([t[[0, -1]], condition.between(0.0, 5.0)]))
    x = follow(condition, np.array([0.1]), np.array([2.0, 0.0]), t, stops, 1e-10, 1e-12)
    one = 2 * np.exp(-0.1)
    two = (one + 3) * np.exp(-0.1)
    three = two / 2 * np.exp(-0.1)
    five = 20 + (three - 20) * np.exp(-0.2)
    np.testing.assert_allclose(x[:, 0], [2.0, one, two, three, five], rtol=1e-9)
    np.testing.assert_array_equal(x[:, 1], [0, 0, 1, 1, 2])


def test_a_model_of_very_many_states_has_events():
    equations = "; ".join(f"x{i}' = 1" for i in range(520))
    x = simulated(f"{equations}; when x0 > 1: x1 = 0", {}, np.zeros(520), [0.0, 2.0])
    np.testing.assert_allclose(x[-1, :3], [2.0, 1.0, 2.0], atol=1e-8)


@FEW
@given(a=st.floats(0.5, 2.0), level=st.floats(0.1, 0.5), push=st.floats(0.1, 1.0))
def test_it_agrees_with_another_solver_restarted_at_its_events(a, level, push):
    t = np.linspace(0.0, 20.0, 41)
    x = simulated("x' = y; y' = -a*x - 0.1*y; when x > c: y = -p*y", {"a": a, "c": level, "p": push}, [-2.0, 0.0], t)

    def rises(_, state):
        return state[0] - level

    rises.terminal, rises.direction = True, 1
    now, state, right = 0.0, np.array([-2.0, 0.0]), [[-2.0, 0.0]]
    while now < 20.0:
        own = {"rtol": 1e-12, "atol": 1e-12, "dense_output": True, "events": rises}
        found = solve_ivp(lambda _, s: [s[1], -a * s[0] - 0.1 * s[1]], (now, 20.0), state, "DOP853", **own)
        right += [found.sol(later) for later in t[(t > now) & (t <= found.t[-1])]]
        now, state = found.t[-1], found.y[:, -1] * [1.0, -push]
    np.testing.assert_allclose(x, right, atol=1e-6)


def test_many_events_at_one_time_are_no_crowd():
    names = [f"V{i}" for i in range(30)]
    text = "; ".join(f"{v}' = {i + 1}; when {v} > {i + 1}/3: {v} = 0" for i, v in enumerate(names))
    x = simulated(text, {}, np.zeros(30), [0.0, 1.5])
    np.testing.assert_allclose(x[-1], (np.arange(30) + 1) / 6, atol=1e-7)


COUNTER = "x' = 1; n' = 0*x; x(0) = 0; n(0) = 0; "


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("when x > 1: n = x", [0, 1, 1, 1]),
        ("when x > 1 {delay 1}: n = x", [0, 0, 1, 1]),
        ("when x > 1 {delay 1, current values}: n = x", [0, 0, 2, 2]),
        ("when x > 1 and x < 1.2 {delay 1}: n = x", [0, 0, 1, 1]),
        ("when x > 1 and x < 1.2 {delay 1, cancellable}: n = x", [0, 0, 0, 0]),
        ("when x < 5: n = 7", [0, 0, 0, 0]),
        ("when x < 5 {initially false}: n = 7", [7, 7, 7, 7]),
        ("when t >= 1.5: n = x", [0, 1.5, 1.5, 1.5]),
        ("when t > 1.5: n = x", [0, 0, 1.5, 1.5]),
    ],
)
def test_options_of_an_event_say_when_it_is_executed_and_with_which_values(options, expected):
    x = simulated(COUNTER + options, {}, {}, [0.0, 1.5, 2.25, 3.0])
    np.testing.assert_allclose(x[:, 1], expected, atol=1e-8)


@pytest.mark.parametrize(("first", "second", "expected"), [(1, 2, 1.0), (2, 1, 2.0)])
def test_of_events_at_one_time_the_one_of_higher_priority_comes_first(first, second, expected):
    text = f"when x > 1 {{priority {first}}}: n = 1; when x > 1 {{priority {second}}}: n = 2"
    assert simulated(COUNTER + text, {}, {}, [0.0, 2.0])[-1, 1] == expected


def test_events_of_equal_priority_come_in_random_order_and_the_same_one_each_time():
    more = "m' = 0*x; m(0) = 0; when sin(t) > 0.5 {priority 1}: n = 1; when sin(t) > 0.5 {priority 1}: n = 2; "
    text = COUNTER + more + "when sin(t) < 0: m += n - 1"
    x = simulated(text, {}, {}, [0.0, 130.0])
    assert 3 < x[-1, 2] < 18  # of about 21
    np.testing.assert_array_equal(simulated(text, {}, {}, [0.0, 130.0]), x)


@pytest.mark.parametrize("options", ["{late}", "{delay}", "{priority 1, priority 2}", "{}"])
def test_unknown_options_are_refused(options):
    with pytest.raises(od.InputError, match="is no option of an event"):
        od.Model.from_text(f"{COUNTER} when x > 1 {options}: n = 1")
