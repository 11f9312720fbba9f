"""Candidate times, designs by their size, and equally spaced samples to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.optimal_design.exchange import NONE, Exchange, Rules, Value
from odinfer.optimal_design.information import Sample

Array = NDArray[np.float64]

GRID = 100  # intervals between candidate times where a range is given
SPACED = 4.0  # shortest distance between samples: the time span by this and by their number, if none is given


def candidate_times(times: Any, apart: float | None = None) -> Array:
    """Candidate times: those given, or about a hundred equal steps of a range that divide the distance of samples."""
    given = np.asarray(times, float)
    if given.size == 2 and np.diff(given.ravel())[0] < 0:
        first, last = given.ravel().tolist()
        raise InputError(f"times: the first candidate time, {first:g}, is after the last one, {last:g}")
    t = np.unique(given)
    if t.ndim != 1 or len(t) < 2 or not np.isfinite(t).all():
        raise InputError("times must be a pair (first, last) or a list of at least two candidate times")
    if len(t) > 2:
        return t
    step = (t[1] - t[0]) / GRID
    if apart and apart > step:
        step = apart / np.ceil(apart / step)
    return np.asarray(t[0] + step * np.arange(int((t[1] - t[0]) / step * (1 + 1e-12)) + 1))


def best_by_size(search: Exchange, most: int, rng: np.random.Generator) -> list[tuple[tuple[int, ...], float]]:
    """The best designs of 1, 2, … samples, as many as fit, each grown from the one before, with their values."""
    path: list[tuple[tuple[int, ...], float]] = []
    for size in range(1, most + 1):
        found = search.best(size, path[-1][0] if path else (), rng)
        if len(found[0]) < size:
            break
        path.append(found)
    return path


def in_order(rules: Rules, chosen: Sequence[int]) -> tuple[Sample, ...]:
    place = {name: i for i, name in enumerate(dict.fromkeys(s.experiment for s in rules.samples))}
    return tuple(sorted((rules.samples[c] for c in chosen), key=lambda s: (place[s.experiment], s.time, s.columns)))


def equally_spaced_value(rules: Rules, size: int, value: Value) -> float:
    """The value of as many samples, equally spaced over the candidate times with or without the first one.

    They are divided between experiments and columns in turn; the better of both counts.
    """
    groups: dict[Any, list[int]] = {}
    for i, s in enumerate(rules.samples):
        groups.setdefault((s.experiment, s.columns), []).append(i)
    each = [size // len(groups) + (g < size % len(groups)) for g in range(len(groups))]
    values = []
    for first in (0, 1):
        chosen: list[int] = []
        for own, n in zip(groups.values(), each, strict=True):
            t = np.array([rules.samples[i].time for i in own])
            wanted = np.linspace(t[0], t[-1], n + first)[first:] if n + first > 1 else t[-1:]
            chosen += [own[int(np.abs(t - w).argmin())] for w in wanted]
        values.append(float(value(tuple(chosen), NONE)[0]))
    return min(values)
