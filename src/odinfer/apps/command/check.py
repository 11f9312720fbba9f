"""`odinfer check`: describe how a problem is understood and list likely mistakes, without fitting."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from odinfer.apps.command.population import population_sentences
from odinfer.apps.command.problem_description import sentences
from odinfer.data.series import distinct_times
from odinfer.model.expression import state_of
from odinfer.population.structure import Structure
from odinfer.problem.parameter_vector import ParameterVector, named_parameters
from odinfer.problem.problem import Problem
from odinfer.problem.resting import check_not_resting, findings_of_rest

Array = NDArray[np.float64]

_WIDTH = 100  # columns of text
_ALIKE = 2  # findings of one kind that are shown if there are many
_SHOWN = 20  # experiments in the table
_SLIP, _LONG_NAME = 0.75, 4  # likeness of two names that may be one, and the fewest letters of such names
_ROUNDING = 1e-9  # share of the time span by which two times differ that are meant to be equal
_GAP = 5.0  # a gap between observations this many times the usual one is a finding
_FEW = 3.0  # as are fewer observations per unknown than this
_NOISY = 3.0  # and a spread of the data below this many noise standard deviations
_DECADES = 4.0  # and bounds this wide on a linear scale
_SAME = 1e-7  # relative singular value below which a direction of θ changes no equation


def describe(problem: Problem) -> str:
    """States or columns, parameters, inputs and experiments as aligned text, and what the model says about the data."""
    p, model, experiments = problem, problem.model, problem.data.experiments
    population = Structure.of(p) if model.declarations.effects else None
    total = sum(int(np.isfinite(e.y).sum()) for e in experiments)
    estimated = len(p.free) if population is None else len(population.parameters)
    parts = [
        f"Model '{model.name}': {_count(len(model.states), 'state')}, {_count(estimated, 'parameter')} to estimate"
        + (f", {len(p.fixed)} fixed" if p.fixed else ""),
        f"Data: {_count(len(experiments), 'experiment')}, {_count(total, 'observation')}",
    ]
    rows = []
    for name in p.columns:
        y = np.concatenate([column for _, column in _columns(p, name)])
        seen = y[np.isfinite(y)]
        sd = noise(p, name)
        known = f"{p.sigma[name]:.3g} (given)" if name in p.sigma else f"{sd:.2g}" if sd >= 0 else "-"
        ratio = f"{seen.std() / sd:.1f}" if sd > 0 else "-"
        spread = f"{seen.min():.4g} to {seen.max():.4g}"
        limits = _interval(p, name) if name in model.states else "-"
        rows.append([name, str(len(seen)), str(len(y) - len(seen)), spread, known, ratio, limits])
    head = [
        "state" if p.fully_observed_gaussian else "column",
        "points",
        "missing",
        "range",
        "noise (rough)",
        "signal/noise",
        "bounds",
    ]
    parts.append(_table(head, rows))
    if not p.fully_observed_gaussian:
        parts.append("\n".join(textwrap.fill(line, _WIDTH, subsequent_indent="  ") for line in sentences(p)))
    if population is None:
        rows = _parameters(p)
        parts.append(_table(["parameter", "bounds", "scale", "start", "prior"], rows) if rows else "No parameters.")
    if model.declarations.inequalities:
        parts.append("Inequalities: " + "; ".join(q.text for q in model.declarations.inequalities))
    if population is None:
        rows = [
            [e.name, str(len(distinct_times(e.t))), f"{e.t[0]:g} to {e.t[-1]:g}", ", ".join(model.inputs) or "-"]
            for e in experiments[:_SHOWN]
        ]
        if len(experiments) > _SHOWN + 1:
            rows.append([f"and {len(experiments) - _SHOWN} more", "", "", ""])
        parts.append(_table(["experiment", "times", "time span", "inputs"], rows))
    else:
        parts.append("\n".join(population_sentences(population)))
    return "\n\n".join(["\n".join(parts[:2]), *parts[2:]])


def _parameters(p: Problem) -> list[list[str]]:
    """A row per parameter; the copies of a local one share theirs as long as the same is known of each."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in p.parameters:
        if name in p.fixed:
            cells = [f"fixed at {p.fixed[name]:g}", "", "", ""]
        else:
            prior = p.prior.get(name) if not callable(p.prior) else None
            words = f"{prior[0]}({prior[1]:g}, {prior[2]:g})" if isinstance(prior, tuple) else "-"
            start = f"{p.start[name]:g}" if name in p.start else "random"
            cells = [_interval(p, name), p.scale_of(name), start, words]
        own = name if name in p.model.parameters else name.partition("[")[0]
        found.setdefault(own, {})[name] = cells
    rows = []
    for own, copies in found.items():
        same = len(copies) > 1 and len({tuple(cells) for cells in copies.values()}) == 1
        rows += [[own, *next(iter(copies.values()))]] if same else [[name, *cells] for name, cells in copies.items()]
    return rows


