"""Distributions on the right of `~`: noise of a column, or prior of a parameter."""

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from odinfer.errors import InputError, nearest
from odinfer.model.expression import RESERVED, SHORT, Source, names_met
from odinfer.model.priors import FAMILIES as PRIORS
from odinfer.model.priors import two_numbers
from odinfer.model.program import Program, depending, number
from odinfer.model.statements import Distribution, Statements
from odinfer.noise import FAMILIES

Arguments = dict[str, Source | float | None]  # None: to be estimated


@dataclass(frozen=True)
class Column:
    """A column of the data and how it is distributed."""

    name: str
    family: str
    arguments: tuple[int, ...]  # the instruction of each, the predicted value first; a profiled sd may be left out
    line: int


def split(
    statements: Statements,
    parameters: Collection[str],
    written_out: Mapping[str, Source],
    taken: Collection[str],
    spare: bool,
) -> tuple[dict[str, Distribution], dict[str, Distribution]]:
    """The distributions of columns, and those of parameters.

    Args:
        statements: the statements.
        parameters: the names that are parameters, whatever the distributions are.
        written_out: definitions and initial values.
        taken: the names that are no parameters.
        spare: distributions of names that are nothing are left out, if they have nothing but numbers.
    """
    every: dict[str, Distribution] = statements.given["distribution"]
    names = {name: {word for _, source in d.arguments for word in source.names()} for name, d in every.items()}
    count = Counter(word for own in names.values() for word in own)
    within = names_met((written_out[word] for word in count if word in written_out), written_out)
    columns, priors = {}, {}
    for name, given in every.items():
        elsewhere = name in within or count[name] > (name in names[name])
        if not name.isidentifier() or name in parameters or (elsewhere and name not in taken):
            priors[name] = given
        elif not spare or names[name] - RESERVED:
            columns[name] = given
    return columns, priors


def prior(name: str, given: Distribution) -> tuple[str, float, float]:
    """The prior of a parameter, such as ("normal", 2.0, 0.5)."""
    start = f"line {given.line}:"
    if given.family not in PRIORS:
        close = nearest(given.family, PRIORS)
        raise InputError(f"{start} {SHORT.repr(given.family)} is no known prior of the parameter '{name}'{close}")
    for _, source in given.arguments:
        if {*source.names()} - RESERVED:
            raise source.error(source.tree, f"is not a number; '{name}' is a parameter, so this is its prior")
    numbers = two_numbers(given.family, [number(source) for _, source in given.arguments])
    wants = PRIORS[given.family].wants
    if any(word for word, _ in given.arguments) or len(numbers) != 2 or not PRIORS[given.family].valid(*numbers):
        raise InputError(f"{start} {SHORT.repr(given.text)} is no prior; write {given.family}({wants})")
    return given.family, numbers[0], numbers[1]


def arguments_of(name: str, given: Distribution) -> Arguments:
    """What a column's family is given, by argument: an expression, the default, or None if it is to be estimated."""
    start = f"line {given.line}:"
    if (found := FAMILIES.get(given.family)) is None:
        if given.family in PRIORS:
            problem = f"{given.family} is a prior, and '{name}' is no parameter"
            raise InputError(f"{start} {problem}; correct the name, or give a distribution: {', '.join(FAMILIES)}")
        close = nearest(given.family, dict.fromkeys([*FAMILIES, *PRIORS]))
        raise InputError(f"{start} {SHORT.repr(given.family)} is no known distribution{close}")
    usage = f"write {given.family}({', '.join(found.arguments)})"
    if len(given.arguments) > len(found.arguments):
        raise InputError(f"{start} {SHORT.repr(given.text)} has {len(given.arguments)} arguments; {usage}")
    result: Arguments = {}
    for i, (word, source) in enumerate(given.arguments):
        argument = word or found.arguments[i]
        late = not word and any(name for name, _ in given.arguments[:i])
        if late or argument in result or argument not in found.arguments:
            raise InputError(f"{start} {SHORT.repr(given.text)} has a wrong or repeated '{argument}'; {usage}")
        result[argument] = source
    if not {*found.arguments[: found.least]} <= {*result}:
        raise InputError(f"{start} {SHORT.repr(given.text)} has too few arguments; {usage}")
    if found.profiled and len(result) == 1:
        return result
    return {argument: result.get(argument, found.defaults.get(argument)) for argument in found.arguments}


def left_out(name: str, given: Arguments) -> list[str]:
    """The names of the parameters that stand for arguments which are left out, such as "k(cases)"."""
    return [f"{argument}({name})" for argument, value in given.items() if value is None]


def scattering(given: Arguments) -> list[str]:
    """The names that are arguments of the noise as they stand, hence must be positive."""
    trees = [value.tree for value in [*given.values()][1:] if isinstance(value, Source)]
    return [tree.id for tree in trees if isinstance(tree, ast.Name)]


def column(name: str, distribution: Distribution, given: Arguments, program: Program) -> Column:
    """The instructions of a column."""
    instructions: list[int] = []
    for argument, value in given.items():
        match value:
            case Source():
                i = program.whole(value)
                fixed = program.value(i)
                if instructions and fixed is not None and fixed <= 0:
                    raise value.error(value.tree, f"is the {argument} of '{name}', which must be positive; correct it")
            case None:
                i = program.emit("name", f"{argument}({name})")
            case _:
                i = program.emit("number", value)
        instructions.append(i)
    return Column(name, distribution.family, tuple(instructions), distribution.line)


def check_predictions(
    columns: Iterable[Column],
    statements: Statements,
    program: Program,
    states: Iterable[str],
    parameters: Collection[str],
) -> None:
    """Refuse columns that depend on no state and no parameter: most often priors of names that are misspelled."""
    moving = depending(program.code, {*states, *parameters})
    for given in columns:
        if not moving[given.arguments[0]] and given.name not in statements.given["definition"]:
            name, text = given.name, statements.given["distribution"][given.name].text
            problem = f"is no prior ('{name}' is no parameter) and predicts no column (no state or parameter is in it)"
            close = nearest(name, parameters) or "; correct it"
            raise InputError(f"line {given.line}: {SHORT.repr(text)} {problem}{close}")
