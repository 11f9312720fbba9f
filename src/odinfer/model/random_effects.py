"""Random effects: `CL ~ lognormal(CL_pop*(wt/70)^b, omega_CL) by subject`, and their correlations.

A parameter of the equations with `by subject` has one value per experiment, drawn from a distribution. The first
argument is its centre (the median of a log-normal), the second the standard deviation on the scale on which the
distribution is normal. A second statement `CL ~ lognormal(CL, gamma_CL) by occasion` makes the parameter vary further
from one value of the column `occasion` to the next. Names in a centre are parameters of the population, or covariates
if the data have a column of that name; `where(sex == female, a, 1)` compares a column of labels with one of them.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from odinfer.errors import InputError, nearest
from odinfer.model.expression import RESERVED, SHORT, Source
from odinfer.model.program import Program, needed, number
from odinfer.model.statements import Effect, Statements

FAMILIES = ("normal", "lognormal", "logitnormal")
ALL = "all"  # `correlated all`


@dataclass(frozen=True)
class RandomEffect:
    """A parameter that varies.

    Attributes:
        name: the parameter.
        family: one of `FAMILIES`.
        centre: instruction of the centre in `RandomEffects.code`.
        omega: name of the standard deviation, or its value if it is known.
        by: what it varies by: "subject" or the column that marks subjects, or the column of occasions.
        factors: names whose product or quotient, with what has no name of its own, is the centre.
        line: where it is stated.
        deviates: the parameter from which it is the deviation on one occasion, where it is one.
    """

    name: str
    family: str
    centre: int
    omega: str | float
    by: str
    factors: tuple[str, ...]
    line: int
    deviates: RandomEffect | None = None


@dataclass(frozen=True)
class RandomEffects:
    """All that a text says about variation between and within subjects.

    Attributes:
        subject: the effects between subjects.
        occasion: the effects within subjects, between occasions.
        correlated: groups of parameters whose effects between subjects are correlated.
        names: names in the centres, and standard deviations, in the order in which they are met.
        code: instructions of the centres.
        labels: name in the instructions → (column, label): 1 where the column has the label, else 0.
    """

    subject: tuple[RandomEffect, ...] = ()
    occasion: tuple[RandomEffect, ...] = ()
    correlated: tuple[tuple[str, ...], ...] = ()
    names: tuple[str, ...] = ()
    code: tuple[tuple[str, tuple[Any, ...]], ...] = field(default=(), repr=False)
    labels: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.subject)

    def names_of_centre(self, effect: RandomEffect) -> tuple[str, ...]:
        """The names in the centre of an effect."""
        return tuple(self.code[i][1][0] for i in needed(self.code, [effect.centre]) if self.code[i][0] == "name")


def names_in_effects(statements: Statements) -> set[str]:
    """All names in the arguments of random effects, of which priors may be given."""
    every = [*statements.given["effect"].values(), *statements.given["occasion effect"].values()]
    return {name for given in every for _, source in given.arguments for name in source.names()}


def random_effects(statements: Statements, parameters: Collection[str], taken: Collection[str]) -> RandomEffects:
    """Read the random effects of a text.

    Args:
        statements: the statements.
        parameters: the parameters of the equations and of what is observed.
        taken: states, definitions, inputs and reserved words, which cannot be in a centre.

    Raises:
        InputError: naming the line.
    """
    levels: dict[str, list[RandomEffect]] = {"effect": [], "occasion effect": []}
    program, labels, names = Program({}), dict[str, tuple[str, str]](), dict[str, None]()
    for kind, found in levels.items():
        for name, given in statements.given[kind].items():
            if name not in parameters:
                hint = nearest(name, sorted(parameters)) or "; use it there, or leave the line out"
                raise InputError(f"line {given.line}: '{name}' varies by {given.by}, but no equation has it{hint}")
            found.append(_effect(name, given, kind, program, labels, names, taken))
    subject = {effect.name: effect.family for effect in levels["effect"]}
    for effect in levels["occasion effect"]:
        start = f"line {effect.line}: '{effect.name}' varies by {effect.by}"
        if effect.name not in subject:
            remedy = f"write {effect.name} ~ {effect.family}(centre, omega) by subject as well"
            raise InputError(f"{start} but not by subject; {remedy}")
        if effect.family != (family := subject[effect.name]):
            raise InputError(f"{start} as {effect.family} but by subject as {family}; write {family} in both lines")
    if len({effect.by for effect in levels["occasion effect"]}) > 1:
        raise InputError(f"line {effect.line}: effects vary by two kinds of occasions; use one column for all")
    for first, effect in itertools.pairwise(levels["effect"]):
        if effect.by != first.by:
            start = f"line {effect.line}: '{effect.name}' varies by {effect.by}, but '{first.name}' by {first.by}"
            raise InputError(f"{start}; write one of them in both lines")
    groups = _groups(statements, [effect.name for effect in levels["effect"]])
    subjects, occasions = (tuple(found) for found in levels.values())
    return RandomEffects(subjects, occasions, groups, tuple(names), tuple(program.code), labels)


def _effect(
    name: str,
    given: Effect,
    kind: str,
    program: Program,
    labels: dict[str, tuple[str, str]],
    names: dict[str, None],
    taken: Collection[str],
) -> RandomEffect:
    start = f"line {given.line}: {SHORT.repr(given.text)}"
    if given.family not in FAMILIES:
        raise InputError(f"{start} is no distribution of a parameter; write {', '.join(FAMILIES)}(centre, sd)")
    if not 1 <= len(given.arguments) <= 2 or any(word for word, _ in given.arguments):
        raise InputError(f"{start} needs a centre and a standard deviation; write {given.family}({name}_pop, omega)")
    source, centre = given.arguments[0][1], -1
    factors: tuple[str, ...] = ()
    if kind == "occasion effect":
        if source.names() != [name]:
            raise InputError(f"{start} must have its centre in the value of the subject; write {given.family}({name})")
    else:
        tree = _Labels(labels).visit(source.tree)
        source = Source(source.line, source.text, tree)
        for word in source.names():
            if word == name or (word in taken and word not in RESERVED):
                raise source.error(source.tree, f"has '{word}', which is no parameter of the population or covariate")
            if word not in RESERVED and word not in labels:
                names[word] = None
        centre, factors = program.whole(source), tuple(_factors(source.tree))
    default = f"{'omega' if kind == 'effect' else 'gamma'}_{name}"
    omega = _omega(given.arguments[1][1], start) if len(given.arguments) == 2 else default
    if isinstance(omega, str):
        names[omega] = None
    return RandomEffect(name, given.family, centre, omega, given.by, factors, given.line)


def _omega(source: Source, start: str) -> str | float:
    """The standard deviation: a name, or a number if it is known."""
    if isinstance(source.tree, ast.Name) and source.tree.id not in RESERVED:
        return source.tree.id
    if {*source.names()} - RESERVED or (value := number(source)) <= 0:
        raise InputError(f"{start} has '{source.text}' as its standard deviation; write a name or a positive number")
    return value


def _groups(statements: Statements, effects: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The groups of correlated effects, each in the order of the effects."""
    found = []
    for name, group in statements.given["correlated"].items():
        line = statements.lines["correlated", name]
        members = tuple(effects) if group == (ALL,) else group
        for member in members:
            if member not in effects:
                raise InputError(f"line {line}: '{member}' is correlated but does not vary{nearest(member, effects)}")
        if len(members) < 2:
            raise InputError(f"line {line}: only one effect is named; name two or more, or write correlated all")
        group = tuple(effect for effect in effects if effect in members)
        if group not in found:
            found.append(group)
    if len({name for group in found for name in group}) < sum(map(len, found)):
        raise InputError("line 1: an effect is in two groups of correlated ones; write one line for both")
    return tuple(found)


def _factors(tree: ast.expr) -> list[str]:
    """Bare names in a product or quotient; each must be positive where the whole is."""
    match tree:
        case ast.Name(id=name) if name not in RESERVED:
            return [name]
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=right):
            return [*_factors(left), *_factors(right)]
    return []


class _Labels(ast.NodeTransformer):
    """Replace comparisons of a column with a label, such as sex == male, by comparisons of an indicator with 1."""

    def __init__(self, labels: dict[str, tuple[str, str]]) -> None:
        self.labels = labels

    def visit_Compare(self, node: ast.Compare) -> ast.expr:  # the name is given by ast.NodeVisitor
        match node:
            case ast.Compare(left=ast.Name(id=column), ops=[ast.Eq() | ast.NotEq()], comparators=[ast.Name(id=label)]):
                name = f"{column}_is_{label}"
                self.labels[name] = (column, label)
                new = ast.Compare(ast.Name(name, ast.Load()), node.ops, [ast.Constant(1.0)])
                return ast.fix_missing_locations(ast.copy_location(new, node))
        return node
