"""Fedorov's exchange algorithm: the samples that make a criterion smallest, with spacing and costs.

Reference: Fedorov, "Theory of Optimal Experiments" (1972); Cook and Nachtsheim, Technometrics 22 (1980) 315.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.optimal_design.information import Sample

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Values (n,) of designs of the chosen samples and one more of n each; of the chosen alone (1,) if there are none.
Value = Callable[[tuple[int, ...], NDArray[np.int64]], Array]

NONE: NDArray[np.int64] = np.empty(0, np.int64)

RANDOM_STARTS = 8  # designs from which exchanges start, beside the one that grew sample by sample
_GAIN = 1e-9  # by which a criterion must improve for an exchange
_SWEEPS = 50  # through all samples of a design, at most


@dataclass(frozen=True, eq=False)
class Rules:
    """Which samples can be taken together.

    Attributes:
        samples: the candidates (C).
        apart: shortest time between two samples of one experiment; those at the very same time that observe different
            columns belong together.
        budget: of all costs.
    """

    samples: Sequence[Sample]
    apart: float
    budget: float = np.inf

    def conflicts(self) -> Mask:
        """Pairs of samples (C, C) that cannot both be taken, each with itself included unless it may be repeated."""
        t = np.array([s.time for s in self.samples])
        names, columns = ([getattr(s, name) for s in self.samples] for name in ("experiment", "columns"))
        _, own = np.unique(names, return_inverse=True)
        _, group = np.unique([" ".join(c) for c in columns], return_inverse=True)
        gap = np.abs(t[:, None] - t)
        near = (gap < self.apart * (1 - 1e-9)) & ((gap > 0) | (group[:, None] == group))
        return np.asarray(near & (own[:, None] == own))

    @property
    def costs(self) -> Array:
        return np.array([s.cost for s in self.samples])


class Exchange:
    """The search for the best `size` samples, or for those that a budget pays."""

    def __init__(self, rules: Rules, value: Value) -> None:
        self.rules, self.value = rules, value
        self._conflicts, self._costs = rules.conflicts(), rules.costs

    def grown(self, size: int, chosen: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Add the best sample until there are `size`, or none can be added; gains count by cost."""
        while len(chosen) < size:
            allowed = self._candidates(chosen)
            if not len(allowed):
                break
            before = self.value(chosen, NONE)[0]
            gains = (before - self.value(chosen, allowed)) / np.maximum(self._costs[allowed], 1e-300)
            chosen = (*chosen, int(allowed[np.argmax(gains)]))
        return chosen

    def improved(self, chosen: tuple[int, ...]) -> tuple[tuple[int, ...], float]:
        """Exchange samples one by one until that improves nothing."""
        best = float(self.value(chosen, NONE)[0])
        for _ in range(_SWEEPS):
            before = best
            for i in range(len(chosen)):
                rest = chosen[:i] + chosen[i + 1 :]
                allowed = self._candidates(rest)
                values = self.value(rest, allowed) if len(allowed) else np.array([np.inf])
                if values.min() < best - _GAIN:
                    chosen, best = (*rest, int(allowed[values.argmin()])), float(values.min())
            if best >= before - _GAIN:
                break
        return chosen, best

    def best(self, size: int, first: tuple[int, ...], rng: np.random.Generator) -> tuple[tuple[int, ...], float]:
        """The best design of several starts.

        Args:
            first: a design of fewer samples, from which one start grows.
        """
        starts = [self.grown(size, first)]
        for _ in range(RANDOM_STARTS if size > 1 else 0):
            chosen: tuple[int, ...] = ()
            while len(chosen) < size and len(allowed := self._candidates(chosen)):
                chosen = (*chosen, int(rng.choice(allowed)))
            starts.append(chosen)
        most = max(map(len, starts))
        full = [start for start in starts if len(start) == most or np.isfinite(self.rules.budget)]
        return min(map(self.improved, full), key=lambda pair: pair[1])

    def _candidates(self, chosen: tuple[int, ...]) -> NDArray[np.int64]:
        """Samples that can be added to those chosen."""
        free = ~self._conflicts[list(chosen)].any(0) if chosen else np.ones(len(self._costs), bool)
        left = self.rules.budget - self._costs[list(chosen)].sum()
        return np.flatnonzero(free & (self._costs <= left + 1e-9))


def most_samples(rules: Rules) -> int:
    """The largest number of samples that can be taken together, disregarding costs."""
    if rules.apart <= 0:
        return np.iinfo(np.int64).max  # samples can be repeated
    found = 0
    conflicts = rules.conflicts()
    names = [s.experiment for s in rules.samples]
    for name in dict.fromkeys(names):
        own = [i for i, n in enumerate(names) if n == name]
        chosen: list[int] = []
        for i in sorted(own, key=lambda i: rules.samples[i].time):
            if not conflicts[i, chosen].any():
                chosen.append(i)
        found += len(chosen)
    return found
