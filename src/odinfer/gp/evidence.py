"""Step 1 of ODIN: Gaussian process regression per state, hyperparameters by empirical Bayes.

The evidence is searched globally: for every candidate shape one eigendecomposition of the correlation matrix,
shared by all states observed at the same times, turns it into a table over the noise ratio ρ = σ²/v in which
the signal variance v has a closed form. A few rounds of quadratic models around the best entry finish it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.gp.kernels import Kernel, kernel

Array = NDArray[np.float64]

LOG_RATIOS = np.linspace(np.log(1e-9), np.log(1e2), 36)
# A weak belief about log ρ: without it the evidence now and then explains all noise by a short lengthscale.
_RHO_MEAN, _RHO_SD = np.log(1e-2), 4.0
_FINE = np.linspace(-1.0, 1.0, 5) * (LOG_RATIOS[1] - LOG_RATIOS[0])


@dataclass(frozen=True)
class Hyperparameters:
    """Kernel and noise of one state, in standardised units. `evidence` is log p(y | t, φ, σ)."""

    kernel: str
    shape: tuple[float, ...]
    variance: float
    noise: float  # σ², a variance
    evidence: float


@dataclass(frozen=True)
class Series:
    """One state's observations in one experiment: times t (n,) from the start of the data, values y (n,)."""

    t: Array
    y: Array


class Limits(NamedTuple):
    """Bounds of all hyperparameters, and the standard deviation of the prior on log ρ (infinite for none)."""

    low: float
    high: float
    rho_sd: float

    @staticmethod
    def of(bounds: tuple[float, float], weak_prior: bool) -> Limits:
        return Limits(*bounds, _RHO_SD if weak_prior else np.inf)

    def prior(self, log_rho: Array) -> Array:
        """−log of the prior on the noise ratio, in nats, up to a constant."""
        return np.asarray(0.5 * ((log_rho - _RHO_MEAN) / self.rho_sd) ** 2)


def empirical_bayes(
    series: Sequence[Sequence[Series]],
    kernels: Sequence[str],
    known_noise: Sequence[float | None],
    margin: float = 0.0,
    bounds: tuple[float, float] = (1e-10, 1e6),
    thorough: bool = False,
    weak_prior: bool = False,
) -> list[Hyperparameters]:
    """Hyperparameters that maximise the evidence, per state over all its experiments.

    Args:
        series: per state, its observations in each experiment.
        kernels: candidate kernel names; a later one replaces the first only where its evidence is higher by
            more than `margin`.
        known_noise: per state, the noise variance where it is given, else None.
        margin: in nats.
        bounds: of every hyperparameter: shapes, signal variance, noise variance.
        thorough: follow up several separate maxima of the table, and further.
        weak_prior: add a weak prior on the noise ratio to the evidence.
    """
    limits = Limits.of(bounds, weak_prior)
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for k, state in enumerate(series):
        groups.setdefault(tuple(s.t.tobytes() for s in state), []).append(k)
    found: dict[int, Hyperparameters] = {}
    for members in groups.values():
        times = [s.t for s in series[members[0]]]
        y = [np.stack([series[k][e].y for k in members], -1) for e in range(len(times))]
        noise = np.array([np.nan if known_noise[k] is None else known_noise[k] for k in members], float)
        best = _search(times, y, noise, [kernel(name) for name in kernels], margin, limits, thorough)
        found |= dict(zip(members, best, strict=True))
    if thorough and not weak_prior:
        found = {k: _within_bounds(h, series[k], known_noise[k], bounds) for k, h in found.items()}
    return [found[k] for k in range(len(series))]