def findings(problem: Problem) -> list[str]:
    """What looks wrong though it can be fitted, a sentence each with a remedy.

    Raises:
        InputError: the equations are not finite at the data, or nothing happens, so that it cannot be fitted.
    """
    check_not_resting(problem)
    subjects = [_typos, findings_of_rest, _amount, _signal, _gaps, _inputs, _bounds]
    if problem.model.declarations.effects:
        # Single subjects may have few data and gaps: the others tell what is missing.
        subjects = [_typos, findings_of_rest, _signal, _inputs, _one_for_two, _sparse]
    if problem.fully_observed_gaussian:  # both ask the equations at the data, which must have every state for that
        problem.check_field()
        subjects.insert(0, _identifiability)
    return [sentence for subject in subjects for sentence in _first(list(subject(problem)))]


def _sparse(problem: Problem) -> Iterator[str]:
    if said := Structure.of(problem).sparse:
        yield said


def _first(sentences: list[str]) -> list[str]:
    """The first few of many findings of one kind, and how many more there are."""
    more = len(sentences) - _ALIKE
    return sentences if more < 2 else [*sentences[:_ALIKE], f"{more} more like this one"]


def noise(problem: Problem, column: str) -> float:
    """A rough noise standard deviation of a column: how far points lie from the cubic through their neighbours.

    Sharp features between points count as noise, so it is rather too large; NaN with fewer than 5 points between jumps.
    """
    away = []
    for t, y in _stretches(problem, column):
        if len(t) < 5:
            continue
        near = [slice(i, len(t) - 4 + i) for i in (0, 1, 3, 4)]  # the two before and the two after each
        weights = [np.prod([(t[2:-2] - t[m]) / (t[j] - t[m]) for m in near if m != j], axis=0) for j in near]
        cubic = sum(w * y[j] for w, j in zip(weights, near, strict=True))
        away.append(np.abs(y[2:-2] - cubic) / np.sqrt(1.0 + np.square(weights).sum(axis=0)))
    # The median, as a few steep places say nothing about the noise; 0.6745 makes it a standard deviation.
    return float(np.median(np.concatenate(away))) / 0.6745 if away else np.nan


def _typos(p: Problem) -> Iterator[str]:
    """Parameters whose names differ by a slip from those of states, inputs, columns or definitions."""
    others = [*p.model.states, *p.model.inputs, *p.columns, *p.model.declarations.definitions]
    coefficients = {name for own in p.model.declarations.unknown for name in own.parameters}
    for name in (n for n in p.free if n.partition("[")[0] not in coefficients):
        close = difflib.get_close_matches(name, [other for other in others if other != name], 1, _SLIP)
        if close and len(name) >= _LONG_NAME and state_of(name) is None and "(" not in name:
            yield f"'{name}' is a parameter to estimate; did you mean '{close[0]}'?"


def _identifiability(p: Problem) -> Iterator[str]:
    """Directions of θ along which no equation changes at the data: all states are observed, so these are lost."""
    from odinfer.odin.startpoints import draw

    if not p.free:
        return
    F = len(p.free)
    idle, together = np.ones(F, bool), np.ones((F, F), bool)
    for phi in draw(p, 6, np.random.default_rng(0))[:3]:
        J = np.concatenate([_sensitivity(p, i, phi) for i in range(len(p.data.experiments))])
        J = J[np.isfinite(J).all(1)]
        size = np.sqrt((J**2).sum(0))
        idle &= size == 0
        # A prior says something about its parameter, like an observation.
        told = np.diag([float(callable(p.prior) or name in p.prior) for name in p.free])
        J = np.concatenate([J / np.where(size > 0, size, 1.0), told])
        values, directions = np.linalg.svd(J, full_matrices=False)[1:]
        lost = directions[values < _SAME * values.max(initial=1.0)]
        together &= np.abs(lost.T @ lost) > 0.05
    for name in np.array(p.free)[idle]:
        yield f"parameter '{name}' has no effect on any equation at the data; remove or fix it"
    for group in dict.fromkeys(tuple(np.array(p.free)[row]) for row in together if row.sum() > 1):
        which, remedy = ", ".join(f"'{name}'" for name in group), f"fix one (--fixed {group[0]}=1) or give a prior"
        yield f"{which} are not individually identifiable: a change of one is compensated by the others; {remedy}"


def _sensitivity(p: Problem, experiment: int, phi: Array) -> Array:
    """∂f/∂φ (N·K, F) at the data of an experiment."""
    e = p.data.experiments[experiment]
    seen = np.isfinite(e.y)
    x = np.stack([np.interp(e.t, e.t[s], y[s]) if s.any() else 0.0 * y for y, s in zip(e.y.T, seen.T, strict=True)], -1)
    f_theta = p.model.linearise(e.t, x, p.theta(phi), p.inputs_at(experiment, e.t))[2]
    return np.asarray((f_theta[..., p.free_index] * p.slope(phi)).reshape(-1, len(p.free)))


