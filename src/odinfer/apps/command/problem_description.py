"""Sentences of `odinfer check` on observations, initial values, doses, events and random effects."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from odinfer.errors import listed
from odinfer.model.expression import initial_name
from odinfer.model.statements import Statements, read_statements
from odinfer.noise import FAMILIES
from odinfer.problem.problem import Problem
from odinfer.style.text import abbreviate

_FAMILIES = {
    "normal": "normal about {}",
    "lognormal": "log-normal about {}",
    "student": "Student's t about {}",
    "laplace": "Laplace about {}",
    "loglaplace": "log-Laplace about {}",
    "poisson": "Poisson with mean {}",
    "negbinomial": "negative binomial with mean {}",
    "binomial": "binomial with mean {}",
}
_ARGUMENTS = {"sd": "sd", "b": "scale", "df": "degrees of freedom", "k": "k", "n": "n"}


def sentences(problem: Problem) -> list[str]:
    """What is observed, how it scatters, what is hidden, initial values, local parameters, events and doses."""
    statements = read_statements(problem.model.declarations.text)
    parts = (_observed, _hidden, _initial, _positive, _local, _events, _doses)
    return [line for part in parts for line in part(problem, statements)]


def _observed(p: Problem, statements: Statements) -> Iterator[str]:
    for m, column in enumerate(p.observed):
        given = statements.given["distribution"].get(column.name)
        arguments = {} if given is None else {
            word or FAMILIES[given.family].arguments[i]: source.piece(0, None).strip()
            for i, (word, source) in enumerate(given.arguments)
        }  # fmt: skip
        first, *others = column.family.arguments
        words = [_FAMILIES[column.words].format(arguments.get(first, column.name))]
        words += [f"{_ARGUMENTS[a]} {arguments[a]}" for a in others if a in arguments]
        if column.profiled:
            known = p.known_sigma[m]
            estimated = "sd estimated" if p.estimated_noise[m] else "sd by row"
            words.append(estimated if np.isnan(known) else f"sd {known:g}")
        limits = sum(int((e.limit[:, m] != 0).sum()) for e in p.data.experiments if e.limit is not None)
        if limits:
            words.append(f"{limits} beyond a limit of detection")
        yield f"{column.name} is {', '.join(words)}."


def _hidden(p: Problem, statements: Statements) -> Iterator[str]:
    if p.hidden:
        yield f"{listed(abbreviate(p.hidden))} {'is' if len(p.hidden) == 1 else 'are'} hidden."


def _initial(p: Problem, statements: Statements) -> Iterator[str]:
    model = p.model
    begins = model.declarations.begins
    when = "the first time" if begins in ("first", "t0") else f"time {0 if begins == 'zero' else float(begins):g}"
    free = [model.states[k] for k in model.free_initial]
    given = [f"{name} = {source.piece(0, None).strip()}" for name, source in statements.given["initial"].items()]
    names = [initial_name(s) for s in model.states if initial_name(s) in model.parameters]
    given += [f"{name} = {p.fixed[name]:g}" for name in names if name in p.fixed]
    names = [name for name in names if name not in p.fixed]
    if given:
        yield f"Given at {when}: {', '.join(given)}."
    if names:
        yield f"Estimated as parameters, at {when}: {', '.join(names)}."
    if free:
        yield f"Free at {when}: {listed(abbreviate(free))}."


def _positive(p: Problem, statements: Statements) -> Iterator[str]:
    effects = p.model.declarations.effects
    elsewhere = {*effects.names, *(effect.name for effect in effects.subject)}
    if names := [name for name in p.assumed_positive_names if name not in elsewhere]:
        which = listed(abbreviate(names))
        yield f"Assumed positive: {which}. Write 'real {names[0]}' for a parameter of any sign."


def _local(p: Problem, statements: Statements) -> Iterator[str]:
    if p.split.any:
        yield f"One value per experiment: {listed(abbreviate(p.model.declarations.local))}."


def _events(p: Problem, statements: Statements) -> Iterator[str]:
    for event in statements.events:
        when = f"{'Before' if event.before else 'At'} {listed(abbreviate([f'{t:g}' for t in event.times]))}"
        if event.when is not None:
            when = f"Whenever {event.when.piece(0, None).strip()} becomes true"
        changes = ", ".join(f"{name} = {source.piece(0, None).strip()}" for name, source in event.changes)
        yield f"{when}: {changes}."


def _doses(p: Problem, statements: Statements) -> Iterator[str]:
    states, experiments = p.model.states, [e for e in p.data.experiments if e.doses]
    if not experiments:
        return
    every = [dose for e in experiments for dose in e.doses]
    into = {d.state if d.state in states else states[int(d.state or 1) - 1] for d in every}
    rates = sum(d.rate > 0 for d in every)
    words = f"{len(every)} doses" if len(every) > 1 else "1 dose"
    over = f", {rates} of them over some time" if rates else ""
    steady = sum(d.steady > 0 for d in every)
    over += f", {steady} of them at steady state" if steady else ""
    where = f" in {len(experiments)} experiments" if len(experiments) > 1 else ""
    amounts = listed(abbreviate([f"{amount:g}" for amount in sorted({d.amount for d in every})]))
    yield f"{words} of {amounts} into {listed(sorted(into))}{over}{where}."
