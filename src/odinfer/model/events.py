"""When something jumps: events at times or by conditions, and the times at which expressions change their form."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from odinfer.errors import InputError, nearest
from odinfer.model.expression import SHORT
from odinfer.model.program import LEAVES, Program
from odinfer.model.statements import Doses

_COMPARED = {"<", "<=", ">", ">=", "==", "!=", "min", "max"}


@dataclass(frozen=True)
class Event:
    """States that get new values at given times, all from the values before."""

    times: tuple[float, ...]
    changes: tuple[tuple[str, int], ...]  # a state and the instruction of its new value
    line: int
    before: bool = False  # what is observed at these times, which otherwise comes first


@dataclass(frozen=True)
class Trigger:
    """States that get new values whenever a condition becomes true, all from the values before."""

    condition: int  # an instruction
    gaps: tuple[int, ...]  # those of the differences between the sides of its comparisons, zero where one changes
    changes: tuple[tuple[str, int], ...]
    line: int


def into_states(events: Sequence[Doses], states: Collection[str], spare: bool) -> list[Doses]:
    """The events, whose changes must be of states; with `spare`, others are left out."""
    found = []
    for event in events:
        for name, _ in event.changes:
            if name not in states and not spare:
                raise InputError(
                    f"line {event.line}: the event changes '{name}', which is no state{nearest(name, states)}"
                )
        changes = tuple((name, source) for name, source in event.changes if name in states)
        found += [event._replace(changes=changes)] if changes else []
    return found


def event(given: Doses, program: Program) -> Event:
    """The instructions of an event."""
    changes = tuple((name, program.whole(source)) for name, source in given.changes)
    return Event(given.times, changes, given.line, given.before)


def trigger(given: Doses, program: Program, moving: Collection[str]) -> Trigger:
    """The instructions of an event that a condition makes happen.

    Args:
        given: as it is written.
        moving: the names of all that changes in time.

    Raises:
        InputError: the condition has none of them, so that it cannot become true.
    """
    assert given.when is not None
    condition = program.whole(given.when, condition=True)
    if not (names := program.leaves(condition)) & {*moving}:
        hint = nearest(min(names), sorted(moving)) if names else "; name a state, an input or t in it"
        shown = SHORT.repr(given.when.piece(0, None).strip())
        raise InputError(f"line {given.line}: {shown} cannot become true: nothing in it changes in time{hint}")
    changes = tuple((name, program.whole(source)) for name, source in given.changes)
    return Trigger(condition, tuple(_gaps(program, condition)), changes, given.line)


def _gaps(program: Program, i: int) -> Iterator[int]:
    op, args = program.code[i]
    if op in ("and", "or", "not"):
        for part in args:
            yield from _gaps(program, part)
    elif op in _COMPARED:
        yield program.emit("-", *args)


def breaks(code: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[float, ...]:
    """The times at which t passes a constant with which it is compared, or at which sign or abs of it have a jump."""
    lines: list[tuple[float, float] | None] = []  # (a, b) of instructions that are a*t + b
    found = set()
    for op, args in code:
        parts = () if op in LEAVES else [lines[i] for i in args]
        line = None
        match op, parts:
            case "number", _:
                line = 0.0, args[0]
            case "name", _ if args == ("t",):
                line = 1.0, 0.0
            case "neg", [(a, b)]:
                line = -a, -b
            case "+", [(a, b), (c, d)]:
                line = a + c, b + d
            case "-", [(a, b), (c, d)]:
                line = a - c, b - d
            case "*", [(0.0, k), (a, b)] | [(a, b), (0.0, k)]:
                line = k * a, k * b
            case "/", [(a, b), (0.0, k)]:
                line = a / k, b / k
            case _, [(a, b), (c, d)] if op in _COMPARED and a != c:
                found.add((d - b) / (a - c))
            case (("sign" | "abs"), [(a, b)]) if a:
                found.add(-b / a)
        lines.append(line)
    return tuple(sorted(time + 0.0 for time in found if math.isfinite(time)))  # + 0.0: no time is -0
