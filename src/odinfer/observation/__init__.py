"""The observation model of a problem: predictions, their derivatives, and the likelihood of columns.

An observation model predicts the columns from states, and gives the log-likelihood, residuals with the derivatives
that Gauss–Newton needs (Fisher scoring for other than Gaussian noise), standardised residuals and random draws.
Unknown standard deviations are at their optimum. `gaussian_states.py` is for fully observed states with Gaussian
noise, `column_model.py` for all else, with the families of `noise/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.problem.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class Observation(Protocol):
    """Of all M columns of a problem's data, for B trajectories or data sets side by side.

    x are states (B, N, K) or (1, N, K) at the observation times, phi free parameters (B, F) or (1, F), y observed
    values (B, N, M) or (1, N, M), NaN where nothing was observed; noise are variances (B, M), of columns whose standard
    deviation is estimated or known for all of it, and one for others.
    """

    @property
    def count(self) -> NDArray[np.int64]:
        """Observations of every column (M,)."""

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Of which columns the level of the noise is not estimated, neither beside the parameters nor by them (M,)."""

    @property
    def owners(self) -> Index:
        """The column (R,) that each residual of `rows` belongs to."""

    def best(self, x: Sequence[Array], y: Sequence[Array], phi: Array) -> tuple[Array, Array]:
        """Variances (B, M), known or most likely, and the log-likelihood with them (B,)."""

    def rows(self, e: int, x: Array, S: Array, y: Array, noise: Array, phi: Array) -> tuple[Array, Array]:
        """Residuals (B, N, R) of an experiment and their derivatives (B, N, R, W) by its own numbers; 0 if missing.

        The gradient of −log p is the sum of their products, Fisher's information that of the products of derivatives.

        Args:
            S: derivatives of the states by the own numbers (B, N, K, W), of which the last are of φ.
        """

    def predicted(self, e: int, x: Array, phi: Array, t: Array | None = None) -> Array:
        """Predicted values (B, N, M) of an experiment, at its observation times or at others t (N,)."""

    def linearised(self, e: int, x: Array, S: Array, phi: Array, t: Array) -> tuple[Array, Array]:
        """Predicted values (B, N, M) at times t (N,), and their derivatives (B, N, M, W) by the own numbers.

        Args:
            S: derivatives of the states by the own numbers (B, N, K, W), of which the last are of φ.
        """

    def outer(
        self, e: int, x: Array, noise: Array, phi: Array, t: Array, low: Array, high: Array, level: float
    ) -> tuple[Array, Array]:
        """Ends (B, N, M) of bands for new observations at times t (N,), from those of bands for predicted values.

        The distance of each end from the prediction is the root of two squares: of that of the predicted value, and of
        the quantile of the noise, both on the scale on which the noise is symmetric.
        """

    def residuals(self, e: int, x: Array, y: Array, noise: Array, phi: Array) -> Array:
        """Standardised residuals (B, N, M): standard normal if the model is right; NaN if missing."""

    def draw(self, rng: np.random.Generator, e: int, x: Array, phi: Array, sigma: Array, size: int) -> Array:
        """`size` sets of observations (size, N, M) of an experiment; missing where its own are.

        Args:
            sigma: standard deviations (..., M), where the noise has one for all of a column.
        """


def observation_of(problem: Problem, floor: Array | float = 1e-300) -> Observation:
    """What is observed in a problem; variances are not below a floor (M,)."""
    if problem.fully_observed_gaussian:
        from odinfer.observation.gaussian_states import GaussianNoise

        return GaussianNoise.of(problem, floor)
    from odinfer.observation.column_model import Measured

    return Measured(problem, np.broadcast_to(np.asarray(floor, float), (len(problem.columns),)))
