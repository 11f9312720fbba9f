"""A system of equations as text: statements and declarations to a vector field and what is known about it.

The expressions in it are read by `expression.py`; nothing is run. A statement stands on one line, `;` separates
several:

    prey' = a*prey - b*prey*predator    # an equation, also: dprey/dt = ...
    uptake = k*x/(K + x)                # a definition, usable anywhere, in any order
    input u, v                          # known functions of time
    fixed d = 1                         # a value that is not estimated
    start a = 1.5                       # where the search starts
    log a, b                            # estimated on a log scale, hence positive; `linear c` is the opposite
    0 < b < 100                         # bounds of a parameter or a state; > and >= mean the same
    a ~ normal(2, 0.5)                  # or lognormal(median, sd of the log), uniform(low, high)
"""

import math
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from odinfer.errors import InputError, InputWarning, nearest
from odinfer.problem.expression import (
    KEYWORDS,
    MAX_CHARACTERS,
    RESERVED,
    SHORT,
    Program,
    checked_name,
    constant,
    operations_of,
    read,
)
from odinfer.problem.prior import FAMILIES

ROLES = ("equation", "definition", "input")
KINDS_OF_PARAMETERS = ("fixed", "start", "scale", "prior")
RIVALS = (ROLES, ("fixed", "start"))  # a name has at most one of each


@dataclass(frozen=True)
class Equations:
    """A system of ODEs read from text, with what the text declares about its parameters."""

    states: tuple[str, ...]  # in the order of their equations
    parameters: tuple[str, ...]  # as first met in the equations, definitions written out where they are used
    inputs: tuple[str, ...]  # those declared in the text, then the others given to `parse`
    bounds: dict[str, tuple[float, float]]  # with what log scales, lognormal and uniform priors imply
    fixed: dict[str, float]
    start: dict[str, float]
    scale: dict[str, str]  # "log" or "linear", where declared
    prior: dict[str, tuple[str, float, float]]  # such as ("normal", 2.0, 0.5)
    text: str
    _code: tuple[tuple[str, tuple[Any, ...]], ...] = field(repr=False, compare=False)
    _outputs: tuple[int, ...] = field(repr=False, compare=False)

    def field(self, t: Any, x: Any, theta: Any, u: Any) -> list[Any]:
        """The K time derivatives at time t; x is (K,), theta (P,) with fixed values, u (len(inputs),)."""
        import jax.numpy as jnp  # here, so that reading equations does not need JAX

        operations, known = operations_of(jnp), {"t": jnp.asarray(t)}
        for names, values in ((self.states, x), (self.parameters, theta), (self.inputs, u)):
            known |= zip(names, jnp.asarray(values), strict=True)
        done: list[Any] = []
        for op, args in self._code:
            leaf = op not in operations
            done.append(known.get(*args, *args) if leaf else operations[op](*(done[i] for i in args)))
        return [jnp.asarray(done[i]) for i in self._outputs]


def _statement(text: str, line: int) -> Iterator[tuple[str, str, Any]]:
    """What a statement says: kind, name and value, for each name in it."""
    if match := re.match(rf"({'|'.join(KEYWORDS)})\s+([^\W\d].*)", text, re.DOTALL):
        word, rest = match.groups()
        if word in ("fixed", "start"):
            name, _, value = rest.partition("=")
            yield word, name, constant(value, line)
        else:
            yield from (("input" if word == "input" else "scale", name, word) for name in rest.split(","))
    elif match := re.match(r"([^=<>!:~]*)=(?!=)(.*)", text, re.DOTALL):
        state = re.fullmatch("(.+)['\u2019\u2032]\\s*|d(.+)/\\s*dt\\s*", match[1])
        name, kind = (state[1] or state[2], "equation") if state else (match[1], "definition")
        yield kind, name, read(match[2], line)
    elif match := re.fullmatch(r"([^~]*)~\s*(\w+)\s*\((.*)\)", text, re.DOTALL):
        name, family, rest = match.groups()
        if family not in FAMILIES:
            raise InputError(f"line {line}: {SHORT.repr(family)} is no known prior{nearest(family, FAMILIES)}")
        numbers = [constant(number, line) for number in rest.split(",")]
        if len(numbers) != 2 or not FAMILIES[family].valid(*numbers):
            raise InputError(f"line {line}: {SHORT.repr(text)} is no prior; write {family}({FAMILIES[family].wants})")
        yield "prior", name, (family, *numbers)
    elif len(parts := re.split(r"([<>])=?", text)) > 1:
        for left, sign, right in zip(parts[:-2:2], parts[1::2], parts[2::2], strict=True):
            low, high = (left, right) if sign == "<" else (right, left)
            if high.strip().isidentifier() and high.strip() != "pi":
                yield "lower bound", high, constant(low, line)
            else:
                yield "upper bound", low, constant(high, line)
    else:
        hint = "write x' = ..., name = ..., 0 < a < 1, a ~ normal(2, 0.5) or a declaration"
        raise InputError(f"line {line}: cannot read {SHORT.repr(text)}; {hint}")


