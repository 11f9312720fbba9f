"""Build a Problem from a model, a table and options, as the command and the studio do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odinfer.data.table import Table
from odinfer.model.model import Model
from odinfer.problem.matching import matched
from odinfer.problem.problem import Problem


def posed(
    system: Model,
    again: Callable[[Sequence[str]], Model],
    data: Table,
    notes: list[str],
    inputs: Sequence[str] = (),
    known: Mapping[str, Mapping[str, Any]] | None = None,
    replicates: str = "keep",
) -> Problem:
    """The problem of one model; see `matched`.

    Args:
        known: "set", "fixed", "prior", "sigma", "start" and "scale" → name → value, as flags of the command have them.
    """
    k = known or {}
    declared = {name for flag, values in k.items() if flag != "sigma" for name in values}
    system, observed = matched(system, again, data, notes, inputs, declared, replicates)
    of = {"bounds": "set", "fixed": "fixed", "prior": "prior", "sigma": "sigma", "start": "start", "scale": "scale"}
    given: dict[str, Any] = {option: k.get(flag, {}) for option, flag in of.items()}
    return Problem(system, observed, **given)
