"""Read and write CSV files."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odinfer.data.cells import is_observation
from odinfer.data.series import quoted, warn
from odinfer.data.table import Table, columns_from_rows
from odinfer.errors import InputError

_THOUSANDS = re.compile(r"\D*[1-9]\d{0,2},\d{3}")  # as which a number can be read that has a decimal comma


def csv_table(name: str, content: bytes) -> Table:
    """The table in a CSV file. Commas, semicolons or tabs separate; blank lines and those after # are skipped.

    Where commas do not separate they can be decimal ones, as spreadsheets of many countries write them.
    """
    text = _decode(name, content)
    lines = _content_lines(text)
    delimiter = max(",;\t", key=re.sub('"[^"]*"', "", lines[0][1] if lines else "").count)
    numbers, columns = columns_from_rows(_split_rows(lines, delimiter), "line")
    if delimiter != "," and "," in text and _has_decimal_commas(columns.values()):
        warn(f"{name}: decimal commas are read as points")
        columns = {n: [c.replace(",", ".") if is_observation(c) else c for c in own] for n, own in columns.items()}
    return Table(name, numbers, columns)


def write_csv(path: str | Path, columns: Mapping[str, ArrayLike]) -> None:
    """Write columns of one length: floats exactly, NaN as empty, text such that no spreadsheet runs it."""
    cells = [[spreadsheet_safe(x) for x in (name, *np.asarray(column).tolist())] for name, column in columns.items()]
    if len({len(column) for column in cells}) > 1:
        raise InputError(f"the columns {quoted(*columns)} differ in length; make them equally long")
    try:
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(zip(*cells, strict=True))
    except OSError as error:
        raise InputError(f"cannot write {str(path)[-100:]}: {error.strerror}") from None


def spreadsheet_safe(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith(("=", "+", "-", "@")):
        return "'" + value
    return None if isinstance(value, float) and math.isnan(value) else value


def _decode(name: str, content: bytes) -> str:
    """The text of a file in UTF-8 or, since spreadsheets write it, in the Latin-1 of Windows."""
    if b"\0" in content:
        raise InputError("the file is UTF-16 or binary; save as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        raise InputError("the file is binary or in another encoding; save as UTF-8") from None
    warn(f"{name}: the file is not in UTF-8 and was read as Latin-1")
    return text


def _has_decimal_commas(columns: Iterable[Sequence[str]]) -> bool:
    """Whether commas in numbers are decimal: no number has a point, and some comma cannot be one of thousands."""
    numbers = [cell for cells in columns for cell in cells if is_observation(cell)]
    commas = [cell for cell in numbers if "," in cell]
    return not any("." in cell for cell in numbers) and any(_THOUSANDS.fullmatch(cell) is None for cell in commas)


def _content_lines(text: str) -> list[tuple[int, str]]:
    """The numbered lines that say something."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [(i, line) for i, line in enumerate(lines, start=1) if line.lstrip()[:1] not in ("", "#")]


def _split_rows(lines: Iterable[tuple[int, str]], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells. A line is a row whatever its quotes, so that a stray one costs a line at most."""
    for number, line in lines:
        if '"' in line:
            try:
                row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
            except csv.Error as error:
                raise InputError(f"line {number}: {error}") from None
        else:
            row = line.split(delimiter)
        yield number, list(map(str.strip, row))
