"""The value of sets of candidate samples: a criterion of their information, averaged over parameter values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_choice
from odinfer.errors import InputError, nearest
from odinfer.likelihood.batch_likelihood import BatchLikelihood
from odinfer.optimal_design.basis import MOST_STEPS, TOLERANCE, Basis
from odinfer.optimal_design.criteria import NAMES, AOptimality, Criterion, DOptimality
from odinfer.optimal_design.information import Candidates, candidate_problem

Array = NDArray[np.float64]

_FORECAST = re.compile(r"\s*([^\W\d]\w*)\s*\(\s*([-+.\deE]+)\s*\)\s*")


@dataclass(frozen=True, eq=False)
class Objective:
    """What a search for a design makes small.

    Attributes:
        base: information (P, P) that exists, of relative changes.
        information: of the candidates at S points (S, C, P, P), of relative changes.
        criterion: by which informations are judged.
    """

    base: Array
    information: Array
    criterion: Criterion

    @staticmethod
    def of(basis: Basis, found: Candidates, criterion: Criterion) -> Objective:
        D = basis.scale
        return Objective(basis.information * np.outer(D, D), found.information * np.outer(D, D), criterion)

    def __call__(self, chosen: tuple[int, ...], added: NDArray[np.int64]) -> Array:
        """Values (n,) of designs of the chosen samples and one of n others each, or of the chosen alone."""
        known = self.total(chosen)
        if not len(added):
            return np.asarray(self.criterion(known).mean(0, keepdims=True))
        return np.asarray(self.criterion(known[:, None] + self.information[:, added]).mean(0))

    def total(self, chosen: Sequence[int]) -> Array:
        """The information (S, P, P) with chosen samples."""
        return np.asarray(self.base + self.information[:, list(chosen)].sum(1))


def criterion_for(basis: Basis, name: str, targets: Sequence[str]) -> Criterion:
    """The criterion of a name; of targets, their mean relative variance.

    Args:
        targets: parameters such as "CL", or forecasts such as "x(48)".

    Raises:
        InputError: there is no such criterion, parameter or column.
    """
    checked_choice("criterion", name, NAMES)
    if not targets:
        if name == "c":
            raise InputError("criterion 'c' is for named parameters or forecasts; name them with for_ (--for CL,V)")
        return DOptimality() if name == "D" else AOptimality(np.eye(len(basis.names)))
    return AOptimality(np.stack([_gradient(basis, target) for target in targets]))


def forecasts(basis: Basis, targets: Sequence[str]) -> tuple[tuple[str, ...], Array, Array]:
    """Those targets that are no parameters: names (G), values (G,), and relative changes (G, P) by the unknowns."""
    own = [target for target in targets if not _parameters(basis, target)]
    found = [_forecast(basis, target) for target in own]
    gradients = np.array([gradient for _, gradient in found]).reshape(len(own), len(basis.names))
    return tuple(own), np.array([value for value, _ in found]), gradients


def _parameters(basis: Basis, target: str) -> list[str]:
    """The unknowns that a target names."""
    return [n for n in basis.names if n.partition("[")[0] == target or n == target]


def _gradient(basis: Basis, target: str) -> Array:
    """The relative change (P,) of a target by relative changes of the unknowns."""
    if own := _parameters(basis, target):
        return np.asarray(np.isin(basis.names, own) / np.sqrt(len(own)), float)
    return _forecast(basis, target)[1]


def _forecast(basis: Basis, target: str) -> tuple[float, Array]:
    """The value of a forecast such as x(48), and its relative change (P,) by relative changes of the unknowns."""
    match = _FORECAST.fullmatch(target)
    p = basis.problem
    known = (*p.model.states, *p.columns)
    if match is None or match[1] not in known:
        raise InputError(
            f"for: the model has no '{target}'{nearest(target, (*p.free, *known))}; "
            f"name estimated parameters, or forecasts such as {p.columns[0]}(10)"
        )
    name, time = match[1], float(match[2])
    problem = candidate_problem(basis, np.array([time]))
    batch = BatchLikelihood.of(problem, TOLERANCE, MOST_STEPS)
    solved = batch.solve(basis.v[None])
    states, maps = batch.linearised(solved, np.array([0]))
    likelihood, row = batch.likelihood, int(np.searchsorted(problem.data.experiments[0].t, time))
    if name in p.model.states:
        k = p.model.states.index(name)
        value, gradient = states[0][0, row, k], maps[0][0, row, k]
    else:
        m, t = p.columns.index(name), problem.data.experiments[0].t
        h, by = likelihood.observation.linearised(0, states[0], maps[0], likelihood.unknowns.phi(basis.v)[None], t)
        value, gradient = h[0, row, m], by[0, row, m]
    change = likelihood.unknowns.lift(0, gradient[None])[0] * basis.scale / (abs(value) or 1.0)
    return float(value), np.asarray(change)
