"""Test a population model as a whole, by simulated studies.

Two statistics are compared with those of studies that are simulated from the fit and fitted again, so that p-values are
right although parameters are estimated (parametric bootstrap).

- Predictions: squared distances of the 10th, 50th and 90th percentiles in bins of time from their means over simulated
  studies, in standard deviations of these; the visual predictive check as one number.
- Effects: Jarque and Bera's (1980) statistic of skewness and kurtosis of the conditional means of the random effects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data
from odinfer.parallel.executor import LostTask, parallel_map
from odinfer.population.estimate import Estimate, estimate
from odinfer.population.simulation import SHARES, edges_of_bins, percentile_bands, simulate, simulated_observations
from odinfer.population.structure import Structure
from odinfer.progress import Progress

if TYPE_CHECKING:
    from odinfer.population.result import PopulationFit

Array = NDArray[np.float64]

_STUDIES = 100  # of each fit, for means and standard deviations of percentiles


@dataclass(frozen=True)
class PopulationTest:
    """The result of the test of a population model.

    Attributes:
        predictions: p-value of the percentiles of the data.
        effects: p-value of the normality of the random effects.
        draws: number of simulated studies.
    """

    predictions: float
    effects: float
    draws: int

    def contradicts(self, level: float = 0.05) -> bool:
        """Whether the model is rejected at a level, by the smaller p-value times two (Bonferroni)."""
        return 2.0 * min(self.predictions, self.effects) <= level

    def __str__(self) -> str:
        verdict = "the data contradict the model" if self.contradicts() else "the data are consistent with the model"
        return f"{verdict}: p = {self.predictions:.2g} (predictions), {self.effects:.2g} (normal random effects)"


def judge(
    fit: PopulationFit, draws: int, seed: int, workers: int, cluster: str | None, progress: Progress | None
) -> PopulationTest:
    """Compare a fit with those of simulated studies."""
    found = fit.estimate
    own = _statistics(found, seed)
    tasks = [(found.structure, found.v, study, seed + 1 + i) for i, study in enumerate(simulate(found, draws, seed))]
    each = parallel_map(_replicate, tasks, workers=workers, cluster=cluster, progress=progress)
    others = np.array([result for result in each if not isinstance(result, LostTask)])
    reached = (others >= own).sum(0) + 1
    predictions, effects = reached / (len(others) + 1)
    return PopulationTest(float(predictions), float(effects), len(others))


def _replicate(structure: Structure, v: Array, study: Data, seed: int) -> Array:
    """The statistics of a simulated study, after a fit to it."""
    same = replace(structure, problem=replace(structure.problem, data=study))
    return _statistics(estimate(same, seed, v=v), seed)


def _statistics(found: Estimate, seed: int) -> Array:
    """Distance of percentiles, and the sum of Jarque and Bera's statistics over all effects (2,)."""
    subjects, s = found.engine.subjects, found.structure
    simulated = simulated_observations(found, _STUDIES, np.random.default_rng([seed, 13]))[0]
    distance = 0.0
    for m in range(len(s.problem.columns)):
        kept = subjects.column == m
        own, draws = percentile_bands(subjects, simulated, kept, edges_of_bins(subjects.t[kept]), SHARES)
        sd = np.nanstd(draws, axis=0)
        z = (own - np.nanmean(draws, axis=0)) / np.where(sd > 0, sd, np.inf)
        distance += float(np.nansum(z**2))
    eta = found.marginal.nodes.moments(found.v)[0] - s.means(found.v)[0][:, s.active]
    z = (eta - eta.mean(0)) / np.maximum(eta.std(0), 1e-300)
    return np.array([distance, len(eta) * ((z**3).mean(0) ** 2 / 6 + ((z**4).mean(0) - 3) ** 2 / 24).sum()])
