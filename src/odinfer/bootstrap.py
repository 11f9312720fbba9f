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
    tasks = [(like, refined, info.sigma, info.freedom, times, size, (int(seed), i)) for i, size in enumerate(sizes)]

    def tell(what: str, share: float) -> None:
        if progress:
            progress("refitting simulated data", share)

    tell("", 0.0)
    parts = spread(refits, tasks, workers=workers, progress=tell, **options)
    phi, good, *x = (np.concatenate(p) for p in zip(*((phi, good, *x) for phi, good, x in parts), strict=True))
    log = tuple(name for name, is_log in zip(problem.free, problem.is_log, strict=True) if is_log)
    return Bootstrap(problem.free, log, phi[good], tuple(times), tuple(v[good] for v in x), int((~good).sum()))


def refits(
    like: Likelihood, refined: Refined, sigma: Array, freedom: Array, times: Sequence[Array], size: int,
    seed: tuple[int, int],
) -> tuple[Array, Array, list[Array]]:  # fmt: skip
    """φ (size, F), which refits found a trajectory (size,), and states (size, N, K) per experiment.

    The noise of every refit is drawn too, as far off as an estimate with its degrees of freedom (K,) can be: the spread
    of refits has Student's tails then, and their quantiles are intervals for few data too.
    """
    known = np.isinf(freedom)
    nu = np.where(known, 1.0, freedom)
    chi2 = np.random.default_rng((*seed, 1)).chisquare(nu, (size, len(nu)))
    off = np.where(known, 1.0, np.sqrt(nu / chi2))
    bundle, found = refitted(like, refined, (sigma * off)[:, None], size, seed)
    return found.phi, np.isfinite(found.objective), states_at(bundle, found, times)


def refitted(
    like: Likelihood, refined: Refined, sigma: Array, size: int, seed: tuple[int, int]
) -> tuple[Bundle, Ensemble]:
    """Data simulated from a trajectory with noise sigma (..., K), and the trajectories fitted to them.

    The objective is infinite where there is none.
    """
    rng = np.random.default_rng(seed)
    data = Bundle.of(like, refined)
    x = states_at(data, data.start(refined, 1), like.t)
    # Missing values stay missing.
    y = [np.where(np.isfinite(yy), xx + sigma * rng.normal(size=(size, *yy.shape)), np.nan)
         for xx, yy in zip(x, like.y, strict=True)]  # fmt: skip
    bundle = Bundle.of(like, refined, y)
    return bundle, bundle.maximise(bundle.start(refined, size))


def states_at(bundle: Bundle, ensemble: Ensemble, times: Sequence[Array]) -> list[Array]:
    """States (B, N, K) at points of the meshes, per experiment."""
    found = []
    for x0, Z, mesh, t in zip(ensemble.x0, ensemble.Z, bundle.meshes, times, strict=True):
        found.append(nodes(x0, Z)[:, np.searchsorted(mesh, t)])
    return found
