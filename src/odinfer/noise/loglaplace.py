"""loglaplace(median, b): the logarithm is Laplace's, with mean absolute deviation b."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from odinfer.noise.laplace import Laplace
from odinfer.noise.lognormal import OnLogs


@dataclass(frozen=True)
class Loglaplace(OnLogs, Laplace):
    arguments: ClassVar[tuple[str, ...]] = ("median", "b")
