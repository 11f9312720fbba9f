"""Draws from a fitted population: studies of the same design, predictions for subjects, standardised residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data, Experiment
from odinfer.errors import InputError
from odinfer.population.estimate import Estimate
from odinfer.population.marginal import place_at_modes
from odinfer.population.modes import find_modes
from odinfer.population.nodes import Engine, Placement
from odinfer.population.occasions import _levels_of_the_fit
from odinfer.population.structure import Structure
from odinfer.population.subjects import Subjects
from odinfer.problem.covariates import with_covariates
from odinfer.problem.problem import Problem

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_PROPOSALS = 8  # points of importance resampling for each draw
SHARES = (0.1, 0.5, 0.9)  # percentiles of visual predictive checks
_MOST_TIMES, _MOST_BINS = 16, 10  # distinct times that are bins of their own, and bins of more times
RESIDUAL_DRAWS = 500  # simulated observations of each subject among which its own are ranked


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """Predictions of the observed columns.

    Attributes:
        t: times (N,).
        columns: M names.
        values: draws of what the model predicts (S, N, M), without noise.
        observed: draws of observations (S, N, M).
        parameters: the model's parameters of every draw: name → (S,).
    """

    t: Array
    columns: tuple[str, ...]
    values: Array
    observed: Array
    parameters: dict[str, Array]

    def __repr__(self) -> str:
        return f"<Draws: {len(self.values)} draws of {', '.join(self.columns)} at {len(self.t)} times>"

    def band(self, level: float = 0.95, noise: bool = True) -> tuple[Array, Array, Array]:
        """Lower limits, medians and upper limits (N, M) of observations, or of predictions without noise."""
        own = self.observed if noise else self.values
        tail = 0.5 * (1.0 - level)
        low, middle, high = np.nanquantile(own, [tail, 0.5, 1.0 - tail], axis=0)
        return low, middle, high


def _latents(structure: Structure, v: Array, e: Index, rng: np.random.Generator) -> Array:
    """Latent values (B, d) of subjects e (B,) drawn from the population."""
    m, L = structure.means(v)[0][:, structure.active], structure.cholesky(v)
    return np.asarray(m[e] + rng.normal(size=(len(e), len(structure.active))) @ L.T)


def _observations(subjects: Subjects, a: Array, row: Index, sigma: Array, rng: np.random.Generator) -> Array:
    """Draws of observations (M,) given the arguments of their distributions."""
    found = np.full(len(row), np.nan)
    for m, column in enumerate(subjects.problem.observed):
        here = np.flatnonzero(subjects.column[row] == m)
        if len(here):
            given = subjects._distribution_arguments(m, a[here], row[here], sigma)
            found[here] = column.family.draw(rng, [np.asarray(g) for g in np.broadcast_arrays(*given)])
    return found


def simulated_observations(found: Estimate, replicates: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Simulated observations (replicates, O), and predictions of the population (O,)."""
    engine, s, v = found.engine, found.structure, found.v
    E = len(s.subjects)
    e = np.tile(np.arange(E), replicates)
    theta = s.individual(v, e, engine.full(v, e, _latents(s, v, e, rng)))
    solved = engine.subjects.solve(e, theta)
    with np.errstate(all="ignore"):
        a = engine.subjects.arguments(solved)
        y = _observations(engine.subjects, a, solved.row, s.sigma(v), rng).reshape(replicates, -1)
        every = np.arange(E)
        typical = engine.subjects.solve(every, s.individual(v, every, s.means(v)[0]))
        predicted = engine.subjects.predictions(engine.subjects.arguments(typical), typical.row)
    return y, predicted


def simulate(found: Estimate, replicates: int, seed: int) -> list[Data]:
    """Studies of the same design drawn from the fitted population; values beyond detection limits have these again."""
    data, subjects = found.structure.problem.data, found.engine.subjects
    y, _ = simulated_observations(found, replicates, np.random.default_rng([seed, 7]))
    studies = []
    for values in y:
        tables = [np.full(e.y.shape, np.nan) for e in data.experiments]
        for o, value in enumerate(values):
            tables[subjects.subject[o]][subjects._long[2][o], subjects.column[o]] = value
        studies.append(data.with_observations(tables))
    return studies


