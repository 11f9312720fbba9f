"""Tables on terminals have every cell, obey no markup, and wrap where there is no room."""

import io

from rich.console import Console

from odinfer.style.tables import rich_table
from odinfer.style.text import TextTable


def printed(table, width=60) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(rich_table(table))
    return console.file.getvalue()


def test_every_cell_is_there_and_names_are_no_markup():
    text = printed(TextTable(("", "model", "verdict"), (("A", "[red]x", "contradicts"), ("B", "y\x1b[2J", "fine"))))
    for cell in ("A", "[red]x", "contradicts", "B", "fine"):
        assert cell in text
    assert "\x1b[2J" not in text


def test_long_names_wrap():
    text = printed(TextTable(("", "model", "BIC"), (("A", "word " * 30, "12"),)), 40)
    assert max(map(len, text.splitlines())) <= 40
    assert text.count("word") == 30


def test_numbers_are_never_cut_where_there_is_little_room():
    cells = ("A", "a_model_with_a_long_name", "-455.23", "<0.001", "0.005")
    text = printed(TextTable(("", "model", "risk", "weight", "p"), (cells,)), 40)
    assert all(number in text for number in cells[2:])
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 40
