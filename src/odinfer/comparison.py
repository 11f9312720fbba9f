"""Which model? Candidates fitted to the same data, judged equation by equation and ranked as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odinfer import missing
from odinfer.assemble import observations
from odinfer.data import Data
from odinfer.errors import InputError
from odinfer.fit import Fit, Progress, fit
from odinfer.heldout import HOLDOUTS, heldout
from odinfer.judge import DRAWS, LEVEL, Judgement, judge
from odinfer.methods.odin import Odin
from odinfer.model import Model
from odinfer.problem import Problem
from odinfer.whole import Whole, whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

CONSISTENT, CONTRADICTS = "consistent", "contradicts"


@dataclass(frozen=True, eq=False)
class Candidate:
    """One model's part of a comparison.

    Attributes:
        fit: its fit, as `odinfer.fit` returns it.
        judgements: per equation, in the order of the states.
        whole: of all equations together.
        loglik: at the maximum of the likelihood over trajectories; NaN if no trajectory could be followed.
        parameters: number of estimated quantities: θ, initial values, and noise levels.
        observations: number of observed values.
        risk: ODIN's.
        heldout: scores on observations that were left out, where asked for.
        hints: state → terms that its gap looks like, for equations that contradict the data.
    """

    fit: Fit
    judgements: tuple[Judgement, ...]
    whole: Whole
    loglik: float
    parameters: int
    observations: int
    risk: float
    heldout: dict[str, float]
    hints: dict[str, tuple[missing.Hint, ...]]

    @property
    def bic(self) -> float:
        return -2.0 * self.loglik + self.parameters * math.log(self.observations)

    @property
    def aicc(self) -> float:
        """Akaike's criterion corrected for few data; infinite where the data are too few for it."""
        k, spare = self.parameters, self.observations - self.parameters - 1
        return -2.0 * self.loglik + 2.0 * k + (2.0 * k * (k + 1) / spare if spare > 0 else math.inf)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates and what the data say about them.

    Attributes:
        candidates: model name → its part.
        level: the stated probability of accusing any equation of a right model.
    """

    candidates: dict[str, Candidate]
    level: float = LEVEL

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
                **c.heldout,
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
        """γ in standardised units, model × state."""
        import pandas as pd

        return pd.DataFrame({n: {j.state: j.gamma for j in c.judgements} for n, c in self.candidates.items()}).T

    @property
    def verdicts(self) -> dict[str, dict[str, str]]:
        """Model → state → "consistent" or "contradicts"."""
        return {
            name: {j.state: CONTRADICTS if j.contradicts else CONSISTENT for j in c.judgements}
            for name, c in self.candidates.items()
        }

    def summary(self) -> str:
        """The comparison as text: sentences to act on, then the table."""
        from odinfer.comparison_report import summary

        return summary(self)

    def plot(self, path: str | Path | None = None) -> Figure:
        """γ of every equation with the range expected of a right one; written to `path` if given."""
        from odinfer.comparison_plot import gamma_figure

        figure = gamma_figure(self)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def save(self, path: str | Path) -> None:
        """Write to a `.json` file, a `.html` report, or a folder with tables, pictures and report."""
        from odinfer.comparison_report import save

        save(self, Path(path))


def compare(
    models: Sequence[Model | Problem] | Mapping[str, Model | Problem],
    data: Data | None = None,
    *,
    method: Odin | None = None,
    level: float = LEVEL,
    draws: int = DRAWS,
    holdout: str | None = None,
    seed: int = 0,
    workers: int = 1,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Fit candidate models to the same data and compare them.

    Args:
        models: Models (with `data`) or Problems; or by name, where their own names do not tell them apart.
        data: the observations, if models are given.
        method: ODIN with its options.
        level: probability at most of accusing any equation of a right model.
        draws: simulated data sets per suspicious equation, and per model.
        holdout: also score predictions of a fifth of the times that is left out: the "last" or random "gaps".
        seed: of everything random.
        workers: processes over which the candidates are spread.
        cluster: address of a Dask scheduler instead.
        progress: called with (what, share done).
    """
    from odinfer.executor import spread

    problems = _problems(models, data)
    method = method or Odin()
    if not isinstance(method, Odin):
        raise InputError(f"compare judges by ODIN's gamma; method must be od.Odin(...), not {type(method).__name__}")
    if holdout is not None and holdout not in HOLDOUTS:
        raise InputError(f"holdout must be {' or '.join(map(repr, HOLDOUTS))}, not {holdout!r}")
    if not 0 < level < 1:
        raise InputError(f"level must lie between 0 and 1, not {level:g}")
    if not isinstance(draws, int) or draws < 19:
        raise InputError(f"draws must be a whole number from 19 on, not {draws!r}")
    tasks = [(p, method, seed, level, draws, holdout) for p in problems.values()]
    found = spread(_candidate, tasks, workers=workers, cluster=cluster, progress=progress)
    return Comparison(dict(zip(problems, found, strict=True)), level)


