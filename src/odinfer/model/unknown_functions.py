"""Unknown functions in equations: `y' = -k*x + ?(x)`, estimated together with the parameters.

    y' = -k*x + ?(x, y)     # an unknown function of states, inputs, definitions or t
    b = ?beta(t)            # with a name, if there are several of the same arguments
    ?(x) >= 0               # shapes: >= 0, increasing, decreasing, periodic 24
    ?(x) from 0 to 12       # where it varies; beyond, it keeps its last value. The range of the data if not given
    ?(x) basis 20           # basis functions; by the number of observations if not given
    ?(x) ~ gp(2, 0.5)       # standard deviation and length (a share of the range); by marginal likelihood if not given

A function becomes a definition that is a sum of basis functions with coefficients that are parameters with normal
priors, so that everything else is the same as for other models. The basis is the Hilbert-space approximation of a
Gaussian process with a Matérn 3/2 kernel (Solin and Särkkä 2020): sines on a range a quarter wider than the data's.
Functions `>= 0` are exponentials of such sums. Monotone ones have positive coefficients of smooth steps, which rise
from a constant, or fall to one; the constant is positive if they are `>= 0`, and the length has no part in them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from odinfer.errors import InputError
from odinfer.model.edit import unused_name
from odinfer.model.expression import SHORT

_CALL = re.compile(r"\?\s*([^\W\d]\w*)?\s*\(([^()]*)\)")
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_WIDER = 1.25  # half-width of the basis in half-widths of the range, so that functions are free at its ends
_BASIS = {1: 12, 2: 4}  # basis functions along each of one or two arguments
MOST_BASIS = 100
_STEPS = 8  # of monotone functions
_RISE = math.sqrt(12)  # of a function that rises evenly, in its standard deviations
_HARMONICS = 5  # of periodic ones
_NU = 1.5  # smoothness of the Matérn kernel
_MEAN = 3.0  # sd of a function's mean, in sd of the function
SHAPES = (">= 0", "increasing", "decreasing", "periodic")


@dataclass(frozen=True)
class UnknownFunction:
    """A function that the text does not give.

    Attributes:
        label: as it is written without blanks, such as "?(x)" or "?beta(t)".
        arguments: names.
        definition: the name of the definition that it becomes.
        shapes: those of `SHAPES` that it has.
        period: of a periodic function.
        domain: (low, high) of each argument; empty until it is known.
        scale: standard deviation and length as a share of the range; None until they are known.
        basis: sines along each argument; `_BASIS` if not known. Monotone and periodic functions have none.
        line: where it is met first.
    """

    label: str
    arguments: tuple[str, ...]
    definition: str
    shapes: tuple[str, ...] = ()
    period: float | None = None
    domain: tuple[tuple[float, float], ...] = ()
    scale: tuple[float, float] | None = None
    basis: int | None = None
    line: int = 1

    @property
    def monotone(self) -> bool:
        return "increasing" in self.shapes or "decreasing" in self.shapes

    @property
    def positive(self) -> bool:
        return ">= 0" in self.shapes

    @property
    def order(self) -> int:
        """The number of sines along each argument."""
        return self.basis or _BASIS[len(self.arguments)]

    @property
    def mean(self) -> str:
        """The name of the parameter that is the mean or its logarithm; of monotone functions, a lower bound."""
        return f"{self.definition}_w0"

    @property
    def coefficients(self) -> tuple[str, ...]:
        """The names of the parameters with priors of the chosen scale."""
        return tuple(f"{self.definition}_w{j + 1}" for j in range(len(self._weights((1.0, 1.0)))))

    @property
    def parameters(self) -> tuple[str, ...]:
        return (self.mean, *self.coefficients)

    def priors(self, scale: tuple[float, float]) -> dict[str, float]:
        """Parameter → standard deviation of its normal prior about zero.

        The mean of a function that is `>= 0` or monotone has no prior.

        Args:
            scale: standard deviation and length.
        """
        own = {} if self.monotone or self.positive else {self.mean: _MEAN * scale[0]}
        return own | dict(zip(self.coefficients, self._weights(scale), strict=True))

    def statements(self) -> list[str]:
        """The definition and the declarations that the function becomes."""
        inner = " + ".join([self.mean, *map("{}*{}".format, self.coefficients, self._basis())])
        exponential = self.positive and not self.monotone
        lines = [f"{self.definition} = exp({inner})" if exponential else f"{self.definition} = {inner}"]
        lines += [f"real {', '.join(self.parameters)}", *(f"start {name} = 0" for name in self.parameters)]
        if self.monotone:
            lines += [f"{name} >= 0" for name in (self.parameters if self.positive else self.coefficients)]
        priors = self.priors(self.scale or (1.0, 0.5))
        return [*lines, *(f"{name} ~ normal(0, {sd!r})" for name, sd in priors.items())]

    @property
    def unresolved_variance(self) -> float:
        """The variance of the Gaussian process at frequencies above those of the basis."""
        if self.monotone or self.period is not None or self.scale is None:
            return 0.0
        sd, length = self.scale
        d = len(self.arguments)
        ratio = self.order * math.pi / (2 * _WIDER) * 2.0 * length / math.sqrt(2 * _NU)  # of the highest frequency to κ
        below = 2.0 / math.pi * (math.atan(ratio) + ratio / (1.0 + ratio**2)) if d == 1 else 1 - (1 + ratio**2) ** -_NU
        return sd**2 * (1.0 - below)

    def _scale_arguments(self) -> list[str]:
        """The arguments on −1 to 1, held there outside the range."""
        found = []
        for name, (low, high) in zip(self.arguments, self.domain or ((0.0, 1.0),) * len(self.arguments), strict=True):
            centre, half = 0.5 * (low + high), 0.5 * (high - low)
            found.append(f"max(-1, min(1, ({name} - ({centre!r}))/{half!r}))")
        return found

    def _basis(self) -> list[str]:
        if self.period is not None:
            angle = f"{2 * math.pi / self.period!r}*{self.arguments[0]}"
            return [f"{f}({j}*({angle}))" for j in range(1, _HARMONICS + 1) for f in ("sin", "cos")]
        scaled = self._scale_arguments()
        if self.monotone:
            # Smooth steps 3h² − 2h³ that begin at evenly spaced places and overlap with their neighbours.
            width = 2.0 / (_STEPS - 1) * 2.0
            found = []
            for j in range(_STEPS):
                begin = -1.0 - 0.5 * width + j * (2.0 / (_STEPS - 1))
                h = f"max(0, min(1, ({scaled[0]} - ({begin!r}))/{width!r}))"
                step = f"{h}^2*(3 - 2*{h})"
                found.append(f"(1 - {step})" if "decreasing" in self.shapes else step)
            return found
        sines = [
            [f"sin({j * math.pi / (2 * _WIDER)!r}*({z} + {_WIDER}))" for j in range(1, self.order + 1)] for z in scaled
        ]
        return ["*".join(s[j - 1] for s, j in zip(sines, own, strict=True)) for own in self._orders()]

    def _orders(self) -> list[tuple[int, ...]]:
        """The orders of the sines in every basis function; of two arguments, only those of low total order."""
        most = self.order
        every = itertools.product(range(1, most + 1), repeat=len(self.arguments))
        return [own for own in every if sum(own) <= most + len(own) - 1]

    def _weights(self, scale: tuple[float, float]) -> tuple[float, ...]:
        sd, length = scale
        if self.monotone:
            return (_RISE * sd / _STEPS,) * _STEPS
        if self.period is not None:
            omega = [2 * math.pi * j for j in range(1, _HARMONICS + 1) for _ in range(2)]
            density = [_matern(length, (w,)) for w in omega]
            total = sum(density) / 2
            return tuple(sd * math.sqrt(d / total) for d in density)
        frequencies = [[j * math.pi / (2 * _WIDER) for j in own] for own in self._orders()]
        norm = (1.0 / _WIDER) ** (0.5 * len(self.arguments))
        # Lengths are shares of the range, which is 2 on the scale of −1 to 1.
        return tuple(sd * norm * math.sqrt(_matern(2.0 * length, w)) for w in frequencies)


def _matern(length: float, omega: Sequence[float]) -> float:
    """The spectral density of a Matérn process of unit variance in one or two dimensions."""
    d, nu = len(omega), _NU
    kappa = 2 * nu / length**2
    constant = (2 * math.sqrt(math.pi)) ** d * math.gamma(nu + 0.5 * d) / math.gamma(nu) * kappa**nu
    return float(constant * (kappa + sum(w * w for w in omega)) ** (-nu - 0.5 * d))


def expand(text: str) -> tuple[str, tuple[UnknownFunction, ...]]:
    """Replace unknown functions by definitions.

    Returns:
        The text without them, with further statements at its end; and the functions.

    Raises:
        InputError: a function or what is said about it cannot be read.
    """
    if not isinstance(text, str) or "?" not in text:
        return text, ()
    found: dict[str, UnknownFunction] = {}
    lines, assertions = [], list[tuple[int, str, str]]()
    taken = {*re.findall(r"\w+", text)}
    for number, line in enumerate(re.split(r"\r\n?|\n", text), 1):
        body, hash_, comment = line.partition("#")
        pieces = []
        for piece in body.split(";"):
            match = _CALL.match(piece.strip())
            if match:
                assertions.append((number, _label(match), piece.strip()[match.end() :].strip()))
                pieces.append("")
                continue

            def replaced(own: re.Match[str], number: int = number) -> str:
                label = _label(own)
                if label not in found:
                    found[label] = _function(label, own, number, taken)
                    taken.add(found[label].definition)
                return found[label].definition

            piece = _CALL.sub(replaced, piece)
            if "?" in piece:
                problem = "has a ? that is no unknown function; write ?(x), or ?name(x, y), of names"
                raise InputError(f"line {number}: {SHORT.repr(piece.strip())} {problem}")
            pieces.append(piece)
        lines.append(";".join(pieces) + hash_ + comment)
    for number, label, words in assertions:
        if label not in found:
            raise InputError(f"line {number}: no equation has {label}; use it there, or leave the line out")
        found[label] = _apply_statement(found[label], words, number)
    functions = tuple(found.values())
    return "\n".join([*lines, *(line for own in functions for line in own.statements())]), functions


def _label(match: re.Match[str]) -> str:
    return f"?{match[1] or ''}({','.join(part.strip() for part in match[2].split(','))})".replace(",", ", ")


def _function(label: str, match: re.Match[str], line: int, taken: set[str]) -> UnknownFunction:
    arguments = tuple(part.strip() for part in match[2].split(","))
    for name in arguments:
        if not re.fullmatch(r"[^\W\d]\w*", name):
            remedy = "define it first, such as total = x + y, and write ?(total)"
            raise InputError(f"line {line}: {label} takes names, and {SHORT.repr(name)} is none; {remedy}")
    if len(arguments) > max(_BASIS):
        raise InputError(f"line {line}: {label} has {len(arguments)} arguments; an unknown function has one or two")
    name = f"unknown_{match[1]}" if match[1] else "unknown"
    return UnknownFunction(label, arguments, unused_name(name, taken), line=line)


def _apply_statement(own: UnknownFunction, words: str, line: int) -> UnknownFunction:
    """The function with one statement about it."""
    start = f"line {line}: {own.label}"
    if match := re.fullmatch(rf"~\s*gp\(\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\)", words):
        scale = float(match[1]), float(match[2])
        if min(scale) <= 0:
            raise InputError(f"{start} ~ gp(sd, length) takes positive numbers; length is a share of the range")
        return replace(own, scale=scale)
    if match := re.fullmatch(r"basis\s+(\d+)", words):
        if not 1 <= int(match[1]) <= MOST_BASIS:
            raise InputError(f"{start} basis takes a number from 1 to {MOST_BASIS}, not {match[1]}")
        return replace(own, basis=int(match[1]))
    several = rf"({_NUMBER}(?:\s*,\s*{_NUMBER})*)"
    if match := re.fullmatch(rf"from\s+{several}\s+to\s+{several}", words):
        low, high = ([float(v) for v in part.split(",")] for part in match.groups())
        if not len(low) == len(high) == len(own.arguments):
            raise InputError(f"{start} has {len(own.arguments)} arguments; write from LOW to HIGH for each, by commas")
        if not all(a < b for a, b in zip(low, high, strict=True)):
            raise InputError(f"{start} from LOW to HIGH needs low < high")
        return replace(own, domain=tuple(zip(low, high, strict=True)))
    shapes, period = list(own.shapes), own.period
    rest = words
    while rest:
        match = re.match(rf">=?\s*0(?![\d.])|increasing|decreasing|periodic\s+({_NUMBER})", rest)
        if not match:
            problem = "write >= 0, increasing, decreasing, periodic 24, from 0 to 10, basis 20 or ~ gp(sd, length)"
            raise InputError(f"{start}: cannot read {SHORT.repr(rest)}; {problem}")
        shape = match[0].split()[0]
        shapes.append(">= 0" if shape.startswith(">") else shape)
        period = float(match[1]) if match[1] else period
        rest = rest[match.end() :].strip(" ,")
    if not words:
        raise InputError(f"{start} says nothing; write a shape such as >= 0 after it")
    made = replace(own, shapes=tuple(dict.fromkeys(shapes)), period=period)
    if len(own.arguments) > 1 and (made.monotone or period is not None):
        raise InputError(f"{start}: only functions of one argument can be monotone or periodic")
    if made.monotone and (period is not None or {"increasing", "decreasing"} <= {*made.shapes}):
        raise InputError(f"{start}: a function cannot be {' and '.join(made.shapes)}; keep one of the two")
    if period is not None and period <= 0:
        raise InputError(f"{start}: a period must be positive, not {period:g}")
    return made
