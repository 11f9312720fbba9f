"""Trajectories and observations of all subjects for many sets of individual parameters."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.likelihood.variable_projection import moving
from odinfer.model.differentiation import TextField
from odinfer.noise import censored
from odinfer.ode.breakpoints import Timetable
from odinfer.ode.linear_propagation import LinearPropagation
from odinfer.ode.right_hand_side import Field
from odinfer.population.tasks import States, solve_in_parts
from odinfer.problem.condition import STEADY_DOSES
from odinfer.problem.problem import Problem

if TYPE_CHECKING:
    from odinfer.ode.integrate_batch import BatchTrajectories

Array = NDArray[np.float64]
Index = NDArray[np.int64]

TOLERANCE = 1e-5  # relative error of a step: log-likelihoods of the reference data change by less than 1e-4
MOST_STEPS = 5000  # of one trajectory
_SETTLED = 0.01  # of the states: what a steady state may lack
_DIFFERENCE = 1e-5  # of a parameter, for derivatives of solutions that are accurate to 1e-11


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """B trajectories at the observations of their subjects, M points in all, those of a trajectory side by side.

    Attributes:
        e, theta: subjects (B,) and parameters of the model (B, P).
        node: the trajectory of each point (M,).
        row: the observation of each point (M,) in the long list of all.
        first: the first point of each trajectory (B,).
        x: states (M, K).
        S: derivatives of the states by the wanted parameters (M, K, W), if asked for.
    """

    e: Index
    theta: Array
    node: Index
    row: Index
    first: Index
    x: Array
    S: Array | None = None

    def points(self, kept: Array | Index | NDArray[np.bool_]) -> BatchSolution:
        """The same with some of the points only, which cannot be summed by trajectory."""
        S = None if self.S is None else self.S[kept]
        return BatchSolution(self.e, self.theta, self.node[kept], self.row[kept], self.first, self.x[kept], S)

    def sums(self, each: Array) -> Array:
        """Sums (B, ...) of what points (M, ...) contribute to their trajectories."""
        return np.asarray(np.add.reduceat(each, self.first, axis=0))


@dataclass(frozen=True, eq=False)
class Subjects:
    """The experiments of a problem as subjects.

    Attributes:
        wanted: places (W,) among the model's parameters by which derivatives are wanted.
    """

    problem: Problem
    wanted: Index
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        if not isinstance(self.problem.model.derivatives, TextField):
            raise InputError("random effects need a model from text: od.Model.from_text or an .ode file")

    @functools.cached_property
    def field(self) -> Field:
        p = self.problem
        conditions = [p.condition(e) for e in range(len(p.data.experiments))]
        moved = moving(p.model)
        return Field(Timetable.of(conditions), self.wanted[[p.model.parameters[i] in moved for i in self.wanted]])

    @functools.cached_property
    def _long(self) -> tuple[Index, ...]:
        """Of every observation: its subject, stop, row of the table, and column; sorted by subject."""
        found = []
        for e, (experiment, stops) in enumerate(zip(self.problem.data.experiments, self.field.table.rows, strict=True)):
            rows, columns = np.nonzero(np.isfinite(experiment.y))
            found.append((np.full(len(rows), e), stops[rows], rows, columns))
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))

    @property
    def subject(self) -> Index:
        """The subject of every observation (O,)."""
        return self._long[0]

    @property
    def column(self) -> Index:
        """The column of every observation (O,)."""
        return self._long[3]

    @functools.cached_property
    def counts(self) -> Index:
        """The number of observations of each subject (E,)."""
        return np.bincount(self.subject, minlength=len(self.problem.data.experiments))

    def _gather(self, name: str) -> Array:
        experiments = self.problem.data.experiments
        parts = []
        for e, row, column in zip(self._long[0], self._long[2], self._long[3], strict=True):
            table = getattr(experiments[e], name)
            parts.append(np.nan if table is None else table[row, column])
        return np.array(parts, float)

    @functools.cached_property
    def y(self) -> Array:
        """Observed values (O,)."""
        return self._gather("y")

    @functools.cached_property
    def sd(self) -> Array:
        """Known standard deviations (O,), NaN where there is none."""
        return self._gather("sd")

    @functools.cached_property
    def limit(self) -> Array:
        """Whether an observation is a limit of detection (O,)."""
        return np.nan_to_num(self._gather("limit"))

    @functools.cached_property
    def t(self) -> Array:
        """Times of the observations (O,)."""
        experiments = self.problem.data.experiments
        return np.array([experiments[e].t[row] for e, row in zip(self._long[0], self._long[2], strict=True)])

    @functools.cached_property
    def u(self) -> Array:
        """Inputs (O, U) at the observations."""
        found = np.zeros((len(self.subject), len(self.problem.model.inputs)))
        for e, experiment in enumerate(self.problem.data.experiments):
            own = self.subject == e
            found[own] = self.problem.condition(e).inputs_at(experiment.t)[self._long[2][own]]
        return found

    @functools.cached_property
    def _linear(self) -> LinearPropagation | None:
        return LinearPropagation.of(self.field)

    def solve(self, e: Index, theta: Array, slopes: bool = False) -> BatchSolution:
        """Trajectories of subjects e (B,) with parameters theta (B, P); NaN where one ends early.

        Linear equations are solved by the matrix exponential, with derivatives by central differences, which lose
        nothing that matters to it; others by RODAS with variational equations.
        """
        node, row, first = self._points_of(e)
        parts = None if self._linear is not None else solve_in_parts(self, e, theta, slopes)
        x, S = self.states(e, theta, slopes) if parts is None else parts
        return BatchSolution(e, theta, node, row, first, x, S)

    def _points_of(self, e: Index) -> tuple[Index, Index, Index]:
        """Of trajectories of subjects e (B,): the trajectory and observation of each point (M,), and first points."""
        counts = self.counts[e]
        first = np.cumsum(counts) - counts
        node = np.repeat(np.arange(len(e)), counts)
        begin = np.cumsum(self.counts) - self.counts
        return node, begin[e][node] + np.arange(len(node)) - first[node], first

    def states(self, e: Index, theta: Array, slopes: bool) -> States:
        """States (M, K) at the observations, and their derivatives (M, K, W) if asked for."""
        node, row, _ = self._points_of(e)
        stop, W = self._long[1][row], len(self.field.wanted)
        with np.errstate(all="ignore"):
            if self._linear is not None:
                x = self._linear.solve(e, theta, self._initial(e, theta))[node, stop]
                if slopes:
                    own = self._differences(e, theta)[node, stop] if W else np.zeros((*x.shape, 0))
            else:
                trajectories = self._integrate(e, theta)
                x = trajectories.x[node, stop]
                if slopes:
                    own = self._sensitivities(trajectories, e, theta)[node, stop]
        if not slopes:
            return x, None
        S = np.zeros((*x.shape, len(self.wanted)))
        S[..., np.isin(self.wanted, self.field.wanted)] = own
        return x, S

    def __getstate__(self) -> dict[str, Any]:
        """What a worker needs: what was compiled here stays here."""
        return {"problem": self.problem, "wanted": self.wanted, "tolerance": self.tolerance}

    def unsettled(self, theta: Array) -> list[str]:
        """Subjects with parameters theta (E, P) that are not at steady state when a dose of theirs says so.

        The change over one interval more, times the number of doses before, bounds what is missing.
        """
        experiments, found = self.problem.data.experiments, []
        for i, experiment in enumerate(experiments):
            for dose in experiment.doses:
                if dose.steady:
                    t = dose.time + dose.steady * np.array([0.0, 1.0])
                    y = np.ones((2, len(self.problem.columns)))
                    alone = replace(experiment, t=t, y=y, sd=None, limit=None, doses=(dose,))
                    one = replace(self.problem, data=self.problem.data._with((alone,)))
                    x = Subjects(one, np.empty(0, np.int64)).solve(np.zeros(1, np.int64), theta[i : i + 1]).x
                    missing = STEADY_DOSES * np.abs(x[-1] - x[0])
                    found += [experiment.name] if (missing > _SETTLED * np.abs(x).max()).any() else []
        return list(dict.fromkeys(found))

    @functools.cached_property
    def _starts(self) -> tuple[Array, Array]:
        """When the trajectories of the subjects start (E,), and inputs (E, U) then."""
        conditions = [self.problem.condition(e) for e in range(len(self.problem.data.experiments))]
        return np.array([c.start for c in conditions]), np.concatenate(
            [c.inputs_at(np.array([c.start])) for c in conditions]
        )

    def _initial(self, e: Index, theta: Array) -> Array:
        """Initial values (B, K), all of which the text gives."""
        given, x0 = self.problem.model.given_initial, np.zeros((len(e), len(self.problem.model.states)))
        if given is not None:
            t, u = self._starts
            x0[:, given.states] = given.program.evaluate(t[e], x0, theta, u[e])
        return x0

    def _initial_slopes(self, e: Index, theta: Array) -> Array:
        """Derivatives (B, K, P) of the initial values by the model's parameters."""
        given, model = self.problem.model.given_initial, self.problem.model
        found = np.zeros((len(e), len(model.states), len(model.parameters)))
        if given is not None:
            t, u = self._starts
            found[:, given.states] = given.program.linearise(t[e], np.zeros((len(e), len(model.states))), theta, u[e])[
                2
            ]
        return found

    def _differences(self, e: Index, theta: Array) -> Array:
        """Derivatives (B, n, K, W) at all stops, by central differences."""
        assert self._linear is not None
        found = []
        for i in self.field.wanted:
            size = np.abs(theta[:, i])
            step = _DIFFERENCE * np.maximum(size, 1e-3 * size.mean() or 1.0)
            sides = []
            for sign in (1.0, -1.0):
                moved = theta.copy()
                moved[:, i] += sign * step
                sides.append(self._linear.solve(e, moved, self._initial(e, moved)))
            found.append((sides[0] - sides[1]) / (2.0 * step)[:, None, None])
        return np.stack(found, -1)

    def _integrate(self, e: Index, theta: Array) -> BatchTrajectories:
        from odinfer.ode.integrate_batch import integrate_batch

        return integrate_batch(self.field, e, theta, self._initial(e, theta), self.tolerance, MOST_STEPS, halting=False)

    def _sensitivities(self, trajectories: BatchTrajectories, e: Index, theta: Array) -> Array:
        from odinfer.ode.sensitivities import sensitivities

        S0 = self._initial_slopes(e, theta)[..., self.field.wanted]
        return sensitivities(self.field, trajectories, e, theta, S0, np.arange(len(e)))

    def _points(self, solved: BatchSolution) -> tuple[Array, Array, Array, Array]:
        return self.t[solved.row], solved.x, solved.theta[solved.node], self.u[solved.row]

    def arguments(self, solved: BatchSolution) -> Array:
        """The arguments (M, A) of all columns' distributions, as far as the text gives them."""
        return np.asarray(self.problem.observation_program.evaluate(*self._points(solved)))

    @functools.cached_property
    def _places(self) -> tuple[slice, ...]:
        ends = np.cumsum([len(c.arguments) for c in self.problem.observed])
        pairs = zip(self.problem.observed, ends, strict=True)
        return tuple(slice(int(end) - len(c.arguments), int(end)) for c, end in pairs)

    def _distribution_arguments(self, m: int, a: Array, row: Index, sigma: Array) -> list[Array]:
        """All arguments of the distribution of column m at points with arguments a (M, A) of the text."""
        given = [a[:, i] for i in range(a.shape[1])[self._places[m]]]
        if self.problem.observed[m].profiled:
            given.append(np.where(np.isnan(self.sd[row]), sigma[m], self.sd[row]))
        return given

    def log_density(self, a: Array, row: Index, sigma: Array) -> Array:
        """log p of observations (M,) given the arguments (M, A) of the text and the noise (columns,)."""
        found = np.empty(len(row))
        for m, column in enumerate(self.problem.observed):
            here = self._of_column(m, row)
            given = self._distribution_arguments(m, a[here], row[here], sigma)
            y, limit = self.y[row[here]], self.limit[row[here]]
            if limit.any():
                found[here] = censored.log_density(column.family, y, given, limit)
            else:
                found[here] = column.family.log_density(y, given)
        return np.where(np.isnan(found), -np.inf, found)

    def _of_column(self, m: int, row: Index) -> Index | slice:
        return slice(None) if len(self.problem.observed) == 1 else np.flatnonzero(self.column[row] == m)

    def rows(self, a: Array, row: Index, sigma: Array) -> tuple[Array, Array]:
        """Residuals (M, R) and their derivatives (M, R, A + columns) by the arguments, and by log σ of each column.

        The gradient of −log p is the sum of their products over R; Fisher's information that of the derivatives.
        """
        columns, A = self.problem.observed, a.shape[1]
        R = max(len(c.family.arguments) for c in columns)
        r, J = np.zeros((len(row), R)), np.zeros((len(row), R, A + len(columns)))
        for m, column in enumerate(columns):
            here = self._of_column(m, row)
            given = self._distribution_arguments(m, a[here], row[here], sigma)
            y, limit = self.y[row[here]], self.limit[row[here]]
            if limit.any():
                own, by = censored.rows(column.family, y, given, limit)
            else:
                own, by = column.family.rows(y, given)
            count, place = own.shape[-1], self._places[m]
            r[here, :count] = own
            width = place.stop - place.start
            J[here, :count, place] = by[..., :width]
            if column.profiled:
                estimated = np.isnan(self.sd[row[here]])
                J[here, :count, A + m] = by[..., width] * np.where(estimated, sigma[m], 0.0)[:, None]
        return r, J

    def linearised(self, solved: BatchSolution) -> tuple[Array, Array, Array]:
        """Arguments (M, A), their derivatives (M, A, W) by the wanted parameters through states and directly."""
        a, ax, at = self.problem.observation_program.linearise(*self._points(solved))
        own = at[..., self.wanted]
        if solved.S is not None:
            own = own + ax @ solved.S
        return a, np.asarray(own), np.asarray(at)

    def predictions(self, a: Array, row: Index) -> Array:
        """The predicted value (M,) of each observation: the first argument of its column."""
        first = np.array([place.start for place in self._places])
        return np.asarray(a[np.arange(len(row)), first[self.column[row]]])


def wanted_parameters(problem: Problem, effects: Sequence[str], fixed: Sequence[str]) -> Index:
    """Places of the individual parameters that vary, then of those equal in all subjects."""
    index = {name: i for i, name in enumerate(problem.model.parameters)}
    return np.array([index[name] for name in (*effects, *fixed)], np.int64)
