"""Programs in JAX: the values of any instructions, computed from what they need and from nothing else."""

import jax
import numpy as np
import pytest

from odinfer.model.expression import read
from odinfer.model.jax_program import values
from odinfer.model.parser import parse
from odinfer.model.program import Program


def test_values_of_single_instructions_need_no_other_names():
    program = Program({})
    one, two = program.whole(read("a*b + 1", 1)), program.whole(read("log(where(c > 0, c, 1))", 1))
    assert [float(v) for v in values(program.code, [one, one], {"a": 2.0, "b": 3.0})] == [7.0, 7.0]
    assert float(values(program.code, [two], {"c": 1.0})[0]) == 0.0


def test_constants_and_names_are_values_too():
    program = Program({})
    outputs = [program.whole(read("3 + 4", 1)), program.whole(read("I(0)", 1))]
    assert [float(v) for v in values(program.code, outputs, {"I(0)": 2.0})] == [7.0, 2.0]


def test_branches_that_are_not_taken_leave_derivatives_alone():
    program = Program({})
    i = program.whole(read("where(x > 0, sqrt(x), 0)", 1))
    assert float(jax.grad(lambda x: values(program.code, [i], {"x": x})[0])(0.0)) == 0.0
    assert float(jax.grad(lambda x: values(program.code, [i], {"x": x})[0])(4.0)) == pytest.approx(0.25)


def test_a_model_gives_the_values_of_all_its_instructions():
    e = parse("x' = -k*x; I = k*x; y ~ normal(2*I, s0 + x); x(0) = k + 1; at 3: x = x/2")
    (column,), (event,) = e.columns, e.events
    instructions = [*column.arguments, e.initial["x"], event.changes[0][1], e.definitions["I"]]
    found = e.at(instructions, 0.0, [3.0], [5.0, 7.0], [])
    assert e.parameters == ("k", "s0")
    np.testing.assert_allclose(found, [30.0, 10.0, 6.0, 1.5, 15.0])