def _within_bounds(
    start: Hyperparameters, state: Sequence[Series], known_noise: float | None, bounds: tuple[float, float]
) -> Hyperparameters:
    """A last climb over all logs at once: along a bound of v or σ² the table, which moves their ratio, can halt."""
    from scipy.optimize import minimize

    d = len(start.shape)

    def hyper(v: Array) -> Hyperparameters:
        noise = float(np.exp(v[d + 1])) if known_noise is None else known_noise
        return replace(start, shape=tuple(np.exp(v[:d]).tolist()), variance=float(np.exp(v[d])), noise=noise)

    def cost(v: Array) -> float:
        try:
            return -log_evidence(hyper(v), state)
        except np.linalg.LinAlgError:
            return 1e10

    first = np.log([*start.shape, start.variance, *([start.noise] if known_noise is None else [])])
    limits = [tuple(np.log(bounds))] * len(first)
    result = minimize(cost, np.clip(first, *np.log(bounds)), method="L-BFGS-B", bounds=limits)
    return replace(hyper(result.x), evidence=-float(result.fun)) if -result.fun > start.evidence else start


def log_evidence(hyper: Hyperparameters, state: Sequence[Series], jitter: float = 0.0) -> float:
    """log p(y | t, φ, σ) of one state by Cholesky factorisation; the plain formula that the search must meet."""
    total = 0.0
    for s in state:
        C = hyper.variance * kernel(hyper.kernel).gram(s.t, s.t, np.array(hyper.shape)).C
        L = np.linalg.cholesky(C + (hyper.noise + jitter) * np.eye(len(s.t)))
        white = np.linalg.solve(L, s.y)
        total -= 0.5 * (white @ white) + np.log(np.diag(L)).sum() + 0.5 * len(s.t) * np.log(2 * np.pi)
    return float(total)


def _spectrum(k: Kernel, times: list[Array], y: list[Array], shapes: Array) -> tuple[Array, Array]:
    """Eigenvalues (..., n) of the correlation matrices and squared coefficients (..., n, S) of y (n, S)."""
    values, coefficients = [], []
    for t, ye in zip(times, y, strict=True):
        lam, U = np.linalg.eigh(k.gram(t, t, shapes).C)
        values.append(np.maximum(lam, 0.0))
        coefficients.append(np.square(np.swapaxes(U, -1, -2) @ ye))
    return np.concatenate(values, -1), np.concatenate(coefficients, -2)


def evidence_table(lam: Array, b2: Array, log_rho: Array, noise: Array, limits: Limits) -> Array:
    """Evidence (..., R, S) over noise ratios, the variance at its best (or fixed by a known noise).

    With the correlation matrix U diag(λ) Uᵀ, b = Uᵀy and the covariance v(C + ρI), the evidence is
    −½ [n log 2πv + Σ log(λ_i + ρ) + q/v] with q = Σ b_i²/(λ_i + ρ), which v = q/n maximises.

    Args:
        lam: eigenvalues (..., n).
        b2: squared coefficients (..., n, S).
        log_rho: (..., R).
        noise: known noise variances (S,), NaN where unknown.
        limits: bounds and prior.
    """
    n = lam.shape[-1]
    rho = np.exp(log_rho)
    spread = lam[..., None, :] + rho[..., :, None]
    logdet = np.log(spread).sum(-1)[..., None]
    quad = (1.0 / spread) @ b2
    v = _variance(quad, n, rho[..., None], noise, limits)
    return np.asarray(-0.5 * (n * np.log(2 * np.pi * v) + logdet + quad / v) - limits.prior(log_rho)[..., None])


def _variance(quad: Array, n: int, rho: Array, noise: Array, limits: Limits) -> Array:
    """The best signal variance given the noise ratio: closed form, kept so that v and ρv are within bounds."""
    best = np.clip(quad / n, np.maximum(limits.low, limits.low / rho), np.maximum(limits.high, limits.low / rho))
    return np.asarray(np.where(np.isnan(noise), best, noise / rho))


