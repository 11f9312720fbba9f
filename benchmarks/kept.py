"""Rows of a long benchmark, kept in a file as they come, so that the same command goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def read(keep: Path | None) -> list[Row]:
    return [json.loads(line) for line in keep.read_text().splitlines()] if keep and keep.exists() else []


def add(keep: Path | None, row: Row) -> None:
    if keep:
        with keep.open("a") as file:
            file.write(json.dumps(row) + "\n")


def rows(
    one: Callable[[Any], Row], tasks: Sequence[Any], keys: Sequence[str], workers: int, keep: Path | None
) -> Iterator[Row]:
    """What `one` makes of every task, as it comes; a task begins with what stands at `keys` of its row."""
    known = {tuple(row[k] for k in keys): row for row in read(keep)}
    due = [task for task in tasks if task[: len(keys)] not in known]
    yield from (known[task[: len(keys)]] for task in tasks if task[: len(keys)] in known)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for future in as_completed([pool.submit(one, task) for task in due]):
            add(keep, future.result())
            yield future.result()
