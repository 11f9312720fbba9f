"""Levenberg–Marquardt for single problems and batches, with active bounds.

A step of Gauss–Newton is damped until it lowers the objective; success lowers the damping, failure raises it. What a
point is, how a step is made and when it is good enough are the caller's; the loop owns the damping.

The Hessian of a sum of squares is H + S: H has the products of first derivatives, S the residuals times their second
ones. Where residuals are large and the model is strongly nonlinear, S is as large as H, and Gauss–Newton steps, which
use H alone, are too long. `secant_update` estimates S from changes of the gradient: after a step s that changed it by
y, (H + S)s must be y. The change of S is the smallest in the metric of the Hessian (Dennis, Gay and Welsch 1981, ACM
Trans. Math. Softw. 7:348); S is scaled down before, so that outdated curvature is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Point(Protocol):
    """Where a search stands, or B searches side by side: `value` is a number, or (B,)."""

    @property
    def value(self) -> Any: ...


P = TypeVar("P", bound=Point)
_ROUNDING = 1e-14  # of a diagonal: what is left of it may be nothing else


@dataclass(frozen=True)
class Rule:
    """How the damping moves, and when to give up.

    Attributes:
        damping: at first.
        down, up: factors after a step that was taken, and after one that was not.
        least: the damping is never lowered below.
        most: a search whose damping exceeds this has no descent left: it has arrived, up to rounding.
        steps: at most so many steps are taken.
        tries: at most so many are tried.
        enough: the share of searches that must have settled for all to end.
        leave: searches that have settled are left where they are; their damping is NaN from then on.
    """

    damping: float = 1e-3
    down: float = 0.1
    up: float = 10.0
    least: float = 1e-10
    most: float = 1e10
    steps: float = np.inf
    tries: float = np.inf
    enough: float = 1.0
    leave: bool = False


@dataclass(frozen=True)
class Ended(Generic[P]):
    """Where the searches ended.

    Attributes:
        steps, tries: steps taken by any search, and tried.
        settled: whether each has arrived, rather than run out of steps.
        stuck: whether each arrived because no step lowers its objective any more.
    """

    point: P
    steps: int
    tries: int
    settled: Any
    stuck: Any


def levenberg_marquardt(
    start: P,
    propose: Callable[[P, Any], tuple[P, Any]],
    settles: Callable[[Any, Any, P, Any], Any],
    rule: Rule,
    merge: Callable[[P, P, Any], P] = lambda old, new, better: new if better else old,
) -> Ended[P]:
    """Search from a point, or from B points side by side.

    Args:
        propose: (point, damping) ↦ another point, and whether it is to be taken; damping and answer are one number or
            (B,). What a step needs and damping does not change, the caller keeps until the point is another one.
        settles: (better, gain, point, damping) ↦ whether a search is over: the step was taken or not, what it gained
            (infinite from where nothing was finite), where the search is now and its damping from now on.
        merge: the points after those that are `better` have moved.
    """
    point, value = start, np.asarray(start.value, float)
    damping = np.full(value.shape, rule.damping)
    settled = stuck = np.zeros(value.shape, bool)
    steps = tries = 0
    while steps < rule.steps and tries < rule.tries and not settled.mean() >= rule.enough:
        trial, better = propose(point, damping[()])
        better = np.asarray(better)
        tries, steps = tries + 1, steps + bool(better.any())
        with np.errstate(invalid="ignore"):
            gain = np.where(better, value - trial.value, 0.0)
        gain = np.where(np.isnan(gain), np.inf, gain)
        point = merge(point, trial, better)
        value = np.asarray(point.value, float)
        damping = np.where(better, np.maximum(damping * rule.down, rule.least), damping * rule.up)
        given_up = ~better & (damping > rule.most)
        over = given_up | settles(better, gain[()], point, damping[()])
        settled, stuck = (settled | over, stuck | given_up) if rule.leave else (over, given_up)
        if rule.leave:
            damping = np.where(settled, np.nan, damping)
    return Ended(point, steps, tries, settled[()], stuck[()])


def damped_step(H: Array, g: Array, damping: Array) -> Array:
    """Steps δ (S, F) with (H + damping·diag H) δ = −g, of S searches side by side.

    In unknowns scaled by √diag H, so that it does not matter in which units they are; those that change nothing stay.
    """
    diagonal = np.einsum("sii->si", H)
    d = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = H / (d[:, :, None] * d[:, None, :])
    own = np.einsum("sii->si", scaled)
    own[...] = np.where(own > 0, own, 1.0) + damping[:, None] + _ROUNDING
    return np.asarray(np.linalg.solve(scaled, -(g / d)[..., None])[..., 0] / d)


def corner(S: Array, right: Array, before: Array) -> Array:
    """Solve S δ = right (F,), where S (F, F) is what is left of a matrix with diagonal `before` (F,).

    Scaled by its diagonal, so that neither units matter nor does one indifferent parameter swamp the others.
    """
    if not len(right):
        return right
    diagonal = np.maximum(S.diagonal(), _ROUNDING * before)
    d = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = S / (d[:, None] * d)
    scaled[np.diag_indices(len(d))] = 1.0
    x, info = lapack.dposv(scaled, right / d)[1:]
    return np.asarray((np.linalg.lstsq(scaled, right / d, rcond=_ROUNDING)[0] if info else x) / d)


def blocked_by_bounds(at: Array, gradient: Array, low: Array, high: Array) -> Mask:
    """Unknowns that sit at a bound while the objective falls beyond it: a step has to hold them."""
    return np.asarray(((at <= low) & (gradient > 0)) | ((at >= high) & (gradient < 0)))


def secant_update(S: Array, H: Array, s: Array, y: Array) -> Array:
    """The corrections (B, P, P) after steps s (B, P) that changed gradients by y (B, P), from those before.

    Args:
        H: of Gauss–Newton, where the steps have led to (B, P, P).
    """
    with np.errstate(all="ignore"):
        wanted = y - _times(H, s)
        size = np.abs((s * wanted).sum(1)) / np.abs((s * _times(S, s)).sum(1))
        S = S * np.where(np.isfinite(size), np.minimum(size, 1.0), 1.0)[:, None, None]
        along, left = (s * y).sum(1), wanted - _times(S, s)
        twice = left[:, :, None] * y[:, None, :]
        change = (twice + twice.swapaxes(1, 2)) / along[:, None, None]
        change -= ((s * left).sum(1) / along**2)[:, None, None] * (y[:, :, None] * y[:, None, :])
        sound = (along > 0) & np.isfinite(change).all((1, 2))
    return S + np.where(sound[:, None, None], change, 0.0)


def full_hessian(H: Array, S: Array) -> Array:
    """H + S (B, P, P) where that is positive definite, else H."""
    if not S.any():
        return H
    d = np.sqrt(np.maximum(np.einsum("bii->bi", H), 1e-300))
    with np.errstate(all="ignore"):
        scaled = (H + S) / (d[:, :, None] * d[:, None, :])
        fine = np.isfinite(scaled).all((1, 2))
        least = np.linalg.eigvalsh(np.where(fine[:, None, None], scaled, np.eye(H.shape[-1])))[:, 0]
    return np.where((fine & (least > 0))[:, None, None], H + S, H)


def _times(M: Array, v: Array) -> Array:
    return np.asarray((M @ v[..., None])[..., 0])
