"""Encode instructions of a vector field as arrays of numbers for the compiled interpreter.

Registers hold the time, the states, inputs and parameters, constants, and then what the instructions give, one register
each.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.model.differentiation import TextField
from odinfer.model.program import LEAVES, is_whole_exponent, needed

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Numbers of the operations; "whole" is a power whose exponent, a whole number, stands in the place of a register.
OPERATIONS = (
    "+", "-", "*", "/", "neg", "whole", "pow", "exp", "log", "sqrt", "where", "<", "<=", ">", ">=", "==", "!=",
    "and", "or", "not", "min", "max", "abs", "sign", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "floor", "ceil",
)  # fmt: skip
_NUMBER = {name: i for i, name in enumerate(OPERATIONS)}


class Tape(NamedTuple):
    """Instructions n of F values and of their derivatives by some names.

    Attributes:
        code: (n, 5): what is done, the register it goes to, and those it is done with.
        registers: (R,), with constants in their places.
        values: the registers (F,) of the values.
        slopes: (nnz, 3): the derivative of which value, by which name, and its register.
    """

    code: Index
    registers: Array
    values: Index
    slopes: Index


@functools.lru_cache(maxsize=256)
def tape_of(field: TextField, names: tuple[str, ...], columns: tuple[str, ...] = ()) -> Tape:
    """A field's instructions; they are made once.

    Args:
        names: what is given in the first registers, in this order.
        columns: the names by which derivatives are wanted.
    """
    found = field.derived(columns)
    code = found.code
    by = [(row, column, i) for row, own in enumerate(found.derivatives) for column, i in sorted(own.items())]
    place = {name: i for i, name in enumerate(names)}
    registers, at = [0.0] * len(names), {}
    lines: list[tuple[int, ...]] = []
    for i in needed(code, [*found.values, *(i for *_, i in by)]):
        op, args = code[i]
        if op == "name":
            at[i] = place[args[0]]
            continue
        at[i] = len(registers)
        registers.append(float(args[0]) if op in LEAVES else 0.0)
        if op in LEAVES:
            continue
        own = [at[j] for j in args]
        last_op, last = code[args[-1]]
        if op == "pow" and last_op == "number" and is_whole_exponent(last[0]):
            op, own = "whole", [own[0], int(last[0])]
        lines.append((_NUMBER[op], at[i], *own, *[0] * (3 - len(own))))
    slopes = np.array([(row, column, at[i]) for row, column, i in by], np.int64).reshape(-1, 3)
    values = np.array([at[i] for i in found.values], np.int64)
    return Tape(np.array(lines, np.int64).reshape(-1, 5), np.array(registers), values, slopes)
