"""Split a text into statements and parse each; `parser.py` combines them."""

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from odinfer.errors import InputError
from odinfer.model.expression import (
    ARITY,
    KEYWORDS,
    MAX_CHARACTERS,
    PRIMES,
    SHORT,
    Source,
    checked_name,
    initial_name,
    read,
    slope_of,
)
from odinfer.model.program import constant

EXTENT = "local or shared"
ROLES = ("equation", "definition", "input", "step")
_LISTS = {
    "input": "input",
    "step": "step",
    "log": "scale",
    "linear": "scale",
    "real": "scale",
    "local": EXTENT,
    "shared": EXTENT,
}
_WORDS = "|".join({**dict.fromkeys(KEYWORDS), **_LISTS})
_RIVALS = {  # what a name may not have besides a statement of the kind
    "equation": ROLES,
    "definition": ROLES,
    "input": ("equation", "definition", "input"),
    "step": ("equation", "definition", "step"),
    "fixed": ("fixed", "start"),
    "start": ("fixed", "start"),
}

_ARROW = re.compile(r"(d?\w+(?:\s*/\s*dt)?)\s*<-(?!\s*[\d.])")  # of R: dX/dt <- ..., not the bound x < -2
_ASSIGNMENT = re.compile(r"([^=<>!:~]*)=(?!=)(.*)", re.DOTALL)
_FIRST_ORDER = re.compile(rf"(.+)[{PRIMES}]|d\s*\((\w+)\)\s*/\s*dt|d(.+)/\s*dt")
_SECOND_ORDER = re.compile(rf"(.+)(?:[{PRIMES}]{{2}}|[\"\u2033])|d\^?[2\u00b2](.+)/\s*dt\^?[2\u00b2]")
_NAME = re.compile(rf"([^\W\d]\w*)\s*+([{PRIMES}]?)\s*+(?:\(([^()]*)\))?")
_EVENT = re.compile(rf"(at|before|when)(?:\s++(?![=<>~{PRIMES}])|(?=\([^:]*:))([^:]*)(:?)(.*)", re.DOTALL)
_OPTIONS = re.compile(r"([^{}]*)\{([^{}]*)\}\s*", re.DOTALL)  # of an event with a condition
_WITH_VALUE = ("delay", "priority")
_CHANGE = re.compile(r"([^=]*)=(?!=)(.*)", re.DOTALL)
_ARGUMENT = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)(.*)", re.DOTALL)
_EARLIER = r"[-\u2212]\s*(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"  # a time before 0
_ZERO = re.compile(r"\(\s*+t\s*+=\s*+(0|t0)\s*+\)")


class Distribution(NamedTuple):
    """What stands to the right of a tilde."""

    line: int
    text: str  # of the whole statement
    family: str
    arguments: tuple[tuple[str, Source], ...]  # with their names, where they are given by name


class TriggerOptions(NamedTuple):
    """How an event with a condition is executed, written in braces after the condition.

    Attributes:
        delay: how long after the condition has become true it is executed.
        priority: of several events that are executed at one time, the one with the largest value comes first.
        cancellable: it is not executed if the condition becomes false before.
        current_values: new values are computed when it is executed, not when the condition becomes true.
        initially_false: the condition counts as false before the start, so that the event may happen there.
    """

    delay: Source | None = None
    priority: Source | None = None
    cancellable: bool = False
    current_values: bool = False
    initially_false: bool = False


class Effect(NamedTuple):
    """The distribution of a parameter that varies, and what it varies by."""

    line: int
    text: str  # of the whole statement
    family: str
    arguments: tuple[tuple[str, Source], ...]
    by: str


class Doses(NamedTuple):
    """An event as it is written."""

    line: int
    times: tuple[float, ...]
    changes: tuple[tuple[str, Source], ...]
    before: bool = False  # what is observed at these times
    when: Source | None = None  # the condition that makes it happen, where there are no times
    options: TriggerOptions = TriggerOptions()


