"""Instructions as numbers give what the same instructions give in numpy, derivatives among it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.model.differentiation import TextField
from odinfer.ode.bytecode import OPERATIONS, tape_of
from odinfer.ode.interpreter import slopes_of_tape

LEAVES = st.sampled_from(["x", "y", "a", "b", "t", "0.5", "2", "3"])
EVERY = """
    x' = a*x - b*y/(1 + x^3) + x^2.5 - x^b
    y' = where(x < y and not (a >= b or x == 2), exp(-x), log(x)) + sqrt(y)
    z' = min(x, y) + max(a, b) + abs(y) + sign(x) + log10(a) + sin(t) + cos(x) + tan(y) + asin(a/9) + acos(b/9)
    v' = asinh(x) + acosh(1 + y) + atanh(b/9) + floor(x) + ceil(a)
    w' = atan(x) + sinh(y) + cosh(a) + tanh(b) + piecewise(1, t <= 1, x, t > 2 and x != 1, y) - (-x)^7
"""


def every(model, columns, values):
    """Values and derivatives (F, 1 + C) of a model's equations at one point, by a tape and in numpy."""
    names = ("t", *model.states, *model.parameters)
    tape = tape_of(model.derivatives, names, columns)
    r = tape.registers.copy()
    r[: len(names)] = [values[n] for n in names]
    slopes_of_tape(tape, r, len(columns))
    found = np.zeros((len(model.states), 1 + len(columns)))
    found[:, 0] = r[tape.values]
    found[tape.slopes[:, 0], 1 + tape.slopes[:, 1]] = r[tape.slopes[:, 2]]
    text = model.derivatives
    others = tuple(n for n in (*model.states, *model.parameters) if n not in columns)
    again = TextField(text.code, text.outputs, (columns, (), others))
    t, x, u = (np.array([[values[n] for n in group]]) for group in (("t",), columns, others))
    f, fx, _ = again.linearise(t[0], x, np.empty((1, 0)), u)
    return found, np.concatenate([f[0][:, None], fx[0]], 1)


def test_every_operation_is_what_numpy_makes_of_it():
    model = od.Model.from_text(EVERY)
    used = {op for op, _ in model.derivatives.code} | {"whole"}
    assert {*OPERATIONS} - used <= {"neg", ">="}  # those that are written in other ways
    for values in (
        {"t": 0.5, "x": 1.2, "y": 0.7, "z": 1.0, "w": 1.0, "v": 1.0, "a": 2.0, "b": 0.4},
        {"t": 3.0, "x": 2.0, "y": 2.0, "z": 1.0, "w": 1.0, "v": 1.0, "a": 0.3, "b": 5.0},
        {"t": 1.5, "x": -1.0, "y": -2.0, "z": 1.0, "w": 1.0, "v": 1.0, "a": -0.3, "b": 0.0},
        {"t": 1.5, "x": 0.0, "y": 0.0, "z": 1.0, "w": 1.0, "v": 1.0, "a": 0.0, "b": np.nan},
    ):
        found, exact = every(model, ("x", "y", "a", "b"), values)
        np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-14)


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from([*"+-*/^"]), inner),
            st.builds("{}({})".format, st.sampled_from(["exp", "sin", "tanh", "abs", "-"]), inner),
            st.builds("where({0} < {1}, {1}, {2})".format, inner, inner, inner),
        ),
        max_leaves=12,
    ),
    st.lists(st.floats(-3.0, 3.0), min_size=5, max_size=5),
)
def test_random_expressions_agree_with_numpy(expression, numbers):
    try:
        model = od.Model.from_text(f"x' = {expression} + x + y + a + b\ny' = x + y + a*b")
    except od.InputError:
        return  # constants that are not finite
    values = dict(zip(("t", "x", "y", "a", "b"), numbers, strict=True))
    found, exact = every(model, ("x", "b"), values)
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-300)
