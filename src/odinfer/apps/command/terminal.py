"""Terminal output, progress bars, signals and atomic output folders of all commands."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from odinfer import files
from odinfer.errors import InputError, InputWarning, cut
from odinfer.style.text import format_duration, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from odinfer.progress import Progress

PROGRESS_SECONDS = 15.0  # seconds between two lines of progress where no terminal shows a bar
DONE, NOT_CONVERGED, BAD_INPUT, INTERNAL, INTERRUPTED, TERMINATED = 0, 1, 2, 70, 130, 143  # exit codes
NOTHING_WRITTEN = "nothing was written"
_SIGNALS = {signal.SIGINT: ("interrupted", INTERRUPTED), signal.SIGTERM: ("terminated", TERMINATED)}


# --- what is printed


def prepare_streams() -> None:
    """Standard streams that can be written to, whatever the caller has closed, and interrupts that are one line."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: the next file that is opened would take its number, and what is printed
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(descriptor, "w" if descriptor else "r"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a Greek name in a pipe that has no Greek
    warnings.simplefilter("ignore")  # those for users are collected by `noticed`
    _set_handlers(_stop_handler())


def say(text: str) -> None:
    """One line on stderr."""
    with contextlib.suppress(InputError):  # there is nobody left to tell
        _write(sys.stderr, cut(printable(" ".join(text.split()))) + "\n")


def exit_code_and_message(error: Exception) -> tuple[int, str]:
    """The exit code of an exception, and the line about it."""
    usage = getattr(error, "format_message", None)  # the command line itself is wrong
    if usage:
        return BAD_INPUT, f"error: {usage().rstrip('.')}; see odinfer --help"
    if isinstance(error, InputError):
        return BAD_INPUT, f"error: {error}"
    if isinstance(error, OSError):  # what the system refuses is no fault of ours
        return BAD_INPUT, f"error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    if isinstance(error, MemoryError):
        return BAD_INPUT, "error: there is not enough memory for this; ask for less, or use a larger machine"
    return INTERNAL, f"internal error: {type(error).__name__}: {error} (run again with --debug)"


def show(text: str) -> None:
    """Lines on stdout: names and labels in them come from files, so nothing in them commands the terminal."""
    _write(sys.stdout, "\n".join(map(printable, text.split("\n"))) + "\n")


def show_rich(drawn: RenderableType) -> None:
    """A table with colours, of texts that are plain already."""
    from rich.console import Console

    console = Console()
    with console.capture() as captured:
        console.print(drawn)
    _write(sys.stdout, captured.get())


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError) as error:
        # What the stream still holds would fail again when Python ends.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):  # a reader that has seen enough, such as head
            raise InputError(f"cannot print: {getattr(error, 'strerror', None) or error}") from error


@contextlib.contextmanager
def collected_notes(quiet: bool = False) -> Iterator[list[str]]:
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
def progress(quiet: bool, lines: bool = False) -> Iterator[Progress | None]:
    """A bar on a terminal that says what is being done and how long it will still take; else lines now and then."""
    if quiet or not sys.stderr.isatty():
        yield _progress_lines() if lines and not quiet else None
        return
    from rich import progress as rich

    columns = (
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TimeRemainingColumn(compact=True),
        rich.TextColumn("left"),
    )
    with bar(*columns) as shown:
        task = shown.add_task("starting", total=1.0)
        yield lambda what, share: shown.update(task, description=printable(what), completed=share)


def _progress_lines() -> Progress:
    """A line every PROGRESS_SECONDS seconds, for long work whose messages go to a file."""
    told: list[tuple[float, float]] = []  # when, and how much was done; first of all maybe what a store had

    def tell(what: str, share: float) -> None:
        now = time.monotonic()
        if not told or now - told[-1][0] >= PROGRESS_SECONDS:
            told.append((now, share))
            if len(told) > 1 and share > told[0][1]:
                left = (1.0 - share) * (now - told[0][0]) / (share - told[0][1])
                say(f"{what}, {format_duration(left)} left")

    return tell


def bar(*columns: Any) -> Any:
    """A line on stderr that comes and goes: words, which are no markup, and then the columns."""
    from rich import console
    from rich import progress as rich

    words = rich.TextColumn("{task.description}", markup=False)
    return rich.Progress(words, *columns, console=console.Console(stderr=True), transient=True)


# --- interrupts and outputs


@contextlib.contextmanager
def staged(folder: Path, names: Iterable[str] = (), left: str = NOTHING_WRITTEN) -> Iterator[Path]:
    """Stage a folder of outputs; where the command is interrupted or terminated, nothing appears but what is `left`."""
    with signal_handlers(), files.staged_folder(folder, names) as stage:
        _set_handlers(_stop_handler(stage, left))
        yield stage
        _set_handlers(signal.SIG_IGN)


@contextlib.contextmanager
def signal_handlers(interrupt: Any = None) -> Iterator[None]:
    """Handlers of signals are as before afterwards; inside, an interrupt is handled so, if given."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    if interrupt is not None and before[signal.SIGINT] is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def until_interrupted() -> Iterator[None]:
    """What runs inside ends by a signal, in its own way: it is where the command is to end."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with signal_handlers(), contextlib.suppress(KeyboardInterrupt):
        _set_handlers(stop)
        yield


def _set_handlers(handler: Any) -> None:
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and shells ask for in the background
            signal.signal(number, handler)


def _stop_handler(stage: Path | None = None, left: str = NOTHING_WRITTEN) -> Callable[..., None]:
    def stop(number: int, _: object) -> None:
        # At once and not by an exception, which Python loses where it is raised inside a callback.
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)
        word, code = _SIGNALS[signal.Signals(number)]
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write("\r\x1b[K\x1b[?25h" if sys.stderr.isatty() else "")  # the progress line hides the cursor
        say(f"{word}; {left}")
        os._exit(code)

    return stop
