"""What follows a fit on the page: the search for a missing term, and the samples to take next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from odinfer.apps.studio.answers import table_of
from odinfer.apps.studio.interactive import GaussianNoise
from odinfer.apps.studio.next_steps import Step
from odinfer.checks import checked_integer, checked_number
from odinfer.discovery.report import figure as discovery_figure
from odinfer.discovery.report import ranking_table
from odinfer.discovery.report import write_outputs as write_discovery
from odinfer.discovery.result import Discovery
from odinfer.discovery.verdicts import NO_TERM
from odinfer.errors import InputError
from odinfer.files import write_file
from odinfer.optimal_design.entry import design
from odinfer.optimal_design.result import Design, percent
from odinfer.problem.problem import Problem
from odinfer.progress import Progress
from odinfer.result.fit import Fit
from odinfer.style.drawing import svg
from odinfer.style.text import TextTable, format_number

MOST_SAMPLES = 50  # that the page offers to plan
_MOST_OFFERED = 3  # models with one further term


def discover(problem: Problem, seed: int, progress: Progress, folder: Path) -> tuple[GaussianNoise, list[str]]:
    """Search for the term that the equations of a model lack: what was found, and the files that say so."""
    from odinfer.discovery.discover import discover as search

    found = search(problem, seed=seed, progress=progress)
    assert isinstance(found, Discovery)
    steps = [
        Step(f"Add {own.addition.text} to {own.addition.state}'", "As a second model.", own.problem.model.text)
        for own in found.tied[:_MOST_OFFERED]
        if own.addition
    ]
    names = [*write_discovery(found, folder), "discovery.svg"]
    write_file(folder / "discovery.svg", svg(discovery_figure(found)))
    answer = {
        "kind": "discover",
        "title": "Is a term missing?",
        "headline": found.headline,
        "tone": "bad" if found.verdict == NO_TERM else "good",
        "tables": [{"title": "Terms that were tried, the best first", **(table_of(ranking_table(found)) or {})}],
        "facts": [found.footnote],
        "next": [asdict(step) for step in steps],
        "pictures": [{"file": "discovery.svg", "title": "Data with the trajectories of the models", "caption": ""}],
    }
    return answer, names


def plan(fit: Fit, options: Mapping[str, Any], progress: Progress, folder: Path) -> tuple[GaussianNoise, list[str]]:
    """The samples that determine the parameters best beside those that there are.

    Args:
        options: "add", how many; "last", the last time at which one can be taken, or None.
    """
    add, last = plan_options(options)
    first = max(fit.problem.condition(e).start for e in range(len(fit.problem.data.experiments)))
    if last is not None and last <= first:
        raise InputError(f"the last sample must be taken after time {first:g}")
    found = design(fit, add=add, times=None if last is None else (first, last), progress=progress)
    found.save(folder / "design.json")
    found.save(folder / "samples.csv")
    write_file(folder / "design.svg", svg(found.plot()))
    times = ", ".join(format_number(time, 4) for time in found.times)
    answer = {
        "kind": "design",
        "title": "When to measure next",
        "headline": f"Measure next at {times}.",
        "tone": "good",
        "tables": _tables(found),
        "facts": [*found.notes, *_worth(found)],
        "options": {"add": add, "first": first, "last": last},
        "next": [],
        "pictures": [{"file": "design.svg", "title": "Predictions, and what each sample would tell", "caption": ""}],
    }
    return answer, ["design.json", "samples.csv", "design.svg"]


def plan_options(options: Mapping[str, Any]) -> tuple[int, float | None]:
    """The number of samples and the last time, checked."""
    last = options.get("last")
    return checked_integer("samples", options.get("add", 4), 1, MOST_SAMPLES), (
        None if last is None else checked_number("last time", last)
    )


def _tables(found: Design) -> list[GaussianNoise]:
    several = len(found.predictions.experiments) > 1
    errors = tuple(
        (n, format_number(v, 4), percent(a), percent(b))
        for n, v, a, b in zip(found.names, found.values, found.before, found.after, strict=True)
    )
    tables = [("Relative standard errors", TextTable(("parameter", "estimate", "now", "with these samples"), errors))]
    if several:
        rows = tuple((format_number(s.time, 4), s.experiment) for s in found.samples)
        tables.insert(0, ("Samples", TextTable(("time", "experiment"), rows)))
    return [{"title": title, **(table_of(table) or {})} for title, table in tables]


def _worth(found: Design) -> list[str]:
    if not (math.isfinite(found.efficiency) and found.efficiency > 1.05):
        return []
    return [f"Equally spaced samples would need {found.efficiency:.1f} times as many for the same."]
