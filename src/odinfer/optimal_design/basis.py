"""The basis of a design: parameter values, noise, and the information of existing data."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer.data.data import Data, Experiment
from odinfer.errors import InputError, InputWarning, listed, nearest
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.model.model import Model
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem
from odinfer.result.fit import Fit

Array = NDArray[np.float64]

TOLERANCE, MOST_STEPS = 1e-7, 20_000  # of the steps of trajectories, and how many one may take
_PLACEHOLDER = 1.0  # observed value of a sample that is not taken yet: allowed by every family of noise


@dataclass(frozen=True, eq=False)
class Basis:
    """The point at which designs are judged, and what is known there already.

    Attributes:
        problem: model and experiments; without data, one experiment whose observations are placeholders.
        v: unknowns (P,): free initial values and parameters on the scales on which they are estimated.
        noise: variances (M,) of columns whose standard deviation is known or estimated for all of it, one for others.
        information: Fisher information (P, P) of existing data and of priors.
        existing: number of samples that exist, by experiment.
    """

    problem: Problem
    v: Array
    noise: Array
    information: Array
    existing: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The unknowns (P)."""
        return ParameterVector(self.problem).names

    @property
    def values(self) -> Array:
        """The unknowns (P,) in the user's units."""
        return natural_values(self.problem, self.v)

    @property
    def scale(self) -> Array:
        """What a relative change of one is (P,): 1 on log scales, otherwise the size of the value, or 1 at zero."""
        u = ParameterVector(self.problem)
        size = np.where(self.v == 0.0, 1.0, np.abs(self.v))
        size[u.of_phi] = np.where(self.problem.is_log, 1.0, size[u.of_phi])
        return size

    def moved(self, v: Array) -> Basis:
        """The same at other values of the unknowns."""
        return replace(self, v=v)

    @staticmethod
    def of_fit(fit: Fit) -> Basis:
        """At the estimates of a fit, with the information of its data.

        Raises:
            InputError: the fit is not at a maximum of the likelihood, or its model is a function.
        """
        maximum = fit.maximum()
        noise = np.where(np.isfinite(maximum.left) & (maximum.left > 0), maximum.left, 1.0) ** 2
        existing = tuple(int(np.isfinite(e.y).any(1).sum()) for e in fit.problem.data.experiments)
        return Basis(fit.problem, maximum.v, noise, observed_information(fit.problem, maximum.v, noise), existing)

    @staticmethod
    def of_values(
        model: Model,
        theta: Mapping[str, float],
        x0: Mapping[str, float],
        times: ArrayLike,
        sigma: Mapping[str, float] | None = None,
        observe: tuple[str, ...] = (),
        inputs: Mapping[str, Any] | None = None,
    ) -> Basis:
        """At given parameter values, without data.

        Args:
            times: when the experiment can be observed; the first is where states without declared initial values start.
            sigma: column → standard deviation of its noise, where the model's text does not say it.
            observe: columns that can be observed; all if empty.

        Raises:
            InputError: a value or the noise of a column is missing.
        """
        columns = tuple(c.name for c in model.declarations.columns) or model.states
        unknown = [name for name in observe if name not in columns]
        if unknown:
            raise InputError(f"observe: '{unknown[0]}' is not observed in the model{nearest(unknown[0], columns)}")
        columns = tuple(name for name in columns if not observe or name in observe)
        t = np.unique(np.asarray(times, float))
        values = {name: np.full(len(t), _PLACEHOLDER) for name in columns}
        with placeholders():
            data = Data(t, np.stack(list(values.values()), 1), states=list(columns), inputs=dict(inputs or {}))
            problem = Problem(model, data, sigma={k: v for k, v in (sigma or {}).items() if k in columns})
        open_ended = [c for c, own in zip(problem.columns, problem.estimated_noise, strict=True) if own]
        if open_ended:
            raise InputError(
                f"the noise of {listed(open_ended)} is not known; give a standard deviation, for example "
                f"sigma={{'{open_ended[0]}': 0.1}} (--sigma {open_ended[0]}=0.1)"
            )
        u = ParameterVector(problem)
        if strange := [s for s in x0 if s not in model.states]:
            raise InputError(f"x0: the model has no '{strange[0]}'{nearest(strange[0], model.states)}")
        if fixed_by_model := [s for s in x0 if f"{s}(0)" not in u.names]:
            raise InputError(
                f"x0: the model gives the initial value of {listed(fixed_by_model)} itself; leave it out there"
            )
        given = {**problem.start, **theta, **{f"{s}(0)": value for s, value in x0.items()}}
        missing = [name for name in u.names if name not in given]
        if missing:
            raise InputError(f"no value is given for {listed(missing)}; a design needs a guess of every parameter")
        is_log = dict(zip(problem.free, problem.is_log, strict=True))
        for name in u.names:
            if is_log.get(name) and given[name] <= 0:
                raise InputError(f"the value of '{name}' must be positive, not {given[name]:g}; declare `real {name}`")
        v = np.array([np.log(given[n]) if is_log.get(n) else float(given[n]) for n in u.names])
        noise = np.where(np.isnan(problem.known_sigma), 1.0, problem.known_sigma) ** 2
        prior = np.zeros((u.size, u.size))
        prior[u.of_phi, u.of_phi] = problem.prior_at(u.phi(v)).curvature
        return Basis(problem, v, noise, prior, (0,))


def natural_values(problem: Problem, v: Array) -> Array:
    """Unknowns (..., P) in the user's units."""
    u = ParameterVector(problem)
    found = np.array(v, float)
    found[..., u.of_phi] = np.where(problem.is_log, np.exp(found[..., u.of_phi]), found[..., u.of_phi])
    return found


def need_text(problem: Problem) -> None:
    """Raise InputError for models that the compiled solver cannot follow."""
    if not BatchLikelihood.can(problem):
        raise InputError("a design needs a model written as text, with at most some thousand samples per experiment")


def observed_information(problem: Problem, v: Array, noise: Array) -> Array:
    """The Fisher information (P, P) of a problem's data and priors at unknowns v (P,)."""
    need_text(problem)
    batch = BatchLikelihood.of(problem, TOLERANCE, MOST_STEPS)
    solved = batch.solve(v[None])
    if not np.isfinite(solved.worth.value[0]):
        raise InputError("no trajectory could be computed at these parameter values")
    states, maps = batch.linearised(solved, np.array([0]))
    H, _ = batch.likelihood.normal(states, maps, noise[None], batch.likelihood.unknowns.phi(v)[None])
    return np.asarray(H.dense()[0])


@contextlib.contextmanager
def placeholders() -> Iterator[None]:
    """Without remarks on data, for observations that are not made yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        yield


def with_times(experiment: Experiment, columns: int, times: Array) -> Experiment:
    """An experiment that is observed at other times, where its trajectory still begins as it did."""
    t = np.unique(np.append(times, experiment.t[0]))
    return replace(experiment, t=t, y=np.full((len(t), columns), _PLACEHOLDER), sd=None, limit=None)
