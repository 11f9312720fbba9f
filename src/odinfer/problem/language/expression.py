"""One expression of an equation: whitelisted syntax in, a short program of instructions out.

The text is parsed by Python's own parser and never run. Every allowed node becomes one instruction; equal
instructions are shared, and constants are folded: the length of a program is that of its text, whatever the branches.
"""

import ast
import functools
import keyword
import math
import re
import reprlib
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from odinfer.errors import InputError, nearest

MAX_CHARACTERS, MAX_NAME = 100_000, 200
ARITY = dict.fromkeys(("exp", "log", "ln", "log10", "sqrt", "abs", "sign", "sin", "cos", "tan"), range(1, 2))
ARITY |= dict.fromkeys(("asin", "acos", "atan", "sinh", "cosh", "tanh"), range(1, 2))
ARITY |= {"pow": range(2, 3), "min": range(2, MAX_CHARACTERS), "max": range(2, MAX_CHARACTERS)}
ARITY |= {"hill": range(3, 4), "where": range(3, 4), "piecewise": range(3, MAX_CHARACTERS, 2)}
KEYWORDS = ("input", "fixed", "start", "log", "linear")
RESERVED = {"t", "dt", "pi", *ARITY, *KEYWORDS, "and", "or", "not", "True", "False", "None"}
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
DASHES, DOTS, PRIMES = "\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d", "\u00b7\u22c5\u2219\u00d7", "'\u2019\u2032"
SPELLING = str.maketrans({"^": "**"} | dict.fromkeys(DASHES, "-") | dict.fromkeys(DOTS, "*"))
SUPERSCRIPT = re.compile("\u207b?[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+")
SHORT = reprlib.Repr()  # for pieces of the user's text in messages of one line
SHORT.maxstring = 60

# Words of Python are names here. Those of its expressions are tried as such first, to be refused as what they are.
_IN_EXPRESSIONS = {"if", "else", "for", "in", "is", "lambda"}
_OTHER_WORDS = {*keyword.kwlist} - RESERVED - _IN_EXPRESSIONS
_BOLD = {0x1D41A + i: chr(97 + i) for i in range(26)}  # which Python's parser takes for the plain letters, in names


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
    return table | {"where": m.where, "pow": power}


FOLD = operations_of(np)


def is_whole_exponent(n: Any) -> bool:
    """Whether a power is computed by multiplication; constants of a program are Python floats."""
    return isinstance(n, float) and n % 1 == 0 and 0 <= n <= 1000


class Source(NamedTuple):
    """An expression and where it stands."""

    line: int
    text: str
    tree: ast.expr

    def piece(self, start: int, end: int | None) -> str:
        """What the user wrote, from and to a column of the tree."""
        return self.text.encode()[start:end].decode(errors="replace").translate(_BOLD)

    def error(self, node: ast.expr, problem: str) -> InputError:
        piece = self.piece(node.col_offset, node.end_col_offset)
        return InputError(f"line {self.line}: {SHORT.repr(piece)} {problem}")

    def names(self) -> list[str]:
        """All names from left to right, functions included; "x(0)" is one name."""
        found: list[tuple[int, str]] = []
        parts: set[ast.AST] = set()
        for node in ast.walk(self.tree):  # what stands outside comes first
            if isinstance(node, ast.Call) and (initial := initial_value(node)):
                found.append((node.col_offset, initial_name(initial[0])))
                parts.update((node.func, *node.args))
            elif isinstance(node, ast.Name) and node not in parts:
                found.append((node.col_offset, node.id))
        return [name for _, name in sorted(found, key=lambda pair: pair[0])]

    def beginnings(self) -> set[str]:
        """How the times of initial values are spelled in it: "0", "t0", "-100.0"."""
        return {found[1] for node in ast.walk(self.tree) if (found := initial_value(node))}


def initial_value(node: ast.AST) -> tuple[str, str] | None:
    """The name and the time, "0", "t0" or a negative number, of an expression such as x(0), x(t0) or x(-100)."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[time], keywords=[]) if name not in RESERVED:
            match time:
                case ast.Name(id="t0"):
                    return name, "t0"
                case ast.Constant(value=int() | float() as value) if value == 0 and not isinstance(value, bool):
                    return name, "0"
                case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if value > 0:
                    return name, repr(-float(value))
    return None


def initial_name(state: str) -> str:
    """The name of the initial value of a state, however its time is spelled."""
    return f"{state}(0)"


def state_of(name: str) -> str | None:
    """The state whose initial value has this name; None for other names."""
    return name[:-3] if name.endswith("(0)") else None


def names_met(sources: Iterable[Source], written_out: Mapping[str, Source]) -> dict[str, None]:
    """All names in expressions as first met; what is written out is followed by the names in it."""
    found: dict[str, None] = {}
    stack = [name for source in reversed([*sources]) for name in reversed(source.names())]
    while stack:
        if (name := stack.pop()) in written_out and name not in found:
            stack += reversed(written_out[name].names())
        found[name] = None
    return found


def slope_of(name: str) -> str:
    """The name of the state x' where x'' has an equation."""
    return f"{name}_dot"


