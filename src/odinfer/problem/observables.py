"""Observed columns, and the check that every unknown influences an observation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data
from odinfer.errors import InputError, listed, nearest
from odinfer.model import distributions as language
from odinfer.model.differentiation import TextField
from odinfer.model.model import Model
from odinfer.model.program import needed
from odinfer.noise import FAMILIES, Family

if TYPE_CHECKING:
    from odinfer.problem.problem import Problem

Mask = NDArray[np.bool_]

_ONE = re.compile(r"[^;#\r\n]*")  # statement
_PROBES = 50  # random points at which dependences are looked for
_MOST_MET = 500  # values of inputs with which they are looked for


@dataclass(frozen=True)
class Observe:
    """A column of the data with its distribution: Observe("cases", "poisson(rho*I)").

    Args:
        column: its name.
        distribution: a family with its arguments, the predicted value first: normal(m, sd), lognormal(m, sd of the
            log), student(m, sd, df), laplace(m, b), poisson(m), negbinomial(m, k) or binomial(m, n).
    """

    column: str
    distribution: str


@dataclass(frozen=True)
class Column:
    """A column as the data have it.

    Attributes:
        name: of the column.
        family: of its noise.
        words: that family's name.
        arguments: the instructions of what is in its brackets, as far as the text gives them.
        profiled: whether the standard deviation, left out, is at its best for any trajectory.
    """

    name: str
    family: Family
    words: str
    arguments: tuple[int, ...]
    profiled: bool


def statements(
    model: Model, observe: Sequence[Observe], initial: Mapping[str, Any], local: Sequence[str], events: Sequence[str]
) -> str:
    """What is given in Python as statements of the language of models."""
    if isinstance(observe, Observe):
        observe = (observe,)
    if not all(isinstance(o, Observe) for o in observe):
        raise InputError('observe takes Observe("column", "poisson(rho*I)"), one or several')
    if not isinstance(initial, Mapping):
        raise InputError(f"initial must be a dictionary by state, not {type(initial).__name__}")
    for name in initial:
        if name not in model.states:
            raise InputError(f"initial: the model has no state '{name}'{nearest(str(name), model.states)}")
    local, events = ([v] if isinstance(v, str) else list(v) for v in (local, events))
    lines = [f"{o.column} ~ {o.distribution}" for o in observe]
    lines += [f"{state}(0) = {value}" for state, value in initial.items()]
    lines += [*([f"local {', '.join(map(str, local))}"] if local else []), *map(str, events)]
    for line in lines:
        if not _ONE.fullmatch(line):
            raise InputError(f"{line[:60]!r} is more than one statement; give each by itself")
    return "\n".join(lines)


def observed_columns(model: Model, data: Data) -> tuple[str, ...]:
    """The columns of the data that are observations: states first, then what has a distribution, then definitions."""
    columns = {c.name: None for c in model.declarations.columns}
    seen = [name for name in data.states if data.n_observed(name)]
    for c in model.declarations.columns:
        if c.name not in seen:
            if c.name in data.states:
                raise InputError(f"line {c.line}: column '{c.name}' of the data has no value; leave the line out")
            raise InputError(
                f"line {c.line}: the data have no column '{c.name}'{nearest(c.name, data.states) or '; rename one'}"
            )
    known = [*model.states, *columns, *(n for n in model.declarations.definitions if n not in columns)]
    found = tuple(name for name in dict.fromkeys(known) if name in seen)
    if len(set(model.states) & set(found)) < len(model.states):  # then a column may be a state that is misspelled
        for name in data.states:
            if name not in known:
                hint = nearest(name, known) or f"; choose from {', '.join(known[:20])}"
                raise InputError(f"column '{name}' of the data is no state and no definition of the model{hint}")
    if not found:
        raise InputError(f"the data have none of {listed(known[:20])}; nothing of the model is observed")
    return found


def is_gaussian_state(model: Model, column: language.Column) -> bool:
    """Whether a statement says of a state what holds without it: x ~ normal(x)."""
    itself = column.name in model.states and column.arguments == (model.instruction(column.name),)
    return itself and column.family == "normal"


def columns_of(model: Model, data: Data) -> tuple[Column, ...]:
    """The observed columns with their distributions; without one, a column is a state or definition plus noise."""
    columns = {c.name: c for c in model.declarations.columns}
    found = []
    for m, name in enumerate(data.states):
        words = columns[name].family if name in columns else "normal"
        arguments = columns[name].arguments if name in columns else (model.instruction(name),)
        family = FAMILIES[words]
        by_row = any(e.sd is not None and np.isfinite(e.sd[:, m]).any() for e in data.experiments)
        if by_row and not (family.profiled and len(arguments) == 1):
            raise InputError(f"'{name}' has standard deviations by row, but also a distribution that says its own")
        found.append(Column(name, family, words, arguments, family.profiled and len(arguments) == 1))
    return tuple(found)


class UnusedParameters(InputError):
    """Parameters to be estimated have no influence on anything observed; `names` has all of them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(f"parameter '{names[0]}' has no influence on anything observed; fix it or leave it out")
        self.names = names


