"""Arrow matrices: blocks of single experiments, coupled through shared parameters.

In the order (x0 of every experiment, φ) such a matrix is an arrow: a block per experiment, an edge from each to φ, and
a corner. To eliminate block by block takes time linear in the number of experiments, and the inverse is blocks again
plus a matrix whose rank is the size of the corner. With blocks A_e, edges B_e and corner C,

    H⁻¹ = blockdiag(A_e⁻¹) + U S⁻¹ Uᵀ,   S = C − Σ B_eᵀ A_e⁻¹ B_e,   U = −A_e⁻¹ B_e in the rows of e, 1 in those of φ.

Sums and products of "blocks plus low rank" are of this kind again (`BlockPlusLowRank`), so that covariances take time
and memory linear in the number of experiments. Where there are few, everything is in the corner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.optimize.levenberg_marquardt import full_hessian

Array = NDArray[np.float64]
Index = NDArray[np.int64]

FEW = 60  # initial values up to which all is in the corner
FLAT = 1e-13  # below this share of the best determined direction, in standardised unknowns, rounding decides


@dataclass(frozen=True, eq=False)
class ArrowMatrix:
    """Symmetric matrices (B, P, P), P = E·I + C.

    Attributes:
        own: blocks (B, E, I, I).
        edge: (B, E, I, C).
        corner: (B, C, C).
    """

    own: Array
    edge: Array
    corner: Array

    @staticmethod
    def dense_size(experiments: int, initial: int, size: int) -> int:
        """How many unknowns corrections are learnt for: all, or none where these would be dense in many experiments."""
        return size if experiments * initial <= FEW else 0

    @staticmethod
    def zeros(B: int, experiments: int, initial: int, size: int) -> ArrowMatrix:
        """Of P = size unknowns, the initial values of experiments first."""
        E = experiments if experiments * initial > FEW else 0
        C = size - E * initial
        return ArrowMatrix(np.zeros((B, E, initial, initial)), np.zeros((B, E, initial, C)), np.zeros((B, C, C)))

    @staticmethod
    def from_dense(H: Array) -> ArrowMatrix:
        """Of dense ones: all in the corner."""
        return ArrowMatrix(np.zeros((len(H), 0, 0, 0)), np.zeros((len(H), 0, 0, len(H[0]))), H)

    def add(self, e: int, places: Index, A: Array) -> None:
        """Add matrices (B, W, W) over the unknowns of an experiment, those at `places`, its initial values first."""
        _, E, n, _ = self.own.shape
        if not E:
            self.corner[:, places[:, None], places] += A
            return
        inner = places[n:] - E * n
        self.own[:, e] += A[:, :n, :n]
        self.edge[:, e, :, inner] += np.moveaxis(A[:, :n, n:], 2, 0)
        self.corner[:, inner[:, None], inner] += A[:, n:, n:]

    def add_alike(self, e: Index, places: Index, A: Array) -> None:
        """Add matrices (B, G, W, W) over the unknowns of experiments e (G,), those at `places` (G, W)."""
        _, E, n, _ = self.own.shape
        inner = places[:, n:] - E * n
        if not E or (inner != inner[0]).any():
            for i, own in enumerate(e.tolist()):
                self.add(own, places[i], A[:, i])
            return
        self.own[:, e] += A[:, :, :n, :n]
        self.edge[:, e[:, None, None], np.arange(n)[:, None], inner[0]] += A[:, :, :n, n:]
        self.corner[:, inner[0][:, None], inner[0]] += A[:, :, n:, n:].sum(1)

    def add_last(self, b: int, A: Array) -> None:
        """Add a matrix (F, F) over the last unknowns to one of them."""
        first = self.corner.shape[1] - len(A)
        self.corner[b, first:, first:] += A

    def put(self, index: Index, other: ArrowMatrix) -> None:
        """Replace those at `index` by all of `other`."""
        self.own[index], self.edge[index], self.corner[index] = other.own, other.edge, other.corner

    @staticmethod
    def join(parts: list[ArrowMatrix]) -> ArrowMatrix:
        """All of them in one batch."""
        return ArrowMatrix(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("own", "edge", "corner")))

    def take(self, index: Index) -> ArrowMatrix:
        """Those at `index`."""
        return ArrowMatrix(self.own[index], self.edge[index], self.corner[index])

    @property
    def diagonal(self) -> Array:
        """(B, P)"""
        own = np.einsum("beii->bei", self.own).reshape(len(self.own), -1)
        return np.concatenate([own, np.einsum("bii->bi", self.corner)], 1)

    @property
    def largest(self) -> Array:
        """The largest absolute entry (B,)."""
        parts = (np.abs(part).reshape(len(part), -1) for part in (self.own, self.edge, self.corner))
        return np.asarray(np.max([part.max(1, initial=0.0) for part in parts], 0))

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Whether all is (B,)."""
        own = np.isfinite(self.own).all((1, 2, 3)) & np.isfinite(self.edge).all((1, 2, 3))
        return np.asarray(own & np.isfinite(self.corner).all((1, 2)))

    def split(self, v: Array) -> tuple[Array, Array]:
        """What belongs to the blocks (B, E, I, ...) and to the corner (B, C, ...) of v (B, P, ...)."""
        _, E, n, _ = self.own.shape
        return v[:, : E * n].reshape(len(v), E, n, *v.shape[2:]), v[:, E * n :]

    def times(self, v: Array) -> ArrowMatrix:
        """Each entry (i, j) times v_i v_j, for v (B, P)."""
        a, c = self.split(v)
        own = self.own * (a[..., :, None] * a[..., None, :])
        return ArrowMatrix(
            own, self.edge * (a[..., None] * c[:, None, None]), self.corner * (c[:, :, None] * c[:, None])
        )

    def plus(self, v: Array) -> ArrowMatrix:
        """With v (B, P) added to the diagonal."""
        a, c = self.split(v)
        own, corner = self.own.copy(), self.corner.copy()
        np.einsum("beii->bei", own)[...] += a
        np.einsum("bii->bi", corner)[...] += c
        return ArrowMatrix(own, self.edge, corner)

    def within(self, a: Array, last: Array) -> ArrowMatrix:
        """With one more row and column a (B, P), whose last entry is given (B,)."""
        mine, shared = self.split(a)
        corner = np.concatenate([self.corner, shared[:, None]], 1)
        corner = np.concatenate([corner, np.concatenate([shared, last[:, None]], 1)[..., None]], 2)
        return ArrowMatrix(self.own, np.concatenate([self.edge, mine[..., None]], -1), corner)

    def dot(self, v: Array) -> Array:
        """Times v (B, P)."""
        a, c = self.split(v)
        own = np.einsum("beij,bej->bei", self.own, a) + np.einsum("beip,bp->bei", self.edge, c)
        last = np.einsum("beip,bei->bp", self.edge, a) + (self.corner @ c[..., None])[..., 0]
        return np.concatenate([own.reshape(len(v), -1), last], 1)

    def bent(self, more: Array) -> ArrowMatrix:
        """With corrections (B, P, P) where that leaves them positive definite; of many experiments there are none."""
        return ArrowMatrix.from_dense(full_hessian(self.corner, more)) if more.shape[1] else self

    def without_rows(self, lost: Index) -> ArrowMatrix:
        """With unit matrices at `lost`."""
        if not len(lost):
            return self
        own, edge, corner = self.own.copy(), self.edge.copy(), self.corner.copy()
        own[lost], edge[lost], corner[lost] = np.eye(own.shape[-1]), 0.0, np.eye(corner.shape[-1])
        return ArrowMatrix(own, edge, corner)

    def solve(self, right: Array) -> Array:
        """Of right-hand sides (B, P, R); by least squares where there is no solution."""
        mine, shared = self.split(right)
        if not self.own.shape[1]:
            return _solve(self.corner, shared)
        found = _solve(self.own, np.concatenate([self.edge, mine], -1))
        through, alone = np.split(found, [self.edge.shape[-1]], -1)
        last = _solve(
            self.corner - np.einsum("beip,beiq->bpq", self.edge, through),
            shared - np.einsum("beip,beir->bpr", self.edge, alone),
        )
        own = alone - through @ last[:, None]
        return np.concatenate([own.reshape(len(right), -1, right.shape[2]), last], 1)

    def weakest(self, count: int) -> tuple[Array, Array]:
        """Of the first: its smallest eigenvalues (count,) and their eigenvectors (P, count)."""
        P = self.own.shape[1] * self.own.shape[2] + self.corner.shape[1]
        if not self.own.shape[1]:
            w, V = np.linalg.eigh(self.corner[0])
            return w[:count], V[:, :count]
        from scipy.sparse.linalg import LinearOperator, eigsh

        sound = self.plus(np.full((len(self.own), P), FLAT))
        inverse = LinearOperator((P, P), lambda v: sound.solve(np.reshape(v, (1, P, 1)))[0, :, 0], dtype=float)
        w, V = eigsh(inverse, count, which="LA", v0=np.ones(P), tol=1e-6)
        order = np.argsort(-w)
        return 1.0 / w[order] - FLAT, V[:, order]

    def dense(self) -> Array:
        """(B, P, P)"""
        _, E, n, _ = self.own.shape
        B, P = len(self.own), E * n + self.corner.shape[1]
        H = np.zeros((B, P, P))
        H[:, E * n :, E * n :] = self.corner
        for e in range(E):
            at = slice(e * n, (e + 1) * n)
            H[:, at, at] = self.own[:, e]
            H[:, at, E * n :], H[:, E * n :, at] = self.edge[:, e], np.swapaxes(self.edge[:, e], 1, 2)
        return H

    def sum(self, weights: Array, more: ArrowMatrix) -> ArrowMatrix:
        """Their weighted sum, and more."""
        parts = [(getattr(self, name), getattr(more, name)) for name in ("own", "edge", "corner")]
        return ArrowMatrix(*(np.einsum("b,b...->...", weights, own)[None] + other for own, other in parts))

    def matrices(self) -> list[Any]:
        """Each of them (P, P), dense or as blocks plus low rank."""
        if not self.own.shape[1]:
            return list(self.corner)
        n, found = self.corner.shape[1], []
        for own, edges, corner in zip(self.own, self.edge, self.corner, strict=True):
            edge, none = edges.reshape(-1, n), np.zeros((edges.shape[0] * edges.shape[1], n))
            left = np.block([[edge, none], [np.zeros((n, n)), np.eye(n)]])
            found.append(BlockPlusLowRank(own, left, np.block([[none, edge], [np.eye(n), corner]])))
        return found

    def inverse(self) -> tuple[Any, Array]:
        """The inverse of the first without its flat directions, dense or woven, and these (P, ·), of length 1."""
        d = np.sqrt(np.maximum(self.diagonal[:1], 1e-300))
        H = self.times(1.0 / d)
        own, edge, corner = H.own[0], H.edge[0], H.corner[0]
        w, V = np.linalg.eigh(own)
        sound = w > FLAT
        blocks = (V * np.where(sound, 1.0 / np.where(sound, w, 1.0), 0.0)[:, None]) @ np.swapaxes(V, 1, 2)
        U = np.concatenate([-np.concatenate([*(blocks @ edge), np.empty((0, len(corner)))]), np.eye(len(corner))])
        s, T = np.linalg.eigh(corner - np.einsum("eip,eij,ejq->pq", edge, blocks, edge, optimize=True))
        firm = s > FLAT * (1.0 if len(own) else s.max(initial=0.0))
        alone = np.zeros((len(U), int((~sound).sum())))
        for column, (e, i) in enumerate(np.argwhere(~sound)):
            alone[e * own.shape[1] : (e + 1) * own.shape[1], column] = V[e, :, i]
        flat = np.concatenate([alone, U @ T[:, ~firm]], 1) / d[0, :, None]
        size = np.linalg.norm(flat, axis=0)
        flat, left = flat / np.where(size > 0, size, 1.0), (U @ T[:, firm]) / d[0, :, None]
        if not len(own):
            return (left / s[firm]) @ left.T, flat
        mine = 1.0 / H.split(d)[0][0]
        return BlockPlusLowRank(blocks * (mine[..., :, None] * mine[..., None, :]), left, left / s[firm]), flat


