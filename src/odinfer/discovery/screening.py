"""Screen candidate terms by their gain in weighted regression, before any refit.

Where every state is observed with Gaussian noise, equations are matched to smoothed states in their integral form.
Otherwise the likelihood over trajectories is maximised for a few steps from the base model's own maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.discovery.integral_form import IntegralForm, gains
from odinfer.discovery.refit import added, extended
from odinfer.discovery.terms import Features, Term, library
from odinfer.errors import InputError
from odinfer.gp.curves import Curve
from odinfer.problem.problem import Problem
from odinfer.search.warm_start import maximise

Array = NDArray[np.float64]

_NEGATIVE = 0.02  # of a state's largest size: so far below zero a state may be seen that is not negative
_STEPS = 3  # of the likelihood's maximisation from the base model's maximum


@dataclass(frozen=True)
class Screened:
    """A term in an equation, what it gains there, and from where to refit.

    Attributes:
        state, term: the term and whose equation.
        gain: nats.
        coefficient, inner: of the term.
        theta: parameters of the base model beside it (P,).
    """

    state: str
    term: Term
    gain: float
    coefficient: float
    inner: float
    theta: Array


def candidate_terms(problem: Problem, x: Array, u: Array) -> tuple[tuple[Term, ...], dict[str, float]]:
    """The library for states x (M, K) and inputs u (M, U), and mean sizes of these by name."""
    names, values = (*problem.model.states, *problem.model.inputs), np.concatenate([x, u], 1)
    largest = np.abs(values).max(0)
    positive = [n for n, v, most in zip(names, values.T, largest, strict=True) if v.min() >= -_NEGATIVE * most]
    sizes = dict(zip(names, np.maximum(np.abs(values).mean(0), 1e-300).tolist(), strict=True))
    return library(problem.model.states, problem.model.inputs, positive), sizes


def free_equations(problem: Problem) -> tuple[str, ...]:
    """The states whose equations may lack a term: not x' = x_dot, which second-order equations imply."""
    names = problem.model.states
    return tuple(s for s in names if f"{s}_dot" not in names)


def screen(
    problem: Problem, integral: IntegralForm, theta: Array, terms: Sequence[Term], sizes: Mapping[str, float]
) -> list[Screened]:
    """Every term in every equation by its gain in the integral form, the best first; one entry per form.

    Args:
        theta: the base model's parameters (P,), from which one Gauss–Newton step is made with each term.
    """
    model = problem.model
    features = Features.of(terms, model.states, integral.x, model.inputs, integral.u, sizes)
    f, fx, ft = model.linearise(integral.t, integral.x, theta, integral.u)
    low, high = np.reshape([problem.limits(p) for p in model.parameters], (-1, 2)).T
    found = []
    for state in free_equations(problem):
        k = model.states.index(state)
        if not (np.isfinite(f[:, k]).all() and np.isfinite(fx[:, k]).all() and np.isfinite(ft[:, k]).all()):
            continue
        W = integral.whitener(k, fx[:, k])
        index = problem.free_index[np.abs(ft[:, k][:, problem.free_index]).max(0) > 0]
        own, columns = W @ (integral.V @ ft[:, k][:, index]), W @ (integral.V @ features.values)
        result = gains(W @ (integral.changes(k) - integral.V @ f[:, k]), own, columns)
        best: dict[Term, int] = {}
        for j in np.argsort(-result.gain, kind="stable").tolist():
            best.setdefault(features.terms[j], j)
        for term, j in best.items():
            moved = theta.copy()
            moved[index] += result.own[j]
            moved = np.clip(moved, low, high)
            found.append(
                Screened(state, term, float(result.gain[j]), float(result.coefficient[j]), features.inner[j], moved)
            )
    return ranked(problem, found)


def screen_by_likelihood(
    problem: Problem, theta: Array, curves: Sequence[Curve], loglik: float, terms: Sequence[Term],
    sizes: Mapping[str, float], progress: Callable[[float], None],
) -> list[Screened]:  # fmt: skip
    """The same by a few steps of the likelihood's maximisation, where states are hidden or observed otherwise.

    Args:
        theta, curves, loglik: at the base model's maximum.
        progress: told the share of terms that are done.
    """
    found: list[Screened] = []
    pairs = [(state, term) for state in free_equations(problem) for term in terms]
    for i, (state, term) in enumerate(pairs):
        progress(i / len(pairs))
        model, addition = added(problem.model, state, term, problem.model.name)
        try:
            own = extended(problem, model)
        except InputError:  # nothing that is observed depends on it
            continue
        inner = np.nan if term.variable is None else sizes[term.variable]
        known = {**dict(zip(problem.parameters, theta.tolist(), strict=True)), addition.coefficient: 0.0}
        known |= {} if addition.inner is None else {addition.inner: inner}
        optimum = maximise(own, np.array([known[p] for p in own.parameters]), curves, _STEPS)
        if optimum is None:
            continue
        after = dict(zip(own.parameters, own.theta(optimum.phi).tolist(), strict=True))
        beside = np.array([after[p] for p in problem.parameters])
        inner = after[addition.inner] if addition.inner else np.nan
        found.append(Screened(state, term, optimum.loglik - loglik, after[addition.coefficient], inner, beside))
    return ranked(problem, found)


def ranked(problem: Problem, found: Sequence[Screened]) -> list[Screened]:
    """Screened terms by their gains less the price of their parameters, half the BIC's."""
    price = 0.5 * math.log(int(problem.count.sum()))
    return sorted(found, key=lambda own: own.term.unknowns * price - own.gain)


def states_along(problem: Problem, curves: Sequence[Curve]) -> tuple[Array, Array]:
    """States (M, K) and inputs (M, U) along curves, all experiments joined."""
    x = np.concatenate([c.x for c in curves])
    u = np.concatenate([problem.inputs_at(e, c.t) for e, c in enumerate(curves)])
    return x, u
