"""The two ways things go wrong: bad input raises, bad luck returns a status."""

import difflib
from collections.abc import Iterable, Sequence
from enum import Enum


class InputError(ValueError):
    """Something the caller gave cannot be used; the message is one line: what, where, what to do."""


class InputWarning(UserWarning):
    """Something the caller gave is odd but usable; what was done about it is in the message."""


class Status(Enum):
    """How a fit ended. The value is the sentence that is shown to the user."""

    CONVERGED = "converged"
    ODIN_KEPT = "converged; no trajectory of the model that was found follows the data, so ODIN's estimate is kept"
    NOT_FOLLOWED = "converged; no trajectory of the model could be computed along the data, so ODIN's estimate is kept"
    MAX_ITERATIONS = "did not converge: the iteration limit was reached"
    NOT_FINITE = "failed: the model is not finite near the data for any start"

    @property
    def converged(self) -> bool:
        return self in (Status.CONVERGED, Status.ODIN_KEPT, Status.NOT_FOLLOWED)


def nearest(name: str, choices: Iterable[str]) -> str:
    """'; did you mean X?' for the closest of `choices`, or their list."""
    choices = list(choices)
    close = difflib.get_close_matches(str(name), choices, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; choose from: {', '.join(choices)}" if choices else ""


def listed(words: Sequence[str]) -> str:
    """'a, b and c'; nothing for nothing."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
