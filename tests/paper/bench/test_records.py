"""A record is used only if it holds what its run says, and nothing that a report does not expect."""

from dataclasses import asdict

import pytest

from bench_runs import write_grid
from odinfer.paper.bench import grid as grids
from odinfer.paper.bench.records import usable
from odinfer.paper.bench.report.results import Results
from odinfer.parallel.resume import LOST
from odinfer.parallel.store import Store

GOOD = {"status": "converged", "converged": True, "theta": {"a": 2.0, "b": None}, "trmse": "inf"}
TIMING = {"seconds": 0.0, "cpu": 1.0}


@pytest.fixture
def runs(tmp_path):
    grid = grids.read(str(write_grid(tmp_path)))
    return grid, [run for _, run in grid.runs(grid.chosen())]


def record(run, outcome=GOOD, timing=TIMING, **more):
    return {"key": run.key, "run": asdict(run), "outcome": outcome, "timing": timing, **more}


def test_what_runs_write_is_usable(runs):
    _, (run, *_) = runs
    assert usable(record(run))
    assert usable(record(run, {"status": f"{LOST}: its worker died", "converged": False, "theta": {}}))


@pytest.mark.parametrize(
    "outcome",
    [
        {}, {**GOOD, "theta": [1.0]}, {**GOOD, "theta": {"a": "two"}}, {**GOOD, "theta": {"a": 10**400}},
        {**GOOD, "converged": 1}, {**GOOD, "status": None}, {**GOOD, "trmse": []}, {**GOOD, "gamma": 3.0},
        {**GOOD, "stages": {"odin": 1}}, {**GOOD, "quantiles": {"a": [None]}},
        {**GOOD, "moments": {"a": {"mean": 1.0}}},
        {**GOOD, "trajectory": {"prey": "high"}},
    ],
)  # fmt: skip
def test_an_outcome_of_another_kind_is_not(runs, outcome):
    _, (run, *_) = runs
    assert not usable(record(run, outcome))


def test_a_record_of_another_run_or_without_times_is_not(runs):
    _, (run, other, _) = runs
    assert not usable({**record(run), "run": asdict(other)})
    assert not usable({**record(run), "run": {"seed": 1}})
    assert not usable(record(run, timing={}))
    assert not usable(record(run, timing={"seconds": -1.0, "cpu": 1.0}))


def test_a_report_leaves_such_records_out_and_says_so(runs, tmp_path):
    grid, (first, second, _) = runs
    with Store(tmp_path / "store", create=True) as store:
        store.add_grid(grid.content)
        store.add([record(first), record(second, {"theta": 1})])
    results = Results.of([tmp_path / "store"])
    assert (results.damaged, results.others) == (1, 0)
    assert [r["run"]["seed"] for _, found in results.found for r in found] == [first.seed]
    assert "1 damaged results are left out." in results.status()
