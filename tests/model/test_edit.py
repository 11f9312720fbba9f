"""Terms are added to the equations of a text, which stays as it is otherwise."""

import pytest

import odinfer as od
from odinfer.model.edit import equations_of, unused_name, with_term


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("x' = -k*x", "x"),
        ("# x' = 3\nx' = -k*x  # decay = slow", "x"),
        ("y' = x; x' = -k*x; k > 0", "x"),
        ("dx/dt = -k*x\ny' = 0", "x"),
        ("d(x)/dt = -k*x", "x"),
        ("x'' = -k*x", "x_dot"),
    ],
)
def test_a_term_is_added_to_the_equation_of_a_state(text, state):
    before, after = od.Model.from_text(text), od.Model.from_text(with_term(text, state, "c*x^2", ["c"]))
    k = before.states.index(state)
    theta = {**dict.fromkeys(before.parameters, 2.0), "c": 5.0}
    x = [[3.0] * len(before.states)]
    import numpy as np

    def slopes(model):
        own = np.array([theta[name] for name in model.parameters])
        return model.evaluate(np.zeros(1), np.array(x), own, np.zeros((1, 0)))[0]

    change = slopes(after) - slopes(before)
    assert change[k] == 45.0
    assert abs(change).sum() == 45.0


def test_an_equation_that_is_zero_becomes_the_term():
    assert with_term("x' = 0", "x", "c*x") == "x' = c*x"


def test_definitions_and_declarations_are_no_equations():
    assert set(equations_of("a = 3*b\nx(0) = 2; x' = a*x\nfixed b = 1\n0 < c < 1")) == {"x"}


def test_a_state_without_an_equation_is_named():
    with pytest.raises(od.InputError, match="no equation for 'z'"):
        with_term("x' = 1", "z", "c")


def test_new_names_are_new():
    assert unused_name("c", {"x"}) == "c"
    assert unused_name("c", {"c", "c2"}) == "c3"
