"""The equations at points of several experiments at once are those of each."""

import numpy as np
import pytest

import odinfer as od
from odinfer.forward.field import Field
from odinfer.forward.timetable import Timetable

TEXT = "x' = -a*x*y + b*u + c*sin(t); y' = x^2 - c*y; fixed b = 2; input u"


def field(doses=(), varying=True):
    t = np.linspace(0.0, 3.0, 7)
    datas = {}
    for i, name in enumerate(("one", "other")):
        u = {"u": (t, np.cos(t) + i if varying else np.full(7, 1.0 + i))}
        datas[name] = od.Data(t, np.arange(7.0)[:, None], states=["x"], inputs=u, doses=list(doses))
    p = od.Problem(od.Model.from_text(TEXT), od.Data.join(datas))
    return p, Field(Timetable.of([p.course(0), p.course(1)]), p.own_index(0))


@pytest.mark.parametrize("varying", [True, False])
@pytest.mark.parametrize("doses", [(), ((1.0, 2.0, 0.0), (0.5, 1.0, 0.7))])
def test_values_and_derivatives_are_those_of_the_courses(varying, doses):
    if doses:
        doses = [od.Dose(time=t, amount=a, rate=r) for t, a, r in doses]
    p, f = field(doses, varying)
    rng = np.random.default_rng(0)
    e, t = np.array([0, 1, 1, 0, 1]), rng.uniform(0.1, 2.9, 5)
    x, theta = rng.normal(size=(5, 2)), rng.normal(size=(5, 3))
    numbers = f.numbers(e, theta)
    values, fx = f.by_states(e, t, x, numbers)
    by_x, by_wanted = f.by_all(e, t, x, numbers)
    for i in range(5):
        own, dx, dtheta = p.course(e[i]).linearise(t[i : i + 1], x[i : i + 1], theta[i])
        np.testing.assert_allclose(values[i], own[0], rtol=1e-12)
        np.testing.assert_allclose(f.evaluate(e, t, x, numbers)[i], own[0], rtol=1e-12)
        np.testing.assert_allclose(fx[i], dx[0], rtol=1e-12)
        np.testing.assert_allclose(by_x[i], dx[0], rtol=1e-12)
        np.testing.assert_allclose(by_wanted[i], dtheta[0][:, f.wanted], rtol=1e-12)


def test_times_beyond_an_interval_are_moved_into_it():
    _, f = field()
    e, x, theta = np.zeros(1, int), np.ones((1, 2)), np.ones((1, 3))
    numbers = f.numbers(e, theta)
    asked = f.between(e, np.array([0.5]), np.array([1.0]), numbers)
    np.testing.assert_array_equal(asked(np.array([2.0]), x), f.evaluate(e, np.ones(1), x, numbers))
    assert f.varies