class Inequality(NamedTuple):
    """Two expressions of parameters of which one is to stay below the other."""

    line: int
    text: str  # of the whole statement
    smaller: Source
    larger: Source


@dataclass
class Statements:
    """All that a text says; values by kind, then name, and the line of each."""

    given: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    lines: dict[tuple[str, str], int] = field(default_factory=dict)
    events: list[Doses] = field(default_factory=list)
    inequalities: list[Inequality] = field(default_factory=list)
    beginnings: dict[str, int] = field(default_factory=dict)  # how times of initial values are spelled, and where

    def add(self, kind: str, name: str, value: Any, line: int) -> None:
        for rival in _RIVALS.get(kind, (kind,)):
            if name in self.given[rival]:
                first = f"'{name}' already has {rival!r} on line {self.lines[rival, name]}"
                raise InputError(f"line {line}: {first}; {_remedy(kind, rival, name)}")
        self.given[kind][name], self.lines[kind, name] = value, line

    def begin(self, time: str, line: int) -> None:
        self.beginnings.setdefault(time, line)
        if len(self.beginnings) > 1:
            other = next(n for spelled, n in self.beginnings.items() if spelled != time)
            problem = f"mixes x({time}) with the other spelling on line {other}"
            raise InputError(f"line {line}: {problem}; write x(0) (time 0) or x(t0) (the first time) throughout")

    def line_of(self, name: str) -> int:
        """The first line on which a name stands in an expression."""
        every = [*(value for values in self.given.values() for value in values.values()), *self.events]
        return min(source.line for value in every for source in sources(value) if name in source.names())

    @property
    def begins(self) -> str:
        """Where initial values hold, if there are any: "zero", "t0" or the number of an earlier time."""
        first = next(iter(self.beginnings), "0")
        return "zero" if first == "0" else first


def _remedy(kind: str, rival: str, name: str) -> str:
    if (kind, rival) == ("definition", "equation"):
        return f"keep one of the two, or write {name}(0) = ... for its initial value, at 12: {name} = ... for an event"
    return "keep one of the two"


def read_statements(text: str) -> Statements:
    """Read a text; its format is shown at the top of `parser.py`."""
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        raise InputError(f"line 1: equations are a text of at most {MAX_CHARACTERS} characters; shorten it")
    pieces: list[tuple[int, str]] = []
    for line, content in enumerate(re.split(r"\r\n?|\n", text.removeprefix("\ufeff")), 1):
        if "\0" in content:
            raise InputError(f"line {line}: {SHORT.repr(content)} has a null byte; is this a text file?")
        pieces += [(line, piece.strip()) for piece in content.partition("#")[0].split(";")]
    lefts = [_SECOND_ORDER.fullmatch(match[1].strip()) for _, s in pieces if (match := _ASSIGNMENT.match(s))]
    second_order = {(left[1] or left[2]).strip() for left in lefts if left}
    found = Statements()
    for line, piece in pieces:
        if arrow := _ARROW.match(piece):
            name = arrow[1].strip()
            left = f"{name[1:].partition('/')[0].strip()}'" if name.startswith("d") else name
            raise InputError(f"line {line}: {SHORT.repr(piece)} assigns by <-; write {left} = ...")
        if piece:
            for kind, word, value in _statement(_ZERO.sub(r"(\1)", piece), line, second_order):
                for source in sources(value):
                    for time in sorted(source.beginnings()):
                        found.begin(time, line)
                if kind == "event":
                    found.events.append(value)
                    continue
                if kind == "inequality":
                    found.inequalities.append(value)
                    continue
                name = checked_name(word.strip(), f"line {line}") if kind in ROLES else None
                if name is None:
                    name, time = _name(word.strip(), line, second_order)
                    if time:
                        found.begin(time, line)
                        kind, value = ("initial", read(str(value), line)) if kind == "fixed" else (kind, value)
                found.add(kind, name, value, line)
    return found


