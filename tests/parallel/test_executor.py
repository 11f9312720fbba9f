"""Tasks spread over workers: the same results anywhere, and what becomes of tasks whose workers die or hang."""

import os
import signal
import time
from contextlib import closing

import numpy as np
import pytest

from odinfer.errors import InputError
from odinfer.parallel import executor as ex
from odinfer.parallel import workers as wk


def noisy(seed: int, size: int) -> float:
    return float(np.random.default_rng(seed).normal(size=size).sum())


def suicidal(path: str, deaths: int) -> str:
    """Kills its process the first `deaths` times it is called, as counted by the lines of a file."""
    with open(path, "a+") as file:
        file.write("x")
        file.flush()
        count = file.tell()
    if count <= deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"survived as number {count}"


def either(path: str | None, deaths: int = 0) -> str:
    return "calm" if path is None else suicidal(path, deaths)


def stuck(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def raising(x: float) -> float:
    raise InputError(f"no root of {x}")


def test_results_come_in_order_and_do_not_depend_on_the_number_of_workers():
    tasks = [(seed, 5) for seed in range(40)]
    told: list[tuple[str, float]] = []
    one = ex.parallel_map(noisy, tasks, progress=lambda what, share: told.append((what, share)))
    assert one == [noisy(*task) for task in tasks]
    assert told[-1] == ("40 of 40", 1.0)
    assert [share for _, share in told] == sorted(share for _, share in told)
    assert ex.parallel_map(noisy, iter(tasks), workers=2) == one
    assert ex.parallel_map(noisy, [], workers=2) == []


def halves(x: float, progress=None) -> float:
    if progress is not None:
        progress(f"half of {x:g}", 0.5)
    return x / 2


def test_tasks_in_this_process_tell_of_themselves_as_parts_of_the_whole():
    told: list[tuple[str, float]] = []
    found = ex.parallel_map(
        halves, [(1.0,), (2.0,)], progress=lambda what, share: told.append((what, share)), telling=True
    )
    assert found == [0.5, 1.0]
    assert told == [("half of 1", 0.25), ("1 of 2", 0.5), ("half of 2", 0.75), ("2 of 2", 1.0)]
    assert ex.parallel_map(halves, [(1.0,), (2.0,)], telling=True) == found


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_a_number_of_workers_that_is_none_is_refused(workers):
    with pytest.raises(InputError, match="workers must be a whole number from 1 on"):
        ex.parallel_map(noisy, [(0, 1)], workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_task_is_raised(workers):
    with pytest.raises(InputError, match=r"no root of 2\.5"):
        ex.parallel_map(raising, [(2.5,), (2.5,)], workers=workers)


def test_a_task_whose_worker_is_killed_is_tried_again_on_a_fresh_one(tmp_path):
    tasks = [(None,), (None,), (str(tmp_path / "a"), 1), (None,), (None,)]
    assert ex.parallel_map(either, tasks, workers=2) == ["calm", "calm", "survived as number 2", "calm", "calm"]


def test_a_task_that_kills_two_workers_is_lost_and_the_others_are_not(tmp_path):
    tasks = [(None,)] * 8 + [(str(tmp_path / "a"), 99)] + [(None,)] * 8
    found = ex.parallel_map(either, tasks, workers=2)
    assert isinstance(found[8], ex.LostTask)
    assert "worker died" in found[8].reason
    assert not found[8].timed_out
    assert found[:8] + found[9:] == ["calm"] * 16
    assert (tmp_path / "a").read_text() == "xx"


def test_a_task_that_hangs_is_stopped_and_the_others_are_not():
    jobs = [ex.Task(i, (600.0 if i == 30 else 0.001,), "one kind") for i in range(60)]
    with closing(wk.start_workers(2)) as crew:
        clock = time.monotonic()
        found = dict(ex.run_tasks(time.sleep, jobs, crew, timeout=3.0))  # needs no import
        took = time.monotonic() - clock
    assert found.pop(30) == ex.LostTask("took longer than 3 s", True)
    assert found == {i: None for i in range(60) if i != 30}
    assert took < 200


def test_chunks_grow_until_they_take_about_a_second():
    queue = ex._Queue(iter([ex.Task(i, (), "quick" if i < 50 else "slow") for i in range(60)]))
    assert len(queue.next().tasks) == 1  # nothing is known yet
    queue.seconds["quick"] = 0.1
    assert [t.tag for t in queue.next().tasks] == list(range(1, 11))
    queue.seconds |= {"quick": 1e-6, "slow": 3.0}
    assert [t.tag for t in queue.next().tasks] == list(range(11, 50))  # never of two kinds
    assert [t.tag for t in queue.next().tasks] == [50]


def test_tasks_are_taken_when_a_worker_is_free_for_them():
    taken: list[int] = []

    def tasks():
        for i in range(10):
            taken.append(i)
            yield ex.Task(i, (0.05,), str(i))

    with closing(wk.start_workers(1)) as crew:
        for count, _ in enumerate(ex.run_tasks(stuck, tasks(), crew), 1):
            assert len(taken) <= count + 2