def _peak(values: Array, step: Array | float) -> tuple[Array, Array]:
    """Offset from the middle of three equally spaced values (..., 3) to their parabola's top, and its height."""
    left, mid, right = values[..., 0], values[..., 1], values[..., 2]
    curve = np.minimum(left - 2 * mid + right, -1e-12)
    slope = right - left
    offset = np.clip(-0.5 * slope / curve, -1.0, 1.0)
    return offset * step, mid + 0.5 * slope * offset + 0.5 * curve * offset**2


def _best_rho(lam: Array, b2: Array, noise: Array, coarse: Array, limits: Limits) -> tuple[Array, Array]:
    """Maximise over ρ near each coarse maximum. lam (S, Q, n), b2 (S, Q, n, 1) → value, log ρ (S, Q)."""
    log_rho = coarse
    for shrink in (1.0, 0.25):
        points = log_rho[..., None] + shrink * _FINE
        values = evidence_table(lam, b2, points, noise, limits)[..., 0]
        top = np.clip(values.argmax(-1), 1, len(_FINE) - 2)
        three = np.take_along_axis(values, top[..., None] + np.array([-1, 0, 1]), -1)
        offset, best = _peak(three, shrink * (_FINE[1] - _FINE[0]))
        log_rho = np.clip(
            np.take_along_axis(points, top[..., None], -1)[..., 0] + offset, LOG_RATIOS[0], LOG_RATIOS[-1]
        )
    return best, log_rho


class _Peak(NamedTuple):
    """A maximum of the evidence table: its height, kernel, log shape, grid spacing and log ρ."""

    value: float
    kernel: Kernel
    shape: Array
    steps: Array
    log_rho: float


def _search(
    times: list[Array],
    y: list[Array],
    noise: Array,
    kernels: list[Kernel],
    margin: float,
    limits: Limits,
    thorough: bool,
) -> list[Hyperparameters]:
    """Global table over all candidates, then local rounds, for S states observed at the same times."""
    S = y[0].shape[1]
    longest = max(times, key=lambda t: t[-1] - t[0])
    choice: list[list[_Peak]] = []
    for k in kernels:
        shapes, steps = k.shapes(longest)
        shapes = np.log(np.clip(shapes, limits.low, limits.high))
        table = evidence_table(*_spectrum(k, times, y, np.exp(shapes)), LOG_RATIOS, noise, limits)  # (G, R, S)
        for s in range(S):
            found = _peaks(table[..., s], k, shapes, steps, 5 if thorough else 1)
            if len(choice) == s:
                choice.append(found)
            elif found[0].value > choice[s][0].value + margin:
                choice[s] = found
    result: list[Hyperparameters | None] = [None] * S
    for k in kernels:
        starts = [(s, peak) for s in range(S) for peak in choice[s] if peak.kernel is k]
        if starts:
            members = [s for s, _ in starts]
            own = [ye[:, members] for ye in y]
            polished = _polish(k, times, own, noise[members], [p for _, p in starts], limits, 8 if thorough else 3)
            for s, hyper in zip(members, polished, strict=True):
                known = result[s]
                if known is None or hyper.evidence > known.evidence:
                    result[s] = hyper
    return [h for h in result if h is not None]


def _peaks(table: Array, k: Kernel, shapes: Array, steps: Array, count: int) -> list[_Peak]:
    """The best entries (G, R) of one state's table that are not neighbours of each other."""
    r = np.clip(table.argmax(1), 1, len(LOG_RATIOS) - 2)
    three = np.take_along_axis(table, r[:, None] + np.array([-1, 0, 1]), 1)
    offset, profile = _peak(three, LOG_RATIOS[1] - LOG_RATIOS[0])
    found: list[_Peak] = []
    for _ in range(count):
        g = int(profile.argmax())
        found.append(_Peak(float(profile[g]), k, shapes[g], steps, float(LOG_RATIOS[r[g]] + offset[g])))
        profile = np.where((np.abs(shapes - shapes[g]) < 1.5 * steps).all(1), -np.inf, profile)
        if not np.isfinite(profile).any():
            break
    return found


