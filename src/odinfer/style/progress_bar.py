"""Progress bars for Python users, shown by default in notebooks."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Iterator
from typing import Any

from odinfer.errors import InputError
from odinfer.progress import Progress

_FIRST_SECONDS = 1.0  # s: shorter work shows no bar in a notebook
_EVERY_SECONDS = 0.2  # s between two updates


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return type(get_ipython()).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def shown_progress(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """The function to call with (what, share done): the user's own, or one that draws a bar.

    Args:
        progress: a function, True for a bar, False for none, None for a bar in notebooks only.

    Raises:
        InputError: it is nothing of this kind.
    """
    if progress is False or (progress is None and not in_notebook()):
        yield None
    elif callable(progress):
        yield progress
    elif progress is not None and progress is not True:
        raise InputError(f"progress must be True, False or a function of (what, share), not {progress!r}")
    elif in_notebook():
        with _notebook_bar() as tell:
            yield tell
    else:
        with _terminal_bar() as tell:
            yield tell


@contextlib.contextmanager
def _terminal_bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("starting", total=1.0)
        yield lambda what, share: shown.update(task, description=what, completed=share)


@contextlib.contextmanager
def _notebook_bar() -> Iterator[Progress]:
    from IPython.display import HTML, display

    shown: Any = None
    begun, last = time.monotonic(), 0.0

    def tell(what: str, share: float) -> None:
        nonlocal shown, last
        now = time.monotonic()
        if now - begun < _FIRST_SECONDS or now - last < _EVERY_SECONDS:
            return
        last = now
        bar: Any = HTML(f'<progress max="1" value="{share:.3f}"></progress> {html.escape(what)}')
        if shown is None:
            shown = display(bar, display_id=True)
        else:
            shown.update(bar)

    try:
        yield tell
    finally:
        if shown is not None:
            shown.update(HTML(""))
