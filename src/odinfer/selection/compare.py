"""`od.compare`: fit candidate models, test them, and rank them by BIC."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from odinfer.checks import checked_integer
from odinfer.diagnostics.equation_test import FALSE_ALARMS, Judgement
from odinfer.diagnostics.information_criteria import aicc, bic
from odinfer.diagnostics.model_test import DRAWS, ModelTest
from odinfer.diagnostics.verdicts import NOT_JUDGED, Case, judge_fit
from odinfer.errors import InputError
from odinfer.methods import check_method
from odinfer.methods.odin import Odin
from odinfer.methods.unknown import fit_unknown
from odinfer.model.model import Model
from odinfer.parallel.executor import parallel_map
from odinfer.problem.problem import Problem
from odinfer.problem.user_input import is_model
from odinfer.progress import Progress, sub_progress
from odinfer.result.fit import Fit
from odinfer.selection.held_out import HOLDOUTS, holdout_scores
from odinfer.selection.missing_terms import Hint, hints

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from odinfer.population.compare import PopulationComparison

CONSISTENT, CONTRADICTS = "consistent", "contradicts"  # an equation, in the table of verdicts


@dataclass(frozen=True, eq=False)
class Candidate:
    """One model's part of a comparison.

    Attributes:
        fit: its fit, as `odinfer.fit` returns it.
        judgements: per equation, in the order of the states.
        whole: of all equations together.
        loglik: at the maximum of the likelihood over trajectories; NaN if no trajectory could be followed.
        parameters: number of estimated quantities: θ, initial values, noise levels; unknown functions by their
            effective degrees of freedom.
        observations: number of observed values.
        risk: ODIN's.
        holdout_scores: scores on observations that were left out, if requested.
        hints: state → terms that its gap looks like, for equations that contradict the data.
    """

    fit: Fit
    judgements: tuple[Judgement, ...]
    whole: ModelTest
    loglik: float
    parameters: float
    observations: int
    risk: float
    holdout_scores: dict[str, float]
    hints: dict[str, tuple[Hint, ...]]

    @property
    def bic(self) -> float:
        return bic(self.loglik, self.parameters, self.observations)

    @property
    def aicc(self) -> float:
        """Akaike's criterion corrected for few data; infinite where the data are too few for it."""
        return aicc(self.loglik, self.parameters, self.observations)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates and what the data say about them.

    Attributes:
        candidates: model name → its part.
        level: the stated probability of rejecting any equation of a correct model.
    """

    candidates: dict[str, Candidate]
    level: float = FALSE_ALARMS

    def _repr_html_(self) -> str:
        from odinfer.selection.report import notebook

        return notebook(self)

    @property
    def fits(self) -> dict[str, Fit]:
        """Model name → its fit."""
        return {name: c.fit for name, c in self.candidates.items()}

    @property
    def table(self) -> pd.DataFrame:
        """One row per model, the best first.

        `weight` and `weight_aicc` are the criteria's model weights; `p` is the probability that a right model leaves as
        much signal in the residuals.
        """
        import pandas as pd

        rows = {
            name: {
                "loglik": c.loglik,
                "parameters": c.parameters,
                "aicc": c.aicc,
                "bic": c.bic,
                "risk": c.risk,
                "p": c.whole.p,
                **c.holdout_scores,
                "status": c.fit.status,
            }
            for name, c in self.candidates.items()
        }
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")
        table.insert(4, "weight", _weights(table["bic"].to_numpy(float)))
        table.insert(5, "weight_aicc", _weights(table["aicc"].to_numpy(float)))
        return table.sort_values("bic", kind="stable", na_position="last")

    @property
    def best(self) -> str:
        """The model with the lowest BIC."""
        return str(self.table.index[0])

    @property
    def gamma(self) -> pd.DataFrame:
        """γ in standardised units, model × state; only of equations that were judged."""
        import pandas as pd

        return pd.DataFrame({n: {j.state: j.gamma for j in c.judgements} for n, c in self.candidates.items()}).T

    @property
    def verdicts(self) -> dict[str, dict[str, str]]:
        """Model → state → "consistent", "contradicts", or "not judged" where a state cannot be smoothed."""
        return {
            name: dict.fromkeys(c.fit.state_names if not c.fit.gamma else (), NOT_JUDGED)
            | {j.state: CONTRADICTS if j.contradicts else CONSISTENT for j in c.judgements}
            for name, c in self.candidates.items()
        }

    def summary(self) -> str:
        """The comparison as text: sentences to act on, then the table."""
        from odinfer.selection.report import summary

        return summary(self)

    def plot(self, path: str | Path | None = None) -> Figure:
        """γ of every equation with the range expected of a right one, or the fits where there is no γ.

        Written to `path` if given.
        """
        from odinfer.selection.figures import fits_figure, gamma_picture

        judged = gamma_picture(self)
        figure = judged.figure if judged is not None else fits_figure(self)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def save(self, path: str | Path) -> None:
        """Write to a `.json` file, a `.html` report, or a folder with tables, pictures and report."""
        from odinfer.selection.report import save

        save(self, Path(path))


def compare(
    models: Sequence[Model | Problem | str | Path] | Mapping[str, Model | Problem | str | Path],
    data: Any = None,
    *,
    method: Odin | None = None,
    level: float = FALSE_ALARMS,
    draws: int = DRAWS,
    holdout: str | None = None,
    seed: int = 0,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Fit candidate models to the same data and compare them.

    Args:
        models: models (Models, texts or .ode files, with `data`) or Problems; or by name, where their own names do not
            tell them apart.
        data: the observations, if models are given: Data, a DataFrame, a dictionary of columns or a file.
        method: ODIN with its options.
        level: probability at most of rejecting any equation of a correct model.
        draws: simulated data sets per model at most: fewer where a verdict is settled, and for single equations.
        holdout: also score predictions of a fifth of the times that is left out: the "last" or random "gaps".
        seed: of everything random.
        workers: processes over which the candidates are spread.
        cluster: address of a Dask scheduler instead.
        progress: called with (what, share done).

    Returns:
        `.summary()` in words, `.table` as a DataFrame, `.best`, `.verdicts` by model and state, and `.fits`. Of models
        with random effects, a `PopulationComparison` with `.table`, `.best`, `.fits` and likelihood-ratio tests.

    Raises:
        InputError: a candidate cannot be used, or they are not about the same data.

    Example:
        >>> import odinfer as od
        >>> data = od.Data([0, 1, 2, 3, 4, 5], [3.0, 1.9, 1.1, 0.7, 0.45, 0.25], states=["x"])
        >>> od.compare(od.candidates("x' = -k*x [- e*x^2]", "decay"), data).best
        'decay [no optional term]'
    """
    problems = _problems(models, data)
    if any(problem.model.declarations.effects for problem in problems.values()):
        return cast("Comparison", _populations(problems, seed, workers, cluster, progress))
    method = method or Odin()
    if not isinstance(method, Odin):
        raise InputError(f"compare judges by ODIN's gamma; method must be od.Odin(...), not {type(method).__name__}")
    if holdout is not None and holdout not in HOLDOUTS:
        raise InputError(f"holdout must be {' or '.join(map(repr, HOLDOUTS))}, not {holdout!r}")
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level:g}")
    checked_integer("draws", draws, 19)
    for problem in problems.values():
        check_method(method, problem)
    tasks = [(name, p, method, seed, level, draws, holdout) for name, p in problems.items()]
    found = parallel_map(_fit_candidate, tasks, workers=workers, cluster=cluster, progress=progress, telling=True)
    candidates = {
        # From another process comes a plain result.
        name: c if isinstance(c.fit, Fit) else replace(c, fit=c.fit.attach(problems[name]))
        for name, c in zip(problems, found, strict=True)
    }
    return Comparison(candidates, level)


