"""Fit a model with further terms by the likelihood over trajectories, from states and parameters nearby."""

from __future__ import annotations

from dataclasses import dataclass, replace

from odinfer.diagnostics.information_criteria import bic
from odinfer.discovery.terms import Term
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.model.edit import with_term
from odinfer.model.model import Model
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem

_SAME = 0.01  # nats by which a larger model may miss the maximum of the smaller one that it contains


@dataclass(frozen=True)
class Addition:
    """A term in an equation, with the names of its parameters.

    Attributes:
        state: whose equation.
        term: the candidate.
        text: the term with its coefficient.
        coefficient, inner: the names of its parameters.
    """

    state: str
    term: Term
    text: str
    coefficient: str
    inner: str | None

    @property
    def parameters(self) -> tuple[str, ...]:
        return (self.coefficient,) if self.inner is None else (self.coefficient, self.inner)


def added(model: Model, state: str, term: Term, name: str) -> tuple[Model, Addition]:
    """A model from text with one further term in the equation of a state."""
    assert model.text is not None
    taken = {*model.states, *model.parameters, *model.inputs, *model.declarations.definitions}
    taken |= {column.name for column in model.declarations.columns} | {*model.declarations.effects.names}
    product, coefficient, inner = term.named(taken)
    positive = () if inner is None else (inner,)
    text = with_term(model.text, state, product, (coefficient,), positive)
    return Model.from_text(text, name, model.inputs), Addition(state, term, product, coefficient, inner)


def extended(problem: Problem, model: Model) -> Problem:
    """The problem with another model of the same states."""
    return replace(problem, model=model)


def falls_short(found: TrajectoryOptimum | None, smaller: float) -> bool:
    """Whether a refit misses the log-likelihood of a model that it contains, so that it is no maximum."""
    return found is None or found.loglik < smaller - _SAME


def bic_of(problem: Problem, loglik: float) -> float:
    """The Bayesian information criterion of a problem at a log-likelihood."""
    return bic(loglik, ParameterVector(problem, noise=True).size, int(problem.count.sum()))
