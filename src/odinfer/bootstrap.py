"""Parametric bootstrap: refit data simulated from a fit, many side by side, from the fit's own optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.ensemble import Bundle, Ensemble, nodes
from odinfer.errors import InputError
from odinfer.problem import Problem
from odinfer.refine import Likelihood, Refined
from odinfer.trajectories import extended, refined_again
from odinfer.uncertainty import Bootstrap

if TYPE_CHECKING:
    from odinfer.fit import Fit, Progress

Array = NDArray[np.float64]

_CHUNK = 25  # refits in one task; fixed, so that the numbers do not depend on the number of workers


def bootstrap(
    fit: Fit, problem: Problem, n: int = 200, seed: int = 0, workers: int = 1, until: float | None = None,
    progress: Progress | None = None, **options: Any,
) -> Bootstrap:  # fmt: skip
    """Refit n sets of data with the fit's trajectory and noise; see `Fit.bootstrap`.

    Args:
        until: a time beyond the data up to which the states of the refits are kept too, at ten times.
        progress: called with (what, share done).
        options: of `odinfer.executor.spread`.

    Raises:
        InputError: n or seed cannot be used, or the fit is not at a maximum of the likelihood.
    """
    from odinfer.executor import spread

    for what, value, least in (("n", n, 10), ("seed", seed, 0)):
        if not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{what} must be a whole number from {least} on, not {value!r}")
    like, refined, info = refined_again(fit, problem)
    times = [e.t for e in problem.data.experiments]
    if until is not None:
        times = [np.append(t, np.linspace(t[-1], until, 11)[1:]) if until > t[-1] else t for t in times]
        longer = extended(problem, refined, times)
        if longer is None:
            raise InputError(f"the trajectory of this fit does not reach time {until:g}")
        refined = longer
    sizes = [min(_CHUNK, n - i) for i in range(0, n, _CHUNK)]
    tasks = [(like, refined, info.sigma, times, size, (int(seed), i)) for i, size in enumerate(sizes)]

    def tell(what: str, share: float) -> None:
        if progress:
            progress("refitting simulated data", share)

    tell("", 0.0)
    parts = spread(refits, tasks, workers=workers, progress=tell, **options)
    phi, sd, good, *states = (np.concatenate(p) for p in zip(*(_flat(part) for part in parts), strict=True))
    good = good.astype(bool)
    bundle = Bundle.of(like, refined)
    centre = spreads(bundle, bundle.start(refined, 1), times)
    E = len(refined.paths)
    log = tuple(name for name, is_log in zip(problem.free, problem.is_log, strict=True) if is_log)
    return Bootstrap(
        problem.free, log, refined.phi, centre[0][0], phi[good], sd[good],
        tuple(times), tuple(v[0] for v in states_at(bundle, bundle.start(refined, 1), times)),
        tuple(v[0] for v in centre[1]),
        tuple(v[good] for v in states[:E]), tuple(v[good] for v in states[E:]), int((~good).sum()),
        np.array([problem.limits(name) for name in problem.free]).reshape(-1, 2),
    )  # fmt: skip


def refits(
    like: Likelihood, refined: Refined, sigma: Array, times: Sequence[Array], size: int, seed: tuple[int, int]
) -> tuple[Array, Array, Array, list[Array], list[Array]]:
    """φ and its sd (size, F), which refits found a trajectory, and states with their sd (size, N, K) per experiment."""
    bundle, found = refitted(like, refined, sigma, size, seed)
    sd, x_sd = spreads(bundle, found, times)
    return found.phi, sd, np.isfinite(found.objective), states_at(bundle, found, times), x_sd


def refitted(
    like: Likelihood, refined: Refined, sigma: Array, size: int, seed: tuple[int, int]
) -> tuple[Bundle, Ensemble]:
    """Data simulated from a trajectory, and the trajectories fitted to them; objective infinite where there is none."""
    rng = np.random.default_rng(seed)
    data = Bundle.of(like, refined)
    x = states_at(data, data.start(refined, 1), like.t)
    # Missing values stay missing.
    y = [np.where(np.isfinite(yy), xx + sigma * rng.normal(size=(size, *yy.shape)), np.nan)
         for xx, yy in zip(x, like.y, strict=True)]  # fmt: skip
    bundle = Bundle.of(like, refined, y)
    return bundle, bundle.maximise(bundle.start(refined, size))


def spreads(bundle: Bundle, ensemble: Ensemble, times: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Standard deviations of φ (B, F) and of the states at points of the meshes (B, N, K), noise as estimated.

    Not corrected for few observations: as the unit in which errors of fit and refits are compared, any will do.
    """
    H, _ = bundle.normal(ensemble)
    E, K = len(bundle.meshes), len(bundle.like.scale)
    d = np.sqrt(np.maximum(np.einsum("bii->bi", H), 1e-300))
    scaled = np.nan_to_num(H / (d[:, :, None] * d[:, None, :]))
    C = np.linalg.pinv(scaled, rcond=1e-13, hermitian=True) / (d[:, :, None] * d[:, None, :])
    sd = np.sqrt(np.maximum(np.einsum("bii->bi", C), 0.0))[:, E * K :]
    states = []
    for e, lin in enumerate(ensemble.lins):
        index = np.r_[e * K : (e + 1) * K, E * K : C.shape[1]]
        S = lin.nodes[:, np.searchsorted(bundle.meshes[e], times[e])][..., :-1]
        variance = np.einsum("bnkp,bpq,bnkq->bnk", S, C[:, index[:, None], index], S, optimize=True)
        states.append(np.sqrt(np.maximum(variance, 0.0)))
    return sd, states


def states_at(bundle: Bundle, ensemble: Ensemble, times: Sequence[Array]) -> list[Array]:
    """States (B, N, K) at points of the meshes, per experiment."""
    found = []
    for x0, Z, mesh, t in zip(ensemble.x0, ensemble.Z, bundle.meshes, times, strict=True):
        found.append(nodes(x0, Z)[:, np.searchsorted(mesh, t)])
    return found


def _flat(part: tuple[Array, Array, Array, list[Array], list[Array]]) -> list[Array]:
    phi, sd, good, x, x_sd = part
    return [phi, sd, good, *x, *x_sd]
