"""`Discovery`, the result of a search for missing terms: proposals, their ranking and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from odinfer.discovery.refit import Addition, bic_of
from odinfer.discovery.verdicts import AS_GOOD, CONTRADICTED, EQUATIONS, FOUND, LEVEL, NO_EQUATIONS, NOTHING, TIED
from odinfer.errors import listed
from odinfer.likelihood.refinement import TrajectoryOptimum
from odinfer.model.model import Model
from odinfer.problem.problem import Problem
from odinfer.style.text import format_number
from odinfer.uncertainty.maximum import Maximum
from odinfer.uncertainty.small_sample import CONFIDENCE, quantile

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from odinfer.result.fit import Fit


@dataclass(frozen=True, eq=False)
class Proposal:
    """A model with one further term, refitted by the likelihood over trajectories; or the base model itself.

    Attributes:
        problem: model and data.
        optimum: the maximum of the likelihood.
        addition: the further term; None of the base model.
        p: of the simulated test of the model as a whole; NaN if it was not tested.
    """

    problem: Problem
    optimum: TrajectoryOptimum
    addition: Addition | None = None
    p: float = math.nan

    @property
    def model(self) -> Model:
        return self.problem.model

    @property
    def loglik(self) -> float:
        return self.optimum.loglik

    @cached_property
    def bic(self) -> float:
        return bic_of(self.problem, self.loglik)

    @cached_property
    def maximum(self) -> Maximum:
        """The same as a maximum, for tests and intervals."""
        return Maximum.of(self.problem, self.optimum)

    @property
    def complexity(self) -> tuple[int, int]:
        """That of the further term."""
        return (0, 0) if self.addition is None else self.addition.term.complexity

    @property
    def theta(self) -> dict[str, float]:
        """Parameter → estimate."""
        values = self.problem.theta(self.optimum.phi)
        return dict(zip(self.problem.parameters, values.tolist(), strict=True))

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the further term's coefficient, from the curvature of the likelihood."""
        return (math.nan, math.nan) if self.addition is None else self.interval_of(self.addition.coefficient)

    def interval_of(self, name: str) -> tuple[float, float]:
        """The 95 % interval of a parameter on a linear scale, from the curvature of the likelihood."""
        u = self.maximum.likelihood.unknowns
        place = u.of_phi.start + self.problem.free.index(name)
        try:
            sd, freedom = self.maximum.info.spread(u.unit(np.array([place])))
        except (np.linalg.LinAlgError, ArithmeticError):
            return math.nan, math.nan
        centre = self.theta[name]
        half = float(np.ravel(sd)[0] * np.ravel(quantile(freedom, CONFIDENCE))[0])
        return centre - half, centre + half


