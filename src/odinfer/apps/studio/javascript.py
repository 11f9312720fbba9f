"""Translate a text model to a JavaScript module, so that the page can simulate it.

Like the functions of `differentiation.py` its text is made of generated names, operators and numbers: nothing in it is
the user's. Every function writes its results into `out`; x, p and u are states, parameters and inputs in the model's
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from odinfer.model.model import Model
from odinfer.model.program import is_whole_exponent, needed

Code = Sequence[tuple[str, tuple[Any, ...]]]

_INFIX = {"+": "+", "-": "-", "*": "*", "/": "/", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_INFIX |= {"==": "===", "!=": "!==", "and": "&&", "or": "||"}
_MATH = (
    "exp", "log", "log10", "sqrt", "abs", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "floor", "ceil",
)  # fmt: skip
# Where Math.pow differs from C: powers of one, and of minus one with an infinite exponent. Whole exponents multiply.
_LIBRARY = """\
const power = (x, n) => x === 1 || (x === -1 && (n === Infinity || n === -Infinity)) ? 1 : Math.pow(x, n);
const whole = (x, n) => {
  let result = 1, first = true;
  for (; ; x *= x) {
    if (n & 1) { result = first ? x : result * x; first = false; }
    n >>= 1;
    if (!n) return result;
  }
};
"""


def module(model: Model, columns: Sequence[int]) -> str:
    """The vector field, initial values, jumps and predicted columns of a model.

    Args:
        model: from text.
        columns: the instructions of what is predicted for the observed columns.
    """
    names = {"t": "t"}
    for letter, own in (("x", model.states), ("p", model.parameters), ("u", model.inputs)):
        names |= {name: f"{letter}[{i}]" for i, name in enumerate(own)}
    declarations = model.declarations

    def function(outputs: Sequence[int]) -> str:
        return _function(model.code, outputs, names)

    jumps = ",\n".join(function([i for _, i in event.changes]) for event in declarations.events)
    return (
        f"{_LIBRARY}\nexport const field = {function(declarations.outputs)};\n"
        f"export const initial = {function([*declarations.initial.values()])};\n"
        f"export const columns = {function(columns)};\n"
        f"export const jumps = [{jumps}];\n"
    )


def _function(code: Code, outputs: Sequence[int], names: Mapping[str, str]) -> str:
    lines = [f"  const v{i} = {_expression(code, i, names)};" for i in needed(code, outputs)]
    lines += [f"  out[{k}] = v{i};" for k, i in enumerate(outputs)]
    return "\n".join(["(t, x, p, u, out) => {", *lines, "}"])


def _expression(code: Code, i: int, names: Mapping[str, str]) -> str:
    op, args = code[i]
    v = [] if op in ("name", "number", "truth") else [f"v{j}" for j in args]
    match op:
        case "name":
            return names[args[0]]
        case "number":
            return repr(args[0])
        case "truth":
            return "true" if args[0] else "false"
        case "neg":
            return f"-{v[0]}"
        case "not":
            return f"!{v[0]}"
        case "sign":
            return f"Math.sign({v[0]}) + 0"  # the sign of -0 is 0
        case "where":
            return f"{v[0]} ? {v[1]} : {v[2]}"
        case "pow":
            exponent = code[args[1]]
            whole = exponent[0] == "number" and is_whole_exponent(exponent[1][0])
            return f"whole({v[0]}, {int(exponent[1][0])})" if whole else f"power({v[0]}, {v[1]})"
    if op in _INFIX:
        return f"{v[0]} {_INFIX[op]} {v[1]}"
    assert op in (*_MATH, "min", "max"), op
    return f"Math.{op}({', '.join(v)})"