def _bounds(said: dict[str, Any], start: str) -> tuple[float, float]:
    """The range of a state or parameter, checked against all that is said about it."""
    low, high = said.get("lower bound", -math.inf), said.get("upper bound", math.inf)
    family, *numbers = said.get("prior", ("none",))
    if family == "uniform":
        low, high = max(low, numbers[0]), min(high, numbers[1])
    positive = said.get("scale") == "log" or family == "lognormal"
    if low >= high or (positive and (-math.inf < low < 0 or high <= 0)):
        wanted = "positive upper and no negative lower" if positive else "lower bound below the upper"
        raise InputError(f"{start} cannot lie between {low:g} and {high:g}; give it a {wanted} bound")
    low = max(low, 0.0) if positive else low
    value = said.get("fixed", said.get("start"))
    if value is not None and (not low <= value <= high or (positive and value == 0)):
        raise InputError(f"{start} has the value {value:g}, outside {low:g} to {high:g}; correct one of them")
    return low, high


def parse(text: str, inputs: Sequence[str] = (), spare: bool = False) -> Equations:
    """Read a system of equations; the format is shown at the top of this module.

    Args:
        text: The statements.
        inputs: Names to treat as inputs besides those that the text declares.
        spare: What is declared or defined but not used is left out instead of being an error or a warning.

    Raises:
        InputError: The text cannot be used; the message names the line and the piece.
    """
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        raise InputError(f"line 1: equations are a text of at most {MAX_CHARACTERS} characters; shorten it")
    given: dict[str, dict[str, Any]] = defaultdict(dict)  # kind, then name
    lines: dict[tuple[str, str], int] = {}
    for line, content in enumerate(re.split(r"\r\n?|\n", text.removeprefix("\ufeff")), 1):
        if "\0" in content:
            raise InputError(f"line {line}: {SHORT.repr(content)} has a null byte; is this a text file?")
        for statement in filter(str.strip, content.partition("#")[0].split(";")):
            for kind, word, value in _statement(statement.strip(), line):
                name = checked_name(word.strip(), f"line {line}")
                for rival in next((group for group in RIVALS if kind in group), (kind,)):
                    if name in given[rival]:
                        first = f"'{name}' already has {rival!r} on line {lines[rival, name]}"
                        raise InputError(f"line {line}: {first}; keep one of the two")
                given[kind][name], lines[kind, name] = value, line
    equations, definitions, declared = (given[role] for role in ROLES)
    if not equations:
        raise InputError("line 1: there is no equation; write at least one, such as x' = -k*x")
    extra = [checked_name(str(name), "inputs") for name in ([inputs] if isinstance(inputs, str) else inputs)]
    if clash := {*extra} & {*equations, *definitions}:
        raise InputError(f"inputs: '{min(clash)}' has an equation or a definition in the text; rename one")

    used: dict[str, None] = {}
    stack = [name for source in reversed(equations.values()) for name in reversed(source.names())]
    while stack:
        if (name := stack.pop()) in definitions and name not in used:
            stack += reversed(definitions[name].names())
        used[name] = None
    known = dict.fromkeys(name for name in (*declared, *extra) if name in used or not spare)
    taken = {*RESERVED, *equations, *definitions, *known}
    parameters = {name: None for name in used if name not in taken}
    program = Program(definitions)
    for name, source in definitions.items():
        (program if name in used else Program(definitions)).definition(name)
        if name not in used and not spare:
            message = f"line {source.line}: the definition of '{name}' is never used; remove it or use it"
            warnings.warn(message, InputWarning, stacklevel=2)
    outputs = tuple(program.whole(source) for source in equations.values())

    bounds, free = {}, {**equations, **parameters}
    fitting = {"input": (used, "used"), "lower bound": (free, "a name"), "upper bound": (free, "a name")}
    for (kind, name), line in lines.items():
        if kind not in ("equation", "definition"):
            names, role = fitting.get(kind, (parameters, "a parameter"))
            if name not in names:
                if spare:
                    continue
                problem = f"{kind} of '{name}', which is not {role} in the equations"
                raise InputError(f"line {line}: {problem}{nearest(name, names) or '; remove it'}")
            said = {kind: given[kind][name] for kind in given if kind not in ROLES and name in given[kind]}
            last = max((lines[kind, name] for kind in said), default=line)
            if (pair := _bounds(said, f"line {last}: '{name}'")) != (-math.inf, math.inf):
                bounds[name] = pair
    said = {kind: {n: v for n, v in given[kind].items() if n in parameters} for kind in KINDS_OF_PARAMETERS}
    return Equations(
        *(tuple(equations), tuple(parameters), tuple(known), bounds),
        *(said["fixed"], said["start"], said["scale"], said["prior"]),
        *(text, tuple(program.code), outputs),
    )
