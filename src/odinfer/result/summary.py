"""A fit in words: the headline, tables and facts, as text for terminals and for the report."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from odinfer.errors import Status, listed
from odinfer.judgement.equation_test import FALSE_ALARMS
from odinfer.judgement.verdicts import CONSISTENT, CONTRADICTS, NOT_JUDGED
from odinfer.result.figures import MOST, shown
from odinfer.style.text import WORDS, TextTable, duration, few, number, plain
from odinfer.uncertainty.results import BAND, Intervals, sample_intervals

if TYPE_CHECKING:
    from rich.console import RenderableType

    from odinfer.result.fit import Fit

Truth = Mapping[str, float] | None

_WIDTH = 100  # columns of text
_ROWS = 100  # states in a table
_MOST_INITIAL = 12  # initial values in a table
_KNOWN = 1e-5  # of a state's size: an error below it is that of the computation only
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
    if fit.noise:
        return _as_a_whole(fit, whole)
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


def _as_a_whole(fit: Fit, p: float) -> str:
    """What is said of a model whose equations cannot be judged one by one, as not every state is observed as it is."""
    if p <= FALSE_ALARMS:
        return (
            "The model as a whole contradicts the data: the best trajectory leaves a pattern in the residuals "
            f"(p = {number(p, 2)})."
        )
    if p > FALSE_ALARMS:
        return f"The model as a whole is consistent with the data (p = {number(p, 2)})."
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
            drawn.add_column(Text(title), justify="left" if i == 0 or title in WORDS else "right")
        for row in table.rows:
            # As Text: a name such as [red] is no markup.
            drawn.add_row(*(Text(plain(cell), "red" if cell == CONTRADICTS else "") for cell in row))
        parts.append(drawn)
    parts += [Text(plain(line), "dim") for line in facts(fit)]
    parts += [Text(plain(f"Warning: {warning}"), "yellow") for warning in fit.warnings]
    return Group(*parts)


def parameter_table(fit: Fit, truth: Truth = None) -> TextTable:
    """A row per parameter and initial value: the estimate, its interval, those of the stages, and the reference."""
    fixed = fit.details.get("fixed") or ()
    _, found = shown_intervals(fit)
    ends = ("95 % from", "to") if found else ()
    rows = []
    for name in fit.parameter_names:
        values = [*(stage.theta for stage in fit.stages.values()), *([truth] if truth else [])]
        pair = [number(v, 4) for v in found.get(name, (np.nan, np.nan))] if found else []
        numbers = [number(value.get(name, np.nan)) for value in (fit.theta, *values)]
        rows.append((f"{name} (fixed)" if name in fixed else name, numbers[0], *pair, *numbers[1:]))
    rows += _initial_rows(fit, bool(ends), bool(truth))
    stages = tuple(_STAGES.get(name, name) for name in fit.stages)
    return TextTable(("parameter", "estimate", *ends, *stages, *(["reference"] if truth else [])), tuple(rows))


def _given_once(fit: Fit) -> set[str]:
    """The states whose initial values are given and the same in all experiments."""
    starts = {(e.curve.t[0], *e.curve.x[0]) for e in fit.experiments.values() if len(e.curve.t)}
    if len({start[0] for start in starts}) != 1:
        return set()
    given = fit.details.get("given", ())
    return {s for k, s in enumerate(fit.state_names, 1) if s in given and len({start[k] for start in starts}) == 1}


def _initial_rows(fit: Fit, with_ends: bool, with_truth: bool) -> list[tuple[str, ...]]:
    """A row per state and experiment where its curve starts; the intervals are the bands there.

    Initial values that are parameters have rows as such; those that are given are said to be.
    """
    rows: list[tuple[str, ...]] = []
    kind, _ = shown_intervals(fit)
    given, several = fit.details.get("given", ()), len(fit.experiments) > 1
    everywhere = _given_once(fit) if several else set()
    for i, (label, e) in enumerate(fit.experiments.items()):
        if not len(e.t):
            continue
        # What is estimated where: at the first observation, or at the time for which initial values are stated.
        begin, (x, sd) = e.t[0], (v[0] for v in e.estimate())
        if fit.noise:
            begin, x, sd = e.curve.t[0], e.curve.x[0], e.curve.sd[0]
        low, high = x - BAND * sd, x + BAND * sd
        if kind == "bootstrap" and fit.bootstrapped is not None and fit.bootstrapped.t and begin == e.t[0]:
            low, high = (v[0] for v in fit.bootstrapped.band(i))
        for k in shown(fit, _MOST_INITIAL):
            state = fit.state_names[k]
            if {f"{state}(0)", f"{state}(0)[{label}]"} & {*fit.parameter_names}:
                continue
            if state in everywhere and i:
                continue
            name = f"{state}({number(begin)})" + (f", {label}" if several and state not in everywhere else "")
            ends = low[k], high[k]
            if kind == "sample" and fit.posterior is not None:
                draws = fit.posterior.x0.get(f"{label}:{state}" if several else state)
                ends = sample_intervals({"x0": draws})["x0"] if draws is not None else ends
            pair = [number(float(v), 4) for v in ends] if with_ends else []
            if state in given:
                known = sd[k] < _KNOWN * np.abs(e.curve.x[:, k]).max()
                name, pair = f"{name} (given)", ["-"] * len(pair) if known else pair
            stages = [number(float(x[k] if fit.noise else s.x[i][0, k])) for s in fit.stages.values()]
            rows.append((name, number(float(x[k])), *pair, *stages, *(["-"] if with_truth else [])))
    return rows[:_MOST_INITIAL]


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
    bands = " Those of initial values are the bands of the states." if kind in ("likelihood", "profile") else ""
    lines = [f"Intervals: {_KINDS[kind]}, 95 %.{bands}{_COVERAGE.get(target if kind == 'sample' else kind, '')}"]
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
        level = number(fit.sigma.get(name, np.nan), 3)
        if ends := fit.details.get("sigma_interval", {}).get(name):
            level += f" ({number(ends[0], 3)} to {number(ends[1], 3)})"
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
        (_STAGES.get(name, name), number(s.objective), number(s.loglik), duration(s.seconds), s.note)
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
    count = len(fit.state_names) * sum(len(e.t) > 0 for e in fit.experiments.values())
    if count > _MOST_INITIAL:
        lines.append(f"{_MOST_INITIAL} of {count} initial values are shown; states.csv has all.")
    if isinstance(test := d.get("model_test"), Mapping):
        p, draws = number(test.get("p", np.nan), 2), test.get("draws")
        lines.append(
            f"A right model leaves as much of a pattern in the residuals with probability {p} ({draws} simulations)."
        )
    lines += interval_facts(fit)
    if "seconds" in d:
        lines.append(f"Time taken: {duration(d['seconds'])}; seed {fit.seed}.")
    return lines


def tone(fit: Fit) -> str:
    whole = fit.details.get("model_test", {}).get("p", np.nan)
    if not fit.converged or CONTRADICTS in fit.verdicts.values() or whole <= FALSE_ALARMS:
        return "bad"
    if fit.noise:
        return "good" if whole > FALSE_ALARMS or fit.method == "odin" else "unknown"
    return "good" if fit.verdicts and NOT_JUDGED not in fit.verdicts.values() else "unknown"
