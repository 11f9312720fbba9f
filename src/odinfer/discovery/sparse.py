"""Sparse regression of equations from data alone, with terms of a library.

Terms are selected by stepwise regression in the integral form, with swaps, at the lowest extended BIC (Chen and Chen
2008). The equations together are then refitted by the likelihood over trajectories, and terms are dropped, added and
exchanged as long as the criterion falls; the integral form says which changes are worth a refit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data
from odinfer.discovery.integral_form import IntegralForm
from odinfer.discovery.refit import bic_of
from odinfer.discovery.screening import candidate_terms
from odinfer.discovery.terms import Features, Term
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.model.model import Model
from odinfer.problem.problem import Problem
from odinfer.progress import Progress
from odinfer.search.warm_start import better, curves_of, maximise

Array = NDArray[np.float64]
Equation = tuple[tuple[Term, float], ...]  # terms with the values of their inner parameters, NaN where there is none
Structure = tuple[Equation, ...]  # of every state

_MOST = 6  # terms of an equation
_PRICES = (1.0, 5.0, 25.0, 125.0, 600.0)  # factors of the price of a term
_ROUNDS = 10  # of changes along trajectories
_TRIED = 5  # additions and exchanges that are refitted in one round, beside all that drop a term
_ADDED = 3  # terms that are tried in place of another, or beside all


@dataclass(frozen=True, eq=False)
class Fitted:
    """Equations at their maximum of the likelihood.

    Attributes:
        structure: terms of every equation.
        problem: the model and the data.
        optimum: None if no trajectory was found.
        criterion: extended BIC; infinite without a trajectory.
    """

    structure: Structure
    problem: Problem
    optimum: TrajectoryOptimum | None
    criterion: float


@dataclass(frozen=True, eq=False)
class SparseRegression:
    """The search for equations of one data set.

    Attributes:
        data: every state is a column.
        integral: smoothed states with their integral form.
        features: values of all terms.
        refits: structures that were refitted, by their terms.
    """

    data: Data
    integral: IntegralForm
    features: Features
    refits: dict[tuple[tuple[Term, ...], ...], Fitted] = field(default_factory=dict)

    @staticmethod
    def of(data: Data) -> SparseRegression:
        """Smooth the data and evaluate the library."""
        names = data.states
        blank = Model.from_text("\n".join(f"{name}' = 0" for name in names))
        problem = Problem(blank, data)
        integral = IntegralForm.of(problem)
        terms, sizes = candidate_terms(problem, integral.x, integral.u)
        features = Features.of(terms, names, integral.x, (), integral.u, sizes)
        return SparseRegression(data, integral, features)

    @functools.cached_property
    def observations(self) -> int:
        """Number of observed values."""
        return sum(int(np.isfinite(e.y).sum()) for e in self.data.experiments)

    def choice(self, term: Term) -> float:
        """The price of choosing a term among those that are as simple: linear ones cost least."""
        degree = max(1, term.complexity[0])
        return 2.0 * math.log(sum(own.complexity[0] <= degree for own in {*self.features.terms}))

    def price(self, term: Term) -> float:
        """What a term costs: the logarithm of the number of observations for each parameter, and its choice."""
        return term.unknowns * math.log(self.observations) + self.choice(term)

    def search(self, progress: Progress) -> Fitted:
        """The equations with the lowest criterion."""
        progress("selecting terms", 0.05)
        fx = np.zeros((len(self.data.states), *self.integral.x.shape))
        tried: list[Fitted] = []
        for _ in range(2):  # once equations are known, so is how errors of states enter them
            structures = self._select(fx)
            progress("refitting equations", 0.1)
            tried += [self._refit(own) for own in dict.fromkeys(structures)]
            best = min(tried, key=lambda own: own.criterion)
            if best.optimum is None:
                best = tried[0]
            model, theta = self._model(best.structure)
            fx = np.moveaxis(model.linearise(self.integral.t, self.integral.x, theta, self.integral.u)[1], 1, 0)
        for i in range(_ROUNDS):
            progress("refitting equations", 0.2 + 0.7 * i / _ROUNDS)
            changed = [self._refit(own) for own in self._changes(best)]
            winner = min(changed, key=lambda own: own.criterion, default=best)
            if not winner.criterion < best.criterion:
                break
            best = winner
        return best

    def _whiten(self, k: int, fx: Array) -> tuple[Array, Array]:
        """Whitened slopes (Q,) and features (Q, C) of an equation with derivatives fx (M, K) by the states."""
        W = self.integral.whitener(k, np.where(np.isfinite(fx), fx, 0.0))
        return W @ self.integral.changes(k), W @ (self.integral.V @ self.features.values)

    def _select(self, fx: Array) -> list[Structure]:
        """Terms of every equation by the integral form, at several prices of a term; fx (K, M, K).

        Smoothing errors that its covariance does not know make the integral form want more terms than there are.
        """
        found, prices = [], self._prices()
        whitened = [self._whiten(k, fx[k]) for k in range(len(self.data.states))]
        polynomials = np.array([term.polynomial for term in self.features.terms])
        for among in (polynomials, np.ones_like(polynomials)):  # curves resemble each other: the simple ones first
            paths = [stepwise(y, np.where(among, A, 0.0), self.features.terms) for y, A in whitened]
            for factor in _PRICES:
                chosen = [min(p, key=lambda own: own[0] + factor * float(prices[own[1]].sum()))[1] for p in paths]
                found.append(tuple(tuple(self._term(j) for j in own) for own in chosen))
        return found

    def _prices(self) -> Array:
        """The price (C,) of every column."""
        return np.array([self.price(term) for term in self.features.terms])

    def _term(self, j: int) -> tuple[Term, float]:
        return self.features.terms[j], float(self.features.inner[j])

    def _column(self, term: Term, inner: float) -> Array:
        """The values (M,) of a term at the screened inner value next to the given one."""
        same = [j for j, own in enumerate(self.features.terms) if own == term]
        if term.inner:
            same.sort(key=lambda j: abs(math.log(self.features.inner[j] / max(inner, 1e-300))))
        return np.asarray(self.features.values[:, same[0]])

    def _model(self, structure: Structure) -> tuple[Model, Array]:
        """The equations as a model, and its parameters (P,): coefficients by the integral form."""
        lines, values, taken = [], dict[str, float](), {*self.data.states}
        inner_names = []
        for k, (state, equation) in enumerate(zip(self.data.states, structure, strict=True)):
            parts = []
            if equation:
                y, _ = self._whiten(k, np.zeros_like(self.integral.x))
                W = self.integral.whitener(k, np.zeros_like(self.integral.x))
                A = W @ (self.integral.V @ np.stack([self._column(*own) for own in equation], 1))
                coefficients = np.linalg.lstsq(A, y, rcond=None)[0]
                for (term, inner), value in zip(equation, coefficients.tolist(), strict=True):
                    text, coefficient, name = term.named(taken)
                    taken.add(coefficient)
                    values[coefficient] = value
                    if name is not None:
                        taken.add(name)
                        values[name] = inner
                        inner_names.append(name)
                    parts.append(text)
            lines.append(f"{state}' = {' + '.join(parts) or '0'}")
        real = [name for name in values if name not in inner_names]
        lines += [f"real {', '.join(real)}"] * bool(real) + [f"log {', '.join(inner_names)}"] * bool(inner_names)
        model = Model.from_text("\n".join(lines), "discovered")
        return model, np.array([values[name] for name in model.parameters])

    def _refit(self, structure: Structure) -> Fitted:
        """The equations at their maximum of the likelihood, with the inner parameters found there."""
        key = tuple(tuple(sorted((term for term, _ in own), key=lambda t: t.form)) for own in structure)
        if key not in self.refits:
            model, theta = self._model(structure)
            problem = Problem(model, self.data)
            found = maximise(problem, theta, self.integral.curves)
            if found is not None and not found.converged:
                found = better(found, maximise(problem, problem.theta(found.phi), curves_of(found)))
            if found is None:
                self.refits[key] = Fitted(structure, problem, None, math.inf)
            else:
                choice = sum(self.choice(term) for own in structure for term, _ in own)
                moved = _set_inner(structure, problem.theta(found.phi), model)
                self.refits[key] = Fitted(moved, problem, found, bic_of(problem, found.loglik) + choice)
        return self.refits[key]

    def without(self, best: Fitted, state: str, place: int) -> Fitted:
        """The equations without one of their terms, refitted."""
        k = self.data.states.index(state)
        own = best.structure[k]
        changed = (*best.structure[:k], (*own[:place], *own[place + 1 :]), *best.structure[k + 1 :])
        return self._refit(changed)

    def _changes(self, best: Fitted) -> list[Structure]:
        """Structures with one term dropped, added or exchanged, those that the integral form likes best first."""
        theta = best.problem.theta(best.optimum.phi) if best.optimum is not None else self._model(best.structure)[1]
        fx = best.problem.model.linearise(self.integral.t, self.integral.x, theta, self.integral.u)[1]
        rated: list[tuple[float, Structure]] = []
        for k, equation in enumerate(best.structure):
            y, A = self._whiten(k, fx[:, k])
            W = self.integral.whitener(k, np.where(np.isfinite(fx[:, k]), fx[:, k], 0.0))
            present = [W @ (self.integral.V @ self._column(*own)) for own in equation]
            before = _rss(y, present) + sum(self.price(term) for term, _ in equation)

            def rate(own: Equation, columns: Sequence[Array], k: int = k, y: Array = y, before: float = before) -> None:
                value = _rss(y, columns) + sum(self.price(term) for term, _ in own)
                rated.append((value - before, (*best.structure[:k], own, *best.structure[k + 1 :])))

            for i in range(len(equation)):
                rest, left = (*equation[:i], *equation[i + 1 :]), [*present[:i], *present[i + 1 :]]
                rate(rest, left)
                for j in self._best_columns(y, left, A, equation):
                    rate((*rest, self._term(j)), [*left, A[:, j]])
            if len(equation) < _MOST:
                for j in self._best_columns(y, present, A, equation):
                    rate((*equation, self._term(j)), [*present, A[:, j]])
        rated.sort(key=lambda pair: pair[0])
        size = sum(map(len, best.structure))
        dropped = [own for _, own in rated if sum(map(len, own)) < size]
        return [*dropped, *[own for _, own in rated if sum(map(len, own)) >= size][:_TRIED]]

    def _best_columns(self, y: Array, present: Sequence[Array], A: Array, equation: Equation) -> list[int]:
        """The columns of different new terms that gain most beside those that are present."""
        gain, _ = _gains(y, np.stack(present, 1) if present else np.zeros((len(y), 0)), A)
        there, found = {term for term, _ in equation}, dict[Term, int]()
        for j in np.argsort(-gain, kind="stable").tolist():
            if (term := self.features.terms[j]) not in there:
                found.setdefault(term, j)
            if len(found) == _ADDED:
                break
        return list(found.values())


def stepwise(y: Array, A: Array, terms: Sequence[Term]) -> list[tuple[float, list[int]]]:
    """Columns of A (Q, C) for y (Q,) by forward selection with exchanges: the residual sum and the columns by size."""
    chosen: list[int] = []
    path: list[tuple[float, list[int]]] = [(float(y @ y), [])]
    for _ in range(_MOST):
        if (j := _best_column(y, A, chosen, terms)) is None:
            break
        chosen = [*chosen, j]
        for _ in range(len(chosen)):  # exchange each column for the one that suits the others best
            before = list(chosen)
            for i in range(len(chosen)):
                rest = [*chosen[:i], *chosen[i + 1 :]]
                if (other := _best_column(y, A, rest, terms)) is not None:
                    trial = [*chosen[:i], other, *chosen[i + 1 :]]
                    if _rss(y, A[:, trial].T) < _rss(y, A[:, chosen].T) - 1e-9:
                        chosen = trial
            if chosen == before:
                break
        path.append((_rss(y, A[:, chosen].T), list(chosen)))
    return path


def _best_column(y: Array, A: Array, chosen: list[int], terms: Sequence[Term]) -> int | None:
    """The column of a new term that reduces the residual most."""
    gain, fresh = _gains(y, A[:, chosen], A)
    there = {terms[j] for j in chosen}
    gain = np.where([f and t not in there for f, t in zip(fresh, terms, strict=True)], gain, -1.0)
    j = int(np.argmax(gain)) if len(gain) else -1
    return j if j >= 0 and gain[j] > 0 else None


def _gains(y: Array, own: Array, A: Array) -> tuple[Array, NDArray[np.bool_]]:
    """By how much each column reduces the sum of squares beside the own ones (Q, P), and whether it is new."""
    Q = np.linalg.qr(own / np.linalg.norm(own, axis=0))[0] if own.shape[1] else own
    rest, new = y - Q @ (Q.T @ y), A - Q @ (Q.T @ A)
    size = (new**2).sum(0)
    fresh = size > 1e-8 * (A**2).sum(0)
    return np.where(fresh, (new.T @ rest) ** 2 / np.where(fresh, size, 1.0), 0.0), fresh


def _rss(y: Array, columns: Sequence[Array] | Array) -> float:
    """The residual sum of squares of y (Q,) by columns."""
    if not len(columns):
        return float(y @ y)
    A = np.stack(list(columns), 1)
    A = A / np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    r = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    return float(r @ r)


def _set_inner(structure: Structure, theta: Array, model: Model) -> Structure:
    """The structure with the inner parameters of a fit, which appear in the model in the order of the terms."""
    values = iter([v for n, v in zip(model.parameters, theta.tolist(), strict=True) if model.scale.get(n) == "log"])
    return tuple(tuple((t, next(values) if t.inner else math.nan) for t, _ in own) for own in structure)