def sources(value: Any) -> list[Source]:
    """The expressions in what a statement says."""
    match value:
        case Source():
            return [value]
        case Distribution(arguments=pairs):
            return [source for _, source in pairs]
        case Inequality(smaller=smaller, larger=larger):
            return [smaller, larger]
        case Doses(changes=pairs, when=condition, options=options):
            given = (condition, options.delay, options.priority)
            return [*(source for source in given if source is not None), *(source for _, source in pairs)]
    return []


def _name(text: str, line: int, second_order: Collection[str]) -> tuple[str, str]:
    """A name about which something is declared, and of an initial value such as x(0) or x'(t0) how its time is spelled.

    Also names such as sd(x), which arguments of distributions have that are left out.
    """
    match = _NAME.fullmatch(text)
    if not match:
        return checked_name(text, f"line {line}"), ""
    name = match[1]
    if name in ARITY and match[3] is not None:
        raise InputError(f"line {line}: {SHORT.repr(text)} is not a name; declare something about a name alone")
    name = checked_name(name, f"line {line}")
    if match[2]:
        if name not in second_order:
            raise InputError(f"line {line}: {SHORT.repr(text)} has a prime, but {name}'' has no equation; leave it out")
        name = slope_of(name)
    if match[3] is None:
        return name, ""
    inside = match[3].strip()
    if inside == "t0" or re.fullmatch(r"0+(?:\.0*)?", inside):
        return initial_name(name), "t0" if inside == "t0" else "0"
    if re.fullmatch(_EARLIER, inside):
        return initial_name(name), repr(float(inside.replace("\u2212", "-").replace(" ", "")))
    if inside == "t":
        raise InputError(f"line {line}: write {SHORT.repr(text)} without (t); states depend on time as they stand")
    if inside.isidentifier():
        return f"{name}({checked_name(inside, f'line {line}')})", ""
    problem = f"can be given at time 0, {name}(0), before it, {name}(-100), or at the first time, {name}(t0)"
    raise InputError(f"line {line}: {SHORT.repr(text)} {problem}; write one of these")


def _is_name(text: str) -> bool:
    """Whether a side of a bound is a name, not a number."""
    if not (match := _NAME.fullmatch(text.strip())):
        return False
    return match[1] != "pi" and (match[1] not in ARITY or match[3] is None)


def _compares_expressions(low: str, high: str, line: int) -> bool:
    """Whether a comparison is one of expressions of parameters, not a bound of one name by a number."""
    named = [bool({*read(side, line).names()} - {"pi", *ARITY}) for side in (low, high) if not _is_name(side)]
    return any(named) or (_is_name(low) and _is_name(high))


def _split(text: str) -> list[str]:
    """The pieces between commas that stand in no brackets."""
    depth, start, found = 0, 0, []
    for i, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append(text[start:i])
            start = i + 1
    return [*found, text[start:]]


