"""Jobs are computed once: what a store has is kept, what cannot be used is computed again."""

import math
from contextlib import closing

from odinfer.parallel.resume import TIMED_OUT, Job, _seconds_left, failure_outcome, resume
from odinfer.parallel.store import Store
from odinfer.parallel.workers import start_workers

CALLS: list[int] = []


def squared(n: int) -> dict:
    CALLS.append(n)
    outcome = (
        failure_outcome("failed: too large") if n > 9 else {"status": "converged", "converged": True, "square": n * n}
    )
    return {"outcome": outcome, "timing": {"seconds": 0.1}}


def endless(n: int) -> dict:
    while True:
        pass


def jobs(*numbers: int) -> list[Job]:
    return [Job(f"key {n}", {"n": n}, (n,)) for n in numbers]


def usable(record) -> bool:
    return record["outcome"].get("square") != 1


def ran(folder, numbers, function=squared, workers=None, **options):
    CALLS.clear()
    with Store(folder, create=True) as store:
        state = resume(function, jobs(*numbers), store, workers, usable=usable, **options)
        return state, {r["run"]["n"]: r["outcome"] for r in store.records.values()}


def test_what_a_store_has_is_not_computed_again_and_failures_are_results(tmp_path):
    told = []
    state, stored = ran(tmp_path, [2, 3, 10], tell=lambda s: told.append((s.done, s.total, s.left)))
    assert (state.total, state.before, state.done, state.failed) == (3, 0, 3, 1)
    assert stored[10] == failure_outcome("failed: too large")
    assert [done for done, _, _ in told] == [1, 2, 3]
    assert told[-1][2] == 0.0
    assert all(math.isfinite(left) for _, _, left in told)
    state, stored = ran(tmp_path, [2, 3, 4, 10])
    assert CALLS == [4]
    assert (state.before, state.done, stored[4]["square"]) == (3, 1, 16)


def test_what_is_not_usable_is_computed_again(tmp_path):
    ran(tmp_path, [1, 2])
    ran(tmp_path, [1, 2])
    assert CALLS == [1]


def test_what_takes_too_long_has_a_status_and_is_tried_again_if_asked(tmp_path):
    with closing(start_workers(1)) as workers:
        state, stored = ran(tmp_path, [2], endless, workers, timeout=0.2)
    assert state.failed == 1
    assert stored[2]["status"] == f"{TIMED_OUT}: took longer than 0.2 s"
    ran(tmp_path, [2])
    assert CALLS == []
    assert ran(tmp_path, [2], retry=True)[1][2]["square"] == 4


def test_the_time_left_is_that_of_jobs_of_the_same_kind_or_the_nearest_to_it():
    odin, gpr, other = ("LV", "odin"), ("LV", "gpr"), ("FHN", "odin")
    pace = {odin: [9.0, 1.0, 1.0], gpr: [4.0]}
    assert _seconds_left({odin: 3}, pace) == 3.0  # the first one had to compile
    assert _seconds_left({other: 2}, pace) == 2.0  # alike
    assert _seconds_left({("FHN", "rkg"): 2}, pace) == 2 * 2.5
    assert _seconds_left({odin: 0}, pace) == 0.0
