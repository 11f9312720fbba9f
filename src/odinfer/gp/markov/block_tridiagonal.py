"""Block tridiagonal matrices of chains, kept as bands: assembled, factored and solved in linear time by LAPACK."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]


def banded(diagonal: Array, below: Array) -> Array:
    """The lower band (2q, n·q) of a symmetric matrix with blocks (n, q, q) on and (n−1, q, q) below its diagonal."""
    n, q, _ = diagonal.shape
    band = np.zeros((2 * q, n, q))
    for b in range(q):
        band[: q - b, :, b] = diagonal[:, b:, b].T
        band[q - b : 2 * q - b, :-1, b] = below[:, :, b].T
    return band.reshape(2 * q, n * q)


@dataclass(frozen=True, eq=False)
class Factor:
    """The Cholesky factor L of a block tridiagonal matrix, as a band (2q, n·q)."""

    band: Array
    q: int

    @staticmethod
    def of(band: Array, q: int) -> Factor | None:
        """None if the matrix is not positive definite."""
        factor, info = lapack.dpbtrf(band, lower=1)
        return None if info else Factor(factor, q)

    def solve(self, right: Array) -> Array:
        """The solution for right-hand sides (n·q,) or (n·q, c)."""
        return np.asarray(lapack.dpbtrs(self.band, right, lower=1)[0])

    @property
    def log_diagonal(self) -> Array:
        """Half the log-determinant is the sum of these (n·q,)."""
        return np.asarray(np.log(self.band[0]))

    def marginals(self, series: int = 1) -> Array:
        """The blocks (n, q, q) on the diagonal of the inverse, by a recursion from the last to the first.

        With L in blocks, Σ_n = L_nn⁻ᵀ L_nn⁻¹ + Gᵀ Σ_{n+1} G and G = L_{n+1,n} L_nn⁻¹.

        Args:
            series: so many equally long chains without ties are stacked, and gone through side by side.
        """
        q = self.q
        blocks = self.band.reshape(2 * q, -1, q)
        n = blocks.shape[1]
        own, below = np.zeros((n, q, q)), np.zeros((n, q, q))
        for b in range(q):
            own[:, b:, b] = blocks[: q - b, :, b].T
            below[:, :, b] = blocks[q - b : 2 * q - b, :, b].T
        inverse = np.linalg.inv(own)
        G = below @ inverse
        found = (np.swapaxes(inverse, 1, 2) @ inverse).reshape(series, -1, q, q)
        G = G.reshape(series, -1, q, q)
        GT = np.ascontiguousarray(np.swapaxes(G, 2, 3))
        for i in range(found.shape[1] - 2, -1, -1):
            found[:, i] += GT[:, i] @ found[:, i + 1] @ G[:, i]
        return np.asarray(found.reshape(n, q, q))
