"""Tasks spread over workers: the same results anywhere, and what happens when workers die, hang or are orphaned."""

import os
import signal
import subprocess
import sys
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


def surroundings(_: int) -> tuple[int, str | None, str | None]:
    return os.getpid(), os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("XLA_FLAGS")


def test_results_come_in_order_and_do_not_depend_on_the_number_of_workers():
    tasks = [(seed, 5) for seed in range(40)]
    told: list[tuple[str, float]] = []
    one = ex.spread(noisy, tasks, progress=lambda what, share: told.append((what, share)))
    assert one == [noisy(*task) for task in tasks]
    assert told[-1] == ("40 of 40", 1.0)
    assert [share for _, share in told] == sorted(share for _, share in told)
    assert ex.spread(noisy, iter(tasks), workers=2) == one
    assert ex.spread(noisy, [], workers=2) == []


def test_workers_are_other_processes_with_one_thread_and_stay_alive(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    found = ex.spread(surroundings, [(i,) for i in range(12)], workers=2)
    pids = {pid for pid, _, _ in found}
    assert os.getpid() not in pids
    assert len(pids) <= 2
    assert {(blas, xla) for _, blas, xla in found} == {("1", wk._XLA)}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
    assert "XLA_FLAGS" not in os.environ


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_a_number_of_workers_that_is_none_is_refused(workers):
    with pytest.raises(InputError, match="workers must be a whole number from 1 on"):
        ex.spread(noisy, [(0, 1)], workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_task_is_raised(workers):
    with pytest.raises(InputError, match=r"no root of 2\.5"):
        ex.spread(raising, [(2.5,), (2.5,)], workers=workers)


def test_a_task_whose_worker_is_killed_is_tried_again_on_a_fresh_one(tmp_path):
    tasks = [(None,), (None,), (str(tmp_path / "a"), 1), (None,), (None,)]
    assert ex.spread(either, tasks, workers=2) == ["calm", "calm", "survived as number 2", "calm", "calm"]


def test_a_task_that_kills_two_workers_is_lost_and_the_others_are_not(tmp_path):
    tasks = [(None,)] * 8 + [(str(tmp_path / "a"), 99)] + [(None,)] * 8
    found = ex.spread(either, tasks, workers=2)
    assert isinstance(found[8], ex.Lost)
    assert "worker died" in found[8].reason
    assert not found[8].timed_out
    assert found[:8] + found[9:] == ["calm"] * 16
    assert (tmp_path / "a").read_text() == "xx"


def test_a_task_that_hangs_is_stopped_and_the_others_are_not():
    jobs = [ex.Task(i, (600.0 if i == 30 else 0.001,), "one kind") for i in range(60)]
    with closing(wk.start(2)) as crew:
        clock = time.monotonic()
        found = dict(ex.completed(time.sleep, jobs, crew, timeout=5.0))  # needs no import
        took = time.monotonic() - clock
    assert found.pop(30) == ex.Lost("took longer than 5 s", True)
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

    with closing(wk.start(1)) as crew:
        for count, _ in enumerate(ex.completed(stuck, tasks(), crew), 1):
            assert len(taken) <= count + 2


ORPHANS = """
import sys, time
from odinfer.parallel import executor
from odinfer.parallel import workers
sys.path.insert(0, sys.argv[1])
import test_executor
if __name__ == "__main__":
    crew = workers.start(2)
    print(*(lane._pid.result() for lane in crew._lanes), flush=True)
    list(executor.completed(test_executor.stuck, [executor.Task(i, (600.0,)) for i in range(2)], crew))
"""


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_exit_when_their_parent_is_killed(tmp_path):
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    parent = subprocess.Popen([sys.executable, script, os.path.dirname(__file__)], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(alive, pids))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 20
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, pids))


def test_a_cluster_that_is_not_there_is_one_clear_line():
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        wk.Cluster.connect("tcp://127.0.0.1:9", patience=0.5)
