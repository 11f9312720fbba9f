"""What commands share on the terminal: lines on stderr, progress, and outputs that appear all at once or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from odinfer.errors import InputError, InputWarning
from odinfer.progress import Progress

DONE, INTERRUPTED = 0, 130  # exit codes


def say(text: str) -> None:
    """One line on stderr."""
    print(" ".join(text.split()), file=sys.stderr, flush=True)


@contextlib.contextmanager
def noticed(quiet: bool = False) -> Iterator[list[str]]:
    """Collect notes and warnings and show them at the end, so that an error is the only line on stderr."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    lines = [] if quiet else [f"note: {note}" for note in notes]
    lines += [f"warning: {w.message}" for w in caught if issubclass(w.category, InputWarning)]
    for line in dict.fromkeys(lines):
        say(line)


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A hidden folder whose files move to `folder` at the end, all of them or, after an error or Ctrl-C, none.

    It is made before computing, so that a place that cannot be written to is reported at once.
    """
    base = folder.absolute()
    while not os.path.lexists(base):
        base = base.parent
    stage = base / f".odinfer-{secrets.token_hex(6)}"

    def stop(*_: object) -> None:
        # At once and not by an exception, which Python loses where it is raised inside a callback.
        shutil.rmtree(stage, ignore_errors=True)
        sys.stderr.write("\r\x1b[K\x1b[?25h" if sys.stderr.isatty() else "")  # the progress line hides the cursor
        say("interrupted; nothing was written")
        os._exit(INTERRUPTED)

    handler = signal.signal(signal.SIGINT, stop)
    try:
        stage.mkdir()
        yield stage
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(stage.iterdir()):
            os.replace(file, folder / file.name)
    except OSError as error:
        raise InputError(f"cannot write to '{folder}': {error.strerror or error}; choose another place") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def progress(quiet: bool) -> Iterator[Progress | None]:
    """A bar on a terminal that says what is being done and how long it will still take."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich import console
    from rich import progress as rich

    columns = (
        rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TaskProgressColumn(),
        rich.TimeRemainingColumn(compact=True), rich.TextColumn("left"),
    )  # fmt: skip
    with rich.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)
