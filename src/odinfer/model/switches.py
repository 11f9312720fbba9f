"""Smooth switches at estimated times, such as t < tau, for the search.

A field that jumps at a time tau has no derivative by tau: its sensitivity jumps at tau by (f before − f after). A
symmetric smooth step of width w gives that jump to order w², so a fit replaces each such condition by one that is much
shorter than the time between observations. Conditions with constant times are no matter: integration stops there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from odinfer.model.differentiation import TextField
from odinfer.model.program import LEAVES, Instructions, depending

Code = Sequence[tuple[str, tuple[Any, ...]]]

_BELOW, _ABOVE = ("<", "<="), (">", ">=")


def switching(code: Code, states: Collection[str]) -> list[tuple[int, float]]:
    """Find the comparisons that change at times which are no constants but do not depend on the states.

    Returns:
        The instruction of each, and the rate at which the first side gains on the second.
    """
    names = {args[0] for op, args in code if op == "name"}
    timed, moving, known = (depending(code, some) for some in ({"t"}, {*states}, names - {"t"}))
    rates = _rates(code, timed)
    found = []
    for i, (op, args) in enumerate(code):
        if op in (*_BELOW, *_ABOVE) and timed[i] and known[i] and not moving[i]:
            change = rates[args[0]] - rates[args[1]]
            found += [(i, change)] if np.isfinite(change) and change != 0.0 else []
    return found


def _rates(code: Code, timed: Sequence[bool]) -> list[float]:
    """Compute da/dt of instructions that are a constant times t plus something constant in time; NaN of others."""
    rates: list[float] = []
    numbers = [float(args[0]) if op == "number" else np.nan for op, args in code]
    for i, (op, args) in enumerate(code):
        parts = [] if op in LEAVES else [rates[j] for j in args]
        rate = np.nan
        if not timed[i]:
            rate = 0.0
        elif op == "name":
            rate = 1.0
        elif op == "neg":
            rate = -parts[0]
        elif op in ("+", "-"):
            rate = parts[0] + parts[1] if op == "+" else parts[0] - parts[1]
        elif op == "*":
            rate = numbers[args[0]] * parts[1] if np.isfinite(numbers[args[0]]) else numbers[args[1]] * parts[0]
        elif op == "/" and numbers[args[1]] != 0.0:
            rate = parts[0] / numbers[args[1]]
        rates.append(rate)
    return rates


def smoothed(field: TextField, width: float) -> TextField:
    """Replace every condition with a time that is no constant by a smooth step; the same field if there is none.

    Args:
        width: half the time over which the step rises, by the cubic 1/2 + 3/4 z − 1/4 z³ of z from −1 to 1.
    """
    states = field.names[0]
    code = field.code
    switches = dict(switching(code, states))
    if not switches:
        return field
    new = Instructions()
    place: list[int] = []
    steps: dict[int, tuple[int, int]] = {}  # of conditions: distance to the nearest switch, and the share that is true

    def number(value: float) -> int:
        return new.emit("number", value)

    def share_of(i: int) -> int:
        return steps[i][1] if i in steps else new.emit("where", place[i], number(1.0), number(0.0))

    for i, (op, args) in enumerate(code):
        own = args if op in LEAVES else tuple(place[j] for j in args)
        soft = () if op in LEAVES else [j for j in args if j in steps]
        if i in switches:
            scale = number(1.0 / (width * abs(switches[i])))
            z = new.emit("*", new.emit("-", *(own if op in _ABOVE else own[::-1])), scale)
            inner = new.emit("max", number(-1.0), new.emit("min", number(1.0), z))
            bend = new.emit("*", number(0.25), new.emit("*", inner, inner))
            rise = new.emit("*", inner, new.emit("-", number(0.75), bend))
            steps[i] = new.emit("abs", z), new.emit("+", number(0.5), rise)
        elif op in ("and", "or", "not") and soft:
            near = steps[soft[0]][0] if len(soft) == 1 else new.emit("min", *(steps[j][0] for j in soft))
            shares = [share_of(j) for j in args]
            if op != "and":
                shares = [new.emit("-", number(1.0), own_share) for own_share in shares]
            both = new.emit("*", *shares) if len(shares) == 2 else shares[0]
            steps[i] = near, new.emit("-", number(1.0), both) if op == "or" else both
        if op == "where" and args[0] in steps:
            distance, share = steps[args[0]]
            blend = new.emit("+", own[2], new.emit("*", share, new.emit("-", own[1], own[2])))
            near = new.emit("<", distance, number(1.0))
            place.append(new.emit("where", near, blend, new.emit("where", *own)))
        else:
            place.append(new.emit(op, *own))
    return TextField(new.code, tuple(place[i] for i in field.outputs), field.names)