def _amount(p: Problem) -> Iterator[str]:
    observed = sum(int(np.isfinite(e.y).sum()) for e in p.data.experiments)
    named, initial = len(named_parameters(p)), ParameterVector(p).size - len(p.free)
    if observed < _FEW * (named + initial):  # coefficients of unknown functions have a prior
        yield (
            f"{observed} observations are few for {_count(named, 'parameter')}"
            + (f" and {_count(initial, 'initial value')}" if initial else "")
            + "; expect wide intervals, or fix what is known"
        )
    for e in p.data.experiments:
        for name, column in zip(p.columns, e.y.T, strict=True):
            if not np.isfinite(column).any():
                yield f"{_kind(p, name)} '{name}' is not observed in experiment '{e.name}'"


def _signal(p: Problem) -> Iterator[str]:
    for name in p.columns:
        values = np.concatenate([y[np.isfinite(y)] for _, y in _columns(p, name)])
        sd, spread, what = noise(p, name), float(values.std()), f"{_kind(p, name)} '{name}'"
        if spread == 0:
            yield f"{what} is constant in the data; parameters that only act through its change stay unknown"
        elif sd > 0 and spread / sd < _NOISY:
            yield f"{what} varies only {spread / sd:.1f} times as much as its noise (rough estimate)"


def _gaps(p: Problem) -> Iterator[str]:
    for e in p.data.experiments:
        where = f" in experiment '{e.name}'" if len(p.data.experiments) > 1 else ""
        for name, column in zip(p.columns, e.y.T, strict=True):
            t = distinct_times(e.t[np.isfinite(column)])
            steps = np.diff(t)
            if len(steps) < 3:
                continue
            i, times = int(steps.argmax()), steps.max() / np.median(steps)
            # Steps that grow little by little, as after a dose, are meant to.
            if times > _GAP and steps.max() > _GAP * np.delete(steps, i)[max(i - 1, 0) : i + 1].min():
                yield (
                    f"{_kind(p, name)} '{name}' has a gap from {t[i]:g} to {t[i + 1]:g}{where}, {times:.0f} times the "
                    "usual step; inside it the model is not tested"
                )


def _one_for_two(p: Problem) -> Iterator[str]:
    """Names that stand in the centre of a random effect and in the equations or the noise as well."""
    for name in Structure.of(p).used_twice:
        yield f"{name} is one parameter in a centre and in the equations or the noise; use two names if two are meant"


def _inputs(p: Problem) -> Iterator[str]:
    for e in p.data.experiments:
        for name in p.model.inputs:
            t = e.u[name][0]
            missing = max(t[0] - e.t[0], e.t[-1] - t[-1])
            if len(t) > 1 and missing > _ROUNDING * np.ptp(e.t):  # one value is a constant
                digits = max(6, 2 + int(np.ceil(-np.log10(missing / np.abs(e.t).max()))))
                first, last, begin, end = (f"{when:.{digits}g}" for when in (t[0], t[-1], e.t[0], e.t[-1]))
                yield (
                    f"input '{name}' is known from {first} to {last} but experiment '{e.name}' runs from "
                    f"{begin} to {end}; its first and last value are held outside"
                )


def _bounds(p: Problem) -> Iterator[str]:
    for name in p.free:
        low, high = p.limits(name)
        if 0 < low < high < np.inf and p.scale_of(name) != "log" and np.log10(high / low) >= _DECADES:
            yield f"the bounds of '{name}' span {np.log10(high / low):.0f} decades; a log scale suits it (--log {name})"
        prior = p.prior.get(name) if not callable(p.prior) else None
        if isinstance(prior, tuple) and prior[0] != "uniform" and not low <= prior[1] <= high:
            yield f"the centre {prior[1]:g} of the prior of '{name}' is outside its bounds {_interval(p, name)}"
    for state in (name for name in p.model.states if name in p.columns):
        low, high = p.limits(state)
        values = np.concatenate([y[np.isfinite(y)] for _, y in _columns(p, state)])
        outside = int(((values < low) | (values > high)).sum())
        if outside:
            yield f"{_count(outside, 'observation')} of '{state}' outside its bounds {_interval(p, state)}"


def _columns(p: Problem, name: str) -> Iterator[tuple[Array, Array]]:
    m = p.columns.index(name)
    return ((e.t, e.y[:, m]) for e in p.data.experiments)


def _stretches(p: Problem, name: str) -> Iterator[tuple[Array, Array]]:
    """What is observed of a column, between the times at which states jump."""
    for i, (t, y) in enumerate(_columns(p, name)):
        t, y = t[np.isfinite(y)], y[np.isfinite(y)]
        ends = np.searchsorted(t, [jump.time for jump in p.condition(i).jumps], side="right")
        yield from zip(np.split(t, ends), np.split(y, ends), strict=True)


def _kind(p: Problem, name: str) -> str:
    return "state" if name in p.model.states else "column"


def _interval(p: Problem, name: str) -> str:
    low, high = p.limits(name)
    return "any" if np.isinf([low, high]).all() else f"{low:g} to {high:g}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)
