"""`InputError` for bad input, and `Status` for computations that fail."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TypeVar

import numpy as np

_T = TypeVar("_T")

MOST = 400  # characters of a message: what people bring may be quoted in it, however long it is


class InputError(ValueError):
    """Something the caller gave cannot be used; the message is one line: what, where, what to do."""

    def __init__(self, message: object = "") -> None:
        super().__init__(cut(str(message)))


class InputWarning(UserWarning):
    """Something the caller gave is odd but usable; what was done about it is in the message."""


class Status(Enum):
    """How a fit ended. The value is the sentence that is shown to the user."""

    CONVERGED = "converged"
    ODIN_KEPT = "converged, but by slopes only (ODIN): no trajectory that was found follows the data"
    NOT_FOLLOWED = "converged, but by slopes only (ODIN): no trajectory of the model could be computed"
    MAX_ITERATIONS = "did not converge: the iteration limit was reached"
    NOT_FINITE = "failed: the equations are not finite near the data for any start point"

    @property
    def converged(self) -> bool:
        return self in (Status.CONVERGED, Status.ODIN_KEPT, Status.NOT_FOLLOWED)


def none_if_singular(step: Callable[[], _T]) -> _T | None:
    """What a step gives; None where its linear algebra breaks down, which is bad luck and no reason to stop."""
    try:
        return step()
    except (np.linalg.LinAlgError, ArithmeticError):
        return None


def cut(text: str, most: int = MOST) -> str:
    """A text without its middle if it is longer than `most`: messages say at their end what to do."""
    tail = most // 3
    return text if len(text) <= most else f"{text[: most - tail - 3]} … {text[-tail:]}"


def nearest(name: str, choices: Iterable[str]) -> str:
    """'; did you mean X?' for the closest of `choices`, or their list."""
    choices = list(dict.fromkeys(choices))
    close = difflib.get_close_matches(str(name)[:MOST], choices, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; choose from: {', '.join(choices)}" if choices else ""


def listed(words: Sequence[str]) -> str:
    """'a, b and c'; nothing for nothing."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
