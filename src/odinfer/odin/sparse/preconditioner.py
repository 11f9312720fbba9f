"""The block-diagonal preconditioner: one block of the Hessian per state.

Two forms, by the operators: a Gaussian process's are dense, and every state has an N×N inverse; a collocation
formula's reach over one element, and the blocks of all states are one banded matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.shared_hyperparameters import Group
from odinfer.odin.sparse.risk import SparseBlock, SparseRisk

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_AT_ONCE = 120_000  # matrix entries assembled at a time: what stays in a processor's cache


class Pairs(NamedTuple):
    """Equations `rows` and the columns `cols` they depend on; `values` (M, pairs) at all points."""

    rows: Index
    cols: Index
    values: Array

    @staticmethod
    def of(matrix: Any, K: int) -> Pairs:
        """Of a derivative matrix (M·K, ·), whose pattern is the same at all points."""
        n = int(matrix.indptr[K])
        rows = np.repeat(np.arange(K), np.diff(matrix.indptr[: K + 1]))
        return Pairs(rows, matrix.indices[:n].astype(np.int64), matrix.data.reshape(-1, n))


class Blocks(Protocol):
    """Inverses of the states' blocks of one experiment."""

    diagonal: Array  # of the Hessian, undamped (N, K)

    def solve(self, r: Array) -> Array: ...  # (N, K) → (N, K)


class DenseBlocks:
    """An N×N inverse per state, in single precision since it only steers.

    The mismatch of equation j is e_j = T f_j − S z_j with weights W_j, so its derivative by state k is T diag(c_jk),
    where c_jk = ∂f_j/∂z_k at every time, minus S if j = k. The block of state k is therefore

        (prior + SᵀW_kS)/v_k + weight + Σ_j diag(c_jk) TᵀW_jT diag(c_jk)/v_j − [diag(c_kk) TᵀW_kS + its transpose]/v_k,

    of which the products in T, S and W are shared by all states of a group (`_Shared`: own, inner, cross).

    All is exact but γ, which is rounded (in logs) so that states of a group share the products with its weights.
    """

    def __init__(
        self, risk: SparseRisk, b: SparseBlock, fz: Pairs, weights: Array, gamma: Array, damping: float
    ) -> None:
        N, K = b.y.shape
        v, c = risk.v, fz.values[b.rows]
        shared = _Shared.of(b.groups, gamma / v)
        by_column = np.argsort(fz.cols, kind="stable")
        ends = np.searchsorted(fz.cols[by_column], np.arange(K + 1))
        index = np.arange(N)
        self.diagonal = np.empty((N, K))
        self.inverse = np.empty((K, N, N), np.float32)
        each = max(1, _AT_ONCE // N**2)
        for first in range(0, K, each):
            states = np.arange(first, min(first + each, K))
            block = shared.own[shared.of_state[states]] / v[states, None, None]
            block[:, index, index] += b.weight[:, states].T
            degrees = ends[states + 1] - ends[states]
            for d in range(int(degrees.max(initial=0))):  # the d-th equation that names each state
                at = np.flatnonzero(degrees > d)
                pair = by_column[ends[states[at]] + d]
                j, cj = fz.rows[pair], c[:, pair].T
                term = shared.inner[shared.of_state[j]] * (cj / v[j, None])[:, :, None]
                term *= cj[:, None, :]
                block[at] += term
                same = np.flatnonzero(j == states[at])
                cross = shared.cross[shared.of_state[j[same]]] * (cj[same] / v[j[same], None])[:, :, None]
                block[at[same]] -= cross + np.swapaxes(cross, 1, 2)
            diagonal = np.einsum("kii->ki", block)
            self.diagonal[:, states] = diagonal.T
            diagonal *= 1.0 + damping
            self.inverse[states] = np.linalg.inv(block)

    def solve(self, r: Array) -> Array:
        return np.asarray((self.inverse @ r.T.astype(np.float32)[..., None])[..., 0].T, float)


class _Shared(NamedTuple):
    """Products that states of a group with like γ share, for unit variance: which of each state, (B, N, N) each."""

    of_state: Index
    own: Array  # prior + Sᵀ W S
    inner: Array  # Tᵀ W T
    cross: Array  # Tᵀ W S

    @staticmethod
    def of(groups: Sequence[Group], ratio: Array) -> _Shared:
        rounded = np.round(2.0 * np.log(np.maximum(ratio, 1e-12)))
        of_state = np.empty(len(ratio), np.int64)
        own: list[Array] = []
        inner: list[Array] = []
        cross: list[Array] = []
        for g in groups:
            values, which = np.unique(rounded[g.members], return_inverse=True)
            of_state[g.members] = len(own) + which
            for value in values:
                weighted = 1.0 / (g.w + np.exp(0.5 * value))
                own.append(g.prior + (g.S.T * weighted) @ g.S)
                inner.append((g.T.T * weighted) @ g.T)
                cross.append((g.T.T * weighted) @ g.S)
        return _Shared(of_state, np.stack(own), np.stack(inner), np.stack(cross))


class BandedBlocks:
    """All states' blocks as one banded Cholesky factor, for operators of one group that reach over elements."""

    def __init__(
        self, risk: SparseRisk, b: SparseBlock, fz: Pairs, weights: Array, gamma: Array, damping: float
    ) -> None:
        from scipy.linalg import cholesky_banded

        N, K = b.y.shape
        element = b.groups[0].element
        assert element is not None
        n, m, s = element.T.shape  # elements, equations and points of each
        R = weights.reshape(n, m, K)
        first = (s - 1) * np.arange(n)
        c = fz.values[b.rows][first[:, None] + np.arange(s)]  # (n, s, pairs)
        blocks = np.einsum("nir,nit,nik->knrt", element.S, element.S, R, optimize=True)
        for start in range(0, len(fz.rows), chunk := max(1, _AT_ONCE * 20 // (n * s * s))):
            p = slice(start, start + chunk)
            J = element.T[..., None] * c[:, None, :, p]  # (n, m, s, pairs)
            W = R[:, :, fz.rows[p]]
            both = np.einsum("nirp,nitp->pnrt", J * W[:, :, None], J)
            same = np.flatnonzero(fz.rows[p] == fz.cols[p])
            cross = np.einsum("nirp,nit->pnrt", J[..., same] * W[:, :, None, same], element.S)
            both[same] -= cross + np.swapaxes(cross, 2, 3)
            np.add.at(blocks, fz.cols[p], both)
        band = np.zeros((s, K, N))  # band[d, k, i] is entry (i + d, i) of state k's block
        for d in range(s):
            for r in range(s - d):
                band[d][:, first + r] += blocks[:, :, r + d, r]
        band[0] += b.weight.T
        self.diagonal = band[0].T.copy()
        band[0] *= 1.0 + damping
        self.factor = cholesky_banded(band.reshape(s, K * N), lower=True)

    def solve(self, r: Array) -> Array:
        from scipy.linalg import cho_solve_banded

        return np.asarray(cho_solve_banded((self.factor, True), r.T.ravel(), check_finite=False).reshape(r.T.shape).T)
