"""Runs and cells of a grid: one fit of one draw of a system by a method."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from odinfer.paper.systems import system_of
from odinfer.parallel.store import canonical, digest
from odinfer.version import __version__

LIMIT = "limit"  # maximum likelihood started at the truth: no method, but what methods are measured against


@dataclass(frozen=True, eq=False)
class Run:
    """What is computed; all of it plain data, so that it can be sent to a worker and kept beside its result.

    Attributes:
        system: {"name"} of a system of the package, or its "equations", "theta", "x0", "times" and "snr".
        noise: the level, a standard deviation or a signal-to-noise ratio of variances.
        candidate: {"name", "equations"} of another model to fit to the system's data, or None.
        method: its name, or "limit".
        preset: "default", or "paper" for the authors' settings and bounds.
        options: of the method, on top of the preset.
        seed: of the noise and of the method.
        version: of this package.
    """

    system: Mapping[str, Any]
    noise: float
    candidate: Mapping[str, Any] | None
    method: str
    preset: str
    options: Mapping[str, Any]
    seed: int
    version: str = __version__

    @functools.cached_property
    def key(self) -> str:
        """The same for equal runs, and different for different ones."""
        return digest(canonical(asdict(self)))


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
class MethodEntry:
    """A method with its settings; `draws` at most unless the full grid is asked for, on `systems` only if given."""

    name: str
    label: str
    method: str
    preset: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)
    draws: int | None = None
    systems: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """Equations to be fitted to a system's data instead of its own, and the states whose equations are wrong."""

    name: str
    equations: str
    wrong: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Cell:
    """One entry of the tables: a setting and a method; its draws differ by their seeds."""

    case: Case
    noise: float
    method: MethodEntry
    candidate: Candidate | None
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
