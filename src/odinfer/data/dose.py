"""`Dose`: an amount given to a state at a time, as a bolus or an infusion."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from odinfer.checks import checked_number
from odinfer.errors import InputError


@dataclass(frozen=True)
class Dose:
    """An amount of something, given at once or at a constant rate.

    Args:
        time: when it is given, or begins to be given.
        amount: how much in all, positive.
        state: what it is added to: the name of a state, or its number counted from 1; None if that was not said.
        rate: how much per time, so that it takes amount/rate; 0 = at once.
        steady: the time between equal doses that led to a steady state before this one; 0 = none did.

    Raises:
        InputError: if time, amount or rate is no such number.
    """

    time: float
    amount: float
    state: str | None = None
    rate: float = 0.0
    steady: float = 0.0

    def __post_init__(self) -> None:
        for field in ("time", "amount", "rate", "steady"):
            object.__setattr__(self, field, checked_number(f"the {field} of a dose", getattr(self, field)))
        if self.amount <= 0:
            raise InputError(f"the amount of a dose must be positive, not {self.amount:g}")
        if self.rate < 0:
            raise InputError(f"the rate of a dose must be positive, or 0 if it is given at once, not {self.rate:g}")
        if self.steady < 0:
            raise InputError(f"the time between doses at steady state must be positive, not {self.steady:g}")
        if self.state is not None:
            object.__setattr__(self, "state", str(self.state))


def checked_doses(doses: Iterable[Any], where: str = "") -> tuple[Dose, ...]:
    """Doses in the order of their times, from such and from tuples (time, amount) or (time, amount, state)."""
    found = []
    try:
        for dose in doses:
            if not isinstance(dose, Dose) and len(dose) not in (2, 3):
                raise TypeError
            found.append(dose if isinstance(dose, Dose) else Dose(*dose))
    except TypeError:
        raise InputError(f"{where}doses are a list of Dose or of (time, amount) or (time, amount, state)") from None
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    return tuple(sorted(found, key=lambda dose: dose.time))
