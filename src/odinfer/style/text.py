"""Text tables and number formats, without control characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TEXT_COLUMNS = ("verdict", "distribution", "parameter", "model")  # columns of tables that hold words
_MOST_DIGITS = 10  # of a number beside its error
_FAR_BELOW = 3  # powers of ten from the last digit that an error allows to that of an estimate
_LARGE, _SMALL = 6, -3  # powers of ten from which, and below which, numbers beside their errors have exponents


@dataclass(frozen=True)
class TextTable:
    """Cells of text: the first column names things, the others are numbers or words about them."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> list[str]:
        """As lines of text, names and words to the left, numbers to the right."""
        left = [i == 0 or title in TEXT_COLUMNS for i, title in enumerate(self.header)]
        most = [24 if words else 36 for words in left]
        cells = [[printable(*cell) for cell in zip(row, most, strict=True)] for row in (self.header, *self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.header))]
        lines = [
            "  ".join(
                c.ljust(w) if to_left else c.rjust(w) for c, w, to_left in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in cells
        ]
        return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def format_number(value: float, digits: int = 5) -> str:
    """A number for people: so many digits, exponents without padding, a dash where there is none."""
    mantissa, e, exponent = f"{value + 0.0:.{digits}g}".partition("e")
    return "-" if math.isnan(value) else mantissa + e + str(int(exponent)) if e else mantissa


def format_with_error(values: Sequence[float], error: float, digits: int = 2) -> list[str]:
    """Numbers that belong together, all to the place at which their error has so many digits.

    Args:
        values: the first is an estimate, of which two digits are kept in any case; others may be infinite or NaN. Each
            has its own digits where the estimate is far below its error.
        error: of the estimate; each number has its own five digits where it is not known.
    """
    finite = [abs(v) for v in values if math.isfinite(v) and v]
    if not finite or not 0 < error < math.inf or not math.isfinite(values[0]):
        return [format_number(v) for v in values]
    place = math.floor(math.log10(error)) - digits + 1
    least = math.floor(math.log10(abs(values[0]))) if values[0] else place + 1
    if least - 1 < place - _FAR_BELOW:
        return [format_number(v, digits) for v in values]
    place = max(min(place, least - 1), least - _MOST_DIGITS)
    top = math.floor(math.log10(max(finite)))
    if top - place > _MOST_DIGITS:  # then the estimate would have no digits left
        top = max(least, math.floor(math.log10(error)))
    power = max(top, -300) if top >= _LARGE or top < _SMALL else 0
    decimals = min(max(power - place, 0), _MOST_DIGITS)
    return [_format_fixed(v, power, decimals) for v in values]


def _format_fixed(value: float, power: int, decimals: int) -> str:
    if not math.isfinite(value):
        return format_number(value)
    text = f"{value / 10.0**power if power > -300 else value * 10.0**-power:.{decimals}f}"
    text = text.lstrip("-") if not float(text) else text  # no minus zero
    return f"{text}e{power}" if power else text


def format_duration(seconds: float) -> str:
    """A time span for people: two digits or so, in seconds, minutes or hours."""
    if not seconds >= 1:
        return f"{format_number(seconds, 2)} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{format_number(seconds, 2)} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def printable(text: str, most: int = 0) -> str:
    """On one line, cut to `most` characters, with a mark for each character that a terminal would obey."""
    text = "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text[: most - 3] + "..." if most and len(text) > most else text


def abbreviate(names: Sequence[str]) -> Sequence[str]:
    return [*names[:5], f"{len(names) - 5} more"] if len(names) > 5 else names
