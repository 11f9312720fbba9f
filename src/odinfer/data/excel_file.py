"""Read the first sheet of an Excel file; sizes are limited before and during reading."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from odinfer.data.cells import cell_text
from odinfer.data.series import quoted, warn
from odinfer.data.table import Table, columns_from_rows
from odinfer.errors import InputError

_MOST_BYTES = 500_000_000  # of XML in all; a sheet of a million rows and ten columns has about 400 MB
_MOST_COMPRESSION = 50  # ratio of sizes; spreadsheets reach 5 to 20, repeated bytes 1,000
_SMALL_PART = 1_000_000  # bytes of XML that any file may have, however well they are compressed
_MOST_ROWS = 1_048_576  # as many as Excel itself allows
_MOST_EMPTY = 5_000_000  # empty cells beside filled ones, and 50 more for each filled cell


def excel_table(name: str, content: bytes) -> Table:
    """Read the first sheet of an .xlsx file.

    Raises:
        InputError: the file cannot be read, or is larger than its content explains.
    """
    try:
        import openpyxl
    except ImportError:
        raise InputError("reading Excel files needs openpyxl: pip install 'odinfer[excel]', or save as CSV") from None
    try:
        _check_size(zipfile.ZipFile(io.BytesIO(content)).infolist())
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheet, *others = book.worksheets
        sheet.reset_dimensions()  # what the file says about them may be wrong
        rows, columns = columns_from_rows(_rows(sheet.iter_rows(values_only=True)), "row")
    except InputError:
        raise
    except Exception:  # whatever a damaged file makes of zip, XML and the library
        raise InputError("this is no Excel file that can be read (.xlsx); save it again, or as CSV") from None
    if others:
        warn(f"{name}: only the first sheet {quoted(sheet.title)} is read")
    return Table(name, rows, columns, word="row")


def _check_size(parts: Iterable[zipfile.ZipInfo]) -> None:
    """Refuse an archive that unpacks to far more than it is: reading its XML takes 30 times the memory."""
    total = 0
    for part in parts:
        total += part.file_size
        if total > _MOST_BYTES or part.file_size > max(_SMALL_PART, _MOST_COMPRESSION * part.compress_size):
            raise InputError("the file is too large; save as CSV")


def _rows(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, list[str]]]:
    """Row numbers and cells, without empty cells behind the last column of the header."""
    width, filled, empty = 0, 0, 0
    for number, row in enumerate(rows, start=1):
        if number > _MOST_ROWS:
            raise InputError(f"the sheet has rows beyond {_MOST_ROWS:,}; remove them, or save as CSV")
        present = len(row) - row.count(None)
        filled, empty = filled + present, empty + len(row) - present
        if empty > _MOST_EMPTY + 50 * filled:
            raise InputError(f"row {number}: the sheet is almost empty; remove cells far from the table")
        cells = [cell_text(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells and not cells[0].startswith("#"):
            width = width or len(cells)
            yield number, cells + [""] * (width - len(cells))
