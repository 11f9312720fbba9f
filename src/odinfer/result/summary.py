"""A fit in words: the headline, tables and facts, as text for terminals and for the report."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from odinfer.diagnostics.equation_test import FALSE_ALARMS
from odinfer.diagnostics.information_criteria import aic, bic
from odinfer.diagnostics.model_test import ModelTest
from odinfer.diagnostics.verdicts import CONSISTENT, CONTRADICTS, NOT_JUDGED
from odinfer.errors import Status, listed
from odinfer.result.estimates import MOST_INITIAL, STAGES, Truth, parameter_table, shown_intervals
from odinfer.result.figures.marks import MOST, shown
from odinfer.style.tables import drawn
from odinfer.style.text import TextTable, aligned, duration, few, number, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from odinfer.result.fit import Fit

_WIDTH = 100  # columns of text
_ROWS = 100  # states in a table
_KINDS = {
    "likelihood": "Intervals: likelihood, 95 %.",
    "profile": "Intervals: profile likelihood, 95 %.",
    "bootstrap": "Intervals: bootstrap, 95 %.",
    "sample": "Credible intervals: of the posterior, 95 %.",
}
# What has to be said beside "95 %" about a kind, or the target of a posterior: the measurements of docs/uncertainty.md.
_COVERAGE = {
    "trajectory": " Without priors of your own they held the truth in 91 to 96 % of the cases measured.",
    "odin": " Posteriors of ODIN's states hold the truth less often than that: in 58 to 97 % of the few measured.",
    "method": " How often those of this method hold the truth has not been measured.",
}


def undetermined(fit: Fit) -> bool:
    """Decide whether a fit has no more observations than unknowns, so that nothing about it can be tested."""
    return bool(sum(fit.details.get("observations", {}).values()) <= fit.details.get("unknowns", -1))


def headline(fit: Fit, gamma: str = "γ") -> str:
    """The result in a sentence: whether it can be used, and which equations contradict the data."""
    if not fit.converged:
        return f"Do not rely on these numbers: the fit {fit.status}."
    if fit.method != "gpr" and undetermined(fit):
        observed, unknowns = sum(fit.details["observations"].values()), fit.details["unknowns"]
        return (
            f"Not determined: {observed:g} observations for {unknowns} unknowns (parameters, initial values, noise). "
            "Other values fit as well; add data, fix parameters or give priors."
        )
    if fit.method == "gpr":
        return "The data were smoothed; the equations played no part."
    wrong = [name for name in fit.state_names if fit.verdicts.get(name) == CONTRADICTS]
    whole = ModelTest.of(fit.details.get("model_test"))
    if fit.noise:
        return _as_a_whole(fit, whole)
    if not wrong and whole.contradicts(FALSE_ALARMS):
        return (
            "No equation by itself contradicts the data, but all together do: "
            f"the best trajectory leaves a pattern in the residuals (p = {number(whole.p, 2)})."
        )
    if not wrong and fit.status == Status.ODIN_KEPT.value:
        return "No trajectory of the model that was found follows the data; no equation is shown to contradict them."
    if not wrong:
        judged = all(fit.verdicts.get(name, NOT_JUDGED) != NOT_JUDGED for name in fit.state_names)
        return "All equations are consistent with the data." if judged else "The equations were fitted but not judged."
    values = [number(fit.gamma.get(name, np.nan), 2) for name in wrong[:5]]
    right = [fit.gamma.get(name, np.nan) for name in fit.state_names if fit.verdicts.get(name) == CONSISTENT]
    others = f"; consistent equations are at {number(max(right), 2)}" if right else ""
    if 1e-300 < min(right, default=0.0) < 0.5 * max(right, default=0.0):
        others = f"; consistent equations are at {number(max(right), 2)} or less"
    names = few(wrong)
    subject = "The equation for" if len(wrong) == 1 else "The equations for"
    verb = "contradicts" if len(wrong) == 1 else "contradict"
    return f"{subject} {listed(names)} {verb} the data ({gamma} = {listed(values)}{others})."


def _as_a_whole(fit: Fit, test: ModelTest) -> str:
    """What is said of a model whose equations cannot be judged one by one, as not every state is observed as it is."""
    if test.contradicts(FALSE_ALARMS):
        return (
            "The model as a whole contradicts the data: the best trajectory leaves a pattern in the residuals "
            f"(p = {number(test.p, 2)})."
        )
    if test.p > FALSE_ALARMS:
        return f"The model as a whole is consistent with the data (p = {number(test.p, 2)})."
    if fit.method == "odin":
        return "The model as a whole is consistent with the data: no pattern is left in the residuals."
    return "The equations were fitted but not judged."


def summary(fit: Fit, truth: Truth = None) -> str:
    """The result as plain text of at most about 100 columns.

    Args:
        fit: the result.
        truth: true or published parameters by name, where there are such: another column, the reference.
    """
    parts = [plain(f"{fit.model}, fitted by {fit.method}: {fit.status}"), plain(headline(fit, "gamma")), ""]
    parts += [*parameter_table(fit, truth).lines(), "", *state_table(fit).lines(), "", *map(plain, facts(fit))]
    parts += [plain(f"Warning: {warning}") for warning in fit.warnings]
    # Tables are narrow enough by themselves; names that are not do not make sentences run on.
    return "\n".join(line if len(line) <= _WIDTH else textwrap.fill(line, _WIDTH) for line in parts) + "\n"


def summary_rich(fit: Fit, truth: Truth = None) -> RenderableType:
    """The same as `summary` for a terminal with colours, to be printed by a rich Console."""
    from rich.console import Group
    from rich.text import Text

    colour = {"good": "bold green", "bad": "bold red", "unknown": "bold"}[tone(fit)]
    head = Text(plain(f"{fit.model}, fitted by {fit.method}: {fit.status}"))
    parts: list[RenderableType] = [head, Text(plain(headline(fit)), colour), Text()]
    parts += [drawn(parameter_table(fit, truth)), drawn(state_table(fit))]
    parts += [Text(plain(line), "dim") for line in facts(fit)]
    parts += [Text(plain(f"Warning: {warning}"), "yellow") for warning in fit.warnings]
    return Group(*parts)


def interval_facts(fit: Fit) -> list[str]:
    """What kind the printed intervals are, and what is known about how often they hold the truth."""
    kind, found = shown_intervals(fit)
    if not found:
        return []
    target = fit.posterior.target if fit.posterior is not None else "method"
    bands = " Those of initial values are the bands of the states." if kind in ("likelihood", "profile") else ""
    lines = [f"{_KINDS[kind]}{bands}{_COVERAGE.get(target if kind == 'sample' else kind, '')}"]
    if fit.bootstrapped is not None and (failed := fit.bootstrapped.failed):
        n = failed + len(fit.bootstrapped.draws)
        lines.append(f"{failed} of {n} refits of the bootstrap found no trajectory and are left out.")
    if fit.posterior is not None:
        lines.append(f"Posterior ({fit.posterior.target}): {fit.posterior.status}.")
    return lines


def state_table(fit: Fit) -> TextTable:
    """A row per state shown: γ and its verdict, the noise, and how far observations are from the estimate.

    Where not every state is observed as it is, a row per column and per hidden state.
    """
    residuals = np.concatenate([e.residuals for e in fit.experiments.values()])
    rmse = [float(np.sqrt(np.mean(r[np.isfinite(r)] ** 2))) if np.isfinite(r).any() else np.nan for r in residuals.T]
    observed = np.concatenate([np.isfinite(e.y) for e in fit.experiments.values()]).sum(0)
    if fit.noise:
        return _column_table(fit, rmse, observed.tolist())
    rows = []
    for k in shown(fit, _ROWS):
        name = fit.state_names[k]
        gamma, sigma = fit.gamma.get(name, np.nan), fit.sigma.get(name, np.nan)
        verdict = fit.verdicts.get(name, "not judged")
        rows.append((name, number(gamma, 2), verdict, number(sigma, 3), number(rmse[k], 3), str(observed[k])))
    return TextTable(("state", "gamma", "verdict", "noise sigma", "residual RMSE", "observations"), tuple(rows))


def _column_table(fit: Fit, rmse: Sequence[float], observed: Sequence[int]) -> TextTable:
    """What was observed, how it scatters, and what was not."""
    beyond = sum((e.limit != 0).sum(0) for e in fit.experiments.values() if e.limit is not None)
    beyond = np.broadcast_to(beyond, len(fit.columns))
    rows = []
    for m, name in enumerate(fit.columns):
        sd = fit.sigma.get(name, np.nan)
        level = number(sd, 3)
        if ends := fit.details.get("sigma_interval", {}).get(name):
            level = "{} ({} to {})".format(*aligned((sd, *ends), 0.1 * sd))
        if name in fit.details.get("by_row", ()):
            level = "by row"
        elif fit.noise[name] == "lognormal" and name in fit.sigma:
            level += " of the log"
        count = f"{observed[m]}, {beyond[m]} censored" if beyond[m] else str(observed[m])
        rows.append((name, fit.noise[name], level, number(rmse[m], 3), count))
    hidden = [name for name in fit.state_names if name not in fit.columns]
    rows += [(name, "hidden", "-", "-", "0") for name in hidden[: _ROWS - len(rows)]]
    return TextTable(("column", "distribution", "noise sd", "residual RMSE", "observations"), tuple(rows))


def stage_table(fit: Fit) -> TextTable:
    """A row per stage: what it minimised, its likelihood, its time, how it ended."""
    rows = [
        (STAGES.get(name, name), number(s.objective), number(s.loglik), duration(s.seconds), s.note)
        for name, s in fit.stages.items()
    ]
    return TextTable(("stage", "objective", "log-likelihood", "time", "how it ended"), tuple(rows))


def constant_table(fit: Fit) -> TextTable | None:
    """A row per experiment with the inputs that have one value in each; None without any, or without its problem."""
    if fit.problem is None:
        return None
    every = fit.problem.data.experiments[:_ROWS]
    names = [n for n in fit.problem.model.inputs if all(len(e.u[n][0]) == 1 for e in every)]
    rows = tuple(
        (label, *(number(e.u[n][1][0]) for n in names)) for label, e in zip(fit.experiments, every, strict=False)
    )
    return TextTable(("experiment", *names), rows) if names else None


def facts(fit: Fit) -> list[str]:
    """Sentences on how the fit was found, as far as the method tells."""
    d, lines = fit.details, amounts(fit)
    if "stage_used" in d and len(fit.stages) > 1:
        lines.append(f"The estimate is that of the {STAGES.get(d['stage_used'], d['stage_used'])}.")
    if "starts" in d and "starts_agreeing" in d:
        lines.append(f"{d['starts_agreeing']} of {d['starts']} starts lead to this result.")
    if isinstance(d.get("kernels"), Mapping):
        kinds: dict[str, list[str]] = {}
        for state, kernel in d["kernels"].items():
            kinds.setdefault(str(kernel), []).append(state)
        each = (k if len(kinds) == 1 else f"{k} for {listed(few(names))}" for k, names in kinds.items())
        lines.append(f"Kernel: {', '.join(each)}.")
    if len(fit.state_names) > _ROWS:
        many = f"Tables show {_ROWS} and pictures {MOST} of {len(fit.state_names)} states"
        lines.append(f"{many}, those that contradict the data first; the other files and the fit itself have all.")
    count = len(fit.state_names) * sum(len(e.t) > 0 for e in fit.experiments.values())
    if count > MOST_INITIAL:
        lines.append(f"{MOST_INITIAL} of {count} initial values are shown; states.csv has all.")
    if isinstance(test := d.get("model_test"), Mapping):
        p, draws = number(test.get("p", np.nan), 2), test.get("draws")
        known = ModelTest.of(test)
        faint = ", but it is too faint to count" if known.faint and known.p <= FALSE_ALARMS else ""
        lines.append(
            f"A right model leaves as much of a pattern in the residuals with probability {p} ({draws} simulations)"
            f"{faint}."
        )
    lines += interval_facts(fit)
    if "seconds" in d:
        lines.append(f"Time taken: {taken(fit)}; seed {fit.seed}.")
    return lines


def taken(fit: Fit) -> str:
    """How long it took, sampling included."""
    if fit.posterior is None or not np.isfinite(fit.posterior.seconds):
        return duration(fit.details["seconds"])
    parts = (fit.details["seconds"], fit.posterior.seconds)
    return f"{duration(sum(parts))}, {duration(parts[0])} for the fit and {duration(parts[1])} for sampling"


def amounts(fit: Fit) -> list[str]:
    """How many data stand against how many unknowns, and what the likelihood is worth after that."""
    d = fit.details
    if not isinstance(d.get("observations"), Mapping) or "unknowns" not in d:
        return []
    n, k = sum(d["observations"].values()), d["unknowns"]
    line = f"{n} observations, {k} unknowns (parameters, initial values, noise)"
    loglik = d.get("loglik", np.nan)
    if fit.uncertainty is not None and np.isfinite(loglik):
        criteria = (f"{name} {number(v, 5)}" for name, v in (("AIC", aic(loglik, k)), ("BIC", bic(loglik, k, n))))
        line += f"; log-likelihood {number(loglik, 5)}, {', '.join(criteria)}"
    return [f"{line}."]


def tone(fit: Fit) -> str:
    whole = ModelTest.of(fit.details.get("model_test"))
    if not fit.converged or CONTRADICTS in fit.verdicts.values() or whole.contradicts(FALSE_ALARMS):
        return "bad"
    if undetermined(fit):
        return "unknown"
    if fit.noise:
        return "good" if whole.p > FALSE_ALARMS or fit.method == "odin" else "unknown"
    return "good" if fit.verdicts and NOT_JUDGED not in fit.verdicts.values() else "unknown"
