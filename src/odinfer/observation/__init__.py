"""How observations scatter about what is predicted: one file per noise model, and one line in `noise_of`.

A noise model has parameters of its own, at their best where they are not known; it gives the log-likelihood, the
residuals and weights of Gauss–Newton (Fisher's scoring where the noise is not Gaussian), and draws. What computes with
trajectories asks for no more than this. Imports from `problem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


class Noise(Protocol):
    """Of all observations of a problem, for B data sets or predictions side by side.

    x are predicted and y observed values per experiment, (B, N, K) or (1, N, K); NaN in y is not observed.
    """

    @property
    def count(self) -> NDArray[np.int64]:
        """Observations of every state (K,)."""

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Of which states the noise is known (K,)."""

    def best(self, x: Sequence[Array], y: Sequence[Array]) -> tuple[Array, Array]:
        """The noise's own parameters (B, K), known or most likely, and the log-likelihood with them (B,)."""

    def whitened(self, x: Array, y: Array, parameters: Array) -> tuple[Array, Array]:
        """Of one experiment, residuals in units of the noise and their derivatives by x, both (B, N, K); 0 if missing.

        The gradient of −log p by x is their product, Fisher's information the square of the second.
        """

    def draw(self, rng: np.random.Generator, x: Array, y: Array, sigma: Array, size: int) -> Array:
        """`size` sets of observations (size, N, K) about x (..., N, K); missing where those in y (N, K) are."""


def noise_of(problem: Problem, floor: Array | float = 1e-300) -> Noise:
    """The noise model of a problem; variances are not below a floor."""
    from odinfer.observation.plain import Plain

    return Plain.of(problem, floor)
