"""A system of equations as text: statements and declarations to a vector field and what is known about it.

The expressions in it are read by `expression.py`; nothing is run. A statement stands on one line, `;` separates
several:

    prey' = a*prey - b*prey*predator    # an equation, also: dprey/dt = ...
    x'' = -k*x - c*x'                   # of second order: states x and x_dot, its slope
    uptake = k*x/(K + x)                # a definition, usable anywhere, in any order
    input u, v                          # known functions of time
    fixed d = 1                         # a value that is not estimated
    start a = 1.5                       # where the search starts
    log a, b                            # estimated on a log scale, hence positive; `linear c` is the opposite
    0 < b < 100                         # bounds of a parameter or a state; > and >= mean the same
    a ~ normal(2, 0.5)                  # or lognormal(median, sd of the log), uniform(low, high)
"""

import ast
import math
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from odinfer.errors import InputError, InputWarning, nearest
from odinfer.problem.language.expression import (
    ARITY,
    KEYWORDS,
    LEAVES,
    MAX_CHARACTERS,
    PRIMES,
    RESERVED,
    SHORT,
    Program,
    Source,
    checked_name,
    constant,
    operations_of,
    read,
    slope_of,
)
from odinfer.problem.prior import FAMILIES

ROLES = ("equation", "definition", "input")
KINDS_OF_PARAMETERS = ("fixed", "start", "scale", "prior")
RIVALS = (ROLES, ("fixed", "start"))  # a name has at most one of each
Code = tuple[tuple[str, tuple[Any, ...]], ...]

_ASSIGNMENT = re.compile(r"([^=<>!:~]*)=(?!=)(.*)", re.DOTALL)
_FIRST_ORDER = re.compile(rf"(.+)[{PRIMES}]|d(.+)/\s*dt")
_SECOND_ORDER = re.compile(rf"(.+)(?:[{PRIMES}]{{2}}|[\"\u2033])|d\^?[2\u00b2](.+)/\s*dt\^?[2\u00b2]")
_INITIAL = re.compile(rf"[^\W\d]\w*[{PRIMES}]?\s*\([^()]*\)")


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
    code: Code = field(repr=False, compare=False)
    outputs: tuple[int, ...] = field(repr=False, compare=False)  # the instructions that give the derivatives

    def field(self, t: Any, x: Any, theta: Any, u: Any) -> list[Any]:
        """The K time derivatives at time t, by JAX; x is (K,), theta (P,) with fixed values, u (len(inputs),)."""
        import jax.numpy as jnp  # here, so that reading equations does not need JAX

        known = {"t": jnp.asarray(t)}
        for names, values in ((self.states, x), (self.parameters, theta), (self.inputs, u)):
            known |= zip(names, jnp.asarray(values), strict=True)
        return [jnp.asarray(value) for value in _guarded(self.code, self.outputs, known)]


def _guarded(code: Code, outputs: tuple[int, ...], known: dict[str, Any]) -> list[Any]:
    """The outputs of a program in JAX, with derivatives that branches which are not taken leave alone.

    Where no branch that is taken needs them, functions see 0.5, where all are smooth: reverse-mode derivatives multiply
    what such a branch gives by zero, and zero times infinity would be NaN. Conditions have no derivatives; they are
    computed first, from values of their own without guards.
    """
    import jax.numpy as jnp

    operations = operations_of(jnp)

    def value(i: int, done: dict[int, Any], needed: Any = True) -> Any:
        op, args = code[i]
        if op in LEAVES:
            return known.get(args[0], args[0])
        parts = [done[j] for j in args]
        if needed is not True and (op == "/" or op in ARITY):
            parts = [part if isinstance(part, float) else jnp.where(needed, part, 0.5) for part in parts]
        return operations[op](*parts)

    plain: dict[int, Any] = {}
    conditions = {args[0] for op, args in code if op == "where"}
    for i in reversed(range(len(code))):
        if i in conditions and code[i][0] not in LEAVES:
            conditions.update(code[i][1])
    for i in sorted(conditions):
        plain[i] = value(i, plain)

    needed: dict[int, Any] = dict.fromkeys(outputs, True)  # by what is it needed: True or a mask

    def need(i: int, by: Any) -> None:
        already = needed.get(i, by)
        needed[i] = by if already is by else True if already is True or by is True else already | by

    for i in reversed(range(len(code))):
        op, args = code[i]
        if i in needed and op == "where":
            for j, taken in ((args[1], plain[args[0]]), (args[2], ~plain[args[0]])):
                need(j, taken if needed[i] is True else needed[i] & taken)
        elif i in needed and op not in LEAVES:
            for j in args:
                need(j, needed[i])
    done: dict[int, Any] = {}
    for i in sorted(needed):
        op, args = code[i]
        if op == "where":
            done[i] = jnp.where(plain[args[0]], done[args[1]], done[args[2]])
        else:
            done[i] = value(i, done, needed[i])
    return [done[i] for i in outputs]


