"""Events at times or by conditions, and the times at which expressions change form."""

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
    delay: int | None = None  # instructions, and what `TriggerOptions` has
    priority: int | None = None
    cancellable: bool = False
    current_values: bool = False
    initially_false: bool = False


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
    options = given.options
    if not (names := program.leaves(condition)) & {*moving} and not options.initially_false:
        hint = nearest(min(names), sorted(moving)) if names else "; name a state, an input or t in it"
        shown = SHORT.repr(given.when.piece(0, None).strip())
        raise InputError(f"line {given.line}: {shown} cannot become true: nothing in it changes in time{hint}")
    changes = tuple((name, program.whole(source)) for name, source in given.changes)
    delay, priority = (None if own is None else program.whole(own) for own in (options.delay, options.priority))
    return Trigger(
        condition, tuple(_gaps(program, condition)), changes, given.line, delay, priority,
        options.cancellable, options.current_values, options.initially_false,
    )  # fmt: skip


def _gaps(program: Program, i: int) -> Iterator[int]:
    op, args = program.code[i]
    if op in ("and", "or", "not"):
        for part in args:
            yield from _gaps(program, part)
    elif op in _COMPARED:
        yield program.emit("-", *args)


@dataclass(frozen=True)
class InputBreak:
    """The time at which slope·t + offset equals an expression of inputs."""

    slope: float
    offset: float
    instruction: int


def input_breaks(code: Sequence[tuple[str, tuple[Any, ...]]], inputs: Collection[str]) -> tuple[InputBreak, ...]:
    """The comparisons of a linear function of t with an expression of inputs alone."""
    lines = _lines(code)
    known: list[bool] = []  # whether an instruction has nothing but numbers and inputs
    found = []
    for op, args in code:
        known.append(
            op == "number" or (op == "name" and args[0] in inputs) if op in LEAVES else all(known[i] for i in args)
        )
        if op in _COMPARED:
            for one, two in (args, args[::-1]):
                line = lines[one]
                if line is not None and line[0] and known[two] and lines[two] is None:
                    found.append(InputBreak(line[0], line[1], two))
    return tuple(dict.fromkeys(found))


def breaks(code: Sequence[tuple[str, tuple[Any, ...]]]) -> tuple[float, ...]:
    """The times at which t passes a constant with which it is compared, or at which sign or abs of it have a jump."""
    lines = _lines(code)
    found = set()
    for op, args in code:
        match op, [] if op in LEAVES else [lines[i] for i in args]:
            case _, [(a, b), (c, d)] if op in _COMPARED and a != c:
                found.add((d - b) / (a - c))
            case (("sign" | "abs"), [(a, b)]) if a:
                found.add(-b / a)
    return tuple(sorted(time + 0.0 for time in found if math.isfinite(time)))  # + 0.0: no time is -0


def _lines(code: Sequence[tuple[str, tuple[Any, ...]]]) -> list[tuple[float, float] | None]:
    """(a, b) of instructions that are a*t + b; None of others."""
    lines: list[tuple[float, float] | None] = []
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
        lines.append(line)
    return lines
