"""Add terms to the equations of a text, which otherwise stays as the user wrote it."""

from __future__ import annotations

import re
from collections.abc import Collection

from odinfer.errors import InputError, nearest
from odinfer.model.expression import PRIMES, slope_of

_LEFT = re.compile(r"([^=<>!:~]*)=(?!=)(.*)", re.DOTALL)


def equations_of(text: str) -> dict[str, tuple[int, int]]:
    """State → where the right side of its equation starts and ends in a text; x'' = … is the equation of x_dot."""
    found = {}
    for match in re.finditer(r"[^;\r\n]+", text):
        comment = match[0].find("#")
        statement = match[0] if comment < 0 else match[0][:comment]
        comment_before = text.rfind("#", _line_start(text, match.start()), match.start())
        sides = _LEFT.match(statement)
        if sides is None or comment_before >= 0 or not sides[2].strip():
            continue
        if (state := _state(sides[1].strip())) is not None:
            start = match.start() + sides.start(2)
            found[state] = start, start + len(sides[2].rstrip())
    return found


def with_term(text: str, state: str, term: str, real: Collection[str] = (), positive: Collection[str] = ()) -> str:
    """Add a term to the right side of an equation, and declare its parameters.

    Args:
        text: a model.
        state: whose equation; x_dot where x'' is given.
        term: an expression, such as "c*x^2".
        real: new parameters of any sign.
        positive: new parameters that are positive and estimated on a log scale.

    Raises:
        InputError: the text has no equation for the state.
    """
    places = equations_of(text)
    if state not in places:
        raise InputError(f"there is no equation for '{state}' to add a term to{nearest(state, places)}")
    start, end = places[state]
    right = text[start:end].strip()
    joined = term if right in ("0", "0.0") else f"{right} + {term}"
    lines = [f"{text[:start]} {joined}{text[end:]}"]
    lines += [f"real {', '.join(real)}"] * bool(real) + [f"log {', '.join(positive)}"] * bool(positive)
    return "\n".join(lines)


def unused_name(wanted: str, taken: Collection[str]) -> str:
    """The name, or with the first number from 2 on that makes it new."""
    number, name = 2, wanted
    while name in taken:
        number, name = number + 1, f"{wanted}{number}"
    return name


def _state(left: str) -> str | None:
    """The state whose derivative stands left of an equals sign; None for a definition."""
    if second := re.fullmatch(rf"(\w+)(?:[{PRIMES}]{{2}}|[\"\u2033])|d\^?[2\u00b2]\s*(\w+)/\s*dt\^?[2\u00b2]", left):
        return slope_of(second[1] or second[2])
    first = re.fullmatch(rf"(\w+)[{PRIMES}]|d\s*\((\w+)\)\s*/\s*dt|d(\w+)\s*/\s*dt", left)
    return None if first is None else first[1] or first[2] or first[3]


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
