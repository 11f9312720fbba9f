"""Coloured text tables on terminals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from odinfer.style.text import TEXT_COLUMNS, TextTable, printable

NUMBER = re.compile(r"[<−-]?\d[\d.]*(e-?\d+)?|-|-?inf")

if TYPE_CHECKING:
    from rich.console import RenderableType


def rich_table(table: TextTable) -> RenderableType:
    """A table for a rich Console: names and words to the left, numbers to the right, contradictions in red."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="bold")
    for i, title in enumerate(table.header):
        cells = [len(row[i]) for row in table.rows if NUMBER.fullmatch(row[i])]
        # Where there is little room, words go on below; numbers are never cut.
        least = max([*cells, *map(len, title.split())], default=1)
        to_left = i == 0 or title in TEXT_COLUMNS
        made.add_column(Text(title), justify="left" if to_left else "right", overflow="fold",
                        min_width=None if to_left or not cells else least)  # fmt: skip
    for row in table.rows:
        # As Text: a name such as [red] is no markup.
        made.add_row(*(Text(printable(cell), "red" if cell.startswith("contradicts") else "") for cell in row))
    return made
