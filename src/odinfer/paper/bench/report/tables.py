"""Tables of a grid's results beside the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.diagnostics.verdicts import CONTRADICTS
from odinfer.paper.bench.compute import from_json, plot_times
from odinfer.paper.bench.report.results import (
    Record,
    Results,
    Summary,
    is_failed,
    outcome_entry,
    outcome_values,
    quartiles,
    summarise,
)
from odinfer.paper.bench.runs import LIMIT
from odinfer.paper.systems import system_of
from odinfer.parallel.store import canonical
from odinfer.style.text import format_number

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ReportTable:
    """For people: a header and rows of text, whose lines after the first are small; for machines: columns."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    columns: Mapping[str, Sequence[Any]]
    note: str = ""


def new_columns(names: str) -> dict[str, list[Any]]:
    """Empty columns from their names, separated by spaces."""
    return {name: [] for name in names.split()}


def append_row(columns: Mapping[str, list[Any]], entry: Sequence[Any]) -> None:
    """A row to columns."""
    for column, value in zip(columns.values(), entry, strict=True):
        column.append(value)


def format_summary(s: Summary, planned: int | None = None) -> str:
    """Median and quartiles, and below what one must know about them."""
    if math.isnan(s.median):
        return "-"
    lines = [
        format_number(s.median, 3),
        f"{format_number(s.low, 3)}–{format_number(s.high, 3)}",
        ", ".join(trouble_counts(s, planned)),
    ]
    return "\n".join(filter(None, lines))


def plus_minus(median: float, sd: float) -> str:
    """Median ± standard deviation; one that is rounding error is zero."""
    return f"{format_number(median, 3)} ± {format_number(0.0 if sd < 1e-9 * abs(median) else sd, 2)}"


def trouble_counts(s: Summary, planned: int | None = None) -> list[str]:
    """What one must know about quartiles: fewer draws than others have, and runs that did not end well."""
    words = [f"{s.draws} draws"] if planned is not None and s.draws < planned else []
    words += [f"{s.failed} failed"] if s.failed else []
    words += [f"{s.unconverged} not converged"] if s.unconverged else []
    return words


def quantile_table(results: Results, name: str, title: str, role: str, key: str, note: str = "") -> ReportTable:
    """Settings down, methods across: median and quartiles of one entry of the outcomes."""
    methods, settings = results.methods(role), results.settings()
    authors = results.grid.report.get("authors", {}).get(key, {}) if role != "also" else {}
    most = max((len(r) for _, r in results.cells()), default=0)
    columns = new_columns("setting method draws failed not_converged q25 median q75")
    rows = []
    for setting in settings:
        row = [setting]
        for method in methods:
            s = summarise(results.at(setting, method), outcome_entry(key))
            row.append(format_summary(s, most))
            append_row(columns, (setting, method, *s[:6]))
        if authors:
            row.append(format_number(authors[setting], 3) if setting in authors else "-")
        rows.append(tuple(row))
    header = ("setting", *methods.values(), *(["authors' program"] if authors else []))
    return ReportTable(name, title, header, tuple(rows), columns, note)


def states_of(results: Results, setting: str) -> tuple[str, ...]:
    """States of a setting; none where there are too many to show."""
    names = system_of(canonical(results.case(setting).case.spec)).model.states
    return names if len(names) <= 20 else ()


def statewise_table(results: Results) -> ReportTable:
    """The paper's trajectory error of every state."""
    methods = results.methods("compared")
    columns = new_columns("setting state method q25 median q75")
    rows = []
    for setting in results.settings():
        for state in states_of(results, setting):
            row = [f"{setting}: {state}"]
            for method in methods:
                s = summarise(results.at(setting, method), outcome_entry("trmses_paper", state))
                row.append(format_summary(s))
                append_row(columns, (setting, state, method, s.low, s.median, s.high))
            rows.append(tuple(row))
    title = "Trajectory error of every state (paper's convention)"
    return ReportTable("2_trmse_states", title, ("state", *methods.values()), tuple(rows), columns)


