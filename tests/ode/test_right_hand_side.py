"""The equations of several experiments as instructions are those of each."""

import numpy as np
import pytest

import odinfer as od
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.interpreter import slopes_of_tape, values_of_tape
from odinfer.ode.right_hand_side import Field

TEXT = "x' = -a*x*y + b*u + c*sin(t); y' = x^2 - c*y; fixed b = 2; input u"


def field(doses=(), varying=True, text=TEXT):
    t = np.linspace(0.0, 3.0, 7)
    datas = {}
    for i, name in enumerate(("one", "other")):
        u = {"u": (t, np.cos(t) + i if varying else np.full(7, 1.0 + i))}
        datas[name] = od.Data(t, np.arange(7.0)[:, None], states=["x"], inputs=u, doses=list(doses))
    p = od.Problem(od.Model.from_text(text), od.Data.join(datas), positive=False)
    return p, Field(Timetable.of([p.condition(0), p.condition(1)]), p.own_index(0))


def asked(p, f, tape, e, t, x, theta):
    """f (K,) and its derivatives (K, K), (K, Q) at one point."""
    numbers, r = f.numbers(np.array([e]), theta[None]), tape.registers.copy()
    value = values_of_tape(tape, f.drive, e, np.array([t]), x[None], numbers)[0]
    u = p.condition(e).inputs_at(np.array([t]))[0]
    r[: 1 + len(x) + numbers.shape[1]] = [t, *x, *u, *theta]
    return value, *slopes_of_tape(tape, r, len(f.wanted))


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("varying", [True, False])
@pytest.mark.parametrize("doses", [(), ((1.0, 2.0, 0.0), (0.5, 1.0, 0.7))])
def test_values_and_derivatives_are_those_of_the_courses(varying, doses, held):
    if doses:
        doses = [od.Dose(time=t, amount=a, rate=r) for t, a, r in doses]
    p, f = field(doses, varying, TEXT.replace("input u", "step u") if held else TEXT)
    rng = np.random.default_rng(0)
    for e, t in zip([0, 1, 1, 0, 1, 0, 1], [*rng.uniform(0.1, 2.9, 5), -1.0, 9.0], strict=True):
        x, theta = rng.normal(size=2), rng.normal(size=3)
        own, dx, dtheta = (v[0] for v in p.condition(e).linearise(np.array([t]), x[None], theta))
        for tape in (f.values, f.by_states, f.by_all):
            np.testing.assert_allclose(asked(p, f, tape, e, t, x, theta)[0], own, rtol=1e-12)
        np.testing.assert_allclose(asked(p, f, f.by_states, e, t, x, theta)[1], dx, rtol=1e-12)
        _, by_x, by_wanted = asked(p, f, f.by_all, e, t, x, theta)
        np.testing.assert_allclose(by_x, dx, rtol=1e-12)
        np.testing.assert_allclose(by_wanted, dtheta[:, f.wanted], rtol=1e-12)


def test_a_field_varies_by_what_is_given_for_time_and_not_otherwise():
    assert field()[1].varies
    assert field(varying=False)[1].varies  # sin(t)
    still = TEXT.replace("sin(t)", "y")
    assert field(text=still)[1].varies
    assert not field(varying=False, text=still)[1].varies
    assert field([od.Dose(time=0.5, amount=1.0, rate=0.7)], False, still)[1].varies
