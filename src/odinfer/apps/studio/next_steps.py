"""Suggestions after a fit: changed models, each with a reason and its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

import numpy as np

from odinfer.apps.studio.interactive import GaussianNoise, coefficients
from odinfer.diagnostics.verdicts import CONTRADICTS
from odinfer.errors import InputError, listed
from odinfer.model.model import Model
from odinfer.population.structure import Structure
from odinfer.problem.problem import Problem
from odinfer.result.fit import Fit
from odinfer.result.summary import tone
from odinfer.selection.missing_terms import hints
from odinfer.style.text import format_number

_MOST_STEPS = 4  # buttons on the card
_LEAST_GAIN = 5.0  # nats that a term must gain in the integral form of an equation to be proposed
_GROWS = 0.4  # rank correlation of the size of residuals with predictions, from which noise is proportional
_LEAST_POINTS = 15  # of a column, to say something about its noise
_OUTLIER = 4.0  # standard deviations: none of a thousand normal values is so far out
_LEAST_SUBJECTS = 5  # of which a distribution can be estimated
_LOCAL = re.compile(r"^[ \t]*local\b[^\n#;]*(?:;[ \t]*|\n|(?=#)|\Z)", re.MULTILINE)
_AT_BOUND = 1e-3  # of the range between bounds, or of the bound itself


@dataclass(frozen=True)
class Step:
    """Something to try: what the button says, why, and the text of the model; or the kind of job."""

    label: str
    why: str
    text: str | None = None
    job: str | None = None


def next_steps(fit: Fit, text: str) -> list[GaussianNoise]:
    """The steps that fit best to what was found, the most promising first."""
    every = (
        *_missing_terms(fit, text), *_own_values(fit, text), *_random_effects(fit, text), *_noise(fit, text),
        *_uncertainty(fit),
    )  # fmt: skip
    return [asdict(step) for step in every[:_MOST_STEPS]]


def caveats(fit: Fit) -> list[str]:
    """What has to be said beside the verdict: bounds, negative rates, what to measure next, other values."""
    found = []
    free = [name for name in fit.problem.free if name not in coefficients(fit.problem.model)]
    if names := [name for name in free if _is_at_bound(fit, name)]:
        found.append(f"{listed(names)} ended at a bound: the data would go beyond it.")
    if names := [n for n in free if fit.theta[n] < 0 and fit.problem.limits(n)[0] == -np.inf]:
        found.append(f"{listed(names)} came out negative: is that meant?")
    found += [f"{words}." for words in fit.details.get("next_measurements", ())]
    for other in fit.details.get("alternatives", ())[:2]:
        if isinstance(other, Mapping):
            words = ", ".join(f"{name} = {format_number(value, 3)}" for name, value in list(other.items())[:6])
            found.append(f"Other values fit as well: {words}.")
    return found


def _is_at_bound(fit: Fit, name: str) -> bool:
    value = fit.theta[name]
    low, high = fit.problem.limits(name)
    size = high - low if np.isfinite(high - low) else max(abs(value), 1e-300)
    return any(np.isfinite(end) and end != 0 and abs(value - end) <= _AT_BOUND * size for end in (low, high))


def _missing_terms(fit: Fit, text: str) -> Iterator[Step]:
    """The term by which the slopes of a rejected equation gain most."""
    for state in (name for name in fit.state_names if fit.verdicts.get(name) == CONTRADICTS):
        try:
            found = hints(fit.problem, fit, state)
        except InputError:
            return
        best = max(found, key=lambda hint: hint.gain, default=None)
        if best is None or best.gain < _LEAST_GAIN:
            continue
        name = _unused_name("c_new", fit)
        changed = _add_term(text, state, f"+ {name}" + ("" if best.term == "1" else f"*{best.term}"))
        if changed is not None:
            term = "a constant" if best.term == "1" else best.term
            why = f"The equation for {state} gains {best.gain:.0f} nats by it where it is matched to smoothed states."
            yield Step(f"Add {term} to {state}'", why, f"{changed.rstrip()}\nreal {name}\n")


def _add_term(text: str, state: str, term: str) -> str | None:
    """The text with a term at the end of the equation of a state; None where it is not found."""
    pattern = re.compile(rf"^(\s*{re.escape(state)}'\s*=[^#;\n]*?)(?=\s*(?:[#;]|$))", re.MULTILINE)
    return pattern.sub(lambda match: f"{match[1]} {term}", text, count=1) if pattern.search(text) else None


def _own_values(fit: Fit, text: str) -> Iterator[Step]:
    """Parameters that could differ between experiments, where one value for all does not do."""
    if len(fit.experiments) < 2 or tone(fit) != "bad":
        return
    model = fit.problem.model
    shared = [
        name for name in model.parameters if name not in model.declarations.local and name not in fit.problem.fixed
    ]
    for name in shared[:2]:
        why = f"One value of {name} for all experiments may be what the data contradict."
        yield Step(f"Let {name} differ between experiments", why, f"{text.rstrip()}\nlocal {name}\n")


def _random_effects(fit: Fit, text: str) -> Iterator[Step]:
    """A distribution over subjects, where each of many has values of its own."""
    problem = fit.problem
    own = [name for name in problem.model.parameters if name in problem.model.declarations.local]
    if len(fit.experiments) < _LEAST_SUBJECTS or not own or len(problem.model.free_initial) or problem.prior:
        return
    family = {name: "lognormal" if min(_values(fit, name)) > 0 else "normal" for name in own}
    lines = [f"{n} ~ {family[n]}({n}_pop, omega_{n}) by subject" for n in own]
    changed = "\n".join([_LOCAL.sub("", text).strip(), *lines, ""])
    try:
        Structure.of(Problem(Model.from_text(changed, inputs=problem.model.inputs), problem.data))
    except InputError:
        return
    why = f"The {len(fit.experiments)} experiments then share a distribution: few data of one are helped by the others."
    yield Step(f"Random effects on {listed(own)}", why, changed)


def _values(fit: Fit, name: str) -> list[float]:
    """The estimates of a local parameter in all experiments."""
    return [value for own, value in fit.theta.items() if own == name or own.startswith(f"{name}[")]


def _noise(fit: Fit, text: str) -> Iterator[Step]:
    """Other noise for columns whose residuals grow with the prediction, or that have outliers."""
    columns = {column.name for column in fit.problem.model.declarations.columns}
    for k, name in enumerate(fit.columns):
        if name in columns or fit.noise.get(name, "normal") != "normal":
            continue
        r = np.concatenate([e.residuals[:, k] for e in fit.experiments.values()])
        p = np.concatenate([e.predictions()[0][:, k] for e in fit.experiments.values()])
        y = np.concatenate([e.y[:, k] for e in fit.experiments.values()])
        seen = np.isfinite(r + p + y)
        r, p, y = r[seen], p[seen], y[seen]
        if len(r) < _LEAST_POINTS or not np.ptp(p) or not np.ptp(r):
            continue
        ranks = np.corrcoef(np.abs(r).argsort().argsort(), p.argsort().argsort())[0, 1]
        spread = 1.4826 * np.median(np.abs(r - np.median(r)))  # the standard deviation of normal values
        if ranks > _GROWS and (y > 0).all():
            why = f"Residuals of {name} grow with its value (rank correlation {ranks:.2f})."
            yield Step(f"Log-normal noise for {name}", why, f"{text.rstrip()}\n{name} ~ lognormal({name})\n")
        elif spread > 0 and np.abs(r).max() > _OUTLIER * spread * 1.5:
            why = f"Some values of {name} are far out: outliers pull a normal distribution."
            yield Step(f"Noise with outliers for {name}", why, f"{text.rstrip()}\n{name} ~ student({name})\n")


def _uncertainty(fit: Fit) -> Iterator[Step]:
    """Intervals that reach further than a first look, where that matters."""
    if fit.uncertainty is None or fit.profiles:
        return
    ends = fit.intervals_by_kind().get("likelihood", {})
    open_ended = [name for name, pair in ends.items() if not np.isfinite(pair).all()]
    if open_ended:
        why = f"The data set no limit to {listed(open_ended[:3])}: the profile shows what makes up for it."
        yield Step("Profile the likelihood", why, job="profile")
    elif tone(fit) == "good":
        yield Step(
            "Check the intervals by bootstrap", "Refits of simulated data need no approximation.", job="bootstrap"
        )


def _unused_name(name: str, fit: Fit) -> str:
    model = fit.problem.model
    taken = {*model.parameters, *model.states, *model.inputs, *model.declarations.definitions}
    return next(own for own in (name, *(f"{name}{i}" for i in range(2, 100))) if own not in taken)
