"""Text summary of a population fit: table, likelihood and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odinfer.errors import listed
from odinfer.population.estimate import FLAT
from odinfer.style.text import TextTable, format_number

if TYPE_CHECKING:
    from odinfer.population.result import PopulationFit

_GROUPS = {"centre": "population", "fixed": "all subjects", "omega": "variation", "correlation": "correlation",
           "sigma": "noise"}  # fmt: skip


def population_table(fit: PopulationFit) -> TextTable:
    """A row per parameter: estimate, standard error, 95 % interval, variation and shrinkage."""
    s, rows = fit.structure, []
    role = {p.name: p.role for p in s.parameters}
    effect = {str(e.omega): e for e in s.effects}
    shrinkage = fit.shrinkage
    order = sorted(fit.theta, key=lambda name: list(_GROUPS).index(role.get(name, "omega")))
    for name in order:
        value = fit.theta[name]
        if name not in role:
            rows.append((_GROUPS["omega"], name, "0 (fixed)", "-", "-", "-", "-"))
            continue
        low, high = fit.intervals[name]
        se = fit.standard_errors[name]
        error = f"{100.0 * se / abs(value):.1f} %" if role[name] != "correlation" and value else format_number(se, 2)
        error = "-" if not np.isfinite(se) or se >= 0.99 * FLAT * abs(value) else error
        variation = shrink = "-"
        if role[name] == "omega":
            own = effect[name]
            variation = variation_words((own.deviates or own).family, value)
            shrink = f"{100.0 * shrinkage[own.name]:.0f} %" if own.name in shrinkage else "-"
        ends = f"{format_number(low, 4)} to {format_number(high, 4)}"
        rows.append((_GROUPS[role[name]], name, format_number(value, 4), error, ends, variation, shrink))
    return TextTable(("", "parameter", "estimate", "se", "95 % interval", "variation", "shrinkage"), tuple(rows))


def variation_words(family: str, omega: float) -> str:
    """The spread of an effect as people say it: the coefficient of variation of a log-normal."""
    if family == "lognormal":
        return f"CV {100.0 * np.sqrt(np.expm1(omega**2)):.1f} %"
    return f"sd {format_number(omega, 3)}" + (" (logit)" if family == "logitnormal" else "")


def likelihood_table(fit: PopulationFit) -> TextTable:
    """The exact log-likelihood with its numerical error, and what approximations say at the same values."""
    constant = fit.observations * float(np.log(2.0 * np.pi))
    rows = [("exact", f"{fit.loglik:.3f}", f"± {format_number(fit.loglik_error, 2)}", f"{fit.ofv:.3f}")]
    for words, value in (("FOCEI would have said", fit.focei), ("Laplace would have said", fit.laplace)):
        error = round(value - fit.loglik, 3) + 0.0  # which is never −0
        rows.append((words, f"{value:.3f}", f"{error:+.3f}", f"{-2.0 * value - constant:.3f}"))
    return TextTable(("likelihood", "log-likelihood", "error", "OFV (NONMEM)"), tuple(rows))


def headline(fit: PopulationFit) -> str:
    """Who was fitted, by what, and whether it worked out."""
    s = fit.structure
    levels: dict[str, dict[str, None]] = {}
    for own in (e for e in s.effects if e.name in s.varying):
        levels.setdefault(own.by, {})[(own.deviates or own).name] = None
    vary = ", ".join(f"{listed(list(names))} by {level}" for level, names in levels.items())
    return (
        f"{fit.problem.model.name}: {len(fit.subjects)} subjects, {fit.observations} observations; "
        f"{f'variation of {vary}' if vary else 'no variation between subjects'}; {fit.status}"
    )


def summary(fit: PopulationFit) -> str:
    """The whole text."""
    criteria = f"AIC {fit.aic:.2f}, BIC {fit.bic:.2f}; {fit.seconds:.1f} s of CPU time"
    parts = [
        headline(fit),
        "\n".join(population_table(fit).lines()),
        "\n".join(likelihood_table(fit).lines()),
        criteria,
    ]
    if fit.model_test is not None:
        parts.append(f"Test of the model as a whole, {fit.model_test.draws} simulated studies: {fit.model_test}")
    if fit.warnings:
        parts.append("\n".join(f"- {warning}" for warning in fit.warnings))
    return "\n\n".join(parts) + "\n"
