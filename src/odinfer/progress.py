"""The protocol of progress reports."""

from typing import Protocol


class Progress(Protocol):
    """Told about each step: what it is, and the share of the work that is done."""

    def __call__(self, what: str, share: float) -> None: ...


def no_progress(what: str, share: float) -> None:
    """Tells nobody."""


def sub_progress(progress: Progress | None, start: float, stop: float) -> Progress:
    """Progress of a step that is itself the part from `start` to `stop` of what is reported."""
    if progress is None:
        return no_progress
    return lambda what, share: progress(what, start + (stop - start) * share)
