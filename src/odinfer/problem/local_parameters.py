"""Local parameters: one value per experiment."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


@dataclass(frozen=True)
class LocalParameters:
    """The parameters of a model in several experiments.

    Attributes:
        parameters: of the model.
        local: those with one value per experiment.
        experiments: their names; of a single one nothing is local.
    """

    parameters: tuple[str, ...]
    local: tuple[str, ...]
    experiments: tuple[str, ...]

    @functools.cached_property
    def any(self) -> bool:
        return len(self.experiments) > 1 and bool(self.local)

    def _copies(self, name: str) -> tuple[str, ...]:
        return tuple(f"{name}[{e}]" for e in self.experiments) if self.any and name in self.local else (name,)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """All parameters, a local one once per experiment as k[experiment]."""
        return tuple(copy for name in self.parameters for copy in self._copies(name))

    def of(self, e: int) -> Index:
        """The places (P,) among them of those of experiment e, in the model's order."""
        return self._of[e]

    @functools.cached_property
    def _of(self) -> tuple[Index, ...]:
        place = {name: i for i, name in enumerate(self.names)}
        every = [self._copies(name) for name in self.parameters]
        return tuple(np.array([place[c[e if len(c) > 1 else 0]] for c in every], np.int64) for e in
                     range(len(self.experiments)))  # fmt: skip

    def spread(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is said about a local parameter, said about each of its copies, unless something else is."""
        spread = {copy: value for name, value in given.items() for copy in self._copies(name)}
        return {**spread, **{name: value for name, value in given.items() if name in self.names}}

    def own(self, e: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is said about the parameters of experiment e, under the model's names; what is said of others stays."""
        copies = {self.names[i]: name for name, i in zip(self.parameters, self.of(e), strict=True)}
        every = set(self.names)
        return {copies.get(name, name): v for name, v in given.items() if name in copies or name not in every}
