"""Records of a grid and what is told of them: nothing is counted twice, and what failed is an infinite error."""

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_runs import write_grid
from odinfer.paper.bench import grid as grids
from odinfer.paper.bench.report.page import PAGE
from odinfer.paper.bench.report.results import Results, is_failed, outcome_entry, outcome_values, quartiles, summarise
from odinfer.parallel.store import Store
from paper.bench.report.invented import DRAWS

FEW = settings(max_examples=25, deadline=None)


def record(status="converged", converged=True, **outcome):
    return {"outcome": {"status": status, "converged": converged, "theta": {}, **outcome}}


def test_failures_are_counted_and_are_infinite_errors(written):
    results, folder = written
    s = summarise(results.at("LV, σ = 0.1", "two-step"), lambda o: o.get("trmse"))
    assert (s.draws, s.failed, s.unconverged) == (4, 3, 1)
    assert s.median == np.inf
    page = (folder / PAGE).read_text("utf-8")
    assert "3 failed, 1 not converged" in page
    assert "3 × two-step: timed out" in page


def test_quartiles_of_what_is_partly_infinite_are_numbers_or_infinite():
    assert quartiles(np.array([1.0, 2.0, np.inf]))[:3] == (1.5, 2.0, np.inf)
    assert np.isnan(quartiles(np.array([]))).all()


@FEW
@given(v=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), lost=st.integers(0, 20))
def test_quartiles_rise_and_are_those_of_the_numbers_where_nothing_failed(v, lost):
    low, median, high, _ = quartiles(np.array(v))
    np.testing.assert_allclose([low, median, high], np.quantile(v, (0.25, 0.5, 0.75)), rtol=1e-9, atol=1e-9)
    worse = quartiles(np.array(v + [math.inf] * lost))
    assert worse[0] <= worse[1] <= worse[2]
    assert all(a <= b or math.isclose(a, b) for a, b in zip((low, median, high), worse[:3], strict=True))
    assert math.isinf(worse[1]) == (lost > len(v) or (lost == len(v) and lost > 0))


@pytest.mark.parametrize("status", ["failed: why", "lost: its worker died", "timed out: took longer than 6 s"])
def test_a_run_without_an_estimate_has_failed_and_one_that_did_not_converge_has_not(status):
    assert is_failed(record(status, False))
    assert not is_failed(record("did not converge: the iteration limit was reached", False))


def test_a_number_that_does_not_exist_is_left_out_and_that_of_a_failure_infinite():
    records = [record(x=2.0), record(), record("failed: why", False), record(x="inf"), record(x=None)]
    assert outcome_values(records, outcome_entry("x")).tolist() == [2.0, math.inf, math.inf]
    assert outcome_values([record(by={"prey": 3.0})], outcome_entry("by", "prey")).tolist() == [3.0]
    s = summarise([*records, record("did not converge", False, x=1.0)], outcome_entry("x"))
    assert (s.draws, s.failed, s.unconverged) == (6, 1, 1)


def test_cells_are_told_apart_by_what_they_are_for(results):
    kinds = {kind: results.cells(kind) for kind in ("inference", "candidates", "sizes")}
    assert sum(map(len, kinds.values())) == sum(1 for _, records in results.found if records)
    assert all(cell.candidate for cell, _ in kinds["candidates"])
    assert all(cell.case.size for cell, _ in kinds["sizes"])
    assert len(results.settings()) == 6
    assert results.case("LV, σ = 0.5").noise == 0.5
    assert results.at("LV, σ = 0.5", "nothing") == []


def test_methods_of_a_role_are_those_of_the_report_that_have_results(results):
    assert list(results.methods("states")) == ["gpr", "odin-paper", "odin", "limit"]
    assert set(results.methods("a role that the grid does not name")) >= {"agm", "gpr", "two-step"}


@pytest.fixture
def parts(tmp_path):
    """Two stores with results of the same grid: seeds 7 and 5, and 6 and 5."""
    grid = grids.read(str(write_grid(tmp_path)))
    runs = {run.seed: run for _, run in grid.runs(grid.chosen())}
    for name, seeds in (("a", (7, 5)), ("b", (6, 5))):
        with Store(tmp_path / name, create=True) as store:
            store.add_grid(grid.content)
            store.add(
                [
                    {"key": runs[s].key, "run": asdict(runs[s]), **record(), "timing": {"seconds": 1.0, "cpu": 1.0}}
                    for s in seeds
                ]
            )
    return tmp_path / "a", tmp_path / "b"


def test_several_stores_are_read_as_one_and_in_the_order_of_seeds(parts):
    results = Results.of(parts)
    ((_, records),) = results.found
    assert [r["run"]["seed"] for r in records] == [5, 6, 7]
    assert (results.others, results.damaged) == (0, 0)
    assert results.status()[-1] == "3 of 3 runs are stored."
    ((_, records),) = Results.of(parts[:1]).found
    assert [r["run"]["seed"] for r in records] == [5, 7]


def test_results_of_another_grid_are_counted_but_not_shown(parts):
    results = Results.of(parts, "paper")
    assert not any(records for _, records in results.found)
    assert results.others == 3
    assert results.status()[-1] == "3 more results belong to other grids or versions."


def test_the_status_has_a_line_per_cell_and_counts_against_the_full_grid_if_asked(results):
    lines = results.status()
    assert len(lines) >= 1 + len(results.found)
    stored = sum(len(records) for _, records in results.found)
    assert lines[-1].startswith(f"{stored} of ")
    of = [int(results.status(full)[-1].split()[2]) for full in (False, True)]
    assert stored < of[0] < of[1]
    spoilt = next(line for line in lines if line.startswith("LV, σ = 0.1") and "two-step" in line)
    assert spoilt.split()[-4:] == [str(DRAWS), "100", "3", "1"]
