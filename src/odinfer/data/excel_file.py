"""Excel files: the first sheet to a table."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from odinfer.data.cells import text_of
from odinfer.data.series import short, warn
from odinfer.data.table import Table, columns_of
from odinfer.errors import InputError

_LARGEST = 500_000_000  # bytes of XML; a small file can hold any number of zeros


def excel_table(name: str, content: bytes) -> Table:
    """The table in the first sheet of an .xlsx file."""
    try:
        import openpyxl
    except ImportError:
        raise InputError("reading Excel files needs openpyxl: pip install 'odinfer[excel]', or save as CSV") from None
    try:
        if sum(part.file_size for part in zipfile.ZipFile(io.BytesIO(content)).infolist()) > _LARGEST:
            raise InputError("the file is too large; save as CSV")
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheet, *others = book.worksheets
        sheet.reset_dimensions()  # what the file says about them may be wrong
        rows = list(sheet.iter_rows(values_only=True))
    except InputError:
        raise
    except Exception:  # whatever a damaged file makes of zip, XML and the library
        raise InputError("this is no Excel file that can be read (.xlsx); save it again, or as CSV") from None
    if others:
        warn(f"{name}: only the first sheet {short(sheet.title)} is read")
    return Table(name, *columns_of(_rows(rows), "row"), word="row")


def _rows(rows: list[tuple[Any, ...]]) -> Iterator[tuple[int, list[str]]]:
    """Row numbers and cells, without empty cells behind the last column of the header."""
    width = 0
    for number, row in enumerate(rows, start=1):
        cells = [text_of(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells and not cells[0].startswith("#"):
            width = width or len(cells)
            yield number, cells + [""] * (width - len(cells))