def check_observed(problem: Problem) -> None:
    """Refuse observations that their distribution cannot give, and parameters that have no influence on any.

    Raises:
        InputError: naming the column or parameter.
    """
    for m, column in enumerate(problem.observed):
        for e in problem.data.experiments:
            seen = np.isfinite(e.y[:, m])
            if (why := column.family.refuses(e.y[seen, m])) is not None:
                pairs = zip(e.t[seen], e.y[seen, m], strict=True)
                t, y = next(pair for pair in pairs if column.family.refuses(np.array(pair[1:])) is not None)
                where = f"experiment '{e.name}': '{column.name}' is {y:g} at {t:g}"
                raise InputError(f"{where}, but {column.words} data {why}")
            if column.family.discrete and e.limit is not None and (e.limit[:, m] != 0).any():
                raise InputError(f"experiment '{e.name}': counts such as '{column.name}' cannot have detection limits")
            if e.sd is not None and (seen & np.isnan(e.sd[:, m])).any() and np.isfinite(e.sd[:, m]).any():
                first = e.t[seen & np.isnan(e.sd[:, m])][0]
                raise InputError(
                    f"experiment '{e.name}': '{column.name}' has no standard deviation at {first:g}; give it, or leave "
                    "the value out"
                )
    states, parameters = problem._influential
    if not (states.any() or parameters.any()):
        raise InputError(f"nothing in the model has an influence on anything observed ({', '.join(problem.columns)})")
    named = zip(problem.model.parameters, parameters, strict=True)
    if unused := tuple(name for name, seen in named if not seen and name not in problem.fixed):
        raise UnusedParameters(unused)


def unusual(problem: Problem) -> str | None:
    """What of a problem is more than every state with Gaussian noise of one level, in a few words; None if nothing."""
    declarations, experiments = problem.model.declarations, problem.data.experiments
    if problem.fully_observed_gaussian:
        return None
    if problem.hidden:
        return f"{listed(problem.hidden)} {'is' if len(problem.hidden) == 1 else 'are'} hidden"
    for column in problem.observed:
        if column.words != "normal":
            return f"the noise of {column.name} is {column.words}"
        if column.name not in problem.model.states or column.arguments[0] != problem.model.instruction(column.name):
            return f"{column.name} is not simply a state"
        if len(column.arguments) > 1:
            return f"{column.name} has noise of its own"
    kinds = {
        "initial values are given": declarations.initial,
        "there are events": declarations.events or declarations.triggers,
        "there are local parameters": problem.split.any,
        "there are doses": any(e.doses for e in experiments),
        "standard deviations are given row by row": any(e.sd is not None for e in experiments),
        "some values are beyond a detection limit": any(e.limit is not None for e in experiments),
    }
    return next((words for words, there in kinds.items() if there), "a column has a distribution")


def need_times(problem: Problem) -> None:
    """Refuse to fit what only simulation can follow.

    Raises:
        InputError: an event that states trigger has a delay, or the model is a function.
    """
    for trigger in problem.model.declarations.triggers:
        if trigger.delay is not None:
            raise InputError(
                f"line {trigger.line}: an event with a delay can be simulated and judged by od.loglik, but not fitted; "
                "write 'at TIME:' if its time is known, or leave the delay out"
            )


def need_fully_observed_gaussian(problem: Problem, who: str) -> None:
    """Refuse a problem that is more than what the papers treat.

    Raises:
        InputError: saying who cannot use it, and why.
    """
    if (why := unusual(problem)) is not None:
        raise InputError(f"{who} needs every state observed with Gaussian noise; {why}")


