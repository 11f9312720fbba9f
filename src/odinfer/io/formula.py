"""Mathematics of SBML and PEtab as expressions of our language, and names that are names in both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from odinfer.errors import InputError
from odinfer.io import libsbml
from odinfer.model.expression import RESERVED

Symbol = Callable[[str], str]  # how what an identifier stands for is written; an expression is in brackets

_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)
_PLAIN = (
    "exp", "abs", "sin", "cos", "tan", "sinh", "cosh", "tanh", "min", "max",
)  # fmt: skip
_OTHER = {  # functions that our language has under another name or not at all
    "ln": "log({})", "floor": "", "ceiling": "", "factorial": "", "arcsin": "asin({})", "arccos": "acos({})",
    "arctan": "atan({})", "sec": "(1/cos({}))", "csc": "(1/sin({}))", "cot": "(1/tan({}))", "sech": "(1/cosh({}))",
    "csch": "(1/sinh({}))", "coth": "(1/tanh({}))", "arcsinh": "log({0} + sqrt(({0})^2 + 1))",
    "arccosh": "log({0} + sqrt(({0})^2 - 1))", "arctanh": "(0.5*log((1 + ({0}))/(1 - ({0}))))",
    "log2": "(log({})/log(2))", "log10": "log10({})", "root": "sqrt({})", "log": "log10({})",
}  # fmt: skip
_COMPARISONS = {"lt": "<", "leq": "<=", "gt": ">", "geq": ">=", "eq": "==", "neq": "!="}


def number(value: float) -> str:
    """A number as it is written, whole ones without a point."""
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
    """Writes syntax trees.

    Args:
        symbol: what identifiers stand for.
        time: how time is written.
        functions: those that a model defines, as trees of lambdas.
        where: the file, for messages.
    """

    def __init__(self, symbol: Symbol, where: str, functions: Mapping[str, Any] | None = None, time: str = "t"):
        self.symbol, self.where, self.functions, self.time = symbol, where, functions or {}, time
        self.lib = libsbml()
        start = "AST_FUNCTION_"
        kinds = [name for name in dir(self.lib) if name.startswith(start)]
        self._words = {getattr(self.lib, name): name.removeprefix(start).lower() for name in kinds}

    def __call__(self, tree: Any) -> str:
        """The expression of a tree."""
        return self._text(tree, {})[0]

    def _text(self, node: Any, bound: Mapping[str, str]) -> tuple[str, int]:
        """An expression and how tightly it holds together."""
        lib, kind = self.lib, node.getType()
        parts = [node.getChild(i) for i in range(node.getNumChildren())]

        def inner(i: int, least: int = _OR) -> str:
            text, level = self._text(parts[i], bound)
            return text if level >= least else f"({text})"

        if node.isNumber() and kind not in (lib.AST_NAME_TIME, lib.AST_NAME_AVOGADRO):
            value = node.getValue()
            if value != value or abs(value) == float("inf"):
                raise self._refused(f"the number {value}")
            return number(value), _ATOM if value >= 0 else _SIGN
        if kind == lib.AST_NAME_TIME:
            return self.time, _ATOM if self.time[0] != "-" else _SIGN
        if kind == lib.AST_NAME_AVOGADRO:
            return "6.02214179e23", _ATOM
        if kind == lib.AST_NAME:
            name = node.getName()
            return bound[name] if name in bound else self.symbol(name), _ATOM
        if kind in (lib.AST_CONSTANT_E, lib.AST_CONSTANT_PI):
            return ("exp(1)" if kind == lib.AST_CONSTANT_E else "pi"), _ATOM
        if kind in (lib.AST_CONSTANT_TRUE, lib.AST_CONSTANT_FALSE):
            return ("0 < 1" if kind == lib.AST_CONSTANT_TRUE else "1 < 0"), _COMPARED
        if kind == lib.AST_PLUS:
            texts = [inner(i, _SUM) for i in range(len(parts))] or ["0"]
            return " + ".join(texts).replace("+ -", "- "), _SUM if len(texts) > 1 else _ATOM * (not parts)
        if kind == lib.AST_TIMES:
            return "*".join(inner(i, _PRODUCT if i == 0 else _POWER) for i in range(len(parts))) or "1", _PRODUCT
        if kind == lib.AST_MINUS:
            if len(parts) == 1:
                return f"-{inner(0, _POWER)}", _PRODUCT
            return f"{inner(0, _SUM)} - {inner(1, _PRODUCT)}", _SUM
        if kind == lib.AST_DIVIDE:
            return f"{inner(0, _PRODUCT)}/{inner(1, _POWER)}", _PRODUCT
        if kind in (lib.AST_POWER, lib.AST_FUNCTION_POWER):
            return f"{inner(0, _ATOM)}^{inner(1, _ATOM)}", _POWER
        if kind in (lib.AST_FUNCTION_ROOT, lib.AST_FUNCTION_LOG) and len(parts) == 2:
            return self._with_base(kind, parts, inner), _ATOM
        if kind == lib.AST_FUNCTION_PIECEWISE:
            return self._piecewise([inner(i) for i in range(len(parts))]), _ATOM
        if kind in (lib.AST_LOGICAL_AND, lib.AST_LOGICAL_OR):
            word, level = ("and", _AND) if kind == lib.AST_LOGICAL_AND else ("or", _OR)
            return f" {word} ".join(inner(i, level + 1) for i in range(len(parts))), level
        if kind == lib.AST_LOGICAL_NOT:
            return f"not {inner(0, _ATOM)}", _NOT
        if kind == lib.AST_LOGICAL_XOR and len(parts) == 2:
            a, b = inner(0, _ATOM), inner(1, _ATOM)
            return f"({a} and not {b}) or (not {a} and {b})", _OR
        name = self._words.get(kind) or node.getName() or ""
        if kind == lib.AST_FUNCTION and name in self.functions:
            return self._called(self.functions[name], [f"({inner(i)})" for i in range(len(parts))])
        if node.isRelational():
            sign = _COMPARISONS[self._relation(kind)]
            return f" {sign} ".join(inner(i, _SUM) for i in range(len(parts))), _COMPARED
        return self._function(kind, name, [inner(i) for i in range(len(parts))]), _ATOM

    def _relation(self, kind: int) -> str:
        return next(name for name in _COMPARISONS if kind == getattr(self.lib, f"AST_RELATIONAL_{name.upper()}"))

    def _with_base(self, kind: int, parts: list[Any], inner: Callable[..., str]) -> str:
        """A root with its degree, or a logarithm with its base."""
        if kind == self.lib.AST_FUNCTION_ROOT:
            return f"sqrt({inner(1)})" if inner(0) == "2" else f"({inner(1, _ATOM)}^(1/{inner(0, _ATOM)}))"
        return f"log10({inner(1)})" if inner(0) == "10" else f"(log({inner(1)})/log({inner(0)}))"

    def _piecewise(self, texts: list[str]) -> str:
        if len(texts) % 2 == 0:
            raise self._refused("a piecewise expression without 'otherwise'")
        return texts[0] if len(texts) == 1 else f"piecewise({', '.join(texts)})"

    def _function(self, kind: int, name: str, texts: list[str]) -> str:
        word = name.lower()
        if word in _PLAIN:
            return texts[0] if len(texts) == 1 and word in ("min", "max") else f"{word}({', '.join(texts)})"
        if _OTHER.get(word) and len(texts) == 1:
            return _OTHER[word].format(texts[0])
        if kind == self.lib.AST_FUNCTION_DELAY:
            raise self._refused("a delay")
        if kind == self.lib.AST_FUNCTION and word == "pow" and len(texts) == 2:
            return f"({texts[0]})^({texts[1]})"
        raise self._refused(f"the function '{name}'")

    def _called(self, function: Any, arguments: list[str]) -> tuple[str, int]:
        """A function that the model defines, written out."""
        count = function.getNumChildren() - 1
        if count != len(arguments):
            raise self._refused("a function with a wrong number of arguments")
        names = [function.getChild(i).getName() for i in range(count)]
        return f"({self._text(function.getChild(count), dict(zip(names, arguments, strict=True)))[0]})", _ATOM

    def _refused(self, what: str) -> InputError:
        return InputError(f"{self.where}: {what} cannot be written in our language; replace it in the model")