def _solve(A: Array, b: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(A, b))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(A) @ b)


@dataclass(frozen=True, eq=False)
class BlockPlusLowRank:
    """The matrix blockdiag(blocks) + left rightᵀ (P, P), the blocks being in the first rows.

    Attributes:
        blocks: (E, I, I).
        left, right: (P, r).
    """

    blocks: Array
    left: Array
    right: Array

    def _blocks_times(self, v: Array) -> Array:
        E, n, _ = self.blocks.shape
        found = np.zeros_like(v)
        found[: E * n] = (self.blocks @ v[: E * n].reshape(E, n, -1)).reshape(E * n, -1)
        return found

    def __matmul__(self, other: BlockPlusLowRank) -> BlockPlusLowRank:
        left = self._blocks_times(other.left) + self.left @ (self.right.T @ other.left)
        right = other.T._blocks_times(self.right)
        both = (np.concatenate(pair, 1) for pair in ((left, self.left), (other.right, right)))
        return BlockPlusLowRank(self.blocks @ other.blocks, *both)

    def __add__(self, other: BlockPlusLowRank) -> BlockPlusLowRank:
        return BlockPlusLowRank(self.blocks + other.blocks, np.concatenate([self.left, other.left], 1),
                     np.concatenate([self.right, other.right], 1))  # fmt: skip

    def __mul__(self, factor: float) -> BlockPlusLowRank:
        return BlockPlusLowRank(factor * self.blocks, factor * self.left, self.right)

    __rmul__ = __mul__

    def __sub__(self, other: BlockPlusLowRank) -> BlockPlusLowRank:
        return self + -1.0 * other

    @property
    def T(self) -> BlockPlusLowRank:
        return BlockPlusLowRank(np.swapaxes(self.blocks, 1, 2), self.right, self.left)

    def __len__(self) -> int:
        return len(self.left)

    def trace(self) -> float:
        return float(np.einsum("eii->", self.blocks) + (self.left * self.right).sum())

    def at(self, places: Index) -> Array:
        """The entries (W, W) between these unknowns."""
        E, n, _ = self.blocks.shape
        found = self.left[places] @ self.right[places].T
        e, i = np.divmod(places, n)
        for n in np.flatnonzero(e < E):
            same = np.flatnonzero((e == e[n]) & (e < E))
            found[n, same] += self.blocks[e[n], i[n], i[same]]
        return found

    def quadratic(self, a: Array) -> Array:
        """aᵀ X a (...) for each a (..., P)."""
        E, n, _ = self.blocks.shape
        own = a[..., : E * n].reshape(*a.shape[:-1], E, n)
        inner = np.einsum("...ei,eij,...ej->...", own, self.blocks, own)
        return np.asarray(inner + ((a @ self.left) * (a @ self.right)).sum(-1))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.at(np.arange(len(self.left)))


def among(X: Array | BlockPlusLowRank, places: Index) -> Array:
    """The entries (W, W) between these unknowns."""
    return X.at(places) if isinstance(X, BlockPlusLowRank) else np.asarray(X[np.ix_(places, places)])


def quadratic(X: Array | BlockPlusLowRank, a: Array) -> Array:
    """aᵀ X a (...) for each a (..., P)."""
    return X.quadratic(a) if isinstance(X, BlockPlusLowRank) else np.asarray(np.einsum("...p,pq,...q->...", a, X, a))