def _in_conditions(model: Model, outputs: Sequence[int]) -> tuple[Mask, Mask]:
    """Of which states (F, K) and parameters (F, P) conditions are made that choose among expressions of F outputs."""
    code, found = model.code, []
    for output in outputs:
        conditions = [code[i][1][0] for i in needed(code, [output]) if code[i][0] == "where"]
        found.append({code[i][1][0] for i in needed(code, conditions) if code[i][0] == "name"})
    states, parameters = (
        np.array([[name in own for name in names] for own in found], bool).reshape(len(found), len(names))
        for names in (model.states, model.parameters)
    )
    return states, parameters


def influential(problem: Problem) -> tuple[Mask, Mask]:
    """Which states (K,) and parameters (P,) have an influence on any observed value."""
    m = problem.model
    K, P, U = len(m.states), len(m.parameters), len(m.inputs)
    rng = np.random.default_rng(0)
    # Over all times and many sizes, since parts of an expression may matter beyond some of them only.
    span = [condition.times[[0, -1]] for condition in map(problem.condition, range(len(problem.data.experiments)))]
    t = rng.uniform(np.min(span), np.max(span), _PROBES)
    seen = np.concatenate([e.t for e in problem.data.experiments])
    t[::2] = rng.uniform(seen.min(), seen.max(), len(t[::2]))
    points = [10.0 ** rng.uniform(-3.0, 3.0, (_PROBES, n)) for n in (K, P, U)]
    for p in points:
        p[: _PROBES // 5] = rng.uniform(0.5, 2.0, p[: _PROBES // 5].shape)
    if U:  # inputs as they are, too: what a condition of theirs chooses is met nowhere else
        conditions = map(problem.condition, range(len(problem.data.experiments)))
        met = np.unique(np.concatenate([c.inputs_at(np.union1d(c.times, c.corners)) for c in conditions]), axis=0)
        met = met[:: 1 + len(met) // _MOST_MET]
        t, points = np.tile(t, 1 + len(met)), [np.tile(p, (1 + len(met), 1)) for p in points]
        points[2][_PROBES:] = np.repeat(met, _PROBES, 0)

    def depends(jacobian: NDArray[np.float64]) -> Mask:
        return np.asarray((jacobian != 0).any(0))  # what is not a number may be anything

    with np.errstate(all="ignore"):
        fx, ft = (depends(v) for v in m.linearise(t, *points)[1:])
        if m.switches and isinstance(m.evaluator, TextField):  # few points lie within a switch: by the equations
            for k, column in zip(*m.evaluator.pattern, strict=True):
                if column >= K and m.parameters[column - K] in m.switches:
                    ft[k, column - K] = True
        hx, ht = (depends(v) for v in problem.observation_program.linearise(t, *points)[1:])
        # Conditions have no derivatives, but decide which expression counts.
        if m.declarations.outputs:
            own_x, own_t = _in_conditions(m, m.declarations.outputs)
            fx, ft = fx | own_x, ft | own_t
        own_x, own_t = _in_conditions(m, [i for column in problem.observed for i in column.arguments])
        hx, ht = np.concatenate([hx, own_x]), np.concatenate([ht, own_t])
        for event in m.declarations.events:
            ex, et = (depends(v) for v in m.program(tuple(i for _, i in event.changes)).linearise(t, *points)[1:])
            for row, (name, _) in enumerate(event.changes):
                k = m.states.index(name)
                fx[k], ft[k] = fx[k] | ex[row], ft[k] | et[row]
        for trigger in m.declarations.triggers:  # what is changed depends on what decides when, too
            delay = () if trigger.delay is None else (trigger.delay,)
            program = m.program((*trigger.gaps, *delay, *(i for _, i in trigger.changes)))
            ex, et = (depends(v) for v in program.linearise(t, *points)[1:])
            for name, _ in trigger.changes:
                k = m.states.index(name)
                fx[k], ft[k] = fx[k] | ex.any(0), ft[k] | et.any(0)
    states: Mask = np.asarray(hx.any(0))
    for _ in range(K):
        states = np.asarray(states | fx[states].any(0))
    parameters: Mask = np.asarray(ht.any(0) | ft[states].any(0))
    if m.given_initial is not None:
        with np.errstate(all="ignore"):
            own = depends(m.given_initial.program.linearise(t, *points)[2])
        parameters |= own[states[m.given_initial.states]].any(0)
    return states, parameters
