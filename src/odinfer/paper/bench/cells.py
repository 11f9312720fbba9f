"""What a grid is made of: systems at noise levels, methods with settings, candidates, and cells that join them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from odinfer.paper.bench.compute import system_of
from odinfer.paper.bench.runs import Run
from odinfer.parallel.store import canonical


@dataclass(frozen=True, eq=False)
class Case:
    """A system at its noise levels.

    Attributes:
        name, label: in the grid, and in tables.
        spec: what a Run takes as its system.
        noise: levels.
        size: number of states, of a system that comes in sizes.
    """

    name: str
    label: str
    spec: Mapping[str, Any]
    noise: tuple[float, ...]
    size: int | None = None


@dataclass(frozen=True, eq=False)
class Entry:
    """A method with its settings; `draws` at most unless the full grid is asked for, on `systems` only if given."""

    name: str
    label: str
    method: str
    preset: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)
    draws: int | None = None
    systems: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Rival:
    """Equations to be fitted to a system's data instead of its own, and the states whose equations are wrong."""

    name: str
    equations: str
    wrong: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Cell:
    """One entry of the tables: a setting and a method; its draws differ by their seeds."""

    case: Case
    noise: float
    method: Entry
    candidate: Rival | None
    draws: int
    full: int

    @functools.cached_property
    def setting(self) -> str:
        """Such as 'LV, σ = 0.1'."""
        symbol = "SNR" if system_of(canonical(self.case.spec)).snr else "σ"
        return f"{self.case.label}, {symbol} = {self.noise:g}"

    def run(self, seed: int) -> Run:
        candidate = None
        if self.candidate is not None:
            candidate = {"name": self.candidate.name, "equations": self.candidate.equations}
        m = self.method
        return Run(self.case.spec, self.noise, candidate, m.method, m.preset, m.options, seed)
