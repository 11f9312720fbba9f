"""What the page shows of a population fit: individual curves, tables and the pictures of its report."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from odinfer.apps.studio.answers import number, numbers, table_of
from odinfer.apps.studio.interactive import MAX_EXPERIMENTS, GaussianNoise
from odinfer.population.compare import PopulationComparison
from odinfer.population.figures import PICTURES
from odinfer.population.report import picture_names
from odinfer.population.result import PopulationFit
from odinfer.population.simulation import conditional_draws, predict
from odinfer.population.structure import latent
from odinfer.population.summary import headline, likelihood_table, population_table
from odinfer.style.text import TextTable, format_number

_CURVE = 80  # times of a curve
_DRAWS = 60  # individual parameters given the data of a subject, for its band


def answer_of_population(fit: PopulationFit) -> GaussianNoise:
    """All that the page shows of a population fit; its pictures come with its files."""
    individual = fit.individual
    names = [effect.name for effect in fit.problem.model.declarations.effects.subject]
    values = {
        subject: {n: [number(individual.loc[subject, n + end]) for end in ("", "_low", "_high")] for n in names}
        for subject in fit.subjects
    }
    return {
        "kind": "population",
        "model": fit.problem.model.name,
        "equations": fit.problem.model.text,
        "headline": headline(fit),
        "tone": "good" if fit.converged else "bad",
        "status": fit.status,
        "converged": fit.converged,
        "warnings": [*fit.warnings],
        "facts": [f"AIC {format_number(fit.aic, 6)}, BIC {format_number(fit.bic, 6)}"],
        "parameters": table_of(population_table(fit)),
        "tables": [{"title": "Likelihood", **(table_of(likelihood_table(fit)) or {})}],
        "theta": {name: number(value) for name, value in fit.theta.items()},
        "fixed": [],
        "intervals": {"profile": {name: [number(v) for v in ends] for name, ends in fit.intervals.items()}},
        "individual": values,
        "experiments": _experiments(fit),
        "pictures": [
            {"file": picture_file(name), "title": PICTURES[name].title, "caption": PICTURES[name].caption}
            for name in picture_names(fit)
        ],
    }


def compared(found: PopulationComparison) -> GaussianNoise:
    """All that the page shows of a comparison of population models."""
    table = found.table
    digits = {"bic": 5, "weight": 2, "aic": 5, "loglik": 5, "parameters": 5}
    rows = tuple(
        (str(name), *(format_number(float(table.loc[name, c]), n) for c, n in digits.items())) for name in table.index
    )
    difference = float(table["bic"].iloc[1] - table["bic"].iloc[0])
    return {
        "kind": "compare",
        "headline": f"{found.best} is preferred over {table.index[1]} by {format_number(difference, 3)} units of BIC.",
        "tone": "good",
        "sentences": [f"{headline(fit)}." for fit in found.fits.values()],
        "table": table_of(TextTable(("model", "BIC", "weight", "AIC", "log L", "parameters"), rows)),
        "fits": {name: answer_of_population(fit) for name, fit in found.fits.items()},
    }


def picture_file(name: str) -> str:
    return f"{name}.svg"


def _experiments(fit: PopulationFit) -> GaussianNoise:
    """The individual curve of each subject, its 95 % band given the data, and individual residuals."""
    s, v, residuals = fit.structure, fit.estimate.v, fit.residuals
    drawn = conditional_draws(fit.estimate, _DRAWS, fit.seed)[1]
    every = np.arange(len(fit.subjects))
    table = fit.individual
    means = np.stack([latent(effect.family, table[effect.name].to_numpy()) for effect in s.effects], 1)
    best = s.individual(v, every, means)
    rng = np.random.default_rng(fit.seed)
    found = {}
    for i, (name, own) in enumerate(zip(fit.subjects, fit.problem.data.experiments, strict=True)):
        if i >= MAX_EXPERIMENTS:
            break
        e = s.problem.data.experiments[i]
        start = s.problem.condition(i).start
        t = np.unique(np.concatenate([np.linspace(start, e.t[-1], _CURVE), e.t]))
        values = predict(s, v, e, t, np.concatenate([best[i : i + 1], drawn[i]]), rng).values
        low, high = np.nanquantile(values[1:], [0.025, 0.975], axis=0)
        rows = residuals[residuals["subject"] == name]
        rows = rows.assign(off=rows["observed"] - rows["individual"])
        found[name] = {
            "t": numbers(t),
            "columns": {
                c: {"y": numbers(values[0, :, m]), "low": numbers(low[:, m]), "high": numbers(high[:, m])}
                for m, c in enumerate(s.problem.columns)
            },
            "times": numbers(own.t),
            "residuals": {
                c: _in_rows(rows["off"][rows["column"] == c], own.y[:, m]) for m, c in enumerate(s.problem.columns)
            },
            "initial": {},
        }
    return found


def _in_rows(values: Iterable[float], y: NDArray[np.float64]) -> list[float | None]:
    """Values of the observations of a column, at their rows among all of a subject."""
    found = np.full(len(y), np.nan)
    found[np.isfinite(y)] = list(values)
    return numbers(found)
