"""What drives experiments is found in arrays as the data have it."""

import numpy as np

import odinfer as od
from odinfer.ode.forcing import Drive


def drive(text, **more):
    t = np.arange(4.0)
    datas = {
        name: od.Data(t, t[:, None], states=["x"], **{k: v(i) for k, v in more.items()}) for i, name in enumerate("ab")
    }
    p = od.Problem(od.Model.from_text(text), od.Data.join(datas), positive=False)
    return Drive.of([p.condition(0), p.condition(1)])


def test_nothing_drives_a_model_without_inputs_and_doses():
    assert drive("x' = -k*x").still


def test_inputs_of_each_experiment_are_where_they_are_said_to_be():
    t = np.arange(4.0)
    found = drive("x' = u - k*x + v; input u; step v", inputs=lambda i: {"u": (t, t + i), "v": (t, t - 10 * i)})
    assert found.changing
    assert not found.still
    np.testing.assert_array_equal(found.held, [False, True])
    for i in range(2):
        for j, exact in enumerate((t + i, t - 10 * i)):
            own = slice(found.first[i, j], found.first[i, j] + found.length[i, j])
            np.testing.assert_array_equal(found.values[own], exact)
            np.testing.assert_array_equal(found.times[own], t)


def test_inputs_that_do_not_change_leave_a_field_still():
    t = np.arange(4.0)
    assert drive("x' = u - k*x; input u", inputs=lambda i: {"u": (t, np.full(4, 2.0))}).still


def test_infusions_belong_to_their_experiments():
    found = drive("x' = -k*x", doses=lambda i: [od.Dose(time=n, amount=2.0, rate=4.0) for n in range(1 + i)])
    np.testing.assert_array_equal(found.infusions, [0, 1, 3])
    np.testing.assert_array_equal(found.begin, [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(found.end, [0.5, 0.5, 1.5])
    assert not found.still