def limit_table(results: Results) -> ReportTable:
    """How far ODIN's two stages are from maximum likelihood started at the truth, draw by draw."""
    columns = new_columns("setting draws odin_stage default limit ratio worse_likelihood")
    for setting in results.settings():
        limits = {r["run"]["seed"]: r for r in results.at(setting, LIMIT) if not is_failed(r)}
        pairs = [(r, limits[r["run"]["seed"]]) for r in results.at(setting, "odin") if r["run"]["seed"] in limits]
        if not pairs:
            continue
        ours, best = (quartiles(outcome_values(v, outcome_entry("trmse")))[1] for v in zip(*pairs, strict=True))
        stage = quartiles(
            outcome_values((r for r, _ in pairs), lambda o: o.get("stages", {}).get("odin", {}).get("trmse"))
        )
        worse = sum(not _objective(r) <= from_json(b["outcome"].get("objective")) + 1e-2 for r, b in pairs)
        append_row(columns, (setting, len(pairs), stage[1], ours, best, ours / best if best else math.nan, worse))
    rows = tuple(
        (str(row[0]), str(row[1]), *(format_number(v, 3) for v in row[2:6]), str(row[6]))
        for row in zip(*columns.values(), strict=True)
    )
    header = ("setting", "draws", "ODIN stage", "default fit", "limit", "default / limit", "draws worse than limit")
    note = "Medians of trmse; the last column counts draws in which the default fit has a lower likelihood."
    return ReportTable("2_limit", "The statistical limit", header, rows, columns, note)


def _objective(record: Record) -> float:
    stages = record["outcome"].get("stages", {})
    return from_json(stages["refined"].get("objective")) if "refined" in stages else math.inf


def seconds_table(results: Results) -> ReportTable:
    """Run times: median ± standard deviation, ours and the paper's."""
    methods = {**results.methods("compared"), **results.methods("also"), **results.methods("states")}
    printed = results.grid.report.get("seconds", {})
    columns = new_columns("setting method draws median sd median_cpu paper_median paper_sd")
    rows = []
    for setting in results.settings():
        row = [setting]
        for method in methods:
            records = results.at(setting, method)
            wall, cpu = (np.array([from_json(r["timing"][n]) for r in records]) for n in ("seconds", "cpu"))
            _, median, _, sd = quartiles(wall)
            theirs = printed.get(method, {}).get(setting, (math.nan, math.nan))
            row.append("-" if not records else plus_minus(median, sd))
            if not math.isnan(theirs[0]):
                row[-1] += f"\npaper: {theirs[0]:g} ± {theirs[1]:g}"
            append_row(columns, (setting, method, len(records), median, sd, quartiles(cpu)[1], *theirs))
        rows.append(tuple(row))
    note = "Seconds of wall time per fit; what a worker compiles in its first fit of a kind is part of the deviation."
    return ReportTable("4_run_times", "Run times", ("setting", *methods.values()), tuple(rows), columns, note)


def parameter_table(results: Results) -> ReportTable:
    """Estimates of chosen parameters over the draws, beside the truth."""
    methods = results.methods("compared")
    columns = new_columns("setting parameter truth method draws failed not_converged q25 median q75")
    rows = []
    for setting, parameter, truth in chosen_parameters(results):
        row = [f"{setting}: {parameter}", format_number(truth, 3)]
        for method in methods:
            s = summarise(results.at(setting, method), outcome_entry("theta", parameter))
            row.append(format_summary(s))
            append_row(columns, (setting, parameter, truth, method, *s[:6]))
        rows.append(tuple(row))
    header = ("parameter", "truth", *methods.values())
    return ReportTable("5_parameters", "Parameter estimates", header, tuple(rows), columns)


def chosen_parameters(results: Results) -> list[tuple[str, str, float]]:
    """Setting, parameter and truth, as the grid chooses; all of them if it does not."""
    wanted = results.grid.report.get("parameters")
    found = []
    for setting in results.settings():
        case = results.case(setting).case
        theta = system_of(canonical(case.spec)).theta
        for name in theta if wanted is None else wanted.get(case.name, ()):
            if name in theta:
                found.append((setting, name, theta[name]))
    return found


# --- median trajectories


class QuantileBand(NamedTuple):
    """Quantiles over draws (T, K) at times t (T,), the true states (T, K), and how many draws there are."""

    t: Array
    truth: Array
    low: Array
    median: Array
    high: Array
    draws: int


def quantile_band(records: list[Record]) -> QuantileBand | None:
    """Of the trajectories that a method's estimates give; what blew up counts as far away. None without any."""
    drawn = [r["outcome"]["trajectory"] for r in records if "trajectory" in r["outcome"]]
    if not drawn:
        return None
    system = system_of(canonical(records[0]["run"]["system"]))
    t = plot_times(system)
    kept = [d for d in drawn if all(len(d.get(s, ())) == len(t) for s in system.model.states)]
    if not kept:
        return None
    x = np.array([[[from_json(v) for v in draw[s]] for s in system.model.states] for draw in kept])
    x = np.where(np.isfinite(x), x, np.inf)
    # Nearest ranks: no interpolation between a number and infinity.
    low, median, high = np.quantile(x, (0.25, 0.5, 0.75), axis=0, method="inverted_cdf").swapaxes(1, 2)
    return QuantileBand(t, system.states(t), low, median, high, len(kept))


def quantile_bands(results: Results, setting: str) -> dict[str, QuantileBand]:
    """By method label."""
    found = {label: quantile_band(results.at(setting, name)) for name, label in results.methods("compared").items()}
    return {label: b for label, b in found.items() if b is not None}


