"""A fit in words: the headline, tables and facts, as text for terminals and for the report."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from odinfer.errors import Status, listed
from odinfer.judgement.equation_test import FALSE_ALARMS
from odinfer.judgement.verdicts import CONSISTENT, CONTRADICTS, NOT_JUDGED
from odinfer.result.figures import MOST, shown
from odinfer.style.text import TextTable, few, number, plain
from odinfer.uncertainty.results import Intervals

if TYPE_CHECKING:
    from rich.console import RenderableType

    from odinfer.result.fit import Fit

Truth = Mapping[str, float] | None

_WIDTH = 100  # columns of text
_ROWS = 100  # states in a table
_STAGES = {"odin": "ODIN stage", "refined": "refined stage"}
_KINDS = {"likelihood": "likelihood", "profile": "profile likelihood", "bootstrap": "bootstrap", "sample": "posterior"}
# What has to be said beside "95 %" about a kind, or the target of a posterior: the measurements of docs/uncertainty.md.
_COVERAGE = {
    "trajectory": " Without priors of your own they held the truth in 91 to 96 % of the cases measured.",
    "odin": " Posteriors of ODIN's states hold the truth less often than that: in 58 to 97 % of the few measured.",
    "method": " How often those of this method hold the truth has not been measured.",
}


def headline(fit: Fit, gamma: str = "γ") -> str:
    """The result in a sentence: whether it can be used, and which equations contradict the data."""
    if not fit.converged:
        return f"Do not rely on these numbers: the fit {fit.status}."
    if fit.method == "gpr":
        return "The data were smoothed; the equations played no part."
    wrong = [name for name in fit.state_names if fit.verdicts.get(name) == CONTRADICTS]
    whole = fit.details.get("model_test", {}).get("p", np.nan)
    if not wrong and whole <= FALSE_ALARMS:
        return (
            "No equation by itself contradicts the data, but all together do: "
            f"the best trajectory leaves a pattern in the residuals (p = {number(whole, 2)})."
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


def summary(fit: Fit, truth: Truth = None) -> str:
    """The result as plain text of at most about 100 columns.

    Args:
        fit: the result.
        truth: true parameters by name, where they are known: another column.
    """
    parts = [plain(f"{fit.model}, fitted by {fit.method}: {fit.status}"), plain(headline(fit, "gamma")), ""]
    parts += [*parameter_table(fit, truth).lines(), "", *state_table(fit).lines(), "", *map(plain, facts(fit))]
    parts += [plain(f"Warning: {warning}") for warning in fit.warnings]
    # Tables are narrow enough by themselves; names that are not do not make sentences run on.
    return "\n".join(line if len(line) <= _WIDTH else textwrap.fill(line, _WIDTH) for line in parts) + "\n"


def summary_rich(fit: Fit, truth: Truth = None) -> RenderableType:
    """The same as `summary` for a terminal with colours, to be printed by a rich Console."""
    from rich import box
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    colour = {"good": "bold green", "bad": "bold red", "unknown": "bold"}[tone(fit)]
    head = Text(plain(f"{fit.model}, fitted by {fit.method}: {fit.status}"))
    parts: list[RenderableType] = [head, Text(plain(headline(fit)), colour), Text()]
    for table in (parameter_table(fit, truth), state_table(fit)):
        drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for i, title in enumerate(table.header):
            drawn.add_column(Text(title), justify="left" if i == 0 or title == "verdict" else "right")
        for row in table.rows:
            # As Text: a name such as [red] is no markup.
            drawn.add_row(*(Text(plain(cell), "red" if cell == CONTRADICTS else "") for cell in row))
        parts.append(drawn)
    parts += [Text(plain(line), "dim") for line in facts(fit)]
    parts += [Text(plain(f"Warning: {warning}"), "yellow") for warning in fit.warnings]
    return Group(*parts)


def parameter_table(fit: Fit, truth: Truth = None) -> TextTable:
    """A row per parameter: the final estimate with its interval, those of the stages, and the truth if it is given."""
    fixed = fit.details.get("fixed") or ()
    _, found = shown_intervals(fit)
    ends = ("95 % from", "to") if found else ()
    rows = []
    for name in fit.parameter_names:
        values = [*(stage.theta for stage in fit.stages.values()), *([truth] if truth else [])]
        pair = [number(v, 4) for v in found.get(name, (np.nan, np.nan))] if found else []
        numbers = [number(value.get(name, np.nan)) for value in (fit.theta, *values)]
        rows.append((f"{name} (fixed)" if name in fixed else name, numbers[0], *pair, *numbers[1:]))
    stages = tuple(_STAGES.get(name, name) for name in fit.stages)
    return TextTable(("parameter", "estimate", *ends, *stages, *(["true"] if truth else [])), tuple(rows))


def shown_intervals(fit: Fit) -> tuple[str, Intervals]:
    """The 95 % intervals to print and their kind: what was asked for, or the default; empty without any."""
    kinds = fit.intervals_by_kind()
    for kind in ("sample", "bootstrap", "profile", "likelihood"):
        if kind in kinds:
            return kind, kinds[kind]
    return "", {}


def interval_facts(fit: Fit) -> list[str]:
    """What kind the printed intervals are, and what is known about how often they hold the truth."""
    kind, found = shown_intervals(fit)
    if not found:
        return []
    target = fit.posterior.target if fit.posterior is not None else "method"
    lines = [f"Intervals: {_KINDS[kind]}, 95 %.{_COVERAGE.get(target if kind == 'sample' else kind, '')}"]
    if fit.bootstrapped is not None and (failed := fit.bootstrapped.failed):
        n = failed + len(fit.bootstrapped.draws)
        lines.append(f"{failed} of {n} refits of the bootstrap found no trajectory and are left out.")
    if fit.posterior is not None:
        lines.append(f"Posterior ({fit.posterior.target}): {fit.posterior.status}.")
    return lines


def state_table(fit: Fit) -> TextTable:
    """A row per state shown: γ and its verdict, the noise, and how far observations are from the estimate."""
    residuals = np.concatenate([e.y - e.estimate()[0] for e in fit.experiments.values()])
    observed = np.concatenate([np.isfinite(e.y) for e in fit.experiments.values()]).sum(0)
    rows = []
    for k in shown(fit, _ROWS):
        name = fit.state_names[k]
        r = residuals[np.isfinite(residuals[:, k]), k]
        rmse = float(np.sqrt(np.mean(r**2))) if len(r) else np.nan
        gamma, sigma = fit.gamma.get(name, np.nan), fit.sigma.get(name, np.nan)
        verdict = fit.verdicts.get(name, "not judged")
        rows.append((name, number(gamma, 2), verdict, number(sigma, 3), number(rmse, 3), str(observed[k])))
    return TextTable(("state", "gamma", "verdict", "noise sigma", "residual RMSE", "observations"), tuple(rows))


def stage_table(fit: Fit) -> TextTable:
    """A row per stage: what it minimised, its likelihood, its time, how it ended."""
    rows = [
        (_STAGES.get(name, name), number(s.objective), number(s.loglik), f"{s.seconds:.2g} s", s.note)
        for name, s in fit.stages.items()
    ]
    return TextTable(("stage", "objective", "log-likelihood", "time", "how it ended"), tuple(rows))


def facts(fit: Fit) -> list[str]:
    """Sentences on how the fit was found, as far as the method tells."""
    d, lines = fit.details, []
    if "stage_used" in d and len(fit.stages) > 1:
        lines.append(f"The estimate is that of the {_STAGES.get(d['stage_used'], d['stage_used'])}.")
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
    if isinstance(test := d.get("model_test"), Mapping):
        p, draws = number(test.get("p", np.nan), 2), test.get("draws")
        lines.append(
            f"A right model leaves as much of a pattern in the residuals with probability {p} ({draws} simulations)."
        )
    lines += interval_facts(fit)
    if "seconds" in d:
        lines.append(f"Time taken: {d['seconds']:.2g} s; seed {fit.seed}.")
    return lines


def tone(fit: Fit) -> str:
    whole = fit.details.get("model_test", {}).get("p", np.nan)
    if not fit.converged or CONTRADICTS in fit.verdicts.values() or whole <= FALSE_ALARMS:
        return "bad"
    return "good" if fit.verdicts and NOT_JUDGED not in fit.verdicts.values() else "unknown"
