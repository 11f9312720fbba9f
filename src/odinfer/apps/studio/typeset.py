"""The equations of a text as they stand in books: trees of MathML elements that the page builds."""

from __future__ import annotations

import ast
import re
from typing import Any

from odinfer.errors import InputError
from odinfer.model.expression import slope_of
from odinfer.model.statements import read_statements

Tree = list[Any]  # the name of an element, then its children: trees or text

_GREEK = dict(
    zip(
        [
            "alpha",
            "beta",
            "gamma",
            "delta",
            "epsilon",
            "zeta",
            "eta",
            "theta",
            "kappa",
            "lam",
            "mu",
            "nu",
            "xi",
            "rho",
            "sigma",
            "tau",
            "phi",
            "chi",
            "psi",
            "omega",
            "pi",
        ],
        "αβγδεζηθκλμνξρστφχψωπ",
        strict=True,
    )
)
_SIGNS: dict[type, str] = {
    ast.Lt: "<", ast.LtE: "≤", ast.Gt: ">", ast.GtE: "≥", ast.Eq: "=", ast.NotEq: "≠", ast.And: "and", ast.Or: "or",
}  # fmt: skip
_SUM, _SIGNED, _PRODUCT, _POWER, _ATOM = range(5)  # how tightly the parts of an expression hold together


def typeset(text: str) -> list[Tree]:
    """The differential equations and definitions of a text, a tree each; none if it cannot be read."""
    try:
        given = read_statements(re.sub(r"\?\s*(\w*)\s*\(", lambda m: f"{m[1] or 'f'}(", text)).given
    except InputError:
        return []
    equations, definitions = given["equation"], given["definition"]
    found = []
    for name, source in equations.items():
        if slope_of(name) in equations:
            continue  # said by the equation of second order
        first = next((own for own in equations if slope_of(own) == name), None)
        found.append(_row(_derivative(first or name, 2 if first else 1), _sign("="), _tree(source.tree)))
    return found + [_row(_name(name), _sign("="), _tree(source.tree)) for name, source in definitions.items()]


def _row(*children: Tree) -> Tree:
    return ["mrow", *children]


def _sign(text: str) -> Tree:
    return ["mo", text]


def _derivative(name: str, order: int) -> Tree:
    d: Tree = ["mi", "d"]
    power: Tree = ["mn", str(order)]
    above, time = (d, _name("t")) if order == 1 else (["msup", d, power], ["msup", _name("t"), power])
    return ["mfrac", _row(above, _name(name)), _row(d, time)]


def _name(name: str) -> Tree:
    """A name, with Greek letters and with what follows its first part, or its letters, as an index."""
    if name.endswith("_dot") and len(name) > len("_dot"):
        return ["mover", _name(name.removesuffix("_dot")), _sign("˙")]
    parts = re.fullmatch(r"([^\W\d_]+)_?([\w]*)", name)
    if parts is None:
        return ["mi", name]
    head, index = parts.groups()
    letter: Tree = ["mi", _GREEK.get(head, head)]
    return ["msub", letter, ["mi", _GREEK.get(index, index.replace("_", " "))]] if index else letter


def _tree(node: ast.expr, within: int = _SUM) -> Tree:
    """An expression, in brackets if it holds together less tightly than what it is part of."""
    found, own = _part(node)
    return found if own >= within else _row(_sign("("), found, _sign(")"))


def _part(node: ast.expr) -> tuple[Tree, int]:
    match node:
        case ast.Constant(value=value):
            return ["mn", f"{value:g}" if isinstance(value, float) else str(value)], _ATOM
        case ast.Name(id=name):
            return _name(name), _ATOM
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _row(_sign("−"), _tree(operand, _PRODUCT)), _SIGNED
        case ast.UnaryOp(operand=operand):
            return _row(_sign("not"), _tree(operand, _ATOM)), _SUM
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _row(_tree(left), _sign("+"), _tree(right, _PRODUCT)), _SUM
        case ast.BinOp(op=ast.Sub(), left=left, right=right):
            return _row(_tree(left), _sign("−"), _tree(right, _PRODUCT)), _SUM
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            own = _SIGNED if _part(left)[1] == _SIGNED else _PRODUCT
            return _row(_tree(left, _SIGNED), _sign("\N{DOT OPERATOR}"), _tree(right, _PRODUCT)), own
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            return ["mfrac", _tree(left), _tree(right)], _PRODUCT
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return ["msup", _tree(left, _ATOM), _tree(right)], _POWER
        case ast.Call(func=ast.Name(id="sqrt"), args=[inside]):
            return ["msqrt", _tree(inside)], _ATOM
        case ast.Call(func=ast.Name(id="abs"), args=[inside]):
            return _row(_sign("|"), _tree(inside), _sign("|")), _ATOM
        case ast.Call(func=ast.Name(id=name), args=arguments):
            pieces = [piece for a in arguments for piece in (_sign(","), _tree(a))][1:]
            return _row(_name(name), _sign("("), *pieces, _sign(")")), _ATOM
        case ast.Compare(left=left, ops=ops, comparators=others):
            pairs = zip(ops, others, strict=True)
            return _row(_tree(left), *(t for op, b in pairs for t in (_sign(_SIGNS[type(op)]), _tree(b)))), _SUM
        case ast.BoolOp(op=op, values=values):
            return _row(*[t for v in values for t in (_sign(_SIGNS[type(op)]), _tree(v))][1:]), _SUM
        case ast.IfExp(test=test, body=body, orelse=other):
            return _row(_tree(body), _sign("if"), _tree(test), _sign(", else"), _tree(other)), _SUM
    return ["mtext", ast.unparse(node)], _SUM