def _populations(
    problems: Mapping[str, Problem], seed: int, workers: int, cluster: str | None, progress: Progress | None
) -> PopulationComparison:
    """Fits of population models and their comparison."""
    from odinfer.population.compare import PopulationComparison
    from odinfer.population.fit import fit_population

    for name, problem in problems.items():
        if not problem.model.declarations.effects:
            raise InputError(f"'{name}' has no random effects but another candidate has; give them to all")
    fits = {}
    for i, (name, problem) in enumerate(problems.items()):
        own = sub_progress(progress, i / len(problems), (i + 1) / len(problems))
        named = functools.partial(_named, own, name)
        fits[name] = fit_population(problem, seed, named, workers=workers, cluster=cluster)
    return PopulationComparison(fits)


def _named(progress: Progress, name: str, what: str, share: float) -> None:
    progress(f"{name}: {what}", share)


def _fit_candidate(
    name: str, problem: Problem, method: Odin, seed: int, level: float, draws: int, holdout: str | None,
    progress: Progress | None = None,
) -> Candidate:  # fmt: skip
    """All about one candidate; what the fit has computed is not computed again."""

    from threadpoolctl import threadpool_limits

    def step(start: float, stop: float) -> Progress:
        own = sub_progress(progress, start, stop)
        return lambda what, share: own(f"{name}: {what}", share)

    with threadpool_limits(1, user_api="blas"), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if problem.model.declarations.unknown:
            judged_by = {"level": level, "draws": draws, "whole": True}
            result = fit_unknown(method, problem, seed, step(0.0, 0.95), judged_by)
        else:
            result = method.fit(problem, seed, step(0.0, 0.95), level, draws, whole=True)
        case = result.cache.case
        if not problem.fully_observed_gaussian:
            case = Case((), _model_test(result))
        elif case is None:  # of fits without trajectories: the paper's
            case = judge_fit(problem, method.search, method.solve(problem, seed), None, seed, level, draws)
    judgements = case.equations
    refined = result.stages.get("refined")
    return Candidate(
        fit=result,
        judgements=judgements,
        whole=case.whole or ModelTest(math.nan, math.nan, 0),
        loglik=refined.loglik if refined else math.nan,
        parameters=result.details["unknowns"],
        observations=int(problem.count.sum()),
        risk=result.stages["odin"].objective if problem.fully_observed_gaussian else math.nan,
        holdout_scores=holdout_scores(problem, method, seed, holdout) if holdout else {},
        hints={j.state: tuple(hints(problem, result, j.state)) for j in judgements if j.contradicts},
    )


