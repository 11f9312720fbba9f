"""What was found, as plain data that the page shows: a fit with its curves, tables and draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from odinfer.apps.studio.interactive import GaussianNoise
from odinfer.result.fit import Fit
from odinfer.result.stages import state_band
from odinfer.result.unknown import EstimatedFunction
from odinfer.style.text import TextTable
from odinfer.uncertainty.results import BAND

ANSWERS = ("fit", "population", "discover", "design", "compare")  # what an answer can be about
_MAX_POINTS, _MAX_POINTS_OF_ALL = 400, 4_000  # of a curve on the page, if there are many, and of one in all experiments


def answer_of(fit: Fit) -> GaussianNoise:
    """All that the page shows of a fit."""
    from odinfer.result.estimates import correlation_table, parameter_table, solutions_table
    from odinfer.result.summary import data_counts, facts, headline, state_table, tone

    fixed = fit.details.get("fixed") or ()
    by_kind = fit.intervals_by_kind()
    return {
        "kind": "fit",
        "model": fit.model,
        "equations": fit.equations,
        "headline": headline(fit),
        "tone": tone(fit),
        "status": fit.status,
        "converged": fit.converged,
        "warnings": [*fit.warnings],
        "facts": [line for line in facts(fit) if line not in data_counts(fit)],
        "amounts": data_counts(fit),
        "parameters": table_of(parameter_table(fit)),
        "solutions": table_of(solutions_table(fit)),
        "correlations": table_of(correlation_table(fit)),
        "theta": {name: number(value) for name, value in fit.theta.items()},
        "fixed": [*fixed],
        "given": [*fit.details.get("given", ())],
        "intervals": {
            kind: {name: [number(low), number(high)] for name, (low, high) in found.items()}
            for kind, found in by_kind.items()
        },
        "states": table_of(state_table(fit)),
        "verdicts": fit.verdicts,
        "experiments": {name: _curves(fit, name) for name in fit.experiments},
        "profiles": [
            {
                "name": p.name,
                "estimate": p.estimate,
                "interval": [number(v) for v in p.interval()],
                "values": numbers(p.values),
                "likelihoods": numbers(p.likelihoods),
            }
            for p in fit.profiles.values()
        ],
        "draws": _draws(fit),
        "unknown": [_function(label, own) for label, own in (fit.details.get("unknown") or {}).items()],
    }


def table_of(table: TextTable | None) -> GaussianNoise | None:
    return None if table is None else {"header": [*table.header], "rows": [[*row] for row in table.rows]}


def _curves(fit: Fit, name: str) -> GaussianNoise:
    """States and columns with their bands along the curve, and residuals."""
    e = fit.experiments[name]
    most = max(_MAX_POINTS, _MAX_POINTS_OF_ALL // len(fit.experiments))
    rows = np.unique(np.linspace(0, len(e.curve.t) - 1, most).astype(int)) if len(e.curve.t) else slice(0)
    tables = [(fit.state_names, e.curve.x, *state_band(fit, e.curve.x, e.curve.sd))]
    if e.expected is not None and e.expected_sd is not None:
        half = BAND * e.expected_sd
        tables.append((fit.columns, e.expected, e.expected - half, e.expected + half))
    columns = {}
    for names, *band in tables:
        for k, column in enumerate(names):
            columns[column] = {name: numbers(v[rows, k]) for name, v in zip(("y", "low", "high"), band, strict=True)}
    residuals = {c: numbers(r) for c, r in zip(fit.columns, e.residuals.T, strict=True)}
    first = e.curve.x[0] if len(e.curve.t) else []
    return {
        "t": numbers(e.curve.t[rows]),
        "columns": columns,
        "times": numbers(e.t),
        "residuals": residuals,
        "initial": {state: number(v) for state, v in zip(fit.state_names, first, strict=False)},
    }


def _function(label: str, stored: GaussianNoise) -> GaussianNoise:
    """An unknown function of one argument with its band; of two, its name only."""
    own = EstimatedFunction.of(label, stored)
    if len(own.arguments) > 1:
        return {"label": label, "arguments": [*own.arguments], "x": None}
    grid = {"x": own.grid[:, 0], "y": own.value, "low": own.low, "high": own.high, "seen": own.seen[:, 0]}
    return {"label": label, "arguments": [*own.arguments], **{key: numbers(v) for key, v in grid.items()}}


def _draws(fit: Fit) -> dict[str, dict[str, list[float | None]]]:
    """Refits and posterior draws of the parameters, thinned."""
    found = {}
    if fit.bootstrapped is not None:
        found["bootstrap"] = fit.bootstrapped.theta
    if fit.sampled is not None:
        found["sample"] = {name: np.ravel(draws) for name, draws in fit.sampled.theta.items()}
    return {
        kind: {name: numbers(v[:: max(1, len(v) // 500)]) for name, v in theta.items()} for kind, theta in found.items()
    }


def number(value: Any) -> Any:
    """A number that JSON has: infinite ones are texts, and what is none is null."""
    if not isinstance(value, float | int | np.number):
        return value
    value = float(value)
    return value if math.isfinite(value) else None if math.isnan(value) else "∞" if value > 0 else "−∞"


def numbers(values: Sequence[float] | Any) -> list[float | None]:
    return [float(f"{v:.10g}") if math.isfinite(v) else None for v in np.asarray(values, float).tolist()]
