"""Discover which term is missing from which equation of a model, or equations from data alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_integer
from odinfer.data.data import Data
from odinfer.diagnostics.model_test import judge_model
from odinfer.discovery.integral_form import IntegralForm
from odinfer.discovery.refit import added, bic_of, extended, falls_short
from odinfer.discovery.result import DiscoveredEquations, Discovery, Proposal
from odinfer.discovery.screening import Screened, candidate_terms, screen, screen_by_likelihood, states_along
from odinfer.discovery.sparse import SparseRegression
from odinfer.discovery.verdicts import AS_GOOD, FOUND, LEVEL, NO_TERM, NOTHING, TIED
from odinfer.errors import InputError
from odinfer.gp.curves import Curve
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.methods import check_method, fit
from odinfer.methods.odin import Odin
from odinfer.model.model import Model
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress, sub_progress
from odinfer.search.multistart import convincing
from odinfer.search.warm_start import better, curves_of, maximise

Array = NDArray[np.float64]

_REFITS = 12  # screened terms that are refitted along trajectories
_TESTED = 3  # proposals at most whose models are tested by simulation
_DRAWS = 99  # simulations of one test


def discover(
    model: Model | Problem | None, data: Data | None = None, *, seed: int = 0, refits: int = _REFITS,
    draws: int = _DRAWS, progress: Progress | None = None,
) -> Discovery | DiscoveredEquations:  # fmt: skip
    """Find the term that is missing from an equation of a model, or that nothing is missing; or equations from data.

    Candidates are polynomials to degree 3, products of states, saturation, Hill functions, exponentials, sines, and
    inputs. They are screened against smoothed states, the best are refitted by the likelihood over trajectories and
    ranked by BIC, and models that win are tested by simulation.

    Args:
        model: a Model from text with `data`, or a Problem; None to find equations from the data alone.
        data: the observations, if `model` is a Model.
        seed: random seed.
        refits: screened terms that are refitted.
        draws: simulations of one test.
        progress: called with (what, share done).

    Returns:
        `.verdict`, `.ranking` as a DataFrame, `.best` as a Model, `.summary()`, `.plot()` and `.save(path)`: a
        `Discovery`, or `DiscoveredEquations` without a model.

    Raises:
        InputError: the model is no text, or the problem cannot be fitted.

    Example:
        >>> import odinfer as od
        >>> data = od.Data(range(12), [0.6, 0.9, 1.6, 2.4, 3.6, 5.1, 6.5, 7.6, 8.5, 9.2, 9.4, 9.8], states=["n"])
        >>> found = od.discover(od.Model.from_text("n' = r*n"), data)
        >>> found.ranking["term"][0]
        'c*n^2'
    """
    if model is None:
        data = _check_states(data)
    problem = None if model is None else _problem(model, data)
    checked_integer("refits", refits, 1)
    checked_integer("draws", draws, 19)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if problem is None:
            assert data is not None
            return _equations(data, seed, draws, progress or no_progress)
        return _missing_term(problem, seed, refits, draws, progress or no_progress)


def _check_states(data: Data | None) -> Data:
    """Data from which equations can be found: every column is a state, observed at several times."""
    if not isinstance(data, Data):
        raise InputError("discover(None, data) needs data from od.Data(...) or od.read_csv(...)")
    for name in data.states:
        if not name.isidentifier():
            raise InputError(f"column '{name}' is no name that equations can have; rename it")
    if any(e.doses or e.limit is not None or e.sd is not None for e in data.experiments):
        raise InputError("equations are found from plain columns only: no doses, limits of detection or errors by row")
    return data


def _equations(data: Data, seed: int, draws: int, progress: Progress) -> DiscoveredEquations:
    """Equations from data alone, each term with what leaving it out costs."""
    progress("smoothing the data", 0.0)
    regression = SparseRegression.of(data)
    best = regression.search(sub_progress(progress, 0.05, 0.8))
    screened = len({*regression.features.terms}) * len(data.states)
    own = None
    if best.optimum is not None:
        own = Proposal(best.problem, best.optimum)
        own = replace(own, p=judge_model(own.maximum, seed, draws, no_progress, LEVEL).p)
    names = iter(best.problem.model.parameters)
    terms = []
    for state, equation in zip(data.states, best.structure, strict=True):
        for i, (term, _) in enumerate(equation):
            coefficient = next(names)
            inner = next(names) if term.inner else None
            progress("leaving terms out", 0.85)
            less = regression.without(best, state, i)
            delta = bic_of(less.problem, less.optimum.loglik) - own.bic if less.optimum and own else math.inf
            terms.append((state, term.written(coefficient, inner), coefficient, delta))
    theta = {} if own is None else own.theta
    return DiscoveredEquations(own, replace(best.problem, start=theta), tuple(terms), screened)


def _problem(model: Model | Problem | None, data: Data | None) -> Problem:
    """The problem, if terms can be added to its model."""
    if isinstance(model, Model):
        if not isinstance(data, Data):
            raise InputError(
                "discover needs data: discover(model, data) with data from od.Data(...) or od.read_csv(...)"
            )
        model = Problem(model, data)
    elif not isinstance(model, Problem):
        raise InputError(f"discover takes a Model or a Problem, not {type(model).__name__}")
    elif data is not None:
        raise InputError("discover(problem) takes no data of its own: they are in the Problem")
    if model.model.text is None:
        raise InputError(
            f"terms are added to a text, and model '{model.model.name}' is a function; write its equations"
        )
    if model.model.declarations.effects:
        raise InputError("discover takes no random effects; leave the lines with 'by subject' out")
    if model.model.declarations.unknown:
        label = model.model.declarations.unknown[0].label
        raise InputError(f"discover looks for formulas, and the model leaves {label} open; leave that term out")
    check_method(Odin(), model)
    return model


def _missing_term(problem: Problem, seed: int, refits: int, draws: int, progress: Progress) -> Discovery:
    """Screen, refit, rank and test."""
    progress("fitting the model", 0.0)
    integral = IntegralForm.of(problem) if problem.fully_observed_gaussian else None
    base, theta, curves = _base(problem, integral, seed, sub_progress(progress, 0.0, 0.3))
    x, u = (integral.x, integral.u) if integral is not None else states_along(problem, curves)
    terms, sizes = candidate_terms(problem, x, u)
    progress("screening terms", 0.3)
    if integral is not None:
        screened = screen(problem, integral, theta, terms, sizes)
    else:
        assert base is not None
        tell = sub_progress(progress, 0.3, 0.6)
        screened = screen_by_likelihood(
            problem, theta, curves, base.loglik, terms, sizes, lambda share: tell("screening terms", share)
        )
    proposals: list[Proposal] = []
    for i, candidate in enumerate(screened[:refits]):
        progress("refitting the best terms", 0.6 + 0.3 * i / refits)
        if (own := _refit(problem, base, candidate, curves)) is not None:
            proposals.append(own)
    given = None if base is None else Proposal(problem, base)
    return _judge(given, problem, proposals, len(screened), seed, draws, sub_progress(progress, 0.9, 1.0))


def _base(
    problem: Problem, integral: IntegralForm | None, seed: int, progress: Progress
) -> tuple[TrajectoryOptimum | None, Array, Sequence[Curve]]:
    """The maximum of the given model, parameters (P,) to linearise it at, and curves along the data."""
    if integral is None:
        result = fit(problem, seed=seed, progress=progress)
        if result.uncertainty is None:
            raise InputError(f"the model has to be fitted first, and there is no maximum: {result.status}")
        maximum = result.maximum()
        return maximum.refined, problem.theta(maximum.phi), maximum.curves()
    minima = Odin(refine=False, hops=0).solve(problem, seed)
    starts = [minima.engine.problem.theta(s.phi) for s in minima.solutions] or [np.ones(len(problem.parameters))]
    found = None
    for theta in starts:
        found = better(found, maximise(problem, theta, integral.curves))
    if found is not None and convincing(problem, found):
        return found, problem.theta(found.phi), integral.curves
    return found, starts[0], integral.curves


def _refit(
    problem: Problem, base: TrajectoryOptimum | None, candidate: Screened, curves: Sequence[Curve]
) -> Proposal | None:
    """The model with a screened term at its maximum of the likelihood; None if no trajectory was found."""
    model, addition = added(problem.model, candidate.state, candidate.term, problem.model.name)
    own = extended(problem, model)
    new = {addition.coefficient: candidate.coefficient}
    new |= {} if addition.inner is None else {addition.inner: candidate.inner}

    def start(theta: Array, **changes: float) -> Array:
        known = {**dict(zip(problem.parameters, theta.tolist(), strict=True)), **new, **changes}
        return np.array([known[name] for name in own.parameters])

    found = maximise(own, start(candidate.theta), curves)
    if base is not None and falls_short(found, base.loglik):
        at_base = start(problem.theta(base.phi), **{addition.coefficient: 0.0})
        found = better(found, maximise(own, at_base, curves_of(base)))
    return None if found is None else Proposal(own, found, addition)


def _judge(
    base: Proposal | None, problem: Problem, proposals: list[Proposal], screened: int, seed: int, draws: int,
    progress: Progress,
) -> Discovery:  # fmt: skip
    """Rank the proposals, test those that win, and decide."""
    proposals.sort(key=lambda own: own.bic)
    price = 2.0 * math.log(max(screened, 1))  # of choosing among so many (Chen and Chen 2008, extended BIC)
    least = base.bic if base is not None else math.inf
    wins = bool(proposals) and proposals[0].bic + price < least
    leading = [own for own in proposals if wins and own.bic <= proposals[0].bic + AS_GOOD]
    leading.sort(key=lambda own: own.complexity)
    proposals[: len(leading)] = leading
    for i, own in enumerate(leading[:_TESTED]):
        progress("testing the best terms", i / _TESTED)
        proposals[i] = replace(own, p=judge_model(own.maximum, seed, draws, no_progress, LEVEL).p)
    if base is not None:
        base = replace(base, p=judge_model(base.maximum, seed, draws, no_progress, LEVEL).p)
    if not wins:
        verdict = NO_TERM if base is None or base.p <= LEVEL else NOTHING
    else:
        verdict = TIED if len(leading) > 1 else FOUND
    return Discovery(problem, base, tuple(proposals), screened, verdict)