def _polish(
    k: Kernel,
    times: list[Array],
    y: list[Array],
    noise: Array,
    start: list[_Peak],
    limits: Limits,
    rounds: int,
) -> list[Hyperparameters]:
    """Rounds of a quadratic model of the evidence over a shrinking stencil of log shapes, all states at once."""
    S, d = len(start), len(k.shape_names)
    low, high = np.log(limits.low), np.log(limits.high)
    shape, rho = np.stack([p.shape for p in start]), np.array([p.log_rho for p in start])
    stencil = np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * d, indexing="ij"), -1).reshape(-1, d)
    design = _quadratic_design(stencil)
    solver = np.linalg.pinv(design)
    yT = [ye.T[:, None, :, None] for ye in y]  # (S, 1, n, 1): each state keeps to its own shapes
    scale = np.ones(S)
    for _ in range(rounds):
        box = scale[:, None] * start[0].steps
        points = np.clip(shape[:, None, :] + box[:, None, :] * stencil, low, high)  # (S, Q, d)
        lam, b2 = _spectrum(k, times, yT, np.exp(points))
        values, rhos = _best_rho(
            lam, b2, noise[:, None, None, None], np.broadcast_to(rho[:, None], points.shape[:2]), limits
        )
        top = values.argmax(1)
        fit = values @ solver.T
        move = np.array([_quadratic_top(c, d) for c in fit])
        inside = np.isfinite(move).all(1) & (np.abs(move) <= 1.0).all(1)
        step = np.where(inside[:, None], move, stencil[top])
        shape = np.clip(shape + box * step, low, high)
        rho = rhos[np.arange(S), top]
        scale = np.where((np.abs(step) < 0.99).all(1), 0.3 * scale, 0.7 * scale)
        if scale.max() < 0.05:
            break
    lam, b2 = _spectrum(k, times, yT, np.exp(shape[:, None, :]))
    return at_best_noise(k, np.exp(shape), lam[:, 0], b2[:, 0, :, 0], noise, rho, limits)


def at_best_noise(
    k: Kernel, shapes: Array, lam: Array, b2: Array, noise: Array, log_rho: Array, limits: Limits
) -> list[Hyperparameters]:
    """The hyperparameters of S states with given shapes (S, d): noise ratio and variance at their best.

    Args:
        lam, b2: eigenvalues and squared coefficients (S, n) of every state at its shape.
        noise: known noise variances (S,), NaN where unknown.
        log_rho: where the search for the best ratio starts (S,).
    """
    own, own2 = lam[:, None], b2[:, None, :, None]
    value, rho = _best_rho(own, own2, noise[:, None, None, None], log_rho[:, None], limits)
    ratio = np.exp(rho[:, 0])
    quad = (b2 / (lam + ratio[:, None])).sum(-1)
    v = _variance(quad, lam.shape[-1], ratio, noise, limits)
    value = value + limits.prior(rho)  # the evidence alone
    return [
        Hyperparameters(k.name, tuple(shape.tolist()), float(v[s]), float(ratio[s] * v[s]), float(value[s, 0]))
        for s, shape in enumerate(shapes)
    ]


def _quadratic_design(z: Array) -> Array:
    """Columns 1, z_i, z_i z_j (i ≤ j) of a quadratic in the rows of z (Q, d)."""
    i, j = np.triu_indices(z.shape[1])
    return np.column_stack([np.ones(len(z)), z, z[:, i] * z[:, j]])


def _quadratic_top(coefficients: Array, d: int) -> Array:
    """Where the quadratic has its maximum, or NaN if it has none."""
    H = np.zeros((d, d))
    H[np.triu_indices(d)] = coefficients[1 + d :]
    H = H + H.T
    if np.linalg.eigvalsh(H)[-1] >= -1e-12:
        return np.full(d, np.nan)
    return np.asarray(-np.linalg.solve(H, coefficients[1 : 1 + d]), float)