def read(text: str, line: int, second_order: Collection[str] = ()) -> Source:
    """The syntax tree of one expression; every way in which Python's parser can fail is an InputError.

    Args:
        text: the expression.
        line: where it stands.
        second_order: the names whose second derivative has an equation, so that x' means a state.
    """
    text = SUPERSCRIPT.sub(lambda m: "**" + unicodedata.normalize("NFKC", m[0]), text).translate(SPELLING).strip()
    primed = rf"(?<!\w)([^\W\d]\w*)[{PRIMES}](?![{PRIMES}])"
    text = re.sub(primed, lambda m: slope_of(m[1]) if m[1] in second_order else m[0], text)
    try:
        if re.search(f'["{PRIMES}\u2033]', text):
            raise SyntaxError("quotes are not allowed in an equation, a prime only marks its left side")
        text = _as_names(text, _OTHER_WORDS)
        try:
            return Source(line, text, _tree(text))
        except SyntaxError:
            if (renamed := _as_names(text, _IN_EXPRESSIONS)) == text:
                raise
            return Source(line, renamed, _tree(renamed))
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError) as error:
        reason = getattr(error, "msg", "not valid text")
        reason = "it is too long or too deep" if isinstance(error, MemoryError | RecursionError) else reason
        hint = _advice(text) or _product(text) or "check names, brackets and operators (products need *)"
        shown = SHORT.repr(text.translate(_BOLD))
        raise InputError(f"line {line}: cannot read {shown}: {reason[:99]}; {hint}") from None


def _tree(text: str) -> ast.expr:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body


def _as_names(text: str, words: Iterable[str]) -> str:
    """The text with some words of Python spelled such that its parser takes them for names."""
    return re.sub(rf"\b({'|'.join(words)})\b", lambda m: chr(ord(m[0][0]) - 97 + 0x1D41A) + m[0][1:], text)


def _advice(text: str) -> str:
    """What to do about slips that are easily told; empty for others."""
    if not text:
        return "a value is missing"
    if text[-1] in "+-*/":
        return f"something is missing after '{'^' if text.endswith('**') else text[-1]}'"
    if re.search(r"(?<![=<>!])=(?!=)", text):
        return "write one statement a line, or ; between them"
    if found := re.search(r"\|([^|]+)\|", text):
        return f"write abs({found[1].strip()[:40]})"
    return ""


def _product(text: str) -> str:
    """What to write instead of a product without its sign, or of a function without brackets."""
    number, name = r"(?<![\w.])(?>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)", r"(?!(?:and|or|not)\b)[^\W\d]\w{0,40}"
    found = re.search(rf"({number})\s*({name})", text) or re.search(rf"\b({name})\s+({name})", text)
    if not found:
        return ""
    call = found[1] in ARITY
    return f"write {found[1][:40]}{'(' if call else '*'}{found[2]}{')' * call}".translate(_BOLD)


def checked_name(text: str, where: str) -> str:
    """A valid name, spelled as Python's parser spells it (NFKC)."""
    # Python also takes marks such as the middle dot for letters, which would make 'a·b' one name.
    if not (re.fullmatch(r"[^\W\d]\w*", text) and text.isidentifier()) or text.startswith("__"):
        raise InputError(f"{where}: {SHORT.repr(text)} is not a name; use letters, digits and underscores")
    if len(text) > MAX_NAME:
        raise InputError(f"{where}: {SHORT.repr(text)} is too long for a name; use at most {MAX_NAME} characters")
    if (text := unicodedata.normalize("NFKC", text)) in RESERVED:
        instead = f"choose another name, or write {text}(...)" if text in ARITY else "choose another name"
        raise InputError(f"{where}: '{text}' is a reserved word; {instead}")
    return text


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

    def whole(self, source: Source) -> int:
        """Translate a whole expression."""
        outer, self.source = self.source, source
        try:
            result = self.translate(source.tree)
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
