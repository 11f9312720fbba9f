"""The database of a job store as tests look into it, beside what the package reads."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from odinfer.parallel.store import DATABASE


def execute(folder: Path, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run one statement on the database of a store."""
    with closing(sqlite3.connect(folder / DATABASE, timeout=60, isolation_level=None)) as database:
        return database.execute(statement, values).fetchall()


def writes(folder: Path) -> int:
    """The number of results ever written, those that replace others included."""
    if not (folder / DATABASE).is_file():
        return 0
    try:
        return sum(row[0] for row in execute(folder, "SELECT seq FROM sqlite_sequence WHERE name = 'record'"))
    except sqlite3.OperationalError:  # the tables are being created
        return 0


def damage(folder: Path, old: str, new: str) -> None:
    """Change the text of one record and leave its checksum."""
    (row, *_) = execute(folder, "SELECT id FROM record WHERE instr(content, ?) ORDER BY id", old)
    execute(folder, "UPDATE record SET content = replace(content, ?, ?) WHERE id = ?", old, new, row[0])
