"""A run: one fit of one method to one draw, with a key made of everything that determines its result."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

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
