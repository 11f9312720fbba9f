"""An expression as text and syntax tree, with its spelling and names.

The text is parsed by Python's own parser and never run. What the nodes of the tree mean is in `program.py`.
"""

import ast
import keyword
import re
import reprlib
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from odinfer.errors import InputError

MAX_CHARACTERS, MAX_NAME = 100_000, 200
ARITY = dict.fromkeys(("exp", "log", "ln", "log10", "sqrt", "abs", "sign", "sin", "cos", "tan"), range(1, 2))
ARITY |= dict.fromkeys(("asin", "acos", "atan", "sinh", "cosh", "tanh"), range(1, 2))
ARITY |= dict.fromkeys(("asinh", "acosh", "atanh", "floor", "ceil"), range(1, 2))
ARITY |= {"pow": range(2, 3), "min": range(2, MAX_CHARACTERS), "max": range(2, MAX_CHARACTERS)}
ARITY |= {"hill": range(3, 4), "where": range(3, 4), "piecewise": range(3, MAX_CHARACTERS, 2)}
KEYWORDS = ("input", "fixed", "start", "log", "linear")
RESERVED = {"t", "dt", "pi", *ARITY, *KEYWORDS, "and", "or", "not", "True", "False", "None"}
DASHES, DOTS, PRIMES = "\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d", "\u00b7\u22c5\u2219\u00d7", "'\u2019\u2032"
SPELLING = str.maketrans({"^": "**"} | dict.fromkeys(DASHES, "-") | dict.fromkeys(DOTS, "*"))
SUPERSCRIPT = re.compile("\u207b?[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+")
SHORT = reprlib.Repr()  # for pieces of the user's text in messages of one line
SHORT.maxstring = 60

# Words of Python are names here. Those of its expressions are tried as such first, to be refused as what they are.
_IN_EXPRESSIONS = {"if", "else", "for", "in", "is", "lambda"}
_OTHER_WORDS = {*keyword.kwlist} - RESERVED - _IN_EXPRESSIONS
_BOLD = {0x1D41A + i: chr(97 + i) for i in range(26)}  # which Python's parser takes for the plain letters, in names


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
