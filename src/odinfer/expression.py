"""Equation text to vector field, by a whitelist over Python's syntax tree.

The text is parsed, never run. Every allowed node becomes one instruction of a short program in which equal
instructions are shared; `Equations.field` runs it. A statement stands on one line, `;` separates several:

    prey' = a*prey - b*prey*predator    # an equation, also: dprey/dt = ...
    uptake = k*x/(K + x)                # a definition, usable anywhere, in any order
    input u, v                          # known functions of time
    fixed d = 1                         # a value that is not estimated
    start a = 1.5                       # where the search starts
    log a, b                            # estimated on a log scale, hence positive; `linear c` is the opposite
    0 < b < 100                         # bounds of a parameter or a state; > and >= mean the same
    a ~ normal(2, 0.5)                  # or lognormal(median, sd of the log), uniform(low, high)
"""

import ast
import functools
import keyword
import math
import re
import reprlib
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from odinfer.errors import InputError, InputWarning, nearest

MAX_CHARACTERS, MAX_COPIED = 100_000, 10_000
ARITY = dict.fromkeys(("exp", "log", "log10", "sqrt", "abs", "sign", "sin", "cos", "tan"), range(1, 2))
ARITY |= dict.fromkeys(("asin", "acos", "atan", "sinh", "cosh", "tanh"), range(1, 2))
ARITY |= {"pow": range(2, 3), "min": range(2, MAX_CHARACTERS), "max": range(2, MAX_CHARACTERS)}
ARITY |= {"hill": range(3, 4), "where": range(3, 4), "piecewise": range(3, MAX_CHARACTERS, 2)}
PRIORS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "normal": ("mean, sd > 0", lambda mean, sd: sd > 0),
    "lognormal": ("median > 0, sd of the log > 0", lambda median, sd: median > 0 and sd > 0),
    "uniform": ("low, high > low", lambda low, high: low < high),
}
KEYWORDS = ("input", "fixed", "start", "log", "linear")
RESERVED = {"t", "dt", "pi", *ARITY, *KEYWORDS, *keyword.kwlist}
RIVALS = (ROLES := ("equation", "definition", "input"), ("fixed", "start"))  # a name has at most one of each
OPERATORS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
OPERATORS |= {ast.Pow: "pow", ast.USub: "neg", ast.UAdd: "pos", ast.Not: "not", ast.And: "and", ast.Or: "or"}
OPERATORS |= {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
SPELLING = str.maketrans({"^": "**"} | dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d", "-"))
SHORT = reprlib.Repr()  # for pieces of the user's text in messages of one line
SHORT.maxstring = 60


def _operations(m: Any) -> dict[str, Callable[..., Any]]:
    """What the instructions do, in terms of `m`: numpy to fold constants, jax.numpy in the field."""

    def power(x: Any, n: Any) -> Any:
        # Constants are Python floats. JAX multiplies for an int exponent: right at and below zero.
        integer = isinstance(n, float) and n % 1 == 0 and 0 <= n <= 1000 and not isinstance(x, float)
        return x ** int(n) if integer else m.power(x, n)

    table = {"+": m.add, "-": m.subtract, "*": m.multiply, "/": m.divide, "neg": m.negative}
    table |= {"<": m.less, "<=": m.less_equal, ">": m.greater, ">=": m.greater_equal, "==": m.equal}
    table |= {"!=": m.not_equal, "and": m.logical_and, "or": m.logical_or, "not": m.logical_not}
    table |= {"exp": m.exp, "log": m.log, "log10": m.log10, "sqrt": m.sqrt, "abs": m.abs, "sign": m.sign}
    table |= {"sin": m.sin, "cos": m.cos, "tan": m.tan, "asin": m.arcsin, "acos": m.arccos, "atan": m.arctan}
    table |= {"sinh": m.sinh, "cosh": m.cosh, "tanh": m.tanh, "min": m.minimum, "max": m.maximum}
    hill = lambda x, K, n: m.divide(power(x, n), m.add(power(K, n), power(x, n)))  # noqa: E731
    return table | {"pos": m.positive, "where": m.where, "pow": power, "hill": hill}


FOLD = _operations(np)


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

        operations, known = _operations(jnp), {"t": jnp.asarray(t)}
        for names, values in ((self.states, x), (self.parameters, theta), (self.inputs, u)):
            known |= zip(names, jnp.asarray(values), strict=True)
        done: list[Any] = []
        for op, args in self._code:
            leaf = op not in operations
            done.append(known.get(*args, *args) if leaf else operations[op](*(done[i] for i in args)))
        return [jnp.asarray(done[i]) for i in self._outputs]


class _Source(NamedTuple):
    """An expression and where it stands."""

    line: int
    text: str
    tree: ast.expr

    def error(self, node: ast.expr, problem: str) -> InputError:
        piece = self.text.encode()[node.col_offset : node.end_col_offset].decode(errors="replace")
        return InputError(f"line {self.line}: {SHORT.repr(piece)} {problem}")

    def names(self) -> list[str]:
        """All names from left to right, functions included."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name)]
        return [node.id for node in sorted(nodes, key=lambda node: node.col_offset)]


def _read(text: str, line: int) -> _Source:
    """The syntax tree of one expression; every way in which Python's parser can fail is an InputError."""
    text = text.translate(SPELLING).strip()
    try:
        if re.search("['\"\u2019\u2032]", text):
            raise SyntaxError("quotes are not allowed in an equation, a prime only marks its left side")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _Source(line, text, ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        words = [w for w in re.findall(r"\w+", text) if w in {*keyword.kwlist} - {"and", "or", "not"}]
        reason = f"'{words[0]}' is a reserved word" if words else getattr(error, "msg", "not valid text")
        reason = "it is too long or too deep" if isinstance(error, MemoryError | RecursionError) else reason
        hint = "check names, brackets and operators (products need *)" if text else "a value is missing"
        raise InputError(f"line {line}: cannot read {SHORT.repr(text)}: {reason[:99]}; {hint}") from None


def _name(text: str, where: str) -> str:
    """A valid name, spelled as Python's parser spells it (NFKC)."""
    # Python also takes marks such as the middle dot for letters, which would make 'a·b' one name.
    if not (re.fullmatch(r"[^\W\d]\w*", text) and text.isidentifier()) or text.startswith("__"):
        raise InputError(f"{where}: {SHORT.repr(text)} is not a name; use letters, digits and underscores")
    if (text := unicodedata.normalize("NFKC", text)) in RESERVED:
        raise InputError(f"{where}: '{text}' is a reserved word; choose another name")
    return text


class _Program:
    """Instructions in order of evaluation; their arguments are the numbers of earlier instructions.

    `source` is the expression in work, `mask` the instruction that says whether its branch is taken.
    """

    def __init__(self, definitions: dict[str, _Source]) -> None:
        self.definitions, self.source = definitions, _Source(1, "", ast.Constant(0))
        self.mask: int | None = None
        self.code: list[tuple[str, tuple[Any, ...]]] = []
        self.copies: dict[tuple[str, int | None], int] = {}

    def emit(self, op: str, *args: Any) -> int:
        self.code.append((op, args))
        return len(self.code) - 1

    def value(self, i: int) -> Any:
        """The value of a constant, None for other instructions."""
        op, args = self.code[i]
        return args[0] if op in ("number", "truth") else None

    def whole(self, source: _Source, mask: int | None = None) -> int:
        """Translate a whole expression."""
        outer, self.source, self.mask = (self.source, self.mask), source, mask
        try:
            result = self.translate(source.tree)
        except RecursionError:
            raise source.error(source.tree, "is nested too deeply; split it with definitions") from None
        self.source, self.mask = outer
        return result

    def definition(self, name: str) -> int:
        """Translate a definition once, and once more for each branch that uses it, to guard it there too.

        Past MAX_COPIED instructions branches share it, which bounds the program; only derivatives notice.
        """
        for key in ((name, None), (name, self.mask)):
            if key not in self.copies and (key[1] is None or len(self.code) < MAX_COPIED):
                self.copies[key] = -1  # in work: to meet it again means a circle
                self.copies[key] = self.whole(self.definitions[name], key[1])
            if self.copies.get(key) == -1:
                raise self.source.error(self.source.tree, f"makes '{name}' need itself; break the circle")
        return self.copies.get((name, self.mask), self.copies[name, None])

    def translate(self, node: ast.expr, condition: bool = False) -> int:
        """An expression; long sums and products are a loop, so that only true nesting recurses."""
        if condition != isinstance(getattr(node, "op", node), ast.Compare | ast.And | ast.Or | ast.Not):
            problem = "is not a condition such as x > 0" if condition else "is a condition, not a number"
            raise self.source.error(node, f"{problem}; write where(condition, a, b)")
        chain = []
        while isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            chain.append(node)
            node = node.left
        result = self.term(node)
        for link in reversed(chain):
            result = self.apply(OPERATORS[type(link.op)], (result, self.translate(link.right)), link)
        return result

    def term(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                if value > 1e308:
                    raise self.source.error(node, "is too large; use a finite number")
                return self.emit("number", float(value))
            case ast.Name(id="pi"):
                return self.emit("number", math.pi)
            case ast.Name(id=name) if name in self.definitions:
                return self.definition(name)
            case ast.Name(id=name):
                return self.emit("name", name if name == "t" else _name(name, f"line {self.source.line}"))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
                part = self.translate(operand, condition=isinstance(op, ast.Not))
                return self.apply(OPERATORS[type(op)], (part,), node)
            case ast.BoolOp(op=op, values=values):
                parts = [self.translate(value, condition=True) for value in values]
                return self.apply(OPERATORS[type(op)], parts, node)
            case ast.Compare(ops=ops) if all(type(op) in OPERATORS for op in ops):
                sides = [self.translate(side) for side in (node.left, *node.comparators)]
                pairs = zip(ops, sides[:-1], sides[1:], strict=True)
                parts = [self.apply(OPERATORS[type(op)], pair, node) for op, *pair in pairs]
                return self.apply("and", parts, node)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(name, args, node)
        raise self.source.error(node, "is not allowed in an equation; use arithmetic and functions only")

    def call(self, name: str, args: list[ast.expr], node: ast.expr) -> int:
        if name not in ARITY:
            hint = f"{nearest(name, ARITY)} (products need *)"
            raise self.source.error(node, f"calls the unknown function {SHORT.repr(name)}{hint}")
        if len(args) not in (wanted := ARITY[name]):
            takes = ", ".join(map(str, wanted[:3])) + ", ..." * (len(wanted) > 1)
            raise self.source.error(node, f"has {len(args)} arguments; give {name} {takes}")
        if name in ("where", "piecewise"):
            return self.choose([args[1], args[0], args[2]] if name == "where" else args, node)
        return self.apply(name, [self.translate(arg) for arg in args], node)

    def choose(self, args: list[ast.expr], node: ast.expr) -> int:
        """The value before the first condition that holds, else the last value."""
        branches, outer = [], self.mask
        for value, condition in zip(args[:-1:2], args[1::2], strict=True):
            rest, self.mask = self.mask, None  # conditions have no derivative to guard
            holds = self.translate(condition, True)
            masks = [holds, self.apply("not", (holds,), node)]
            if rest is not None:
                masks = [self.apply("and", (rest, mask), node) for mask in masks]
            self.mask = masks[0]
            branches.append((holds, self.translate(value)))
            self.mask = masks[1]
        result, self.mask = self.translate(args[-1]), outer
        for holds, part in reversed(branches):
            result = self.apply("where", (holds, part, result), node)
        return result

    def apply(self, op: str, args: Sequence[int], node: ast.expr) -> int:
        """One operation on translated arguments, folded when all are constant."""
        if op in ("and", "or", "min", "max") and len(args) != 2:
            return functools.reduce(lambda a, b: self.apply(op, (a, b), node), args)
        values = [self.value(i) for i in args]
        if None not in values:
            with np.errstate(all="ignore"):
                result = np.asarray(FOLD[op](*values)).item()
            if not math.isfinite(result):
                raise self.source.error(node, "is not a finite real number; correct its constants")
            return self.emit("truth" if isinstance(result, bool) else "number", result)
        if op == "/" and values[1] == 0:
            raise self.source.error(node, "divides by zero; correct the denominator")
        if self.mask is not None and op != "where" and (op == "/" or op in ARITY):
            # In a branch that is not taken functions see 0.5, where all are smooth: reverse-mode derivatives
            # multiply what such a branch gives by zero, and zero times infinity would be NaN.
            half = self.emit("number", 0.5)
            args = [self.emit("where", self.mask, i, half) if self.value(i) is None else i for i in args]
        return self.emit(op, *args)


def _constant(text: str, line: int) -> float:
    source, program = _read(text, line), _Program({})
    if (value := program.value(program.whole(source))) is None:
        raise source.error(source.tree, "is not a number; write one such as 2, 1/3 or -2*pi")
    return float(value)


def _statement(text: str, line: int) -> Iterator[tuple[str, str, Any]]:
    """What a statement says: kind, name and value, for each name in it."""
    if match := re.match(rf"({'|'.join(KEYWORDS)})\s+([^\W\d].*)", text, re.DOTALL):
        word, rest = match.groups()
        if word in ("fixed", "start"):
            name, _, value = rest.partition("=")
            yield word, name, _constant(value, line)
        else:
            yield from (("input" if word == "input" else "scale", name, word) for name in rest.split(","))
    elif match := re.match(r"([^=<>!:~]*)=(?!=)(.*)", text, re.DOTALL):
        state = re.fullmatch("(.+)['\u2019\u2032]\\s*|d(.+)/\\s*dt\\s*", match[1])
        name, kind = (state[1] or state[2], "equation") if state else (match[1], "definition")
        yield kind, name, _read(match[2], line)
    elif match := re.fullmatch(r"([^~]*)~\s*(\w+)\s*\((.*)\)", text, re.DOTALL):
        name, family, rest = match.groups()
        if family not in PRIORS:
            raise InputError(f"line {line}: {SHORT.repr(family)} is no known prior{nearest(family, PRIORS)}")
        numbers, (wanted, valid) = [_constant(number, line) for number in rest.split(",")], PRIORS[family]
        if len(numbers) != 2 or not valid(*numbers):
            raise InputError(f"line {line}: {SHORT.repr(text)} is no prior; write {family}({wanted})")
        yield "prior", name, (family, *numbers)
    elif len(parts := re.split(r"([<>])=?", text)) > 1:
        for left, sign, right in zip(parts[:-2:2], parts[1::2], parts[2::2], strict=True):
            low, high = (left, right) if sign == "<" else (right, left)
            if high.strip().isidentifier() and high.strip() != "pi":
                yield "lower bound", high, _constant(low, line)
            else:
                yield "upper bound", low, _constant(high, line)
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


def parse(text: str, inputs: Sequence[str] = ()) -> Equations:
    """Read a system of equations; the format is shown at the top of this module.

    Args:
        text: The statements.
        inputs: Names to treat as inputs besides those that the text declares.

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
                name = _name(word.strip(), f"line {line}")
                for rival in next((group for group in RIVALS if kind in group), (kind,)):
                    if name in given[rival]:
                        first = f"'{name}' already has {rival!r} on line {lines[rival, name]}"
                        raise InputError(f"line {line}: {first}; keep one of the two")
                given[kind][name], lines[kind, name] = value, line
    equations, definitions, declared = (given[role] for role in ROLES)
    if not equations:
        raise InputError("line 1: there is no equation; write at least one, such as x' = -k*x")
    extra = [_name(str(name), "inputs") for name in ([inputs] if isinstance(inputs, str) else inputs)]
    if clash := {*extra} & {*equations, *definitions}:
        raise InputError(f"inputs: '{min(clash)}' has an equation or a definition in the text; rename one")

    used: dict[str, None] = {}
    stack = [name for source in reversed(equations.values()) for name in reversed(source.names())]
    while stack:
        if (name := stack.pop()) in definitions and name not in used:
            stack += reversed(definitions[name].names())
        used[name] = None
    known = dict.fromkeys([*declared, *extra])
    taken = {*RESERVED, *equations, *definitions, *known}
    parameters = {name: None for name in used if name not in taken}
    program = _Program(definitions)
    for name, source in definitions.items():
        (program if name in used else _Program(definitions)).definition(name)
        if name not in used:
            message = f"line {source.line}: the definition of '{name}' is never used; remove it or use it"
            warnings.warn(message, InputWarning, stacklevel=2)
    outputs = tuple(program.whole(source) for source in equations.values())

    bounds, free = {}, {**equations, **parameters}
    fitting = {"input": (used, "used"), "lower bound": (free, "a name"), "upper bound": (free, "a name")}
    for (kind, name), line in lines.items():
        if kind not in ("equation", "definition"):
            names, role = fitting.get(kind, (parameters, "a parameter"))
            if name not in names:
                problem = f"{kind} of '{name}', which is not {role} in the equations"
                raise InputError(f"line {line}: {problem}{nearest(name, names) or '; remove it'}")
            said = {kind: given[kind][name] for kind in given if kind not in ROLES and name in given[kind]}
            last = max((lines[kind, name] for kind in said), default=line)
            if (pair := _bounds(said, f"line {last}: '{name}'")) != (-math.inf, math.inf):
                bounds[name] = pair
    return Equations(
        *(tuple(equations), tuple(parameters), tuple(known), bounds),
        *(given["fixed"], given["start"], given["scale"], given["prior"]),
        *(text, tuple(program.code), outputs),
    )
