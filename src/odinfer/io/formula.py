"""Translate formulas of SBML and PEtab to expressions of the model language, with valid names."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from odinfer.errors import InputError
from odinfer.io import libsbml
from odinfer.model.expression import MAX_CHARACTERS, RESERVED
from odinfer.model.program import constant

Symbol = Callable[[str], str]  # how what an identifier stands for is written; an expression is in brackets

_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)
_PLAIN = (
    "exp", "abs", "sin", "cos", "tan", "sinh", "cosh", "tanh", "min", "max", "floor",
)  # fmt: skip
_OTHER = {  # functions that our language has under another name or not at all
    "ln": "log({})", "ceiling": "ceil({})", "ceil": "ceil({})", "arcsin": "asin({})", "arccos": "acos({})",
    "arctan": "atan({})", "sec": "(1/cos({}))", "csc": "(1/sin({}))", "cot": "(1/tan({}))", "sech": "(1/cosh({}))",
    "csch": "(1/sinh({}))", "coth": "(1/tanh({}))", "arcsinh": "asinh({})", "arccosh": "acosh({})",
    "arctanh": "atanh({})", "arcsec": "acos(1/({}))", "arccsc": "asin(1/({}))", "arccot": "atan(1/({}))",
    "arcsech": "acosh(1/({}))", "arccsch": "asinh(1/({}))", "arccoth": "atanh(1/({}))",
    "log2": "(log({})/log(2))", "log10": "log10({})", "root": "sqrt({})", "sqrt": "sqrt({})", "log": "log10({})",
    "sqr": "({})^2",
}  # fmt: skip
_COMPARISONS = {"lt": "<", "leq": "<=", "gt": ">", "geq": ">=", "eq": "==", "neq": "!="}
_MOST_NODES = 100_000  # of an expression once function calls are written out
_MOST_FACTORIAL = 170  # the factorial of more is no 64-bit float


def number(value: float) -> str:
    """A number as it is written, whole ones without a point.

    Raises:
        InputError: it is not finite.
    """
    if not math.isfinite(value):
        raise InputError(f"the value {value} cannot be used; give a finite number")
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def named(names: Collection[str]) -> dict[str, str]:
    """Identifiers to names of our language: those that have a meaning there get a trailing underscore."""
    taken, found = {*names}, {}
    for name in names:
        own = name
        while (
            own in RESERVED or own in ("time", "experiment") or own.startswith("__") or (own != name and own in taken)
        ):
            own = f"v{own}" if own.startswith("__") else f"{own}_"
        taken.add(own)
        found[name] = own
    return found


def parsed(text: str, where: str) -> Any:
    """The syntax tree of a formula of PEtab."""
    lib = libsbml()
    settings = lib.L3ParserSettings()
    settings.setParseLog(lib.L3P_PARSE_LOG_AS_LN)
    settings.setComparisonCaseSensitivity(lib.L3P_COMPARE_BUILTINS_CASE_SENSITIVE)
    tree = lib.parseL3FormulaWithSettings(str(text), settings)
    if tree is None:
        reason = lib.getLastParseL3Error().strip().splitlines()
        raise InputError(f"{where}: cannot read the formula {str(text)[:60]!r}: {reason[-1][:100] if reason else ''}")
    return tree


class Writer:
    """Write syntax trees of libsbml as expressions of the model language.

    Numbers where a condition is needed count as true unless they are 0; conditions where a number is needed are 1 or 0.

    Args:
        symbol: what identifiers stand for.
        where: the file, for messages.
        functions: those that a model defines, as trees of lambdas.
        time: how time is written.
        rate_of: how the time derivative of an identifier is written; None if there is none.
        inequalities: write `a <= b and a >= b` for `a == b`, as conditions of events need it.
    """

    def __init__(
        self,
        symbol: Symbol,
        where: str,
        functions: Mapping[str, Any] | None = None,
        time: str = "t",
        rate_of: Symbol | None = None,
        inequalities: bool = False,
    ) -> None:
        self.symbol, self.where, self.functions, self.time = symbol, where, functions or {}, time
        self.rate_of, self.inequalities = rate_of, inequalities
        self.lib = libsbml()
        self._words = _function_words()
        self._nodes = 0  # written so far in the expression at hand

    def __call__(self, tree: Any) -> str:
        """The number that a tree stands for."""
        return self._whole(tree, _number)

    def condition(self, tree: Any) -> str:
        """The condition that a tree stands for."""
        return self._whole(tree, self._condition)

    def _whole(self, tree: Any, form: Callable[[Written], Written]) -> str:
        try:
            text = form(self._text(tree, {})).text
        except RecursionError:
            raise InputError(f"{self.where}: an expression is nested too deeply or calls itself; simplify it") from None
        self._nodes = 0
        return self._checked(text)

    def _checked(self, text: str) -> str:
        if len(text) > MAX_CHARACTERS:
            raise InputError(f"{self.where}: an expression has more than {MAX_CHARACTERS} characters; simplify it")
        return text

    def _condition(self, written: Written) -> Written:
        if written.level < _SUM:
            return written
        own = written.bracketed(_SUM)
        return Written(f"{own} < 0 or {own} > 0", _OR) if self.inequalities else Written(f"{own} != 0", _COMPARED)

    def _text(self, node: Any, bound: Mapping[str, Written]) -> Written:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            self._nodes = 0
            raise InputError(f"{self.where}: an expression has more than {_MOST_NODES} parts when written out")
        if node is None:
            raise self._refuse("a part of an expression that is missing")
        lib, kind = self.lib, node.getType()
        if (leaf := self._leaf(node, kind, bound)) is not None:
            return leaf
        parts = [node.getChild(i) for i in range(node.getNumChildren())]
        if kind == lib.AST_FUNCTION_RATE_OF:
            if self.rate_of is None or len(parts) != 1 or parts[0].getType() != lib.AST_NAME:
                raise self._refuse("the rate of what is no quantity of the model")
            return Written(self.rate_of(parts[0].getName()), _ATOM)
        if kind == lib.AST_FUNCTION_DELAY:
            raise self._refuse("a delay")
        every = [self._text(part, bound) for part in parts]
        if kind == lib.AST_FUNCTION and (node.getName() or "") in self.functions:
            return self._call(self.functions[node.getName()], every, node.getName())
        if kind == lib.AST_FUNCTION_PIECEWISE:
            return self._piecewise(every)
        if node.isLogical() or kind == lib.AST_LOGICAL_IMPLIES:
            return self._logical(kind, [self._condition(own) for own in every])
        numbers = [_number(own) for own in every]
        if node.isRelational():
            return self._relation(kind, numbers)
        if (found := self._arithmetic(kind, numbers)) is not None:
            return found
        name = self._words.get(kind) or node.getName() or ""
        return Written(self._function(kind, name, numbers), _ATOM)

    def _leaf(self, node: Any, kind: int, bound: Mapping[str, Written]) -> Written | None:
        lib = self.lib
        if kind == lib.AST_NAME_TIME:
            return Written(self.time, _ATOM if self.time[0] != "-" else _SIGN)
        if kind == lib.AST_NAME_AVOGADRO:
            return Written("6.02214179e23", _ATOM)
        if kind == lib.AST_NAME:
            name = node.getName()
            return bound[name] if name in bound else Written(self.symbol(name), _ATOM)
        if kind in (lib.AST_CONSTANT_E, lib.AST_CONSTANT_PI):
            return Written("exp(1)" if kind == lib.AST_CONSTANT_E else "pi", _ATOM)
        if kind in (lib.AST_CONSTANT_TRUE, lib.AST_CONSTANT_FALSE):
            return Written("0 < 1" if kind == lib.AST_CONSTANT_TRUE else "1 < 0", _COMPARED)
        if node.isNumber():
            value = node.getValue()
            if value != value or abs(value) == float("inf"):
                raise self._refuse(f"the number {value}")
            return Written(number(value), _ATOM if value >= 0 else _SIGN)
        return None

    def _arithmetic(self, kind: int, parts: list[Written]) -> Written | None:
        lib = self.lib
        if kind == lib.AST_PLUS:
            texts = [own.bracketed(_SUM) for own in parts] or ["0"]
            return parts[0] if len(parts) == 1 else Written(" + ".join(texts).replace("+ -", "- "), _SUM)
        if kind == lib.AST_TIMES:
            texts = [own.bracketed(_PRODUCT if i == 0 else _POWER) for i, own in enumerate(parts)]
            return parts[0] if len(parts) == 1 else Written("*".join(texts) or "1", _PRODUCT)
        if kind == lib.AST_MINUS and len(parts) == 1:
            return Written(f"-{parts[0].bracketed(_POWER)}", _PRODUCT)
        if len(parts) != 2:
            return None
        a, b = parts
        if kind == lib.AST_MINUS:
            return Written(f"{a.bracketed(_SUM)} - {b.bracketed(_PRODUCT)}", _SUM)
        if kind == lib.AST_DIVIDE:
            return Written(f"{a.bracketed(_PRODUCT)}/{b.bracketed(_POWER)}", _PRODUCT)
        if kind in (lib.AST_POWER, lib.AST_FUNCTION_POWER):
            return Written(f"{a.bracketed(_ATOM)}^{b.bracketed(_ATOM)}", _POWER)
        if kind == lib.AST_FUNCTION_ROOT:
            return Written(
                f"sqrt({b.text})" if a.text == "2" else f"({b.bracketed(_ATOM)}^(1/{a.bracketed(_ATOM)}))", _ATOM
            )
        if kind == lib.AST_FUNCTION_LOG:
            return Written(f"log10({b.text})" if a.text == "10" else f"(log({b.text})/log({a.text}))", _ATOM)
        if kind in (lib.AST_FUNCTION_QUOTIENT, lib.AST_FUNCTION_REM):
            ratio = f"{a.bracketed(_PRODUCT)}/{b.bracketed(_POWER)}"
            whole = Written(f"sign({ratio})*floor(abs({ratio}))", _PRODUCT)
            if kind == lib.AST_FUNCTION_QUOTIENT:
                return whole
            return Written(f"({a.bracketed(_SUM)} - {b.bracketed(_POWER)}*{whole.text})", _ATOM)
        return None

    def _logical(self, kind: int, parts: list[Written]) -> Written:
        lib = self.lib
        if kind == lib.AST_LOGICAL_NOT and len(parts) == 1:
            return Written(f"not {parts[0].bracketed(_ATOM)}", _NOT)
        if kind == lib.AST_LOGICAL_IMPLIES and len(parts) == 2:
            return Written(f"not {parts[0].bracketed(_ATOM)} or {parts[1].bracketed(_AND)}", _OR)
        if kind in (lib.AST_LOGICAL_AND, lib.AST_LOGICAL_OR):
            word, level = ("and", _AND) if kind == lib.AST_LOGICAL_AND else ("or", _OR)
            if not parts:
                return Written("0 < 1" if level == _AND else "1 < 0", _COMPARED)
            return (
                parts[0] if len(parts) == 1 else Written(f" {word} ".join(p.bracketed(level + 1) for p in parts), level)
            )
        if kind == lib.AST_LOGICAL_XOR:
            if not parts:
                return Written("1 < 0", _COMPARED)
            found = parts[0]
            for part in parts[1:]:
                ones = _number(found).text, _number(part).text
                found = Written(f"abs({ones[0]} - {ones[1]}) > 0", _COMPARED)
            return found
        raise self._refuse("a logical expression with a wrong number of arguments")

    def _relation(self, kind: int, parts: list[Written]) -> Written:
        name = next(name for name in _COMPARISONS if kind == getattr(self.lib, f"AST_RELATIONAL_{name.upper()}"))
        texts = [own.bracketed(_SUM) for own in parts]
        if len(texts) < 2:
            return Written("0 < 1", _COMPARED)
        if self.inequalities and name == "eq":
            return Written(" and ".join(f"{a} <= {b} and {a} >= {b}" for a, b in itertools.pairwise(texts)), _AND)
        if self.inequalities and name == "neq":
            return Written(f"{texts[0]} < {texts[1]} or {texts[0]} > {texts[1]}", _OR)
        return Written(f" {_COMPARISONS[name]} ".join(texts), _COMPARED)

    def _piecewise(self, parts: list[Written]) -> Written:
        """A piecewise expression; it is 0 where no condition holds and nothing else is said."""
        values = [_number(own).text for own in parts[0::2]]
        conditions = [self._condition(own).text for own in parts[1::2]]
        if len(values) == len(conditions):
            values.append("0")
        if not conditions:
            return _number(parts[0]) if parts else Written("0", _ATOM)
        pieces = ", ".join(f"{v}, {c}" for v, c in zip(values, conditions, strict=False))
        return Written(self._checked(f"piecewise({pieces}, {values[-1]})"), _ATOM)

    def _function(self, kind: int, name: str, parts: list[Written]) -> str:
        word, texts = name.lower(), [own.text for own in parts]
        if word in _PLAIN and texts:
            return texts[0] if len(texts) == 1 and word in ("min", "max") else f"{word}({', '.join(texts)})"
        if word in _OTHER and len(texts) == 1:
            return self._checked(_OTHER[word].format(texts[0]))
        if word == "factorial" and len(texts) == 1:
            return self._factorial(texts[0])
        if kind == self.lib.AST_FUNCTION and word == "pow" and len(texts) == 2:
            return f"({texts[0]})^({texts[1]})"
        raise self._refuse(f"the function '{name}'")

    def _factorial(self, text: str) -> str:
        """The factorial of a constant."""
        try:
            value = constant(text, 1)
        except InputError:
            raise self._refuse("the factorial of what is no number") from None
        if value != int(value) or not 0 <= value <= _MOST_FACTORIAL:
            raise self._refuse(f"the factorial of {value:g}")
        return number(math.factorial(int(value)))

    def _call(self, function: Any, arguments: list[Written], name: str) -> Written:
        """A function that the model defines, written out."""
        count = -1 if function is None else function.getNumChildren() - 1
        if count != len(arguments):
            raise self._refuse(f"the function '{name}' with a wrong number of arguments")
        names = [function.getChild(i).getName() for i in range(count)]
        given = {n: Written(f"({own.text})", min(own.level, _COMPARED) if own.level < _SUM else _ATOM)
                 for n, own in zip(names, arguments, strict=True)}  # fmt: skip
        body = self._text(function.getChild(count), given)
        return body if body.level < _SUM else Written(self._checked(f"({body.text})"), _ATOM)

    def _refuse(self, what: str) -> InputError:
        return InputError(f"{self.where}: {what} cannot be written in our language; replace it in the model")


class Written(NamedTuple):
    """An expression and how tightly it holds together; below `_SUM` it is a condition."""

    text: str
    level: int

    def bracketed(self, least: int) -> str:
        """The text, in brackets where it holds together less tightly."""
        return self.text if self.level >= least else f"({self.text})"


def _number(written: Written) -> Written:
    return written if written.level >= _SUM else Written(f"where({written.text}, 1, 0)", _ATOM)


@functools.cache
def _function_words() -> dict[int, str]:
    """The kinds of nodes that are functions, with their names."""
    lib, start = libsbml(), "AST_FUNCTION_"
    return {getattr(lib, name): name.removeprefix(start).lower() for name in dir(lib) if name.startswith(start)}