def _candidate(problem: Problem, method: Odin, seed: int, level: float, draws: int, holdout: str | None) -> Candidate:
    result = fit(problem, method=method, seed=seed)
    judgements = judge(problem, method, seed, level, draws)
    refined = result.stages.get("refined")
    x0 = len(problem.model.states) * len(problem.data.experiments)
    unknown_noise = int(np.isnan(problem.known_sigma).sum())
    return Candidate(
        fit=result,
        judgements=tuple(judgements),
        whole=whole(result, problem, seed, draws),
        loglik=refined.loglik if refined else math.nan,
        parameters=len(problem.free) + x0 + unknown_noise,
        observations=int(observations(problem).sum()),
        risk=result.stages["odin"].objective,
        heldout=heldout(problem, method, seed, holdout) if holdout else {},
        hints={j.state: tuple(missing.hints(problem, result, j.state)) for j in judgements if j.contradicts},
    )


def _problems(models: Any, data: Data | None) -> dict[str, Problem]:
    """Problems by a name that is theirs alone, all of the same data."""
    if isinstance(models, Model | Problem):
        raise InputError("compare takes a list of models, such as compare([a, b], data)")
    given = list(models.items()) if isinstance(models, Mapping) else [(None, m) for m in models]
    if len(given) < 2:
        raise InputError(f"compare needs at least two candidates, not {len(given)}")
    problems: dict[str, Problem] = {}
    for name, model in given:
        if isinstance(model, Model):
            if not isinstance(data, Data):
                raise InputError("compare needs data: compare([model_a, model_b], data)")
            model = Problem(model, data)
        elif not isinstance(model, Problem):
            raise InputError(f"compare takes Models or Problems, not {type(model).__name__}")
        name = own = str(name or model.model.name)
        number = 2
        while name in problems:
            name, number = f"{own} {number}", number + 1
        problems[name] = model
    first = next(iter(problems.values()))
    for name, p in problems.items():
        if _observed(p) != _observed(first):
            raise InputError(f"the data of '{name}' are not those of the other candidates; all need the same ones")
    return problems


def _observed(problem: Problem) -> tuple[Any, ...]:
    """What makes likelihoods comparable: the observed values, whatever the order of the states."""
    order = sorted(range(len(problem.model.states)), key=lambda k: problem.model.states[k])
    names = tuple(problem.model.states[k] for k in order)
    return names, tuple((e.t.tobytes(), e.y[:, order].tobytes()) for e in problem.data.experiments)


def _weights(criterion: Any) -> Any:
    """Relative likelihoods of models from a criterion such as BIC; 0 where there is none."""
    known = np.isfinite(criterion)
    if not known.any():
        return np.zeros(len(criterion))
    odds = np.where(known, np.exp(-0.5 * (np.where(known, criterion, 0.0) - criterion[known].min())), 0.0)
    return odds / odds.sum()
