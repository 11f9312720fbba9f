"""The interface of a noise family, for location–scale families and for counts.

Arguments outside their domain, NaN among them, have log p = −∞; a NaN in y stays NaN. Neither warns. Formulas are never
given such values, but harmless ones instead: choosing between results alone would let NaN into the derivatives of JAX.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SMALLEST, LARGEST = 1e-50, 1e50  # to which arguments are moved where derivatives must stay finite


class Rows(NamedTuple):
    """What Gauss–Newton needs of every observation: R residuals r (..., R), and their derivatives J (..., R, A) by the
    A arguments. The gradient of −log p is Σ_r r·J, Fisher's information (its positive part for single values) JᵀJ."""

    r: Array
    J: Array


class Family(Protocol):
    """The distribution of single observations.

    Attributes:
        arguments: what stands in the brackets, such as ("mean", "sd"); the predicted value comes first.
        least: how many of them must be given. Of those left out, `defaults` are numbers and the others are estimated.
        defaults: argument → value if it is left out.
        discrete: whether values are counts.
        profiled: whether an sd that is left out has a closed form: residuals are `transformed(y) − transformed(mean)`.
    """

    arguments: ClassVar[tuple[str, ...]]
    least: ClassVar[int]
    defaults: ClassVar[dict[str, float]]
    discrete: ClassVar[bool]
    profiled: ClassVar[bool]

    def refuses(self, y: Array) -> str | None:
        """Why some of these values (those that are not NaN) cannot be observed, such as "must be positive"; or None."""

    def transformed(self, y: Any, xp: Any = np) -> Any:
        """On the scale on which the noise is symmetric: y itself, or log y."""

    def restored(self, x: Array) -> Array:
        """The inverse of `transformed`."""

    def log_density(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        """log p of each value with its constants; also in JAX, with `xp` jax.numpy."""

    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        """Residuals and derivatives by the arguments."""

    def draw(self, rng: np.random.Generator, a: Sequence[Array]) -> Array:
        """One value for each of the arguments, which have one shape; NaN where they are outside their domain."""

    def log_cdf(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        """log P(Y ≤ y), accurate far out in the tails; for y of −∞ or ∞ too."""

    def log_sf(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        """log P(Y > y), accurate far out in the tails."""

    def quantile(self, p: Array, a: Sequence[Array]) -> Array:
        """The value below which a share p of the observations lies; of counts the least y with P(Y ≤ y) ≥ p."""


def uncorrelated(gradient: Sequence[Array], root: Sequence[Array]) -> Rows:
    """Rows where Fisher's information is diagonal: from the gradient of −log p and the roots of the information."""
    g, root = np.broadcast_arrays(*gradient), np.broadcast_arrays(*root)
    shape = np.broadcast_shapes(g[0].shape, root[0].shape)
    J = np.zeros((*shape, len(g), len(g)))
    r = np.zeros((*shape, len(g)))
    for i in range(len(g)):
        J[..., i, i] = root[i]
        r[..., i] = np.where(root[i] > 0, g[i] / np.where(root[i] > 0, root[i], 1.0), 0.0)
    return Rows(r, J)


class LocationScale(ABC):
    """T(y) = T(m) + s·e, with e symmetric about 0 and T the identity unless `transformed` says otherwise.

    Arguments are m, s and any that shape the distribution of e. The standard functions take z = (T(y) − T(m))/s.
    """

    arguments: ClassVar[tuple[str, ...]] = ("mean", "sd")
    least: ClassVar[int] = 1
    defaults: ClassVar[dict[str, float]] = {}
    discrete: ClassVar[bool] = False
    profiled: ClassVar[bool] = False

    @abstractmethod
    def standard_log_density(self, z: Any, shape: Sequence[Any], xp: Any = np) -> Any:
        """log of the density of e."""

    @abstractmethod
    def standard_slope(self, z: Array, shape: Sequence[Array]) -> Array:
        """Its derivative by z."""

    @abstractmethod
    def standard_log_cdf(self, z: Any, shape: Sequence[Any], xp: Any = np) -> Any:
        """log P(e ≤ z) for finite z."""

    def standard_hazard(self, z: Array, shape: Sequence[Array]) -> Array:
        """The derivative of log P(e ≤ z)."""
        return np.asarray(np.exp(self.standard_log_density(z, shape) - self.standard_log_cdf(z, shape)))

    @abstractmethod
    def standard_quantile(self, p: Array, shape: Sequence[Array]) -> Array:
        """The quantile of e."""

    @abstractmethod
    def standard_draw(self, rng: np.random.Generator, shape: Sequence[Array], size: tuple[int, ...]) -> Array:
        """Independent e."""

    @abstractmethod
    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        """See `Family`."""

    def refuses(self, y: Array) -> str | None:
        return None

    def transformed(self, y: Any, xp: Any = np) -> Any:
        return y

    def restored(self, x: Array) -> Array:
        """The inverse of `transformed`."""
        return x

    def slope(self, y: Any) -> Any:
        """dT/dy."""
        return 1.0 + 0.0 * y

    def in_domain(self, a: Sequence[Any], xp: Any = np) -> Any:
        """Where the arguments make sense."""
        good = xp.isfinite(self.transformed(a[0], xp)) & xp.isfinite(a[0])
        for scale in a[1:]:
            good = good & (scale > 0) & xp.isfinite(scale)
        return good

    def scaled(self, y: Any, a: Sequence[Any], xp: Any = np) -> tuple[Any, Any, Any, list[Any]]:
        """(where the arguments are in their domain, z, s, shape); of the others there are harmless values."""
        good = self.in_domain(a, xp)
        m, *scales = (xp.where(good, value, 1.0) for value in a)
        return good, (self.transformed(y, xp) - self.transformed(m, xp)) / scales[0], scales[0], scales[1:]

    @np.errstate(all="ignore")
    def log_density(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        good, z, s, shape = self.scaled(y, a, xp)
        finite = xp.isfinite(z)
        log_p = self.standard_log_density(xp.where(finite, z, 0.0), shape, xp)
        log_p = log_p - xp.log(s) + xp.log(self.slope(xp.where(finite, y, 1.0)))
        return xp.where(xp.isnan(y), np.nan, xp.where(good & finite, log_p, -np.inf))

    @np.errstate(all="ignore")
    def log_cdf(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        return self._log_tail(y, a, 1.0, xp)

    @np.errstate(all="ignore")
    def log_sf(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        return self._log_tail(y, a, -1.0, xp)

    def _log_tail(self, y: Any, a: Sequence[Any], side: float, xp: Any) -> Any:
        good, z, _, shape = self.scaled(y, a, xp)
        # A transformation has no value below the smallest y.
        z = side * xp.where(~xp.isnan(z) | xp.isnan(y), z, -np.inf)
        finite = xp.isfinite(z)
        log_p = self.standard_log_cdf(xp.where(finite, z, 0.0), shape, xp)
        log_p = xp.where(finite, log_p, xp.where(z > 0, 0.0, -np.inf))
        return xp.where(xp.isnan(y), np.nan, xp.where(good, log_p, -np.inf))

    @np.errstate(all="ignore")
    def quantile(self, p: Array, a: Sequence[Array]) -> Array:
        m, s, *shape = (np.where(self.in_domain(a), value, np.nan) for value in a)
        return np.asarray(self.restored(self.transformed(m) + s * self.standard_quantile(p, shape)))

    @np.errstate(all="ignore")
    def draw(self, rng: np.random.Generator, a: Sequence[Array]) -> Array:
        good = self.in_domain(a)
        m, s, *shape = (np.where(good, value, 1.0) for value in a)
        e = self.standard_draw(rng, shape, np.shape(m))
        return np.where(good, self.restored(self.transformed(m) + s * e), np.nan)

    def clipped(self, a: Sequence[Array]) -> list[Array]:
        """Arguments with which derivatives are finite."""
        m = np.clip(np.where(np.isnan(a[0]), 0.0, a[0]), -LARGEST, LARGEST)
        return [m, *(positive(scale) for scale in a[1:])]


def positive(value: Array) -> Array:
    """The nearest positive number that can be squared."""
    return np.clip(np.where(np.isnan(value), 1.0, value), SMALLEST, LARGEST)


class Counts(ABC):
    """Whole numbers from 0 on. Arguments are the mean and any others.

    The probabilities take whole y ≥ 0 and arguments in their domain, so that each is one formula.
    """

    arguments: ClassVar[tuple[str, ...]] = ("mean",)
    least: ClassVar[int] = 1
    defaults: ClassVar[dict[str, float]] = {}
    discrete: ClassVar[bool] = True
    profiled: ClassVar[bool] = False

    @abstractmethod
    def in_domain(self, a: Sequence[Any], xp: Any = np) -> Any:
        """Where the arguments make sense."""

    @abstractmethod
    def log_mass(self, y: Any, a: Sequence[Any], xp: Any) -> Any:
        """log P(Y = y)."""

    @abstractmethod
    def log_tail(self, y: Any, a: Sequence[Any], upper: bool, xp: Any) -> Any:
        """log P(Y > y) or log P(Y ≤ y)."""

    def most(self, a: Sequence[Array]) -> Array:
        """The largest possible count."""
        return np.full_like(a[0], np.inf)

    @abstractmethod
    def random(self, rng: np.random.Generator, a: Sequence[Array]) -> Array:
        """Draws with arguments in their domain."""

    @abstractmethod
    def rows(self, y: Array, a: Sequence[Array]) -> Rows:
        """See `Family`."""

    def refuses(self, y: Array) -> str | None:
        seen = y[~np.isnan(y)]
        return None if np.all((seen >= 0) & (seen == np.floor(seen)) & (seen < np.inf)) else "must be whole numbers ≥ 0"

    def transformed(self, y: Any, xp: Any = np) -> Any:
        return y

    def restored(self, x: Array) -> Array:
        return x

    def _safe(self, y: Any, good_y: Any, a: Sequence[Any], xp: Any) -> tuple[Any, Any, list[Any]]:
        good = self.in_domain(a, xp)
        return good, xp.where(good_y, y, 0.0), [xp.where(good, value, 1.0) for value in a]

    @np.errstate(all="ignore")
    def log_density(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        whole = (y >= 0) & (y == xp.floor(y)) & xp.isfinite(y)
        good, safe, a = self._safe(y, whole, a, xp)
        return xp.where(xp.isnan(y), np.nan, xp.where(good & whole, self.log_mass(safe, a, xp), -np.inf))

    @np.errstate(all="ignore")
    def log_cdf(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        return self._log_tail(y, a, False, xp)

    @np.errstate(all="ignore")
    def log_sf(self, y: Any, a: Sequence[Any], xp: Any = np) -> Any:
        return self._log_tail(y, a, True, xp)

    def _log_tail(self, y: Any, a: Sequence[Any], upper: bool, xp: Any) -> Any:
        counted = (y >= 0) & xp.isfinite(y)
        good, safe, a = self._safe(xp.floor(y), counted, a, xp)
        log_p = self.log_tail(safe, a, upper, xp)
        log_p = xp.where(counted, log_p, xp.where((y < 0) == upper, 0.0, -np.inf))
        return xp.where(xp.isnan(y), np.nan, xp.where(good, log_p, -np.inf))

    @np.errstate(all="ignore")
    def quantile(self, p: Array, a: Sequence[Array]) -> Array:
        p, *a = np.broadcast_arrays(np.asarray(p, float), *a)
        # P(Y ≤ y) of a whole y is not to miss itself by rounding.
        target = np.log(p) - 1e-13
        good = self.in_domain(a) & (p >= 0) & (p <= 1)
        low, high = np.full(p.shape, -1.0), np.maximum(np.ceil(np.where(good, a[0], 0.0)), 1.0)
        while np.any(short := good & (self.log_cdf(high, a) < target) & (high < 1e300)):
            low, high = np.where(short, high, low), np.where(short, 2 * high + 1, high)
        while np.any(
            (open_ := high - low > 1) & ((middle := np.floor(low + (high - low) / 2)) > low) & (middle < high)
        ):
            reached = self.log_cdf(middle, a) >= target
            low, high = np.where(open_ & ~reached, middle, low), np.where(open_ & reached, middle, high)
        return np.where(good, np.where(p == 1, self.most(a), high), np.nan)

    def draw(self, rng: np.random.Generator, a: Sequence[Array]) -> Array:
        good = self.in_domain(a)
        return np.where(good, self.random(rng, [np.where(good, value, 1.0) for value in a]), np.nan)
