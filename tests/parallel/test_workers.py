"""Worker processes: single-threaded, alone in their fate, replaced when they die, gone when their parent is."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing

import pytest

from odinfer.errors import InputError
from odinfer.parallel import executor as ex
from odinfer.parallel import workers as wk


def surroundings(_: int) -> tuple[int, str | None, str | None]:
    return os.getpid(), os.environ.get("OPENBLAS_NUM_THREADS"), os.environ.get("XLA_FLAGS")


def test_workers_are_other_processes_with_one_thread_and_stay_alive(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    found = ex.parallel_map(surroundings, [(i,) for i in range(12)], workers=2)
    pids = {pid for pid, _, _ in found}
    assert os.getpid() not in pids
    assert len(pids) <= 2
    assert {(blas, xla) for _, blas, xla in found} == {("1", wk._XLA)}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
    assert "XLA_FLAGS" not in os.environ


@pytest.fixture(scope="module")
def crew():
    with closing(wk.start_workers(2)) as pool:
        yield pool


def test_a_task_that_hangs_holds_up_no_other_and_ends_at_once_when_it_is_dropped(crew):
    assert crew.size == 2
    clock = time.monotonic()
    hanging = crew.submit(time.sleep, 600.0)
    assert crew.submit(pow, 2, 10).result() == 1024
    other = crew.submit(time.sleep, 0.3)
    crew.drop(hanging)
    with pytest.raises(crew.death_errors):
        hanging.result(timeout=60)
    assert other.result() is None
    assert crew.submit(pow, 3, 2).result() == 9
    assert time.monotonic() - clock < 120


def test_workers_do_not_care_about_the_interrupt_key_which_is_for_their_parent(crew):
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    pid = crew.submit(os.getpid).result()
    os.kill(pid, signal.SIGINT)
    assert crew.submit(os.getpid).result() == pid
    assert signal.SIGINT not in mask


def test_a_worker_that_is_killed_while_idle_is_replaced(crew):
    pid = crew.submit(os.getpid).result()
    os.kill(pid, signal.SIGKILL)
    try:
        after = crew.submit(os.getpid).result()
    except crew.death_errors:  # before its death was noticed
        after = crew.submit(os.getpid).result()
    assert after != pid
    assert alive(after)


def test_closing_ends_all_workers_whatever_they_are_doing():
    pool = wk.start_workers(1)
    pid = pool.submit(os.getpid).result()
    busy = pool.submit(time.sleep, 600.0)
    pool.close()
    assert busy.done()
    assert not alive(pid)


@pytest.mark.parametrize("workers", [0, True, 2.0, "2", None])
def test_a_number_of_workers_that_is_none_starts_nothing(workers):
    with pytest.raises(InputError, match="workers must be a whole number from 1 on"):
        wk.start_workers(workers)


def test_more_workers_than_a_machine_can_bear_start_nothing():
    with pytest.raises(InputError, match=r"workers must be at most [\d,]+, not 100000"):
        wk.start_workers(100_000)


ORPHANS = """
import time
from odinfer.parallel import executor
from odinfer.parallel import workers
if __name__ == "__main__":
    crew = workers.start_workers(2)
    crew.submit(time.time).result()  # with the first task, all start
    print(*(process._pid.result() for process in crew._processes), flush=True)
    list(executor.run_tasks(time.sleep, [executor.Task(i, (600.0,)) for i in range(2)], crew))
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
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
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


# --- a Dask cluster


@pytest.fixture
def environment(monkeypatch):
    """Where threads are set and XLA is told, put back afterwards."""
    for name in (*wk._SINGLE_THREADED, "XLA_FLAGS"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    return monkeypatch


def test_flags_of_the_user_are_kept_and_ours_is_added_once(environment):
    environment.setenv("XLA_FLAGS", "--xla_dump_to=here")
    for _ in range(2):
        wk._set_single_threaded()
        assert os.environ["XLA_FLAGS"] == f"--xla_dump_to=here {wk._XLA}"
    assert {name: os.environ[name] for name in wk._SINGLE_THREADED} == dict.fromkeys(wk._SINGLE_THREADED, "1")


def test_a_cluster_that_is_not_there_is_one_clear_line():
    with pytest.raises(InputError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        wk.DaskCluster.connect("tcp://127.0.0.1:9", patience=0.5)


def test_a_port_that_accepts_and_stays_silent_is_no_cluster():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match=rf"no Dask scheduler answers at '{address}' \(no answer within 0\.5 sec"):
            wk.DaskCluster.connect(address, patience=0.5)


def test_a_cluster_is_used_like_workers_of_this_machine_once_it_has_some(environment):
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, threads_per_worker=3, processes=False, dashboard_address=None) as dask:
        address = dask.scheduler_address
        with pytest.raises(InputError, match=f"scheduler at '{address}' has no workers; start some"):
            wk.DaskCluster.connect(address, patience=0.2)
        dask.scale(1)
        with closing(wk.start_workers(1, address)) as crew:
            assert isinstance(crew, wk.DaskCluster)
            assert crew.size == 3
            assert crew.submit(pow, 2, 10).result() == 1024
            slow = crew.submit(time.sleep, 0.5)
            crew.drop(slow)
            with pytest.raises(crew.death_errors):
                slow.result(timeout=60)
        assert ex.parallel_map(pow, [(2, i) for i in range(20)], cluster=address) == [2**i for i in range(20)]
        with pytest.raises(InputError, match="is gone; start it"):
            crew.submit(pow, 2, 3)