def residual_table(found: Estimate, seed: int) -> pd.DataFrame:
    """Observations with predictions and standardised residuals, a row each."""
    import pandas as pd
    from scipy.special import ndtri

    from odinfer.noise.residuals import quantile_residuals

    engine, s, v = found.engine, found.structure, found.v
    subjects, every = engine.subjects, np.arange(len(s.subjects))
    rng = np.random.default_rng([seed, 8])
    draws, population = simulated_observations(found, RESIDUAL_DRAWS, rng)
    mean = found.marginal.nodes.moments(v)[0]
    own = subjects.solve(every, s.individual(v, every, engine.full(v, every, mean)))
    a = subjects.arguments(own)
    below = (draws < subjects.y).mean(0) + 0.5 * (draws == subjects.y).mean(0)
    rank = np.clip(below, 0.5 / RESIDUAL_DRAWS, 1.0 - 0.5 / RESIDUAL_DRAWS)
    individual = np.empty(len(subjects.y))
    for m, column in enumerate(s.problem.observed):
        here = np.flatnonzero(subjects.column[own.row] == m)
        given = [np.asarray(g)[None] for g in subjects._distribution_arguments(m, a[here], own.row[here], s.sigma(v))]
        individual[here] = quantile_residuals(column.family, subjects.y[own.row[here]][None], given)[0]
    names = np.array(s.subjects, object)[subjects.subject]
    return pd.DataFrame(
        {
            "subject": names,
            "time": subjects.t,
            "column": np.array(s.problem.columns, object)[subjects.column],
            "observed": subjects.y,
            "population": population,
            "individual": subjects.predictions(a, own.row),
            "individual_residual": individual,
            "residual": ndtri(rank),
            "limit": subjects.limit,
        }
    )


def _problem_at_times(problem: Problem, experiment: Experiment, t: Array) -> Problem:
    """A problem of one subject, observed in all columns at times t; what is observed there has no meaning."""
    y = np.ones((len(t), len(problem.columns)))
    alone = replace(experiment, t=t, y=y, sd=None, limit=None)
    data = problem.data._with((alone,))
    return replace(problem, data=data)


def predict(
    structure: Structure, v: Array, experiment: Experiment, t: Array, theta: Array, rng: np.random.Generator
) -> Draws:
    """Predictions of one subject with parameters theta (S, P)."""
    problem = _problem_at_times(structure.problem, experiment, t)
    subjects = Subjects(problem, np.empty(0, np.int64))
    solved = subjects.solve(np.zeros(len(theta), np.int64), theta)
    with np.errstate(all="ignore"):
        a = subjects.arguments(solved)
        shape = len(theta), len(t), len(problem.columns)
        values = subjects.predictions(a, solved.row).reshape(shape)
        observed = _observations(subjects, a, solved.row, structure.sigma(v), rng).reshape(shape)
    names = problem.model.parameters
    return Draws(t, problem.columns, values, observed, {n: theta[:, j] for j, n in enumerate(names)})


def forecast_subject(found: Estimate, t: Array, subject: str | None, draws: int, seed: int) -> Draws:
    """Predictions for a subject of the data, or for one drawn from the population with the first one's design."""
    engine, s, v = found.engine, found.structure, found.v
    rng = np.random.default_rng([seed, 9])
    i = 0 if subject is None else s.subjects.index(subject)
    e = np.full(draws, i)
    if subject is None:
        x = _latents(s, v, e, rng)
    else:
        x = _posterior_draws(engine, v, e[:1], draws, rng, found.marginal.nodes.posterior_placement())[0]
    theta = s.individual(v, e, engine.full(v, e, x))
    return predict(s, v, s.problem.data.experiments[i], t, theta, rng)


