"""One experiment as the solver needs it: start, initial values, inputs, doses and jumps.

Times at which something jumps or bends are `corners`: meshes have points there, and steps end there. Where a state
jumps at a time, an observation at that time is taken before the jump; what jumps `before` a time does so a little
earlier, too little for any solution to change.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Experiment
from odinfer.data.dose import Dose
from odinfer.errors import InputError
from odinfer.model.differentiation import TextField
from odinfer.model.model import Model
from odinfer.model.vector_field import FieldDerivatives

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_BEND = 1e-3  # of an input's range: a point that lies closer to the line between its neighbours is no corner
_AHEAD = 1e-10  # of the time span: how much earlier is what happens before a time
STEADY_DOSES = 100  # before a dose at steady state: enough for half-lives of up to 10 times between doses
SETTLED = 20.0  # times the time span: a trajectory that starts so long before the data is meant to settle
_INSIDE = 1e-9  # of an interval: how far from its ends the field is asked for where it jumps there


@dataclass(frozen=True, eq=False)
class Jump:
    """States that change at once: to new values that a program gives, and by amounts (K,)."""

    time: float
    states: Index
    program: FieldDerivatives | None
    amounts: Array

    def after(self, x: Array, theta: Array, u: Array) -> tuple[Array, Array, Array]:
        """States (B, K) after the jump, and their derivatives by those before (B, K, K) and by θ (B, K, P)."""
        B, K = x.shape
        new, by_x, by_theta = x.copy(), np.tile(np.eye(K), (B, 1, 1)), np.zeros((B, K, theta.shape[1]))
        if self.program is not None:
            t = np.full(B, self.time)
            given, fx, ft = self.program.linearise(t, x, theta, np.broadcast_to(u, (B, len(u))))
            new[:, self.states], by_x[:, self.states], by_theta[:, self.states] = given, fx, ft
        return new + self.amounts, by_x, by_theta


@dataclass(frozen=True)
class Infusion:
    """A constant rate into state k between two times."""

    k: int
    begin: float
    end: float
    rate: float


@dataclass(frozen=True, eq=False)
class Condition:
    """What one experiment does to a trajectory.

    Attributes:
        start: when the trajectory begins, at the first observation or before.
        jumps: in the order of their times.
        infusions: constant rates into states.
    """

    model: Model
    experiment: Experiment
    start: float
    jumps: tuple[Jump, ...] = ()
    infusions: tuple[Infusion, ...] = ()

    @staticmethod
    def of(model: Model, experiment: Experiment) -> Condition:
        """From what the model's text and the data say.

        Raises:
            InputError: something happens before the experiment starts, or a dose goes nowhere.
        """
        first, where = float(experiment.t[0]), f"experiment '{experiment.name}'"
        declarations = model.declarations
        start = min([first, *(d.time for d in experiment.doses)])
        for dose in experiment.doses:
            if dose.steady and dose.time > start:
                raise InputError(
                    f"{where}: the dose at steady state at {dose.time:g} comes after the first dose or observation; "
                    "make what follows an experiment of its own"
                )
        if declarations.begins not in ("first", "t0"):
            given = 0.0 if declarations.begins == "zero" else float(declarations.begins)
            if start < given:
                raise InputError(
                    f"{where} starts at {start:g}, but initial values are given at time {given:g}; write x(t0) = ... "
                    "for those at its first time"
                )
            start = given
        start = min([start, *(d.time - STEADY_DOSES * d.steady for d in experiment.doses if d.steady)])
        for event in declarations.events:
            if event.times[0] < start or (event.before and event.times[0] == start):
                raise InputError(
                    f"line {event.line}: the event at {event.times[0]:g} lies before {where} starts, at {start:g}; "
                    "give initial values at time 0 (such as x(0) = 0) or leave it out"
                )
        return Condition(model, experiment, start, *_jumps(model, experiment))

    @functools.cached_property
    def abrupt(self) -> bool:
        """Whether the field itself jumps somewhere."""
        declarations = self.model.declarations
        return bool(
            declarations.steps
            or declarations.breaks
            or declarations.input_breaks
            or self.infusions
            or self.model.switches
        )

    @functools.cached_property
    def times(self) -> Array:
        """The start and the observation times, those of replicates once."""
        t = np.unique(self.experiment.moments)
        return t if t[0] == self.start else np.append(self.start, t)

    @functools.cached_property
    def told(self) -> Array:
        """The same without the start where that lies so long before that the system has settled since."""
        t = self.experiment.t
        return t if t[0] - self.start > SETTLED * (np.ptp(t) or 1.0) else self.times

    def inputs_at(self, t: Array) -> Array:
        """Known inputs (N, U) at times t (N,): linear between the given values, or constant after each."""
        u, steps = self.experiment.u, self.model.declarations.steps
        if not self.model.inputs:
            return np.zeros((len(t), 0))
        return np.stack([_last_value(t, *u[n]) if n in steps else np.interp(t, *u[n]) for n in self.model.inputs], -1)

    @functools.cached_property
    def ignored_inputs(self) -> tuple[str, ...]:
        """The inputs that change before the trajectory begins: what they do there has no influence."""
        found = []
        for name in self.model.inputs:
            t, u = self.experiment.u[name]
            before = np.append(
                u[t < self.start], self.inputs_at(np.array([self.start]))[0, self.model.inputs.index(name)]
            )
            found += [name] if np.ptp(before) > 0 else []
        return tuple(found)

    @functools.cached_property
    def corners(self) -> Array:
        """Times at which an input bends visibly or anything jumps: solutions have kinks there, and meshes know."""
        found = [np.empty(0), np.asarray(self.model.declarations.breaks, float), np.array([j.time for j in self.jumps])]
        found += [np.array([i.begin, i.end]) for i in self.infusions]
        found.append(self._input_breaks)
        for name in self.model.inputs:
            t, u = self.experiment.u[name]
            if name in self.model.declarations.steps:
                found.append(t[1:][np.diff(u) != 0])
            elif len(t) > 2:
                share = (t[1:-1] - t[:-2]) / (t[2:] - t[:-2])
                off = np.abs(u[1:-1] - (u[:-2] + share * (u[2:] - u[:-2])))
                found.append(t[1:-1][off > _BEND * np.ptp(u)])
        return np.unique(np.concatenate(found))

    @functools.cached_property
    def _input_breaks(self) -> Array:
        """Times at which t passes an expression of inputs that do not change in time."""
        model, given = self.model, self.model.declarations.input_breaks
        still = all(len(np.unique(self.experiment.u[name][1])) == 1 for name in model.inputs)
        if not given or not still:
            return np.empty(0)
        nothing = np.zeros((1, len(model.states))), np.zeros((1, len(model.parameters)))
        inputs = self.inputs_at(np.array([self.start]))
        program = model.program(tuple(own.instruction for own in given))
        values = program.evaluate(np.array([self.start]), *nothing, inputs)[0]
        times = np.array([(v - own.offset) / own.slope for v, own in zip(values, given, strict=True)])
        return np.asarray(times[np.isfinite(times)])

    @functools.cached_property
    def with_sharp_switches(self) -> Condition:
        """The same with switches as they are written."""
        return replace(self, model=self.model.with_sharp_switches) if self.model.switches else self

    def switch_times(self, theta: Array) -> Array:
        """Times at which a condition changes whose time depends on parameters (P,) or inputs."""
        return self.model.switch_times(theta, self.inputs_at(np.array([self.start]))[0])

    def between(self, first: float, last: float) -> Array:
        """The corners strictly between two times."""
        c = self.corners
        return np.asarray(c[(c > first) & (c < last)])

    def inside(self, begin: Array | float, end: Array | float, t: Array) -> Array:
        """Times t of intervals, moved off their ends where the field may jump there."""
        if not self.abrupt:
            return t
        aside = _INSIDE * (np.asarray(end) - begin)
        return np.clip(t, begin + aside, end - aside)

    def linearise(self, t: Array, x: Array, theta: Array) -> tuple[Array, Array, Array]:
        """f and its Jacobians at M points; see `Model.linearise`."""
        f, fx, ft = self.model.linearise(t, x, theta, self.inputs_at(t))
        return (f + self.infused(t), fx, ft) if self.infusions else (f, fx, ft)

    def evaluate(self, t: Array, x: Array, theta: Array) -> Array:
        """f (M, K) at M points."""
        f = self.model.evaluate(t, x, theta, self.inputs_at(t))
        return f + self.infused(t) if self.infusions else f

    def quick(self, theta: Array, begin: float, end: float) -> Callable[[Any, float], Any]:
        """f(x, t) between two corners as a compiled solver asks for it.

        Raises:
            ArithmeticError, ValueError: from that function, where it is not finite.
        """
        evaluator, aside = self.model.derivatives, _INSIDE * (end - begin) if self.abrupt else 0.0
        held = all(len(np.unique(self.experiment.u[name][1])) == 1 for name in self.model.inputs)
        if not isinstance(evaluator, TextField) or not held or self.infusions:

            def field(x: Array, t: float) -> Array:
                at = np.array([min(max(t, begin + aside), end - aside)])
                f: Array = self.evaluate(at, x[None], theta)[0]
                if not np.isfinite(f).all():
                    raise ArithmeticError("not finite")
                return f

            return field
        at_one, numbers, u = evaluator.at_one, theta.tolist(), self.inputs_at(np.array([begin]))[0].tolist()

        def plain(x: Array, t: float) -> tuple[float, ...]:
            f = at_one(min(max(t, begin + aside), end - aside), x.tolist(), numbers, u)
            if not math.isfinite(sum(f)):
                raise ArithmeticError("not finite")
            return f

        return plain

    def infused(self, t: Array) -> Array:
        rates = np.zeros((len(t), len(self.model.states)))
        for i in self.infusions:
            rates[:, i.k] += np.where((t >= i.begin) & (t < i.end), i.rate, 0.0)
        return rates

    def jumps_on(self, mesh: Array) -> list[tuple[int, Jump]]:
        """The jumps at points of a mesh, its last one left out: what comes after it."""
        found = []
        for jump in self.jumps:
            i = int(np.searchsorted(mesh, jump.time))
            if i < len(mesh) - 1 and mesh[i] == jump.time:
                found.append((i, jump))
        return found

    def jumped(self, jump: Jump, x: Array, theta: Array) -> tuple[Array, Array, Array]:
        """States (B, K) after a jump with their derivatives; see `Jump.after`."""
        return jump.after(x, theta, self.inputs_at(np.array([jump.time]))[0])

    def initial(self, theta: Array, free: Array) -> Array:
        """Initial values (B, K) from the free ones (B, ·) and θ (B, P)."""
        given = self.model.given_initial
        x0 = np.empty((len(theta), len(self.model.states)))
        x0[:, self.model.free_initial] = free
        if given is not None:
            x0[:, given.states] = given.program.evaluate(*self._at_start(theta))
        return x0

    def initial_slopes(self, theta: Array) -> Array:
        """Derivatives (B, K, P) of the initial values by θ (B, P)."""
        given = self.model.given_initial
        slopes = np.zeros((len(theta), len(self.model.states), len(self.model.parameters)))
        if given is not None:
            slopes[:, given.states] = given.program.linearise(*self._at_start(theta))[2]
        return slopes

    def _at_start(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        B, t = len(theta), np.array([self.start])
        u = np.broadcast_to(self.inputs_at(t), (B, len(self.model.inputs)))
        return np.full(B, self.start), np.zeros((B, len(self.model.states))), theta, u


def _last_value(t: Array, times: Array, values: Array) -> Array:
    """The value given last before or at each time; the first one before that."""
    return np.asarray(values[np.maximum(np.searchsorted(times, t, side="right") - 1, 0)])


def _jumps(model: Model, experiment: Experiment) -> tuple[tuple[Jump, ...], tuple[Infusion, ...]]:
    nothing = np.zeros(len(model.states))
    jumps, infusions = [], []
    for event in model.declarations.events:
        states = np.array([model.states.index(name) for name, _ in event.changes], dtype=np.int64)
        program = model.program(tuple(i for _, i in event.changes))
        ahead = _ahead(experiment) if event.before else 0.0
        jumps += [Jump(time - ahead, states, program, nothing) for time in event.times]
    for dose in _every_dose(experiment):
        k = _compartment(model, dose, experiment.name)
        if dose.rate > 0:
            infusions.append(Infusion(k, dose.time, dose.time + dose.amount / dose.rate, dose.rate))
        else:
            jumps.append(Jump(dose.time, np.empty(0, np.int64), None, dose.amount * np.eye(len(nothing))[k]))
    return tuple(sorted(jumps, key=lambda jump: jump.time)), tuple(infusions)


def _every_dose(experiment: Experiment) -> list[Dose]:
    """The doses with those before that lead to a steady state."""
    found = list(experiment.doses)
    for dose in experiment.doses:
        if dose.steady:
            before = range(1, STEADY_DOSES + 1)
            found += [replace(dose, time=dose.time - k * dose.steady, steady=0.0) for k in before]
    return found


def _ahead(experiment: Experiment) -> float:
    """How much earlier than a time is what happens before it."""
    return _AHEAD * (float(np.ptp(experiment.t)) or 1.0) + 1e-13 * float(np.abs(experiment.t).max())


def _compartment(model: Model, dose: Dose, experiment: str) -> int:
    """The place of the state that a dose goes into."""
    states: Sequence[str] = model.states
    if dose.state is None:
        return 0
    if dose.state in states:
        return states.index(dose.state)
    if dose.state.isdigit() and 1 <= int(dose.state) <= len(states):
        return int(dose.state) - 1
    raise InputError(
        f"experiment '{experiment}': the dose at {dose.time:g} goes into '{dose.state}', which is no state; "
        f"choose from {', '.join(states)} or their numbers from 1"
    )
