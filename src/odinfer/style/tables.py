"""Tables of text on terminals with colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odinfer.style.text import WORDS, TextTable, plain

if TYPE_CHECKING:
    from rich.console import RenderableType


def drawn(table: TextTable) -> RenderableType:
    """A table for a rich Console: names and words to the left, numbers to the right, contradictions in red."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for i, title in enumerate(table.header):
        made.add_column(Text(title), justify="left" if i == 0 or title in WORDS else "right")
    for row in table.rows:
        # As Text: a name such as [red] is no markup.
        made.add_row(*(Text(plain(cell), "red" if cell.startswith("contradicts") else "") for cell in row))
    return made
