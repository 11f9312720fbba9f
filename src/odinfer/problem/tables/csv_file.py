"""CSV files: text to a table, and columns to text."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odinfer.errors import InputError
from odinfer.problem.tables.series import short, warn
from odinfer.problem.tables.table import Table, columns_of


def csv_table(name: str, content: bytes) -> Table:
    """The table in a CSV file. Commas, semicolons or tabs separate; blank lines and those after # are skipped."""
    return Table(name, *columns_of(_rows(_text(name, content)), "line"))


def write_csv(path: str | Path, columns: Mapping[str, ArrayLike]) -> None:
    """Write columns of one length: floats exactly, NaN as empty, text such that no spreadsheet runs it."""
    cells = [[harmless(x) for x in (name, *np.asarray(column).tolist())] for name, column in columns.items()]
    if len({len(column) for column in cells}) > 1:
        raise InputError(f"the columns {short(*columns)} differ in length; make them equally long")
    try:
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(zip(*cells, strict=True))
    except OSError as error:
        raise InputError(f"cannot write {str(path)[-100:]}: {error.strerror}") from None


def harmless(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip().startswith(("=", "+", "-", "@")):
        return "'" + value
    return None if isinstance(value, float) and math.isnan(value) else value


def _text(name: str, content: bytes) -> str:
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


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells. A line is a row whatever its quotes, so that a stray one costs a line at most."""
    delimiter = ""
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        if line.lstrip()[:1] in ("", "#"):
            continue
        delimiter = delimiter or max(",;\t", key=re.sub('"[^"]*"', "", line).count)
        if '"' in line:
            try:
                row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
            except csv.Error as error:
                raise InputError(f"line {number}: {error}") from None
        else:
            row = line.split(delimiter)
        yield number, list(map(str.strip, row))
