"""Write expressions of the model language as formulas of SBML and PEtab, with valid identifiers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from odinfer.io.formula import number

Code = Sequence[tuple[str, tuple[Any, ...]]]

_SIGNS = {op: f"({{}} {op} {{}})" for op in ("+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=")}
_FORMS = _SIGNS | {
    "pow": "({})^({})", "neg": "(-{})", "and": "({} && {})", "or": "({} || {})", "not": "(!({}))",
    "where": "piecewise({1}, {0}, {2})", "min": "piecewise({0}, {0} < {1}, {1})", "log": "ln({})",
    "ceil": "ceil({})", "asinh": "arcsinh({})", "acosh": "arccosh({})", "atanh": "arctanh({})",
    "max": "piecewise({0}, {0} > {1}, {1})", "sign": "piecewise(1, {0} > 0, piecewise(-1, {0} < 0, 0))",
}  # fmt: skip
_TAKEN = {"time", "pi", "avogadro", "true", "false", "infinity", "inf", "nan", "exponentiale", "e", "t"}


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Our names, such as "k[dry]" or "x(0)", to identifiers of SBML, all different."""
    found: dict[str, str] = {}
    taken = {*_TAKEN}
    for name in names:
        plain = unicodedata.normalize("NFKD", name).replace("(0)", "_0")
        own = re.sub(r"_*[^A-Za-z0-9_]+", "_", plain).strip("_") or "name"
        own = own if not own[0].isdigit() else f"_{own}"
        while own.lower() in taken:
            own += "_"
        taken.add(own.lower())
        found[name] = own
    return found


class Infix:
    """Formulas of the instructions of a program.

    Args:
        code: the instructions.
        symbol: how a name is written.
        shared: instructions that are written by a name, unless they are asked for themselves.
    """

    def __init__(self, code: Code, symbol: Callable[[str], str], shared: Mapping[int, str]) -> None:
        self.code, self.symbol, self.shared = code, symbol, shared

    def __call__(self, i: int, itself: bool = True) -> str:
        """The formula of an instruction."""
        if not itself and i in self.shared:
            return self.shared[i]
        op, args = self.code[i]
        if op == "name":
            return self.symbol(args[0])
        if op == "number":
            return number(args[0]) if args[0] >= 0 else f"({number(args[0])})"
        if op == "truth":
            return "true" if args[0] else "false"
        parts = [self(j, itself=False) for j in args]
        return _FORMS[op].format(*parts) if op in _FORMS else f"{op}({', '.join(parts)})"
