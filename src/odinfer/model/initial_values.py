"""Initial values of states: numbers, expressions, or parameters such as "x(0)"."""

from collections.abc import Collection, Iterable, Mapping

from odinfer.errors import InputError, nearest
from odinfer.model.expression import Source, initial_name, state_of
from odinfer.model.program import Program, depending
from odinfer.model.statements import Statements


def initial_values(statements: Statements, states: Collection[str], spare: bool) -> tuple[dict[str, Source], list[str]]:
    """By name, those that are given; and the names of others about which something is declared."""
    given, mentioned = {}, []
    for (kind, name), line in statements.lines.items():
        if (state := state_of(name)) is None:
            continue
        if state not in states:
            if not spare:
                raise _of_no_state(name, line, states)
        elif kind == "initial":
            given[name] = statements.given[kind][name]
        else:
            mentioned.append(name)
    return given, [name for name in mentioned if name not in given]


def check_mentions(
    names: Iterable[str], states: Collection[str], parameters: Collection[str], statements: Statements
) -> None:
    """Refuse the initial value, in an expression, of what is no state."""
    for name in names:
        if (state := state_of(name)) is not None and state not in states and name not in parameters:
            raise _of_no_state(name, statements.line_of(name), states)


def _of_no_state(name: str, line: int, states: Collection[str]) -> InputError:
    state = str(state_of(name))
    problem = f"'{name}' is the initial value of '{state}', which is no state (products need *)"
    return InputError(f"line {line}: {problem}{nearest(state, states)}")


def beginnings(
    program: Program, states: Collection[str], given: Mapping[str, Source], parameters: Collection[str]
) -> dict[str, int]:
    """The instructions of initial values, by state."""
    found = {}
    for state in states:
        name = initial_name(state)
        if name in given:
            found[state] = program.definition(name)
        elif name in parameters:
            found[state] = program.emit("name", name)
    moving = depending(program.code, {"t", *states})
    for state, i in found.items():
        if moving[i]:
            source, leaf = given[initial_name(state)], min(program.leaves(i) & {"t", *states})
            remedy = "use parameters and inputs" if leaf == "t" else f"write {initial_name(leaf)}, not the state"
            raise source.error(source.tree, f"makes {initial_name(state)} depend on '{leaf}'; {remedy}")
    return found
