"""Parametric bootstrap: refit data simulated from a fit, many side by side, from the fit's own optimum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_integer
from odinfer.errors import InputError
from odinfer.gp.grids import thinned
from odinfer.likelihood.collocation_batch import Batch, CollocationTrajectories, Trajectories
from odinfer.likelihood.extension import extended
from odinfer.likelihood.likelihood import Likelihood
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.parallel.executor import parallel_map
from odinfer.progress import Progress, no_progress
from odinfer.uncertainty.results import Bootstrap

if TYPE_CHECKING:
    from odinfer.uncertainty.maximum import Maximum

Array = NDArray[np.float64]

_Engine = TypeVar("_Engine", bound=Trajectories)

_CHUNK = 25  # refits in one task; fixed, so that the numbers do not depend on the number of workers


def bootstrap(
    maximum: Maximum, n: int = 200, seed: int = 0, workers: int = 1, until: float | None = None,
    progress: Progress | None = None, **options: Any,
) -> Bootstrap:  # fmt: skip
    """Refit n sets of data with the fit's trajectory and noise; see `Fit.bootstrap`.

    Args:
        until: a time beyond the data up to which the states of the refits are kept too, at ten times.
        progress: called with (what, share done).
        options: of `odinfer.parallel.executor.parallel_map`.

    Raises:
        InputError: n or seed cannot be used, or the trajectory ends before `until`.
    """
    n, seed = checked_integer("n", n, 10), checked_integer("seed", seed)
    problem, likelihood, refined, info = maximum.problem, maximum.likelihood, maximum.refined, maximum.info
    times = [e.t[thinned(len(e.t))] for e in problem.data.experiments]
    if until is not None:
        times = [np.append(t, np.linspace(t[-1], until, 11)[1:]) if until > t[-1] else t for t in times]
        longer = extended(likelihood, refined, times)
        if longer is None:
            raise InputError(f"the trajectory of this fit does not reach time {until:g}")
        refined = longer
    sizes = [min(_CHUNK, n - i) for i in range(0, n, _CHUNK)]
    tasks = [(likelihood, refined, info.sigma, info.freedom, times, size, (seed, i)) for i, size in enumerate(sizes)]

    progress = progress or no_progress

    def tell(what: str, share: float) -> None:
        progress("refitting simulated data", share)

    tell("", 0.0)
    parts = parallel_map(refits, tasks, workers=workers, progress=tell, **options)
    phi, good, *x = (np.concatenate(p) for p in zip(*((phi, good, *x) for phi, good, x in parts), strict=True))
    log = tuple(name for name, is_log in zip(problem.free, problem.is_log, strict=True) if is_log)
    return Bootstrap(problem.free, log, phi[good], tuple(times), tuple(v[good] for v in x), int((~good).sum()))


def refits(
    likelihood: Likelihood, refined: TrajectoryOptimum, sigma: Array, freedom: Array, times: Sequence[Array], size: int,
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
    on, found = refitted(CollocationTrajectories.of(likelihood, refined), refined, (sigma * off)[:, None], size, seed)
    return found.phi, np.isfinite(found.value), on.states_at(found, times)


def refitted(
    on: _Engine, refined: TrajectoryOptimum, sigma: Array, size: int, seed: tuple[int, int], accuracy: float = 1e-6,
    most: int = 30,
) -> tuple[_Engine, Batch]:  # fmt: skip
    """Data simulated from a trajectory with noise sigma (..., K), and the trajectories fitted to them.

    The objective is infinite where there is none.

    Args:
        on: how trajectories are computed.
        accuracy: of their maxima, in nats.
        most: tries of the optimiser.
    """
    rng, likelihood, phi = np.random.default_rng(seed), on.likelihood, refined.phi[None]
    x = refined.states(likelihood.t)
    on = on.with_observations([likelihood.observation.draw(rng, e, own, phi, sigma, size) for e, own in enumerate(x)])
    return on, on.maximise(on.start(refined, size), most=most, tolerance=accuracy)