def _statement(text: str, line: int, second_order: Collection[str]) -> Iterator[tuple[str, str, Any]]:
    """What a statement says: kind, name and value, for each name in it."""
    if match := _EVENT.fullmatch(text):
        yield "event", "", _event(text, match, line, second_order)
    elif match := re.match(rf"({_WORDS})\s+([^\W\d].*)", text, re.DOTALL):
        word, rest = match.groups()
        if word in ("fixed", "start"):
            name, _, value = rest.partition("=")
            yield word, name, constant(value, line)
        else:
            yield from ((_LISTS[word], name, "linear" if word == "real" else word) for name in rest.split(","))
    elif match := _ASSIGNMENT.match(text):
        yield from _assignment(match[1].strip(), match[2].strip(), line, second_order)
    elif match := re.fullmatch(r"([^~]*)~\s*(\w+)\s*\((.*)\)\s*by\s+([^\W\d]\w*)", text, re.DOTALL):
        name, family, rest, level = match.groups()
        arguments = tuple(_arguments(rest, line, second_order))
        nested = arguments and arguments[0][1].text == name.strip()
        yield "occasion effect" if nested else "effect", name, Effect(line, text, family, arguments, level)
    elif match := re.fullmatch(r"correlated\s+([^\W\d].*)", text, re.DOTALL):
        group = tuple(checked_name(name.strip(), f"line {line}") for name in match[1].split(","))
        yield from (("correlated", name, group) for name in group)
    elif match := re.fullmatch(r"([^~]*)~\s*(\w+)\s*\((.*)\)", text, re.DOTALL):
        name, family, rest = match.groups()
        if inside := re.fullmatch(r"(?:log|ln)\s*\(\s*(\w+)\s*\)\s*", name):
            remedy = f"write {inside[1]} ~ lognormal(median, sd of the log)"
            raise InputError(f"line {line}: {SHORT.repr(text)} has more than a name on its left; {remedy}")
        yield "distribution", name, Distribution(line, text, family, tuple(_arguments(rest, line, second_order)))
    elif len(parts := re.split(r"([<>])=?", text)) > 1:
        if re.search(r"\band\b", text):
            raise InputError(f"line {line}: cannot read {SHORT.repr(text)}; write both bounds as in 0 < a < 1")
        for left, sign, right in zip(parts[:-2:2], parts[1::2], parts[2::2], strict=True):
            low, high = (left, right) if sign == "<" else (right, left)
            if _compares_expressions(low, high, line):
                yield "inequality", "", Inequality(line, text, read(low, line), read(high, line))
            elif _is_name(high):
                yield "lower bound", high, constant(low, line)
            else:
                yield "upper bound", low, constant(high, line)
    else:
        hint = "write x' = ..., name = ..., x(0) = ..., 0 < a < 1, a ~ normal(2, 0.5) or a declaration"
        hint = "write one = where an equation is meant" if "==" in text else hint
        raise InputError(f"line {line}: cannot read {SHORT.repr(text)}; {hint}")


def _arguments(text: str, line: int, second_order: Collection[str]) -> Iterator[tuple[str, Source]]:
    """The arguments of a distribution, with their names where they have one."""
    for piece in _split(text) if text.strip() else ():
        named = _ARGUMENT.match(piece)
        yield named[1] if named else "", read(named[2] if named else piece, line, second_order)


def _assignment(left: str, right: str, line: int, second_order: Collection[str]) -> Iterator[tuple[str, str, Any]]:
    """An equation, a definition or an initial value."""
    if re.search(r"\(\s*t\s*\)", left):
        raise InputError(f"line {line}: write {SHORT.repr(left)} without (t); states depend on time as they stand")
    source = read(right, line, second_order)
    if re.search(f"[{PRIMES}]{{3}}$", left):
        raise InputError(f"line {line}: {SHORT.repr(left)} is of third order; make two of it: x' = v, v'' = ...")
    if (call := _NAME.fullmatch(left)) and call[3] is not None:
        if not _name(left, line, second_order)[1]:
            shown = f"{SHORT.repr(left)} is no initial value such as x(0), and functions cannot be defined"
            raise InputError(f"line {line}: {shown}; write {call[1]} = ... for a definition")
        yield "initial", left, source
    elif state := _SECOND_ORDER.fullmatch(left):
        name = checked_name((state[1] or state[2]).strip(), f"line {line}")
        yield "equation", name, read(slope_of(name), line)
        yield "equation", slope_of(name), source
    elif state := _FIRST_ORDER.fullmatch(left):
        yield "equation", state[1] or state[2] or state[3], source
    else:
        yield "definition", left, source


