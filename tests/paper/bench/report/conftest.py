"""Invented results, and their report, that all tests of reports look at."""

from pathlib import Path

import pytest

from odinfer.paper.bench.report.page import write
from odinfer.paper.bench.report.results import Results
from paper.bench.report.invented import invented


@pytest.fixture(scope="session")
def results(tmp_path_factory) -> Results:
    """At the first setting, three of four runs of the two-step method timed out, and the fourth did not converge."""
    found = invented(tmp_path_factory.mktemp("store"))
    spoilt = found.at("LV, σ = 0.1", "two-step")
    for record in spoilt[:3]:
        record["outcome"] = {"status": "timed out: took longer than 6 s", "converged": False, "theta": {}}
    spoilt[3]["outcome"]["converged"] = False
    return found


@pytest.fixture(scope="session")
def written(results, tmp_path_factory) -> tuple[Results, Path]:
    folder = tmp_path_factory.mktemp("report")
    write(results, folder)
    return results, folder