@dataclass(frozen=True, eq=False)
class Discovery:
    """Which term is missing from which equation.

    Attributes:
        problem: the model as it was given, and the data.
        base: its fit; None if it has no trajectory near the data.
        proposals: models with one further term, the lowest BIC first; of those that cannot be told apart, the simplest.
        screened: how many terms were screened, in all equations together.
        verdict: one of the sentences of this module.
    """

    problem: Problem
    base: Proposal | None
    proposals: tuple[Proposal, ...]
    screened: int
    verdict: str
    _fits: dict[str, Fit] = field(default_factory=dict, repr=False)

    @property
    def tied(self) -> tuple[Proposal, ...]:
        """The proposals that cannot be told apart from the best, which comes first; empty if nothing is missing."""
        if self.verdict not in (FOUND, TIED):
            return ()
        least = min(p.bic for p in self.proposals)
        return tuple(p for p in self.proposals if p.bic <= least + AS_GOOD)

    @property
    def _winner(self) -> Problem:
        return self.tied[0].problem if self.tied else self.problem

    @property
    def best(self) -> Model:
        """The model with the best term; the given one if nothing is missing or no term helps."""
        return self._winner.model

    @property
    def fit(self) -> Fit:
        """A complete fit of the best model, made when it is first asked for."""
        from odinfer.methods import fit

        if "best" not in self._fits:
            self._fits["best"] = fit(self._winner)
        return self._fits["best"]

    @property
    def ranking(self) -> pd.DataFrame:
        """A row per refitted term, the best first: equation, term, ΔBIC to the given model, p, estimate, low, high."""
        import pandas as pd

        rows = []
        given = self.base.bic if self.base is not None else math.nan
        for own in self.proposals:
            assert own.addition is not None
            low, high = own.interval
            rows.append({
                "equation": own.addition.state, "term": own.addition.text, "delta_bic": own.bic - given,
                "p": own.p, "estimate": own.theta[own.addition.coefficient], "low": low, "high": high,
            })  # fmt: skip
        return pd.DataFrame(rows, columns=["equation", "term", "delta_bic", "p", "estimate", "low", "high"])

    @property
    def p(self) -> float:
        """Of the simulated test of the model as it was given; NaN if it has no trajectory near the data."""
        return math.nan if self.base is None else self.base.p

    @property
    def headline(self) -> str:
        """The verdict in a sentence."""
        if self.verdict == NOTHING:
            return (
                "Nothing is missing: no further term is worth its parameters, and the model does not contradict the "
                "data."
            )
        if not self.tied:
            return "The model contradicts the data, but no single further term of the library is worth its parameters."
        terms = [f"{p.addition.text} in the equation for {p.addition.state}" for p in self.tied if p.addition]
        best = self.tied[0]
        gain = " (no trajectory of the model as given follows the data)"
        if self.base is not None:
            gain = f" (BIC falls by {format_number(self.base.bic - best.bic, 3)})"
        text = f"A term is missing: {terms[0]}{gain}"
        if len(terms) > 1:
            text = f"A term is missing{gain}; these cannot be told apart: {listed(terms)}"
        p = f"(p = {format_number(best.p, 2)})"
        if best.p <= LEVEL:
            return f"{text}. Even with it the model contradicts the data {p}."
        return f"{text}. With it the model does not contradict the data {p}."

    @property
    def equations(self) -> tuple[str, ...]:
        """Lines to print above the ranking: none, since the equations are the user's."""
        return ()

    @property
    def lines(self) -> tuple[tuple[Proposal, str], ...]:
        """What is drawn, with its name."""
        given = () if self.base is None else ((self.base, "the model as given"),)
        return *given, *((own, f"with {own.addition.text}") for own in self.tied if own.addition)

    @property
    def footnote(self) -> str:
        """What the columns of the ranking mean."""
        price = format_number(2.0 * math.log(max(self.screened, 1)), 2)
        return (
            f"ΔBIC is relative to the model as given; a term must gain more than {price}, the price of choosing among "
            f"{self.screened} terms. Terms within {AS_GOOD:g} units of the best cannot be told apart from it; "
            "the simplest of them comes first. p is the chance that a correct model leaves as much of a pattern in the "
            "residuals."
        )

    def summary(self) -> str:
        """The verdict and the ranking as text."""
        from odinfer.discovery.report import summary

        return summary(self)

    def __repr__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what the equation lacks along the data, with the best terms on top; written to `path` if given."""
        from odinfer.discovery.report import figure

        drawn = figure(self)
        if path is not None:
            drawn.savefig(path, dpi=150)
        return drawn

    def save(self, path: str | Path) -> None:
        """Write to a `.json` file, a `.csv` file with the ranking, or a folder with everything."""
        from odinfer.discovery.report import save

        save(self, Path(path))


@dataclass(frozen=True, eq=False)
class DiscoveredEquations:
    """Equations from data alone.

    Attributes:
        found: the equations at their maximum of the likelihood, with the p-value of the simulated test; None where no
            trajectory follows the data.
        problem: the equations and the data.
        terms: (state, term with its coefficient, coefficient, what leaving it out costs in BIC) of every term.
        screened: number of terms in the library, times equations.
    """

    found: Proposal | None
    problem: Problem
    terms: tuple[tuple[str, str, str, float], ...]
    screened: int

    @property
    def verdict(self) -> str:
        """Whether the equations agree with the data."""
        if self.found is None:
            return NO_EQUATIONS
        return CONTRADICTED if self.found.p <= LEVEL else EQUATIONS

    @property
    def best(self) -> Model:
        """The equations as a model; its start values are the estimates."""
        return self.problem.model

    @cached_property
    def fit(self) -> Fit:
        """A complete fit of the equations, made when it is first asked for."""
        from odinfer.methods import fit

        return fit(self.problem)

    @property
    def theta(self) -> dict[str, float]:
        """Parameter → estimate."""
        return {} if self.found is None else self.found.theta

    @property
    def ranking(self) -> pd.DataFrame:
        """A row per term: equation, term, ΔBIC of leaving it out, p of the whole model, estimate, low, high."""
        import pandas as pd

        rows = []
        for state, text, name, delta in self.terms:
            low, high = (math.nan, math.nan) if self.found is None else self.found.interval_of(name)
            p = math.nan if self.found is None else self.found.p
            rows.append({
                "equation": state, "term": text, "delta_bic": delta, "p": p, "estimate": self.theta.get(name, math.nan),
                "low": low, "high": high,
            })  # fmt: skip
        return pd.DataFrame(rows, columns=["equation", "term", "delta_bic", "p", "estimate", "low", "high"])

    @property
    def p(self) -> float:
        """Of the simulated test of the equations; NaN without a trajectory."""
        return math.nan if self.found is None else self.found.p

    @property
    def headline(self) -> str:
        """The verdict in a sentence."""
        if self.found is None:
            return "No trajectory of the equations found follows the data; they only match its slopes."
        p = format_number(self.p, 2)
        if self.verdict == EQUATIONS:
            return f"Equations with {len(self.terms)} terms, which do not contradict the data (p = {p})."
        return f"The best equations found have {len(self.terms)} terms and contradict the data (p = {p})."

    @property
    def equations(self) -> tuple[str, ...]:
        """Lines to print above the ranking."""
        return *(self.best.text or "").split("\n"), ""

    @property
    def lines(self) -> tuple[tuple[Proposal, str], ...]:
        """What is drawn, with its name."""
        return () if self.found is None else ((self.found, "the equations found"),)

    @property
    def footnote(self) -> str:
        """What the columns of the ranking mean."""
        return (
            f"ΔBIC is what leaving the term out costs. The terms are the best of {self.screened} in all equations; "
            "others may do as well on these data. p is the chance that correct equations leave as much of a pattern in "
            "the residuals."
        )

    def summary(self) -> str:
        """The equations and their terms as text."""
        from odinfer.discovery.report import summary

        return summary(self)

    def __repr__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the data with the trajectories of the equations; written to `path` if given."""
        from odinfer.discovery.report import figure

        drawn = figure(self)
        if path is not None:
            drawn.savefig(path, dpi=150)
        return drawn

    def save(self, path: str | Path) -> None:
        """Write to a `.json` file, a `.csv` file with the ranking, or a folder with everything."""
        from odinfer.discovery.report import save

        save(self, Path(path))
