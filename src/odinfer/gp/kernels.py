"""Covariance functions of time: correlation, its two derivatives, and warped forms.

A kernel here is a correlation function: the signal variance is applied outside. Its `shape` is a vector of
positive hyperparameters (a lengthscale, ...), searched on a log scale. All functions broadcast over leading
axes of `shape`, so that a whole grid of shapes costs one call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError, nearest

Array = NDArray[np.float64]


class Gram(NamedTuple):
    """Correlation matrices between times a (N,) and b (M,), each (..., N, M)."""

    C: Array  # k(a, b)
    dC: Array  # dk/da: the paper's 'C
    Cd: Array  # dk/db: the paper's C'
    dCd: Array  # d2k/da db: the paper's C''


@dataclass(frozen=True)
class Kernel:
    """A correlation function with named shape hyperparameters.

    Attributes:
        name: what users write.
        shape_names: one name per shape hyperparameter.
        gram: (a (N,), b (M,), shape (..., d)) → Gram.
        grid: (t (N,)) → one array of candidate values per shape hyperparameter.
    """

    name: str
    shape_names: tuple[str, ...]
    gram: Callable[[Array, Array, Array], Gram]
    grid: Callable[[Array], tuple[Array, ...]]

    def shapes(self, t: Array) -> tuple[Array, Array]:
        """Candidate shapes (G, d) for times t, and the spacing of the grid on the log scale (d,)."""
        axes = self.grid(t)
        steps = np.array([np.log(a[1] / a[0]) if len(a) > 1 else 0.7 for a in axes])
        return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes)), steps


def _stationary(lag: Callable[..., tuple[Array, Array, Array]]) -> Callable[[Array, Array, Array], Gram]:
    """Gram matrices of a kernel given as c, dc/dd, d2c/dd2 of the lag d = a − b."""

    def gram(a: Array, b: Array, shape: Array) -> Gram:
        d = a[:, None] - b[None, :]
        c, c1, c2 = lag(d, *np.moveaxis(np.asarray(shape)[..., None, None], -3, 0))
        return Gram(c, c1, -c1, -c2)

    return gram


def _rbf(d: Array, length: Array) -> tuple[Array, Array, Array]:
    r = d / length
    c = np.exp(-0.5 * r * r)
    return c, -r / length * c, (r * r - 1.0) / length**2 * c


def _matern32(d: Array, length: Array) -> tuple[Array, Array, Array]:
    a = np.sqrt(3.0) / length * np.abs(d)
    e, s = np.exp(-a), 3.0 / length**2
    return (1.0 + a) * e, -s * d * e, -s * (1.0 - a) * e


def _matern52(d: Array, length: Array) -> tuple[Array, Array, Array]:
    a = np.sqrt(5.0) / length * np.abs(d)
    e, s = np.exp(-a), 5.0 / 3.0 / length**2
    return (1.0 + a + a * a / 3.0) * e, -s * d * (1.0 + a) * e, -s * (1.0 + a - a * a) * e


def _matern72(d: Array, length: Array) -> tuple[Array, Array, Array]:
    a = np.sqrt(7.0) / length * np.abs(d)
    e, s = np.exp(-a), 7.0 / 5.0 / length**2
    c = (1.0 + a + 0.4 * a**2 + a**3 / 15.0) * e
    return c, -s * d * (1.0 + a + a * a / 3.0) * e, -s * (1.0 + a - a**3 / 3.0) * e


def _rational_quadratic(d: Array, length: Array, alpha: Array) -> tuple[Array, Array, Array]:
    q = d / length**2
    base = 1.0 + d * q / (2.0 * alpha)
    power = base ** (-alpha - 1.0)
    return power * base, -q * power, power * (q * q * (alpha + 1.0) / alpha / base - 1.0 / length**2)


def _periodic(d: Array, length: Array, period: Array) -> tuple[Array, Array, Array]:
    w = 2.0 * np.pi / period
    c = np.exp(-2.0 * (np.sin(0.5 * w * d) / length) ** 2)
    slope = -w / length**2 * np.sin(w * d)
    return c, slope * c, (slope**2 - (w / length) ** 2 * np.cos(w * d)) * c


def _sigmoid_gram(a: Array, b: Array, shape: Array) -> Gram:
    """The arcsine kernel asin((α + β s t) / √((α + β s² + 1)(α + β t² + 1))) of the authors.

    With m = (α + βs² + 1)(α + βt² + 1) − (α + βst)², its derivatives simplify to the forms below.
    """
    alpha, beta = np.moveaxis(np.asarray(shape)[..., None, None], -3, 0)
    s, t = a[:, None], b[None, :]
    qs, qt = alpha + beta * s * s + 1.0, alpha + beta * t * t + 1.0
    m = alpha * beta * (t - s) ** 2 + beta * (s * s + t * t) + 2.0 * alpha + 1.0
    root = np.sqrt(m)
    c = np.arctan2(alpha + beta * s * t, root)  # asin(p/√(qs qt)), stable where the argument is near 1
    ds = beta * (alpha * (t - s) + t) / (qs * root)
    dt = beta * (alpha * (s - t) + s) / (qt * root)
    return Gram(c, ds, dt, beta * (2.0 * alpha + 1.0) / (m * root))


def _lengthscales(t: Array, n: int = 16) -> Array:
    """Log grid from half a typical gap between times to several times their span."""
    gap, span = _gap_and_span(t)
    return np.geomspace(0.5 * min(gap, span / 8), 4.0 * span, n)


def _gap_and_span(t: Array) -> tuple[float, float]:
    """The typical gap between times and their span; one time alone says nothing, so both are one."""
    return (float(np.median(np.diff(t))), float(t[-1] - t[0])) if len(t) > 1 else (1.0, 1.0)


def _warp(base: Kernel) -> Kernel:
    """The kernel on s(t) = log(1 + t/τ) with t measured from the first time; τ is the last shape entry.

    Dynamics that are fast early and slow late become even in s; a large τ gives back plain time.
    """

    def gram(a: Array, b: Array, shape: Array) -> Gram:
        shape = np.asarray(shape)
        tau = shape[..., -1:]
        sa, da = np.log1p(np.maximum(a, 0.0) / tau), 1.0 / (np.maximum(a, 0.0) + tau)
        sb, db = np.log1p(np.maximum(b, 0.0) / tau), 1.0 / (np.maximum(b, 0.0) + tau)
        d = sa[..., :, None] - sb[..., None, :]
        c, c1, c2 = _LAGS[base.name](d, *np.moveaxis(shape[..., :-1, None, None], -3, 0))
        return Gram(c, c1 * da[..., :, None], -c1 * db[..., None, :], -c2 * da[..., :, None] * db[..., None, :])

    def grid(t: Array) -> tuple[Array, ...]:
        _, span = _gap_and_span(t)
        return (np.geomspace(0.15, 8.0, 8), *base.grid(t)[1:], span * np.geomspace(0.006, 0.4, 4))

    return Kernel(f"warped-{base.name}", (*base.shape_names, "tau"), gram, grid)


_LAGS: dict[str, Callable[..., tuple[Array, Array, Array]]] = {
    "rbf": _rbf,
    "matern32": _matern32,
    "matern52": _matern52,
    "matern72": _matern72,
    "rational-quadratic": _rational_quadratic,
    "periodic": _periodic,
}


def _base(name: str) -> Kernel:
    gram = _stationary(_LAGS[name])
    if name == "rational-quadratic":
        return Kernel(
            name, ("lengthscale", "alpha"), gram, lambda t: (_lengthscales(t, 14), np.geomspace(0.1, 30.0, 5))
        )
    if name == "periodic":
        # A period is identified by seeing it repeat: from three gaps to one and a half spans.
        def grid(t: Array) -> tuple[Array, ...]:
            gap, span = _gap_and_span(t)
            return np.geomspace(0.3, 5.0, 7), np.geomspace(3.0 * gap, 1.5 * span, 24)

        return Kernel(name, ("lengthscale", "period"), gram, grid)
    return Kernel(name, ("lengthscale",), gram, lambda t: (_lengthscales(t),))


def _sigmoid_grid(t: Array) -> tuple[Array, ...]:
    _, span = _gap_and_span(t)
    return np.geomspace(1e-3, 1e2, 9), np.geomspace(1.0, 1e7, 11) / span**2


_STATIONARY = {name: _base(name) for name in _LAGS}
KERNELS: dict[str, Kernel] = (
    _STATIONARY
    | {f"warped-{name}": _warp(kernel) for name, kernel in _STATIONARY.items()}
    | {"sigmoid": Kernel("sigmoid", ("a", "b"), _sigmoid_gram, _sigmoid_grid)}
)


def kernel(name: str) -> Kernel:
    """The kernel with this name.

    Raises:
        InputError: no kernel has this name.
    """
    if name not in KERNELS:
        raise InputError(f"unknown kernel '{name}'{nearest(name, ['auto', *KERNELS])}")
    return KERNELS[name]
