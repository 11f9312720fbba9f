"""Text summary of a fit: headline, tables and facts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from odinfer.diagnostics.equation_test import FALSE_ALARMS
from odinfer.diagnostics.information_criteria import aic, bic
from odinfer.diagnostics.model_test import ModelTest
from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS, NOT_JUDGED
from odinfer.errors import Status, listed
from odinfer.result.estimates import (
    MAX_INITIAL_VALUES,
    STAGES,
    Truth,
    initial_rows,
    parameter_table,
    preferred_intervals,
    solutions_table,
)
from odinfer.result.figures.marks import MAX_PANELS, states_to_show
from odinfer.result.stages import attached_problem
from odinfer.style.tables import rich_table
from odinfer.style.text import TextTable, abbreviate, format_duration, format_number, format_with_error, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from odinfer.result.fit import FitResult

TEXT_WIDTH = 100  # columns of printed text
_ROWS = 100  # states in a table
_KINDS = {
    "likelihood": "Intervals: 95 %, likelihood ratio.",
    "profile": "Intervals: 95 %, profile likelihood.",
    "bootstrap": "Intervals: 95 %, bootstrap.",
    "sample": "Credible intervals: 95 %, posterior.",
}
# What has to be said beside "95 %" about a kind, or the target of a posterior.
_COVERAGE = {
    "odin": " Posteriors of ODIN's states cover the truth less often (docs: confidence intervals).",
    "method": " The coverage of this method has not been measured.",
}
_NOT_JUDGED = "The equations were fitted but not tested."


def undetermined(fit: FitResult) -> bool:
    """Decide whether a fit has no more observations than unknowns, so that nothing about it can be tested."""
    return bool(sum(fit.details.get("observations", {}).values()) <= fit.details.get("unknowns", -1))


def _outcome(fit: FitResult) -> str:
    """Say how a fit ended: an optimiser that converged to one of many equal values has not determined them."""
    return "not determined" if fit.converged and fit.method != "gpr" and undetermined(fit) else fit.status


def headline(fit: FitResult, gamma: str = "γ") -> str:
    """Say whether the result can be used, which equations contradict the data, and whether other solutions fit."""
    verdict, others = _verdict(fit, gamma), len(fit.details.get("alternatives") or ())
    if not others or not fit.converged or fit.method == "gpr" or undetermined(fit):
        return verdict
    what = "Another solution fits" if others == 1 else f"{others} other solutions fit"
    return f"{verdict} {what} as well: see the table of solutions."


def _verdict(fit: FitResult, gamma: str) -> str:
    """Say in one sentence whether the result can be used, and which equations contradict the data."""
    if not fit.converged:
        return f"Do not rely on these numbers: the fit {fit.status}."
    if fit.method != "gpr" and undetermined(fit):
        observed, unknowns = sum(fit.details["observations"].values()), fit.details["unknowns"]
        return (
            f"Not determined: {observed:g} observations for {unknowns:.3g} unknowns (parameters, initial values, "
            "noise). Other values fit as well."
        )
    if fit.method == "gpr":
        return "The data were smoothed; the equations were not used."
    wrong = [name for name in fit.state_names if fit.verdicts.get(name) == CONTRADICTS]
    test = ModelTest.of(fit.details.get("model_test"))
    if fit.noise:
        return _model_verdict(fit, test)
    if not wrong and test.contradicts(FALSE_ALARMS):
        return (
            "The model contradicts the data: its best trajectory leaves a pattern in the residuals "
            f"(p = {format_number(test.p, 2)}). No single equation could be identified as the cause."
        )
    if not wrong and fit.status == Status.ODIN_KEPT.value:
        return "No trajectory of the model was found that follows the data; no equation is shown to contradict them."
    if not wrong:
        judged = all(fit.verdicts.get(name, NOT_JUDGED) != NOT_JUDGED for name in fit.state_names)
        p = f" (p = {format_number(test.p, 2)})" if test.p > FALSE_ALARMS else ""
        return f"All equations are consistent with the data{p}." if judged else _NOT_JUDGED
    names = abbreviate(wrong)
    subject = "The equation for" if len(wrong) == 1 else "The equations for"
    verb = "contradicts" if len(wrong) == 1 else "contradict"
    return f"{subject} {listed(names)} {verb} the data ({_evidence(fit, wrong[:5], gamma)})."


def next_step(fit: FitResult) -> str:
    """Say what to do after this verdict; empty where nothing is to be done."""
    if not fit.converged:
        return "check the data and the units, give bounds, or raise the number of starts (docs: the fit is bad)"
    if fit.method == "gpr":
        return ""
    if undetermined(fit):
        return "add data, fix parameters, or give priors (docs: parameters are not determined)"
    if tone(fit) == "bad":
        return "look for a missing term with `odinfer discover`, or compare models with `odinfer compare`"
    if any(mark in warning for warning in fit.warnings for mark in _NOT_IDENTIFIABLE):
        return "fix one of these parameters, give a prior, or measure more (docs: parameters are not determined)"
    return ""


_NOT_IDENTIFIABLE = ("not individually identifiable", "is not identifiable", "are not identifiable")
# Warnings by importance: words that tell of which kind one is; all others come in between.
_FIRST = (
    *(
        "contradict",
        "unknowns",
        "global optimum",
        "best optimum",
        "last digits",
        "fits the data as well",
        "fit the data as well",
    ),
    *("multimodal", *_NOT_IDENTIFIABLE, "at its bound", "set no limit"),
)
_LAST = ("input ", "is shown from")


def by_importance(warnings: Sequence[str]) -> list[str]:
    """Return warnings with the most important one first."""

    def rank(warning: str) -> int:
        first = next((i for i, words in enumerate(_FIRST) if words in warning), len(_FIRST))
        return first + any(words in warning for words in _LAST)

    return sorted(warnings, key=rank)


def _evidence(fit: FitResult, wrong: Sequence[str], gamma: str) -> str:
    """Say by which p-values equations are rejected; by γ where none were computed."""
    tests = fit.details.get("equation_tests", {})
    if all(name in tests for name in wrong):
        return f"p = {listed([format_number(tests[name]['p'], 2) for name in wrong])}"
    values = [format_number(fit.gamma.get(name, np.nan), 2) for name in wrong]
    right = [fit.gamma.get(name, np.nan) for name in fit.state_names if fit.verdicts.get(name) == CONSISTENT]
    others = f"; consistent equations are at {format_number(max(right), 2)}" if right else ""
    if 1e-300 < min(right, default=0.0) < 0.5 * max(right, default=0.0):
        others = f"; consistent equations are at {format_number(max(right), 2)} or less"
    return f"{gamma} = {listed(values)}{others}"


def _model_verdict(fit: FitResult, test: ModelTest) -> str:
    """State the verdict on a model whose equations cannot be tested one by one, since not every state is observed."""
    if test.contradicts(FALSE_ALARMS):
        return (
            "The model contradicts the data: its best trajectory leaves a pattern in the residuals "
            f"(p = {format_number(test.p, 2)})."
        )
    if test.p > FALSE_ALARMS:
        return f"The model is consistent with the data (p = {format_number(test.p, 2)})."
    if fit.method == "odin":
        return f"The model is consistent with the data: the residuals show no pattern (p > {FALSE_ALARMS:g})."
    return _NOT_JUDGED


def summary(fit: FitResult, truth: Truth = None) -> str:
    """Return the result as plain text of at most about 100 columns.

    Args:
        fit: the result.
        truth: true or published parameters by name, where there are such: another column, the reference.
    """
    parts = [printable(f"{fit.model}, fitted by {fit.method}: {_outcome(fit)}"), printable(headline(fit, "gamma"))]
    parts += [printable(f"Next: {step}.")] if (step := next_step(fit)) else []
    parts += [printable(f"Warning: {warning}") for warning in by_importance(fit.warnings)]
    tables = (parameter_table(fit, truth), solutions_table(fit), state_table(fit))
    parts += [line for table in tables if table is not None for line in ("", *table.lines())]
    parts += ["", *(printable(line) for line in facts(fit))]
    return wrapped(parts)


def wrapped(lines: Iterable[str]) -> str:
    """Join lines of text, and wrap those that are wider than TEXT_WIDTH."""
    return "\n".join(line if len(line) <= TEXT_WIDTH else textwrap.fill(line, TEXT_WIDTH) for line in lines) + "\n"


def summary_rich(fit: FitResult, truth: Truth = None) -> RenderableType:
    """The same as `summary` for a terminal with colours, to be printed by a rich Console."""
    from rich.console import Group
    from rich.text import Text

    colour = {"good": "bold green", "bad": "bold red", "unknown": "bold"}[tone(fit)]
    head = Text(printable(f"{fit.model}, fitted by {fit.method}: {_outcome(fit)}"))
    parts: list[RenderableType] = [head, Text(printable(headline(fit)), colour)]
    parts += [Text(printable(f"Next: {step}."))] if (step := next_step(fit)) else []
    parts += [Text(printable(f"Warning: {warning}"), "yellow") for warning in by_importance(fit.warnings)]
    tables = (parameter_table(fit, truth), solutions_table(fit), state_table(fit))
    parts += [Text(), *(rich_table(table) for table in tables if table is not None)]
    parts += [Text(printable(line), "dim") for line in facts(fit)]
    return Group(*parts)


def interval_facts(fit: FitResult) -> list[str]:
    """What kind the printed intervals are, and what is known about how often they hold the truth."""
    kind, found = preferred_intervals(fit)
    if not found:
        return []
    target = fit.sampled.target if fit.sampled is not None else "method"
    bands = " For initial values, bands of the states." if kind in ("likelihood", "profile") else ""
    lines = [f"{_KINDS[kind]}{bands}{_COVERAGE.get(target if kind == 'sample' else kind, '')}"]
    if fit.bootstrapped is not None and (failed := fit.bootstrapped.failed):
        n = failed + len(fit.bootstrapped.draws)
        lines.append(f"{failed} of {n} refits of the bootstrap failed and are left out.")
    if fit.sampled is not None:
        lines.append(f"Posterior ({fit.sampled.target}): {fit.sampled.status}.")
    return lines


def state_table(fit: FitResult) -> TextTable:
    """A row per state shown: γ and its verdict, the noise, and how far observations are from the estimate.

    Where not every state is observed as it is, a row per column and per hidden state.
    """
    residuals = np.concatenate([e.residuals for e in fit.experiments.values()])
    rmse = [float(np.sqrt(np.mean(r[np.isfinite(r)] ** 2))) if np.isfinite(r).any() else np.nan for r in residuals.T]
    observed = np.concatenate([np.isfinite(e.y) for e in fit.experiments.values()]).sum(0)
    if fit.noise:
        return _column_table(fit, rmse, observed.tolist())
    rows = []
    for k in states_to_show(fit, _ROWS):
        name = fit.state_names[k]
        gamma, sigma = fit.gamma.get(name, np.nan), fit.sigma.get(name, np.nan)
        verdict = fit.verdicts.get(name, "not judged")
        rows.append(
            (
                name,
                format_number(gamma, 2),
                verdict,
                format_number(sigma, 3),
                format_number(rmse[k], 3),
                str(observed[k]),
            )
        )
    return TextTable(("state", "gamma", "verdict", "noise sd", "residual RMSE", "observations"), tuple(rows))


def _column_table(fit: FitResult, rmse: Sequence[float], observed: Sequence[int]) -> TextTable:
    """What was observed, how it scatters, and what was not."""
    beyond = sum((e.limit != 0).sum(0) for e in fit.experiments.values() if e.limit is not None)
    beyond = np.broadcast_to(beyond, len(fit.columns))
    rows = []
    for m, name in enumerate(fit.columns):
        sd = fit.sigma.get(name, np.nan)
        level = format_number(sd, 3)
        if ends := fit.details.get("sigma_interval", {}).get(name):
            level = "{} ({} to {})".format(*format_with_error((sd, *ends), 0.1 * sd))
        if name in fit.details.get("by_row", ()):
            level = "by row"
        elif fit.noise[name] == "lognormal" and name in fit.sigma:
            level += " of the log"
        count = f"{observed[m]}, {beyond[m]} censored" if beyond[m] else str(observed[m])
        rows.append((name, fit.noise[name], level, format_number(rmse[m], 3), count))
    hidden = [name for name in fit.state_names if name not in fit.columns]
    rows += [(name, "hidden", "-", "-", "0") for name in hidden[: _ROWS - len(rows)]]
    return TextTable(("column", "distribution", "noise sd", "residual RMSE", "observations"), tuple(rows))


def stage_table(fit: FitResult) -> TextTable:
    """A row per stage: what it minimised, its likelihood, its time, how it ended."""
    rows = [
        (
            STAGES.get(name, name),
            format_number(s.objective),
            format_number(s.loglik),
            format_duration(s.seconds),
            s.note,
        )
        for name, s in fit.stages.items()
    ]
    return TextTable(("stage", "objective", "log-likelihood", "time", "how it ended"), tuple(rows))


def constant_table(fit: FitResult) -> TextTable | None:
    """A row per experiment with the inputs that have one value in each; None without any, or without its problem."""
    if (problem := attached_problem(fit)) is None:
        return None
    every = problem.data.experiments[:_ROWS]
    names = [n for n in problem.model.inputs if all(len(e.u[n][0]) == 1 for e in every)]
    rows = tuple(
        (label, *(format_number(e.u[n][1][0]) for n in names)) for label, e in zip(fit.experiments, every, strict=False)
    )
    return TextTable(("experiment", *names), rows) if names else None


def _agreement(starts: float, agreeing: float, elsewhere: float) -> str:
    """Say how many start points lead to the result, and how many to other solutions of the same likelihood."""
    if elsewhere:
        other = f"{elsewhere} to other solutions of the same likelihood"
        return f"{agreeing} of {starts} start points lead to this result, {other}."
    if not agreeing:
        return f"None of {starts} start points leads to this result by itself; later steps of the search do."
    return f"{agreeing} of {starts} start points lead to this result."


def facts(fit: FitResult) -> list[str]:
    """Return sentences on how the fit was found, as far as the method tells."""
    d, lines = fit.details, data_counts(fit)
    if d.get("stage_used") == "odin" and len(fit.stages) > 1:
        lines.append(
            "The estimate matches slopes (ODIN): no trajectory of the model gives a maximum of the likelihood."
        )
    if "starts" in d and "starts_agreeing" in d:
        lines.append(_agreement(d["starts"], d["starts_agreeing"], d.get("starts_at_alternatives", 0)))
    if names := d.get("assumed_positive"):
        lines.append(f"Assumed positive: {listed(abbreviate(names))} (write 'real {names[0]}' for any sign).")
    if len(fit.state_names) > _ROWS:
        many = f"Tables show {_ROWS} and pictures {MAX_PANELS} of {len(fit.state_names)} states"
        lines.append(f"{many}, those that contradict the data first; the other files and the fit itself have all.")
    if (count := initial_rows(fit)) > MAX_INITIAL_VALUES:
        lines.append(f"{MAX_INITIAL_VALUES} of {count} initial values are shown; states.csv has all.")
    lines += interval_facts(fit)
    if "seconds" in d:
        lines.append(f"Time taken: {time_taken(fit)}; seed {fit.seed}.")
    return lines


def time_taken(fit: FitResult) -> str:
    """How long it took, sampling included."""
    if fit.sampled is None or not np.isfinite(fit.sampled.seconds):
        return format_duration(fit.details["seconds"])
    parts = (fit.details["seconds"], fit.sampled.seconds)
    total, fitting, sampling = map(format_duration, (sum(parts), *parts))
    return f"{total}, {fitting} for the fit and {sampling} for sampling"


def data_counts(fit: FitResult) -> list[str]:
    """How many data stand against how many unknowns, what the likelihood is worth, and notes."""
    d = fit.details
    if not isinstance(d.get("observations"), Mapping) or "unknowns" not in d:
        return []
    n, k = sum(d["observations"].values()), d["unknowns"]
    unknowns = format_number(k, 3) if isinstance(k, float) else k
    line = f"{n} observations, {unknowns} unknowns (parameters, initial values, noise)"
    loglik = d.get("loglik", np.nan)
    if fit.uncertainty is not None and np.isfinite(loglik):
        criteria = (
            f"{name} {format_number(v, 5)}" for name, v in (("AIC", aic(loglik, k)), ("BIC", bic(loglik, k, n)))
        )
        line += f"; log-likelihood {format_number(loglik, 5)}, {', '.join(criteria)}"
    notes = (*d.get("unknown_notes", ()), *d.get("next_measurements", ()))
    return [f"{line}.", *(f"{words}." for words in notes)]


def tone(fit: FitResult) -> str:
    whole = ModelTest.of(fit.details.get("model_test"))
    if not fit.converged or CONTRADICTS in fit.verdicts.values() or whole.contradicts(FALSE_ALARMS):
        return "bad"
    if undetermined(fit):
        return "unknown"
    if fit.noise:
        return "good" if whole.p > FALSE_ALARMS or fit.method == "odin" else "unknown"
    return "good" if fit.verdicts and NOT_JUDGED not in fit.verdicts.values() else "unknown"
