"""`odinfer discover`: print the verdict and the ranking, write files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odinfer.apps.command.terminal import progress, show, staged

if TYPE_CHECKING:
    from odinfer.problem.problem import Problem

OUTPUTS = ("discovery.png", "discovery.json", "ranking.csv", "best.ode")


def is_data(path: Path) -> bool:
    """Whether a file that stands alone is data and no model."""
    return path.suffix.lower() in (".csv", ".tsv", ".txt", ".xlsx")


def run_discovery(problem: Problem | None, asked: Mapping[str, Any], folder: Path, as_json: bool, quiet: bool) -> bool:
    """Search for a missing term, or for equations where there is no problem.

    Args:
        asked: arguments of `odinfer.discover`; `data` is the path of a file where there is no problem.

    Returns:
        Whether there is an answer: not where the model contradicts the data and no term helps.
    """
    from odinfer.data.reader import read_csv
    from odinfer.discovery import report
    from odinfer.discovery.discover import discover
    from odinfer.discovery.verdicts import CONTRADICTED, NO_EQUATIONS, NO_TERM

    with staged(folder, OUTPUTS) as stage, progress(quiet or as_json) as tell:
        given = dict(asked)
        path = given.pop("data")
        found = discover(problem, read_csv(path) if path is not None else None, progress=tell, **given)
        names = report.write_outputs(found, stage)
        content = report.dumps(found)
    if as_json:
        show(content.rstrip())
    elif not quiet:
        show(report.summary(found).rstrip())
        show(f"\nIn {folder}: {', '.join(names)}")
    return found.verdict not in (NO_TERM, NO_EQUATIONS, CONTRADICTED)