def trajectory_table(results: Results) -> ReportTable:
    """How far the median trajectory is from the truth, and how wide its band is."""
    methods = results.methods("compared")
    columns = new_columns("setting method draws time state truth q25 median q75")
    rows = []
    for setting in results.settings():
        row, found = [setting], quantile_bands(results, setting)
        for label in methods.values():
            b = found.get(label)
            row.append("-" if b is None else _band_text(b))
            if b is not None:
                states = system_of(canonical(results.case(setting).case.spec)).model.states
                for k, state in enumerate(states):
                    for i, t in enumerate(b.t):
                        numbers = (b.truth[i, k], b.low[i, k], b.median[i, k], b.high[i, k])
                        append_row(columns, (setting, label, b.draws, t, state, *numbers))
        rows.append(tuple(row))
    note = "Root mean square distance of the median trajectory from the truth; below it the mean width of the band."
    return ReportTable(
        "3_trajectories", "Median trajectories", ("setting", *methods.values()), tuple(rows), columns, note
    )


def _band_text(b: QuantileBand) -> str:
    distance = np.sqrt(np.mean((b.median - b.truth) ** 2))
    return f"{format_number(float(distance), 2)}\nband {format_number(float(np.mean(b.high - b.low)), 2)}"


# --- marginal distributions


class Marginal(NamedTuple):
    """One sample rollout: quantiles (Q,) of a parameter's draws, and their moments."""

    setting: str
    method: str
    parameter: str
    seed: int
    quantiles: Array
    moments: dict[str, float]
    converged: bool


def marginals(results: Results) -> list[Marginal]:
    """Of the first draw of every sampler, for the parameters that the grid chooses."""
    wanted = results.grid.report.get("marginals")
    found = []
    for cell, records in results.cells():
        first = next((r for r in records if not is_failed(r) and "quantiles" in r["outcome"]), None)
        if first is None:
            continue
        outcome = first["outcome"]
        names = list(outcome["quantiles"]) if wanted is None else [wanted.get(cell.case.name)]
        for name in names:
            if name in outcome["quantiles"] and name in outcome.get("moments", {}):
                q, moments = np.array(outcome["quantiles"][name]), outcome["moments"][name]
                seed, converged = first["run"]["seed"], outcome["converged"]
                found.append(Marginal(cell.setting, cell.method.label, name, seed, q, moments, converged))
    return found


def marginal_table(results: Results) -> ReportTable:
    """Moments: a Gaussian has skewness and excess kurtosis zero."""
    columns = new_columns("setting method parameter seed converged mean sd skewness kurtosis")
    rows = []
    for m in marginals(results):
        moments = [m.moments[n] for n in ("mean", "sd", "skewness", "kurtosis")]
        append_row(columns, (m.setting, m.method, m.parameter, m.seed, m.converged, *moments))
        mixed = "" if m.converged else "\nchains not mixed"
        rows.append((f"{m.setting}: {m.parameter}", m.method + mixed, *(format_number(float(v), 3) for v in moments)))
    header = ("parameter", "method", "mean", "standard deviation", "skewness", "excess kurtosis")
    note = "Draws of one rollout (the first seed) at the fixed γ of the authors' settings; AGM samples γ, too."
    return ReportTable("6_marginals", "Marginal distributions at fixed γ", header, tuple(rows), columns, note)


# --- model selection


class EquationVerdicts(NamedTuple):
    """One equation of one candidate: γ over the draws, and in how many its verdict was right."""

    setting: str
    method: str
    label: str
    candidate: str
    state: str
    wrong: bool
    gamma: Array
    median: float
    sd: float
    draws: int
    right: int
    failed: int
    printed: tuple[float, float]


def equation_verdicts(results: Results) -> list[EquationVerdicts]:
    """In the order of the grid."""
    printed = results.grid.report.get("gamma", {})
    found = []
    for cell, records in results.cells("candidates"):
        assert cell.candidate is not None
        for state in system_of(canonical(cell.case.spec)).model.states:
            wrong = state in cell.candidate.wrong
            gamma = outcome_values(records, outcome_entry("gamma", state))
            verdicts = [r["outcome"].get("verdicts", {}).get(state) for r in records]
            right = sum(v is not None and (v == CONTRADICTS) == wrong for v in verdicts)
            theirs = tuple(printed.get(cell.candidate.name, {}).get(state, (math.nan, math.nan)))
            _, median, _, sd = quartiles(gamma)
            name, method = cell.candidate.name, cell.method
            lost = sum(map(is_failed, records))
            numbers = (wrong, gamma, median, sd, len(records), right, lost, theirs)
            found.append(EquationVerdicts(cell.setting, method.name, method.label, name, state, *numbers))
    return found