def _event(text: str, match: re.Match[str], line: int, second_order: Collection[str]) -> Doses:
    """Such as `at 0, 12: gut = gut + dose, y = 0`; also `at t = 12: gut += dose`, `before 12: …`, `when x < 1: …`."""
    word, between, colon, rest = match.groups()
    example = "write when x < 1: x = 0" if word == "when" else f"write {word} 0, 12: gut = gut + dose"
    if not colon:
        lacks = "condition" if word == "when" else "times"
        raise InputError(f"line {line}: {SHORT.repr(text)} lacks a colon after its {lacks}; {example}")
    changes = _changes(rest, line, second_order, example)
    if word != "when":
        return Doses(line, _times(between, line, example), changes, word == "before")
    between, options = _options(between, line, second_order)
    return Doses(line, (), changes, when=_condition(between, line, second_order), options=options)


def _options(text: str, line: int, second_order: Collection[str]) -> tuple[str, TriggerOptions]:
    """The condition of an event, and what stands in braces after it."""
    match = _OPTIONS.fullmatch(text)
    if not match:
        return text, TriggerOptions()
    found: dict[str, Any] = {}
    for piece in _split(match[2]):
        word, *rest = piece.split(maxsplit=1) or [""]
        name = word if word in _WITH_VALUE else "_".join(piece.split())
        if name not in TriggerOptions._fields or name in found or (name in _WITH_VALUE and not rest):
            choices = "delay 2, priority 1, cancellable, current values, initially false"
            raise InputError(
                f"line {line}: {SHORT.repr(piece.strip())} is no option of an event; choose from {choices}"
            )
        found[name] = read(rest[0], line, second_order) if name in _WITH_VALUE else True
    return match[1], TriggerOptions(**found)


def _times(text: str, line: int, example: str) -> tuple[float, ...]:
    """The times of an event."""
    times: set[float] = set()
    for piece in _split(re.sub(r"^t\s*={1,2}", "", text)):
        try:
            time = constant(piece, line)
        except InputError:
            shown = SHORT.repr(piece.strip())
            instead = f"write when {piece.strip()}: ..." if re.search("[<>]", piece) else example
            raise InputError(f"line {line}: {shown} is no time of an event: a finite constant; {instead}") from None
        if time in times:
            raise InputError(f"line {line}: the event is twice at {time:g}; keep one, with both changes in it")
        times.add(time)
    return tuple(sorted(times))


def _condition(text: str, line: int, second_order: Collection[str]) -> Source:
    """What makes an event happen by becoming true, which equalities of what moves never do for long."""
    time = re.fullmatch(r"\s*t\s*={1,2}(?!=)(.*)", text, re.DOTALL)
    instead = f"write at {time[1].strip()}: ..." if time else "write when x < 1: x = 0"
    refusal = f"line {line}: {SHORT.repr(text.strip())} is no condition of <, <=, > or >=; {instead}"
    if not text.strip() or re.search(r"(?<![=<>!])=(?!=)", text):
        raise InputError(refusal)
    source = read(text, line, second_order)
    if not _compares(source.tree):
        raise InputError(refusal)
    return source


def _compares(node: ast.expr) -> bool:
    match node:
        case ast.BoolOp(values=parts):
            return all(map(_compares, parts))
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return _compares(part)
        case ast.Compare(ops=ops):
            return all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in ops)
    return False


def _changes(text: str, line: int, second_order: Collection[str], example: str) -> tuple[tuple[str, Source], ...]:
    """The states that an event changes, with their new values."""
    changes: dict[str, Source] = {}
    for piece in _split(text):
        if not (change := _CHANGE.fullmatch(piece.strip())):
            raise InputError(f"line {line}: {SHORT.repr(piece.strip())} changes no state; {example}")
        left, right = change.groups()
        sign = left[-1:] if left.endswith(("+", "-", "*", "/")) else ""
        left = left.removesuffix(sign).strip()
        name, initial = _name(left, line, second_order)
        if initial or not name.isidentifier():
            raise InputError(f"line {line}: {SHORT.repr(left)} is no name of a state; {example}")
        if name in changes:
            raise InputError(f"line {line}: the event changes '{name}' twice; keep one of the two")
        changes[name] = read(f"{left} {sign} ({right.strip()})" if sign else right, line, second_order)
    return tuple(changes.items())