def _model_test(fit: Fit) -> ModelTest | None:
    """The test of the model as a whole that a fit without γ has made."""
    found = fit.details.get("model_test")
    return None if found is None else ModelTest.of(found)


def _problems(models: Any, data: Any) -> dict[str, Problem]:
    """Problems by a name that is theirs alone, all of the same data."""
    if is_model(models) or isinstance(models, Problem):
        models = [models]
    given = list(models.items()) if isinstance(models, Mapping) else [(None, m) for m in models]
    if not given:
        raise InputError("compare needs at least one candidate")
    problems: dict[str, Problem] = {}
    for name, model in given:
        if is_model(model):
            if data is None:
                raise InputError("compare needs data: compare([model_a, model_b], data)")
            model = Problem(model, data)
        elif not isinstance(model, Problem):
            raise InputError(f"compare takes models or Problems, not {type(model).__name__}")
        name = own = str(name or model.model.name)
        number = 2
        while name in problems:
            name, number = f"{own} {number}", number + 1
        problems[name] = model
    first = next(iter(problems.values()))
    for name, p in problems.items():
        if _data_key(p) != _data_key(first):
            raise InputError(f"the data of '{name}' are not those of the other candidates; all need the same ones")
    return problems


def _data_key(problem: Problem) -> tuple[Any, ...]:
    """What makes likelihoods comparable: the observed values, whatever the order of the columns."""
    order = sorted(range(len(problem.columns)), key=lambda m: problem.columns[m])
    names = tuple(problem.columns[m] for m in order)
    return names, tuple(
        (e.t.tobytes(), e.y[:, order].tobytes(), None if e.limit is None else e.limit[:, order].tobytes())
        for e in problem.data.experiments
    )


def _weights(criterion: Any) -> Any:
    """Relative likelihoods of models from a criterion such as BIC; 0 where there is none."""
    known = np.isfinite(criterion)
    if not known.any():
        return np.zeros(len(criterion))
    least = criterion[known].min()
    odds = np.where(known, np.exp(-0.5 * (np.where(known, criterion, least) - least)), 0.0)
    return odds / odds.sum()
