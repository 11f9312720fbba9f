"""One expression of an equation: whitelisted syntax in, a short program of instructions out.

The text is parsed by Python's own parser and never run. Every allowed node becomes one instruction; equal
instructions are shared, and constants are folded.
"""

import ast
import functools
import keyword
import math
import re
import reprlib
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from odinfer.errors import InputError, nearest

MAX_CHARACTERS, MAX_COPIED = 100_000, 10_000
ARITY = dict.fromkeys(("exp", "log", "log10", "sqrt", "abs", "sign", "sin", "cos", "tan"), range(1, 2))
ARITY |= dict.fromkeys(("asin", "acos", "atan", "sinh", "cosh", "tanh"), range(1, 2))
ARITY |= {"pow": range(2, 3), "min": range(2, MAX_CHARACTERS), "max": range(2, MAX_CHARACTERS)}
ARITY |= {"hill": range(3, 4), "where": range(3, 4), "piecewise": range(3, MAX_CHARACTERS, 2)}
KEYWORDS = ("input", "fixed", "start", "log", "linear")
RESERVED = {"t", "dt", "pi", *ARITY, *KEYWORDS, *keyword.kwlist}
OPERATORS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
OPERATORS |= {ast.Pow: "pow", ast.USub: "neg", ast.UAdd: "pos", ast.Not: "not", ast.And: "and", ast.Or: "or"}
OPERATORS |= {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
SPELLING = str.maketrans({"^": "**"} | dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d", "-"))
SHORT = reprlib.Repr()  # for pieces of the user's text in messages of one line
SHORT.maxstring = 60


def operations_of(m: Any) -> dict[str, Callable[..., Any]]:
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


FOLD = operations_of(np)


class Source(NamedTuple):
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


def read(text: str, line: int) -> Source:
    """The syntax tree of one expression; every way in which Python's parser can fail is an InputError."""
    text = text.translate(SPELLING).strip()
    try:
        if re.search("['\"\u2019\u2032]", text):
            raise SyntaxError("quotes are not allowed in an equation, a prime only marks its left side")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Source(line, text, ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        words = [w for w in re.findall(r"\w+", text) if w in {*keyword.kwlist} - {"and", "or", "not"}]
        reason = f"'{words[0]}' is a reserved word" if words else getattr(error, "msg", "not valid text")
        reason = "it is too long or too deep" if isinstance(error, MemoryError | RecursionError) else reason
        hint = "check names, brackets and operators (products need *)" if text else "a value is missing"
        raise InputError(f"line {line}: cannot read {SHORT.repr(text)}: {reason[:99]}; {hint}") from None


def checked_name(text: str, where: str) -> str:
    """A valid name, spelled as Python's parser spells it (NFKC)."""
    # Python also takes marks such as the middle dot for letters, which would make 'a·b' one name.
    if not (re.fullmatch(r"[^\W\d]\w*", text) and text.isidentifier()) or text.startswith("__"):
        raise InputError(f"{where}: {SHORT.repr(text)} is not a name; use letters, digits and underscores")
    if (text := unicodedata.normalize("NFKC", text)) in RESERVED:
        raise InputError(f"{where}: '{text}' is a reserved word; choose another name")
    return text


class Program:
    """Instructions in order of evaluation; their arguments are the numbers of earlier instructions.

    `source` is the expression in work, `mask` the instruction that says whether its branch is taken.
    """

    def __init__(self, definitions: dict[str, Source]) -> None:
        self.definitions, self.source = definitions, Source(1, "", ast.Constant(0))
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

    def whole(self, source: Source, mask: int | None = None) -> int:
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
                return self.emit("name", name if name == "t" else checked_name(name, f"line {self.source.line}"))
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


def constant(text: str, line: int) -> float:
    source, program = read(text, line), Program({})
    if (value := program.value(program.whole(source))) is None:
        raise source.error(source.tree, "is not a number; write one such as 2, 1/3 or -2*pi")
    return float(value)
