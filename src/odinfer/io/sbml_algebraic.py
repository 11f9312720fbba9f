"""Solve the algebraic rules of an SBML model, 0 = g, for one variable each in which they are linear.

A variable that nothing else determines becomes an assignment rule; it is eliminated from the rules that follow
(Gaussian elimination), so that no two solutions need each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from odinfer.errors import InputError
from odinfer.io import libsbml

_MOST_NODES = 20_000  # of a rule once functions and other rules are written out

Tree = Any  # an ASTNode of libsbml


class _Linear(NamedTuple):
    """Terms with their signs: those without a variable, and the factors of those with it."""

    rest: list[tuple[int, Tree]]
    factor: list[tuple[int, Tree]]


def solve_algebraic_rules(
    rules: Sequence[Tree],
    unknowns: Sequence[str],
    assigned: Mapping[str, Tree],
    functions: Mapping[str, Tree],
    where: str,
) -> dict[str, Tree]:
    """Assignment rules that are equivalent to algebraic ones.

    Args:
        rules: the expressions that are 0.
        unknowns: identifiers that the rules may determine, the likeliest first.
        assigned: assignment rules; functions: function definitions of the model.
        where: the file, for messages.

    Raises:
        InputError: a rule is not linear in any identifier that is left to determine.
    """
    depending = _depending(assigned, unknowns)
    solved: dict[str, Tree] = {}
    for rule in rules:
        try:
            tree = _Expansion(functions, {**{name: assigned[name] for name in depending}, **solved}, where)(rule, {})
            found = next(
                ((name, own) for name in unknowns if name not in solved
                 if (own := _linear(tree, name)) is not None and own.factor), None
            )  # fmt: skip
        except RecursionError:
            raise InputError(f"{where}: an algebraic rule is nested too deeply or calls itself; simplify it") from None
        if found is None:
            raise InputError(
                f"{where}: an algebraic rule is not linear in a variable that nothing else determines, which cannot be "
                "read; replace it by an assignment rule"
            )
        name, (rest, factor) = found
        solved[name] = _solution(rest, factor).deepCopy()  # which does not end with the tree that it was a part of
    return solved


def _depending(assigned: Mapping[str, Tree], unknowns: Collection[str]) -> set[str]:
    """The names with assignment rules that depend on unknowns, by way of each other."""
    names = {name: _names(tree) for name, tree in assigned.items()}
    found: set[str] = set()
    while new := {name for name, own in names.items() if name not in found and own & {*unknowns, *found}}:
        found |= new
    return found


def _names(tree: Tree) -> set[str]:
    """The identifiers in an expression."""
    found, left = set(), [tree]
    while left:
        node = left.pop()
        if node.getType() == libsbml().AST_NAME:
            found.add(node.getName())
        left += _children(node)
    return found


def _children(tree: Tree) -> list[Tree]:
    return [tree.getChild(i) for i in range(tree.getNumChildren())]


class _Expansion:
    """Write out function calls and some identifiers in an expression."""

    def __init__(self, functions: Mapping[str, Tree], replaced: Mapping[str, Tree], where: str) -> None:
        self.functions, self.replaced, self.where, self.nodes = functions, replaced, where, 0

    def __call__(self, tree: Tree, bound: Mapping[str, Tree]) -> Tree:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            raise InputError(f"{self.where}: an algebraic rule has more than {_MOST_NODES} parts when written out")
        lib, name = libsbml(), tree.getName()
        if tree.getType() == lib.AST_NAME and name in bound:
            return self(bound[name], {})  # a copy, for the tree that it becomes a part of
        if tree.getType() == lib.AST_NAME and name in self.replaced:
            return self(self.replaced[name], {})
        arguments = [self(own, bound) for own in _children(tree)]
        function = self.functions.get(name) if tree.getType() == lib.AST_FUNCTION else None
        if function is not None and function.getNumChildren() == len(arguments) + 1:
            *formal, body = _children(function)
            return self(body, {own.getName(): given for own, given in zip(formal, arguments, strict=True)})
        copy = tree.deepCopy()
        for i, own in enumerate(arguments):
            copy.replaceChild(i, own, True)
        return copy


def _linear(tree: Tree, name: str) -> _Linear | None:
    """An expression as a sum of terms without a name and of terms that are multiples of it; None if it is none."""
    lib, kind = libsbml(), tree.getType()
    if name not in _names(tree):
        return _Linear([(1, tree)], [])
    if kind == lib.AST_NAME:
        return _Linear([], [(1, _integer(1))])
    parts = _children(tree)
    if kind in (lib.AST_PLUS, lib.AST_MINUS):
        total = _Linear([], [])
        for i, part in enumerate(parts):
            if (own := _linear(part, name)) is None:
                return None
            sign = -1 if kind == lib.AST_MINUS and (i or len(parts) == 1) else 1
            for terms, new in zip(total, own, strict=True):
                terms += [(sign * s, term) for s, term in new]
        return total
    inside = [i for i, part in enumerate(parts) if name in _names(part)]
    if (kind == lib.AST_TIMES and len(inside) == 1) or (kind == lib.AST_DIVIDE and inside == [0]):
        own = _linear(parts[inside[0]], name)
        others = [part for i, part in enumerate(parts) if i != inside[0]]
        if own is None or not others:
            return own
        return _Linear(*([(1, _node(kind, [_sum(terms), *others]))] if terms else [] for terms in own))
    return None


def _solution(rest: list[tuple[int, Tree]], factor: list[tuple[int, Tree]]) -> Tree:
    """The root of rest + factor·x."""
    rest = rest or [(1, _integer(0))]
    if len(factor) == 1 and (value := _number(factor[0][1])) in (1.0, -1.0):
        return _sum([(-sign * factor[0][0] * int(value), term) for sign, term in rest])
    return _node(libsbml().AST_DIVIDE, [_sum([(-sign, term) for sign, term in rest]), _sum(factor)])


def _number(tree: Tree) -> float | None:
    """The value of a product of numbers; None of anything else."""
    if tree.isNumber():
        return float(tree.getValue())
    lib, kind = libsbml(), tree.getType()
    values = [_number(own) for own in _children(tree)]
    if kind == lib.AST_TIMES and None not in values:
        product = 1.0
        for value in values:
            product *= value or 0.0
        return product
    return None


def _sum(terms: list[tuple[int, Tree]]) -> Tree:
    """The sum of terms with signs."""
    lib = libsbml()
    plus, minus = ([term for sign, term in terms if sign == wanted] for wanted in (1, -1))
    sums = [own[0] if len(own) == 1 else _node(lib.AST_PLUS, own) for own in (plus, minus) if own]
    return sums[0] if not minus else _node(lib.AST_MINUS, sums)


def _node(kind: int, children: Sequence[Tree]) -> Tree:
    node = libsbml().ASTNode(kind)
    for own in children:
        node.addChild(own.deepCopy())
    return node


def _integer(value: int) -> Tree:
    node = libsbml().ASTNode(libsbml().AST_INTEGER)
    node.setValue(value)
    return node