def _statement(text: str, line: int, second_order: set[str]) -> Iterator[tuple[str, str, Any]]:
    """What a statement says: kind, name and value, for each name in it."""
    if match := re.match(rf"({'|'.join(KEYWORDS)})\s+([^\W\d].*)", text, re.DOTALL):
        word, rest = match.groups()
        if word in ("fixed", "start"):
            name, _, value = rest.partition("=")
            yield word, name, constant(value, line)
        else:
            yield from (("input" if word == "input" else "scale", name, word) for name in rest.split(","))
    elif match := _ASSIGNMENT.match(text):
        left, right = map(str.strip, match.groups())
        if re.search(r"\(\s*t\s*\)", left):
            raise InputError(f"line {line}: write {SHORT.repr(left)} without (t); states depend on time as they stand")
        if _INITIAL.fullmatch(left):
            problem = "gives an initial value, which cannot be given here yet: it is estimated from the data"
            raise InputError(f"line {line}: {SHORT.repr(text)} {problem}; remove it (to simulate, give --x0)")
        source = read(right, line, second_order)
        if re.search(f"[{PRIMES}]{{3}}$", left):
            raise InputError(f"line {line}: {SHORT.repr(left)} is of third order; make two of it: x' = v, v'' = ...")
        if state := _SECOND_ORDER.fullmatch(left):
            name = checked_name((state[1] or state[2]).strip(), f"line {line}")
            yield "equation", name, read(slope_of(name), line)
            yield "equation", slope_of(name), source
        elif state := _FIRST_ORDER.fullmatch(left):
            yield "equation", state[1] or state[2], source
        else:
            yield "definition", left, source
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


def _warn_of_e(sources: Sequence[Source]) -> None:
    """Say that e is a parameter, if it is raised to a power as if it were the base of the exponential."""
    for source in sources:
        for node in ast.walk(source.tree):
            match node:
                case ast.BinOp(left=ast.Name(id="e"), op=ast.Pow()):
                    message = f"line {source.line}: 'e' is taken as a parameter; for the exponential write exp(...)"
                    return warnings.warn(message, InputWarning, stacklevel=3)


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
    statements: list[tuple[int, str]] = []
    for line, content in enumerate(re.split(r"\r\n?|\n", text.removeprefix("\ufeff")), 1):
        if "\0" in content:
            raise InputError(f"line {line}: {SHORT.repr(content)} has a null byte; is this a text file?")
        statements += [(line, statement.strip()) for statement in content.partition("#")[0].split(";")]
    lefts = [_SECOND_ORDER.fullmatch(match[1].strip()) for _, s in statements if (match := _ASSIGNMENT.match(s))]
    second_order = {(left[1] or left[2]).strip() for left in lefts if left}
    given: dict[str, dict[str, Any]] = defaultdict(dict)  # kind, then name
    lines: dict[tuple[str, str], int] = {}
    for line, statement in statements:
        if statement:
            for kind, word, value in _statement(statement, line, second_order):
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
    if "e" in parameters and not any("e" in names for names in given.values()):
        _warn_of_e([*equations.values(), *(definitions[name] for name in definitions if name in used)])
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