def gamma_table(results: Results) -> ReportTable:
    """Table 2 of the paper, for every method that was run, with the share of right verdicts."""
    columns = new_columns(
        "setting method candidate state equation_is_wrong draws failed gamma_median gamma_sd paper_median paper_sd "
        "verdict_right"
    )
    rows = []
    for j in equation_verdicts(results):
        share = j.right / max(j.draws, 1)
        append_row(
            columns,
            (j.setting, j.method, j.candidate, j.state, j.wrong, j.draws, j.failed, j.median, j.sd, *j.printed, share),
        )
        theirs = "-" if math.isnan(j.printed[0]) else plus_minus(*j.printed)
        ours = plus_minus(j.median, j.sd)
        right = f"{j.right} of {j.draws}" + (f"\n{j.failed} failed" if j.failed else "")
        rows.append((f"{j.candidate}: {j.state}", j.label, "wrong" if j.wrong else "right", ours, theirs, right))
    header = ("equation", "method", "it is", "γ", "γ in the paper", "verdict right")
    note = "Median ± standard deviation over draws. An equation is judged wrong where its γ exceeds 0.1"
    note += " and, for the default, no trajectory of the model follows the data."
    return ReportTable("7_model_selection", "Model selection", header, tuple(rows), columns, note)


# --- run time over the number of states


class Scaling(NamedTuple):
    """One method: sizes K (S,), mean and standard deviation of seconds (S,), and the fits through the means.

    `line` is (slope, intercept) by least squares, as in the paper; `exponent` that of a power law, NaN for one size.
    """

    method: str
    K: Array
    mean: Array
    sd: Array
    line: tuple[float, float]
    exponent: float


def scalings(results: Results) -> dict[str, Scaling]:
    """By method name. Fits in which something was compiled are left out if there are others of the same size."""
    seconds: dict[str, dict[int, list[float]]] = {}
    labels = {}
    for cell, records in results.cells("sizes"):
        assert cell.case.size is not None
        good = [r["timing"] for r in records if not is_failed(r)]
        good = [t for t in good if not t.get("first")] or good
        if good:
            labels[cell.method.name] = cell.method.label
            seconds.setdefault(cell.method.name, {})[cell.case.size] = [
                max(from_json(t["seconds"]), 1e-9) for t in good
            ]
    found = {}
    for name, by_size in seconds.items():
        K = np.array(sorted(by_size), float)
        mean = np.array([np.mean(by_size[int(k)]) for k in K])
        sd = np.array([np.std(by_size[int(k)]) for k in K])
        line, exponent = (math.nan, math.nan), math.nan
        if len(K) > 1:
            slope, intercept = np.polyfit(K, mean, 1)
            line, exponent = (float(slope), float(intercept)), float(np.polyfit(np.log(K), np.log(mean), 1)[0])
        found[name] = Scaling(labels[name], K, mean, sd, line, exponent)
    return found


def scaling_table(results: Results) -> ReportTable:
    """Seconds, the parameter and the states' error by size and method."""
    columns = new_columns("states method draws failed not_converged seconds_mean seconds_sd theta state_rmse")
    rows = []
    fits = scalings(results)
    for cell, records in results.cells("sizes"):
        lost = sum(map(is_failed, records))
        loose = sum(not r["outcome"]["converged"] for r in records) - lost
        fit = fits.get(cell.method.name)
        here = fit is not None and cell.case.size in fit.K
        at = int(np.flatnonzero(cell.case.size == fit.K)[0]) if fit is not None and here else -1
        mean, sd = (float(fit.mean[at]), float(fit.sd[at])) if fit is not None and here else (math.nan, math.nan)
        theta = quartiles(outcome_values(records, lambda o: next(iter(o["theta"].values()), None)))[1]
        rmse = quartiles(outcome_values(records, outcome_entry("state_rmse")))[1]
        append_row(columns, (cell.case.size, cell.method.name, len(records), lost, loose, mean, sd, theta, rmse))
        trouble = ", ".join(f"{n} {what}" for n, what in ((lost, "failed"), (loose, "not converged")) if n)
        cells = (plus_minus(mean, sd), format_number(theta, 4), format_number(rmse, 3), str(len(records)))
        rows.append((f"K = {cell.case.size}", cell.method.label, *cells, trouble or "-"))
    header = ("states", "method", "seconds", "θ (truth 8)", "state RMSE", "draws", "trouble")
    note = "Mean ± standard deviation of seconds; medians of the others. " + " ".join(
        f"{f.method}: time grows as K to the power {f.exponent:.2f}."
        for f in fits.values()
        if not math.isnan(f.exponent)
    )
    return ReportTable("8_scaling", "Run time over the number of states", header, tuple(rows), columns, note)
