"""A grid is run once: what the store has is not computed again, and what cannot be computed has a status."""

import math
from concurrent.futures import Future

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_runs import write_grid
from odinfer.errors import InputError
from odinfer.paper.bench import grid as grids
from odinfer.paper.bench.runner import run_grid, runs_of_shard, shard_of
from odinfer.parallel.resume import LOST
from odinfer.parallel.store import Store


class Here:
    """Workers that are this process: tasks are done when they are submitted, and are counted."""

    death_errors = (ConnectionError,)
    size = 1

    def __init__(self, dying: bool = False) -> None:
        self.calls = 0
        self.dying = dying

    def submit(self, function, *args) -> Future:
        self.calls += 1
        future: Future = Future()
        if self.dying:
            future.set_exception(ConnectionError("gone"))
        else:
            future.set_result(function(*args))
        return future

    def drop(self, future) -> None:
        raise AssertionError("nothing takes long here")


@pytest.fixture
def grid(tmp_path) -> grids.Grid:
    return grids.read(str(write_grid(tmp_path, systems="['decay']", methods="['gpr']")))


def ran(grid, folder, workers=None, **options):
    with Store(folder, create=True) as store:
        state = run_grid(grid, store, grid.chosen(), workers or Here(), **options)
        return state, {r["run"]["seed"]: r["outcome"] for r in store.records.values()}


# --- which runs


def test_shards_share_the_runs_out(paper):
    chosen = paper.chosen(draws=5)
    every = [run.key for _, run in runs_of_shard(paper, chosen, (1, 1))]
    parts = [[run.key for _, run in runs_of_shard(paper, chosen, (i, 7))] for i in range(1, 8)]
    assert sorted(key for part in parts for key in part) == sorted(every)
    assert min(map(len, parts)) > 0.5 * len(every) / 7


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3", ""])
def test_a_malformed_shard_is_refused(text):
    with pytest.raises(InputError, match="--shard takes i/n") if text else pytest.raises(InputError):
        shard_of(text or "/")


@settings(max_examples=25, deadline=None)
@given(parts=st.integers(1, 9))
def test_every_run_belongs_to_one_shard_whatever_their_number(paper, parts):
    chosen = paper.chosen(systems="lotka_volterra", draws=2)
    found = [run.key for i in range(1, parts + 1) for _, run in runs_of_shard(paper, chosen, (i, parts))]
    assert sorted(found) == sorted(run.key for _, run in paper.runs(chosen))


def test_no_shard_is_all_of_it():
    assert shard_of(None) == (1, 1)
    assert shard_of("3/8") == (3, 8)


# --- running them


def test_what_is_missing_is_computed_stored_and_told(grid, tmp_path):
    told = []
    state, stored = ran(grid, tmp_path / "s", tell=lambda s: told.append((s.before + s.done, s.total, s.left)))
    assert (state.total, state.before, state.done, state.failed, state.claimed_by_others) == (3, 0, 3, 0, 0)
    assert sorted(stored) == [5, 6, 7]
    assert all(outcome["status"] == "converged" for outcome in stored.values())
    assert [done for done, _, _ in told] == [1, 2, 3]
    assert told[-1][2] == 0.0
    assert all(math.isfinite(left) for _, _, left in told)


def test_what_the_store_has_is_not_computed_again(grid, tmp_path):
    part, stored = ran(grid, tmp_path / "s", shard=(1, 2))
    assert part.done == part.total == len(stored)
    rest = Here()
    state, stored = ran(grid, tmp_path / "s", rest)
    assert (state.before, state.done) == (part.done, 3 - part.done)
    assert len(stored) == 3
    again = Here()
    state, _ = ran(grid, tmp_path / "s", again)
    assert (state.before, state.done, again.calls) == (3, 0, 0)


def test_runs_whose_workers_die_are_lost_with_a_status_and_tried_again_if_asked(grid, tmp_path):
    state, stored = ran(grid, tmp_path / "s", Here(dying=True))
    assert (state.done, state.failed) == (3, 3)
    assert {outcome["status"] for outcome in stored.values()} == {f"{LOST}: its worker died: gone"}
    state, _ = ran(grid, tmp_path / "s")
    assert (state.before, state.done) == (3, 0)
    state, stored = ran(grid, tmp_path / "s", retry=True)
    assert (state.before, state.done, state.failed) == (0, 3, 0)
    assert all(outcome["converged"] for outcome in stored.values())


def test_what_another_process_is_computing_is_left_to_it(grid, tmp_path):
    first = next(run.key for _, run in grid.runs(grid.chosen()))
    with Store(tmp_path / "s", create=True) as other:
        assert other.claim([first]) == [first]
        state, stored = ran(grid, tmp_path / "s")
    assert (state.done, state.claimed_by_others) == (2, 1)
    assert sorted(stored) == [6, 7]
