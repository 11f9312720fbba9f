"""Choose samples that discriminate between two models.

Where one model is true, the other one adjusts its parameters to come as close as the data allow. What remains of the
difference δ of their predictions, in standard deviations of the noise, is δᵀ(I + JCJᵀ)⁻¹δ, with the sensitivities J of
the adjusted model and the covariance C that its existing data leave (for linear models this is T-optimality, Atkinson
and Fedorov, Biometrika 62 (1975) 57). Half of it is the expected difference of log-likelihoods. Either model may be
true, so both differences are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.optimal_design.basis import Basis
from odinfer.optimal_design.criteria import covariance
from odinfer.optimal_design.information import Candidates

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Discrimination:
    """Minus the expected difference of log-likelihoods, for sets of candidate samples.

    Attributes:
        differences: of predictions in standard deviations of the noise (C, M), one for each model that may be true.
        loadings: (C, M, P) of the other model, whose products are the covariance of its predictions.
    """

    differences: tuple[Array, ...]
    loadings: tuple[Array, ...]

    @staticmethod
    def of(first: Basis, second: Basis, one: Candidates, two: Candidates) -> Discrimination:
        """From what samples say in both models.

        Args:
            one, two: of each model, with the predictions of the other one as observations.
        """
        pairs = (first, one), (second, two)
        return Discrimination(
            tuple(found.residuals[0][:, _first_rows(found)] for _, found in pairs),
            tuple(_loadings(basis, found) for basis, found in pairs),
        )

    def __call__(self, chosen: tuple[int, ...], added: NDArray[np.int64]) -> Array:
        sets = np.tile(np.array(chosen, np.int64), (max(len(added), 1), 1))
        if len(added):
            sets = np.column_stack([sets, added])
        value = np.zeros(len(sets))
        for difference, loadings in zip(self.differences, self.loadings, strict=True):
            d = difference[sets].reshape(len(sets), -1, 1)
            L = loadings[sets].reshape(len(sets), d.shape[1], loadings.shape[-1])
            S = np.eye(d.shape[1]) + L @ np.swapaxes(L, 1, 2)
            value -= 0.5 * (d * np.linalg.solve(S, d)).sum((1, 2)) / len(self.differences)
        return value


def _loadings(basis: Basis, found: Candidates) -> Array:
    D = basis.scale
    root = np.linalg.cholesky(covariance(basis.information * np.outer(D, D)))
    return np.asarray((found.rows[0][:, _first_rows(found)] * D) @ root)


def _first_rows(found: Candidates) -> NDArray[np.int64]:
    """The rows (M,) of predicted values; families with further arguments have rows for these, too."""
    R, M = found.rows.shape[2], found.predicted.shape[2]
    return np.arange(0, R, R // M)
