"""Compile expressions to instructions, one per allowed node of the syntax tree.

Equal instructions are shared, and constants are folded: the length of a program is that of its text, whatever the
branches.
"""

import ast
import functools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from odinfer.errors import nearest
from odinfer.model.expression import ARITY, SHORT, Source, checked_name, initial_name, initial_value, read, state_of

OPERATORS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
OPERATORS |= {ast.Pow: "pow", ast.USub: "neg", ast.UAdd: "pos", ast.Not: "not", ast.And: "and", ast.Or: "or"}
OPERATORS |= {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
# What to write instead of something else that Python has.
_ARITHMETIC = "use arithmetic and functions only"
_INSTEAD: dict[type[ast.AST], str] = {
    ast.Tuple: "write numbers with a point, and one statement a line",
    ast.IfExp: "write where(condition, a, b)",
    ast.FloorDiv: "write / for a quotient, # before a comment",
    ast.BitXor: "write ^ for a power",
}
LEAVES = ("name", "number", "truth")  # instructions whose argument is a value, not an earlier instruction


def operations_of(m: Any) -> dict[str, Callable[..., Any]]:
    """What the instructions do, in terms of `m`: numpy to fold constants, jax.numpy in the field."""

    def power(x: Any, n: Any) -> Any:
        # JAX multiplies for an int exponent: right at and below zero.
        return x ** int(n) if is_whole_exponent(n) and not isinstance(x, float) else m.power(x, n)

    table = {"+": m.add, "-": m.subtract, "*": m.multiply, "/": m.divide, "neg": m.negative}
    table |= {"<": m.less, "<=": m.less_equal, ">": m.greater, ">=": m.greater_equal, "==": m.equal}
    table |= {"!=": m.not_equal, "and": m.logical_and, "or": m.logical_or, "not": m.logical_not}
    table |= {"exp": m.exp, "log": m.log, "log10": m.log10, "sqrt": m.sqrt, "abs": m.abs, "sign": m.sign}
    table |= {"sin": m.sin, "cos": m.cos, "tan": m.tan, "asin": m.arcsin, "acos": m.arccos, "atan": m.arctan}
    table |= {"sinh": m.sinh, "cosh": m.cosh, "tanh": m.tanh, "min": m.minimum, "max": m.maximum}
    table |= {"asinh": m.arcsinh, "acosh": m.arccosh, "atanh": m.arctanh, "floor": m.floor, "ceil": m.ceil}
    return table | {"where": m.where, "pow": power}


FOLD = operations_of(np)


def is_whole_exponent(n: Any) -> bool:
    """Whether a power is computed by multiplication; constants of a program are Python floats."""
    return isinstance(n, float) and n % 1 == 0 and 0 <= n <= 1000


class Instructions:
    """Instructions in order of evaluation; their arguments are the numbers of earlier ones. Equal ones are shared."""

    def __init__(self) -> None:
        self.code: list[tuple[str, tuple[Any, ...]]] = []
        self.found: dict[tuple[Any, ...], int] = {}

    def emit(self, op: str, *args: Any) -> int:
        key = (op, repr(args[0])) if op == "number" else (op, *args)  # 0 and -0 are equal, but not the same
        if key not in self.found:
            self.found[key] = len(self.code)
            self.code.append((op, args))
        return self.found[key]

    def value(self, i: int) -> Any:
        """The value of a constant, None for other instructions."""
        op, args = self.code[i]
        return args[0] if op in ("number", "truth") else None

    def leaves(self, i: int) -> set[str]:
        """The names on which an instruction depends."""
        return {self.code[j][1][0] for j in needed(self.code, [i]) if self.code[j][0] == "name"}


class Program(Instructions):
    """The instructions of expressions that share definitions; `source` is the expression in work."""

    def __init__(self, definitions: dict[str, Source]) -> None:
        super().__init__()
        self.definitions, self.source = definitions, Source(1, "", ast.Constant(0))
        self.defined: dict[str, int | None] = {}

    def whole(self, source: Source, condition: bool = False) -> int:
        """Translate a whole expression."""
        outer, self.source = self.source, source
        try:
            result = self.translate(source.tree, condition)
        except RecursionError:
            raise source.error(source.tree, "is nested too deeply; split it with definitions") from None
        self.source = outer
        return result

    def definition(self, name: str) -> int:
        """Translate a definition, once."""
        if name not in self.defined:
            self.defined[name] = None  # in work: to meet it again means a circle
            self.defined[name] = self.whole(self.definitions[name])
        if (found := self.defined[name]) is None:
            own = name in self.source.names() and self.definitions[name] is self.source and state_of(name) is None
            instead = f"write {name}' = ... for how fast it changes" if own else "break the circle"
            raise self.source.error(self.source.tree, f"makes '{name}' need itself; {instead}")
        return found

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
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in ARITY:
                return self.call(name, args, node)
            case ast.Call() if found := initial_value(node):
                name = initial_name(checked_name(found[0], f"line {self.source.line}"))
                return self.definition(name) if name in self.definitions else self.emit("name", name)
            case ast.Call(func=func, args=args, keywords=[]):
                raise self.source.error(node, self.no_function(func, args))
        raise self.source.error(node, f"is not allowed in an equation; {_INSTEAD.get(self._kind(node), _ARITHMETIC)}")

    @staticmethod
    def _kind(node: ast.expr) -> type[ast.AST]:
        return type(node.op if isinstance(node, ast.BinOp) else node)

    def no_function(self, func: ast.expr, args: list[ast.expr]) -> str:
        """What is wrong with a call of something else than a function."""
        left = self.source.piece(func.col_offset, func.end_col_offset)
        match func, args:
            case ast.Name(id=name), [ast.Name(id="t")]:
                return f"is not allowed in an equation; write {SHORT.repr(name)}, which depends on time as it stands"
            case ast.Name(id=name), _ if "mean" in (close := nearest(name, ARITY)):
                return f"calls the unknown function {SHORT.repr(name)}{close} (products need *)"
            case ((ast.Name() | ast.Constant() | ast.BinOp()), [arg]):
                kind = "calls the unknown function" if isinstance(func, ast.Name) else "lacks an operator after"
                factor = f"({left})" if isinstance(func, ast.BinOp) else left
                product = f"{factor}*({self.source.piece(arg.col_offset, arg.end_col_offset)})"
                return f"{kind} {SHORT.repr(left)}; write {product if len(product) < 80 else '*'}"
        return "is not allowed in an equation; use arithmetic and functions only (products need *)"

    def call(self, name: str, args: list[ast.expr], node: ast.expr) -> int:
        if len(args) not in (wanted := ARITY[name]):
            takes = ", ".join(map(str, wanted[:3])) + ", ..." * (len(wanted) > 1)
            raise self.source.error(node, f"has {len(args)} arguments; give {name} {takes}")
        if name in ("where", "piecewise"):
            return self.choose([args[1], args[0], args[2]] if name == "where" else args, node)
        parts = [self.translate(arg) for arg in args]
        if name == "hill":
            x, K = (self.apply("pow", (part, parts[2]), node) for part in parts[:2])
            return self.apply("/", (x, self.apply("+", (K, x), node)), node)
        return self.apply("log" if name == "ln" else name, parts, node)

    def choose(self, args: list[ast.expr], node: ast.expr) -> int:
        """The value before the first condition that holds, else the last value."""
        branches = [(self.translate(c, True), self.translate(v)) for v, c in zip(args[:-1:2], args[1::2], strict=True)]
        result = self.translate(args[-1])
        for holds, part in reversed(branches):
            result = self.apply("where", (holds, part, result), node)
        return result

    def apply(self, op: str, args: Sequence[int], node: ast.expr) -> int:
        """One operation on translated arguments, folded when all are constant."""
        if op in ("and", "or", "min", "max") and len(args) != 2:
            return functools.reduce(lambda a, b: self.apply(op, (a, b), node), args)
        values = [self.value(i) for i in args]
        if None not in values and op != "pos":
            with np.errstate(all="ignore"):
                result = np.asarray(FOLD[op](*values)).item()
            if not math.isfinite(result):
                raise self.source.error(node, "is not a finite real number; correct its constants")
            return self.emit("truth" if isinstance(result, bool) else "number", result)
        if op == "/" and values[1] == 0:
            raise self.source.error(node, "divides by zero; correct the denominator")
        match op, values:
            case "where", [bool() as holds, _, _]:
                return args[1 if holds else 2]
            case ("pos", _) | ("pow", [_, 1.0]):
                return args[0]
            case "pow", [_, 0.0]:
                return self.emit("number", 1.0)
        return self.emit(op, *args)


def needed(code: Sequence[tuple[str, tuple[Any, ...]]], outputs: Iterable[int]) -> list[int]:
    """The instructions on which the outputs depend, themselves included, in order."""
    found, stack = set(), [*outputs]
    while stack:
        if (i := stack.pop()) not in found:
            found.add(i)
            stack += () if code[i][0] in LEAVES else code[i][1]
    return sorted(found)


def depending(code: Sequence[tuple[str, tuple[Any, ...]]], names: Collection[str]) -> list[bool]:
    """Of every instruction, whether it depends on one of the names."""
    found: list[bool] = []
    for op, args in code:
        found.append(op == "name" and args[0] in names if op in LEAVES else any(found[i] for i in args))
    return found


def constant(text: str, line: int) -> float:
    return number(read(text, line))


def number(source: Source) -> float:
    """The value of an expression without names."""
    program = Program({})
    if (value := program.value(program.whole(source))) is None:
        raise source.error(source.tree, "is not a number; write one such as 2, 1/3 or -2*pi")
    return float(value)