def _posterior_draws(
    engine: Engine, v: Array, of: Index, draws: int, rng: np.random.Generator, place: Placement
) -> Array:
    """Latent values (E, draws, d) of subjects `of` (E,) given their data, by importance resampling from Student's t."""
    d = len(engine.structure.active)
    z = rng.standard_t(5.0, size=(len(of), _PROPOSALS * draws, d))
    x = place.centre[of][:, None] + z @ np.swapaxes(place.factor[of], 1, 2)
    log_weight = 3.0 * np.log1p(z**2 / 5.0).sum(2)
    nodes = engine.nodes(v, np.repeat(of, _PROPOSALS * draws), x.reshape(-1, d), log_weight.ravel())
    weights = nodes.weights(nodes.joint(v)).reshape(len(of), -1)
    return np.stack([own[rng.choice(len(w), draws, p=w / w.sum())] for own, w in zip(x, weights, strict=True)])


def conditional_draws(found: Estimate, draws: int, seed: int) -> tuple[Array, Array]:
    """Latent values (E, draws, D) of all subjects given their data, and the model's parameters (E, draws, P)."""
    engine, s, v = found.engine, found.structure, found.v
    every, rng = np.arange(len(s.subjects)), np.random.default_rng([seed, 12])
    x = _posterior_draws(engine, v, every, draws, rng, found.marginal.nodes.posterior_placement())
    e = np.repeat(every, draws)
    full = engine.full(v, e, x.reshape(len(e), -1))
    theta = s.individual(v, e, full)
    return full.reshape(len(every), draws, -1), theta.reshape(len(every), draws, -1)


def forecast_new(found: Estimate, t: Array, data: Data, draws: int, seed: int) -> Draws:
    """Predictions for a subject that was not in the fit, given its design and any observations of it.

    Raises:
        InputError: there are several subjects.
    """
    s, v = found.structure, found.v
    if len(data.experiments) != 1:
        raise InputError(f"a forecast is for one subject; the data have {len(data.experiments)}: choose by data.only()")
    data = _levels_of_the_fit(s.effects, with_covariates(s.problem.model, data))
    columns = tuple(c for c in s.problem.columns if c in data.states)
    if columns != s.problem.columns:
        raise InputError(f"the data of the new subject need the columns {', '.join(s.problem.columns)}")
    alone = data.select(columns)
    # Two copies, as a population has at least two subjects; the first is read.
    one = replace(alone.experiments[0], name="1")
    pair = s.problem.data._with((one, replace(one, name="2")))
    structure = replace(s, problem=replace(s.problem, data=pair))
    engine, rng = Engine(structure), np.random.default_rng([seed, 10])
    place = place_at_modes(engine, v, find_modes(engine, v))
    e = np.zeros(draws, np.int64)
    x = _posterior_draws(engine, v, e[:1], draws, rng, place)[0]
    theta = structure.individual(v, e, engine.full(v, e, x))
    return predict(structure, v, one, t, theta, rng)


def edges_of_bins(t: Array) -> Array:
    """Edges of bins of times (O,): one for each of few distinct times, else with about equally many observations."""
    times = np.unique(t)
    if len(times) <= _MOST_TIMES:
        middle = 0.5 * (times[1:] + times[:-1])
    else:
        middle = np.unique(np.quantile(t, np.linspace(0, 1, _MOST_BINS + 1)[1:-1]))
    return np.concatenate([[-np.inf], middle, [np.inf]])


def percentile_bands(
    subjects: Subjects, simulated: Array, kept: Array, edges: Array, shares: Sequence[float]
) -> tuple[Array, Array]:
    """Percentiles of the data (bins, shares), and of simulated studies (replicates, bins, shares), by bins of time.

    Args:
        simulated: observations (replicates, O).
        kept: which observations count (O,).
    """
    bins = np.clip(np.searchsorted(edges, subjects.t, side="right") - 1, 0, len(edges) - 2)
    own = np.full((len(edges) - 1, len(shares)), np.nan)
    found = np.full((len(simulated), *own.shape), np.nan)
    for b in range(len(own)):
        here = (bins == b) & kept
        if here.any():
            own[b] = np.quantile(subjects.y[here], shares)
            found[:, b] = np.nanquantile(simulated[:, here], shares, axis=1).T
    return own, found
