"""Tables of settings and methods: median and quartiles over draws, ours beside what the paper prints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from odinfer.paper.bench.compute import numeric, system_of
from odinfer.paper.bench.report.results import Record, Results, Summary, failed, metric, quartiles, summary, values
from odinfer.paper.bench.runs import LIMIT
from odinfer.parallel.store import canonical
from odinfer.style.text import number


@dataclass(frozen=True)
class ReportTable:
    """For people: a header and rows of text, whose lines after the first are small; for machines: columns."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    columns: Mapping[str, Sequence[Any]]
    note: str = ""


def add(columns: Mapping[str, list[Any]], entry: Sequence[Any]) -> None:
    """A row to columns."""
    for column, value in zip(columns.values(), entry, strict=True):
        column.append(value)


def shown(s: Summary, planned: int | None = None) -> str:
    """Median and quartiles, and below what one must know about them."""
    if math.isnan(s.median):
        return "-"
    lines = [number(s.median, 3), f"{number(s.low, 3)}–{number(s.high, 3)}", ", ".join(counts(s, planned))]
    return "\n".join(filter(None, lines))


def plus_minus(median: float, sd: float) -> str:
    """Median ± standard deviation; one that is rounding error is zero."""
    return f"{number(median, 3)} ± {number(0.0 if sd < 1e-9 * abs(median) else sd, 2)}"


def counts(s: Summary, planned: int | None = None) -> list[str]:
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
    columns: dict[str, list[Any]] = {n: [] for n in ("setting", "method", "draws", "failed", "not_converged")}
    columns |= {n: [] for n in ("q25", "median", "q75")}
    rows = []
    for setting in settings:
        row = [setting]
        for method in methods:
            s = summary(results.at(setting, method), metric(key))
            row.append(shown(s, most))
            entry = (setting, method, s.draws, s.failed, s.unconverged, s.low, s.median, s.high)
            add(columns, entry)
        if authors:
            row.append(number(authors[setting], 3) if setting in authors else "-")
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
    columns: dict[str, list[Any]] = {n: [] for n in ("setting", "state", "method", "q25", "median", "q75")}
    rows = []
    for setting in results.settings():
        for state in states_of(results, setting):
            row = [f"{setting}: {state}"]
            for method in methods:
                s = summary(results.at(setting, method), metric("trmses_paper", state))
                row.append(shown(s))
                entry = (setting, state, method, s.low, s.median, s.high)
                add(columns, entry)
            rows.append(tuple(row))
    title = "Trajectory error of every state (paper's convention)"
    return ReportTable("2_trmse_states", title, ("state", *methods.values()), tuple(rows), columns)


def limit_table(results: Results) -> ReportTable:
    """How far ODIN's two stages are from maximum likelihood started at the truth, draw by draw."""
    columns: dict[str, list[Any]] = {
        n: [] for n in ("setting", "draws", "odin_stage", "default", "limit", "ratio", "worse_likelihood")
    }
    for setting in results.settings():
        limits = {r["run"]["seed"]: r for r in results.at(setting, LIMIT) if not failed(r)}
        pairs = [(r, limits[r["run"]["seed"]]) for r in results.at(setting, "odin") if r["run"]["seed"] in limits]
        if not pairs:
            continue
        ours, best = (quartiles(values(v, metric("trmse")))[1] for v in zip(*pairs, strict=True))
        stage = quartiles(values((r for r, _ in pairs), lambda o: o.get("stages", {}).get("odin", {}).get("trmse")))
        worse = sum(not _objective(r) <= numeric(b["outcome"].get("objective")) + 1e-2 for r, b in pairs)
        entry = (setting, len(pairs), stage[1], ours, best, ours / best, worse)
        add(columns, entry)
    rows = tuple(
        (str(row[0]), str(row[1]), *(number(v, 3) for v in row[2:6]), str(row[6]))
        for row in zip(*columns.values(), strict=True)
    )
    header = ("setting", "draws", "ODIN stage", "default fit", "limit", "default / limit", "draws worse than limit")
    note = "Medians of trmse; the last column counts draws in which the default fit has a lower likelihood."
    return ReportTable("2_limit", "The statistical limit", header, rows, columns, note)


def _objective(record: Record) -> float:
    stages = record["outcome"].get("stages", {})
    return numeric(stages["refined"].get("objective")) if "refined" in stages else math.inf


def seconds_table(results: Results) -> ReportTable:
    """Run times: median ± standard deviation, ours and the paper's."""
    methods = {**results.methods("compared"), **results.methods("also"), **results.methods("states")}
    printed = results.grid.report.get("seconds", {})
    names = ("setting", "method", "draws", "median", "sd", "median_cpu", "paper_median", "paper_sd")
    columns: dict[str, list[Any]] = {n: [] for n in names}
    rows = []
    for setting in results.settings():
        row = [setting]
        for method in methods:
            records = results.at(setting, method)
            wall, cpu = (np.array([numeric(r["timing"][n]) for r in records]) for n in ("seconds", "cpu"))
            _, median, _, sd = quartiles(wall)
            theirs = printed.get(method, {}).get(setting, (math.nan, math.nan))
            row.append("-" if not records else plus_minus(median, sd))
            if not math.isnan(theirs[0]):
                row[-1] += f"\npaper: {theirs[0]:g} ± {theirs[1]:g}"
            entry = (setting, method, len(records), median, sd, quartiles(cpu)[1], *theirs)
            add(columns, entry)
        rows.append(tuple(row))
    note = "Seconds of wall time per fit; what a worker compiles in its first fit of a kind is part of the deviation."
    return ReportTable("4_run_times", "Run times", ("setting", *methods.values()), tuple(rows), columns, note)


def parameter_table(results: Results) -> ReportTable:
    """Estimates of chosen parameters over the draws, beside the truth."""
    methods = results.methods("compared")
    names = ("setting", "parameter", "truth", "method", "draws", "failed", "not_converged", "q25", "median", "q75")
    columns: dict[str, list[Any]] = {n: [] for n in names}
    rows = []
    for setting, parameter, truth in chosen_parameters(results):
        row = [f"{setting}: {parameter}", number(truth, 3)]
        for method in methods:
            s = summary(results.at(setting, method), metric("theta", parameter))
            row.append(shown(s))
            entry = (setting, parameter, truth, method, *s[:6])
            add(columns, entry)
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
