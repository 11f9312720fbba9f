"""The command survives what happens to long runs: kills, interrupts, neighbours, damage, full disks, hanging fits.

Every test ends with the records that an uninterrupted run gives, timings aside.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench_runs import bench, children, command, gone, outcomes, start, wait_for_records, write_grid
from odinfer.parallel.store import DATABASE
from stores import damage, execute, writes

DRAWS = 24


@pytest.fixture(scope="module")
def grid(tmp_path_factory) -> Path:
    return write_grid(tmp_path_factory.mktemp("grid"), draws=DRAWS)


@pytest.fixture(scope="module")
def reference(grid, tmp_path_factory) -> Path:
    """Of one worker, uninterrupted."""
    folder = tmp_path_factory.mktemp("reference")
    done = bench("run", grid, "--store", folder, "--workers", 1)
    assert done.stdout.startswith(f"{DRAWS} of {DRAWS} runs are stored")
    return folder


@pytest.fixture
def begun(grid, reference, tmp_path) -> Path:
    """A store with the first few results of the reference: what an interrupted run leaves, without its time."""
    shutil.copy(reference / DATABASE, tmp_path)
    execute(tmp_path, "DELETE FROM record WHERE id > ?", DRAWS - 3)
    execute(tmp_path, "DELETE FROM grid")
    execute(tmp_path, "VACUUM")
    return tmp_path


def test_records_are_those_of_real_fits(reference):
    found = outcomes(reference)
    assert len(found) == DRAWS
    for run, outcome in found.values():
        assert outcome["status"] == "converged"
        assert outcome["theta"]["c"] == pytest.approx(4.0, rel=0.25)
        # Both conventions of the trajectory error: N = 20 points, K = 2 states.
        assert outcome["trmse_paper"] == pytest.approx(outcome["trmse"] * (2 / 20) ** 0.5)
        assert run["seed"] in range(5, 5 + DRAWS)


def test_a_killed_worker_costs_nothing_and_two_workers_give_the_records_of_one(grid, reference, tmp_path):
    process = start("run", grid, "--store", tmp_path, "--workers", 2)
    wait_for_records(tmp_path, process)
    os.kill(children(process.pid)[0], signal.SIGKILL)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert f"{DRAWS} of {DRAWS} runs are stored" in out
    assert outcomes(tmp_path) == outcomes(reference)


def test_after_a_kill_of_the_main_process_workers_end_and_the_same_command_resumes(grid, reference, tmp_path):
    process = start("run", grid, "--store", tmp_path, "--workers", 1)
    wait_for_records(tmp_path, process)
    workers = children(process.pid)
    assert workers
    process.kill()
    process.communicate()
    assert gone(workers)
    stored = outcomes(tmp_path)
    assert 0 < len(stored) < DRAWS
    done = bench("run", grid, "--store", tmp_path, "--workers", 1)
    assert f"{DRAWS - len(stored)} of them computed now" in done.stdout
    assert outcomes(tmp_path) == outcomes(reference)
    assert outcomes(tmp_path).items() >= stored.items()


def test_ctrl_c_keeps_what_is_done_and_the_same_command_resumes(grid, reference, tmp_path):
    process = start("run", grid, "--store", tmp_path, "--workers", 1)
    wait_for_records(tmp_path, process)
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert re.fullmatch(r"interrupted; the store has \d+ results, and the same command resumes from there\n", err)
    assert out == ""
    assert gone(workers)
    assert 0 < len(outcomes(tmp_path)) < DRAWS
    bench("run", grid, "--store", tmp_path, "--workers", 1)
    assert outcomes(tmp_path) == outcomes(reference)


def test_two_processes_on_one_store_share_the_runs(grid, reference, tmp_path):
    processes = [start("run", grid, "--store", tmp_path, "--workers", 1) for _ in range(2)]
    for process in processes:
        _, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
    assert writes(tmp_path) == DRAWS
    assert outcomes(tmp_path) == outcomes(reference)


def test_a_damaged_record_is_set_aside_and_computed_again(grid, reference, begun):
    damage(begun, '"converged":true', '"converged":trve')
    done = bench("run", grid, "--store", begun, "--workers", 1)
    assert "4 of them computed now" in done.stdout
    assert "1 damaged results of the store were discarded" in done.stdout
    assert outcomes(begun) == outcomes(reference)


def test_a_full_disk_is_one_clear_line_and_costs_nothing_stored(grid, reference, begun):
    stored = outcomes(begun)
    size = (begun / DATABASE).stat().st_size + 9000  # room for the grid and a result or two
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    done = bench("run", grid, "--store", begun, "--workers", 1, "--quiet", code=2, before=limit)
    reason = "(disk I/O error|database or disk is full)"
    line = rf"error: cannot write to the store .*: {reason}; the \d+ results in it are safe.*\n"
    assert re.fullmatch(line, done.stderr)
    assert stored.items() <= outcomes(begun).items() < outcomes(reference).items()
    bench("run", grid, "--store", begun, "--workers", 1)
    assert outcomes(begun) == outcomes(reference)


def test_a_fit_that_hangs_is_given_up_with_a_status_and_can_be_tried_again(tmp_path):
    grid = write_grid(tmp_path, draws=1, systems="['decay']", methods="['gpr', 'endless']", timeout=8.0)
    done = bench("run", grid, "--store", tmp_path / "s", "--workers", 1)
    assert "2 of 2 runs are stored" in done.stdout
    assert "1 failed" in done.stdout
    statuses = sorted(outcome["status"] for _, outcome in outcomes(tmp_path / "s").values())
    assert statuses == ["converged", "timed out: took longer than 8 s"]
    assert "2 of 2 runs are stored." in bench("run", grid, "--store", tmp_path / "s").stdout  # a status is a result
    shown = bench("status", "--store", tmp_path / "s").stdout
    assert re.search(r"endless\s+1\s+1\s+1\s+0", shown)


def dask(*arguments: str) -> subprocess.Popen[bytes]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", *arguments, "--no-dashboard"], **quiet)


def test_a_dask_cluster_gives_the_same_records_though_one_of_its_workers_is_killed(grid, reference, tmp_path):
    file = tmp_path / "scheduler.json"
    here = ("--scheduler-file", str(file))
    crew = [dask("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *here)]
    try:
        end = time.monotonic() + 60
        while not file.is_file() and time.monotonic() < end:
            time.sleep(0.05)
        address = re.search(r"tcp://127\.0\.0\.1:\d+", file.read_text())[0]
        one = (
            "distributed.cli.dask_worker",
            *here,
            "--nthreads",
            "1",
            "--no-nanny",
            "--local-directory",
            str(tmp_path),
        )
        crew += [dask(*one), dask(*one)]
        process = start("run", grid, "--store", tmp_path / "s", "--cluster", address)
        wait_for_records(tmp_path / "s", process)
        crew[1].kill()
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        assert f"{DRAWS} of {DRAWS} runs are stored" in out
    finally:
        for member in crew:
            member.kill()
            member.wait()
    assert outcomes(tmp_path / "s") == outcomes(reference)


def test_shards_in_stores_of_their_own_are_reported_together(grid, reference, tmp_path):
    for i in (1, 2):
        folder = tmp_path / str(i)
        folder.mkdir()
        shutil.copy(reference / DATABASE, folder)
        done = subprocess.run(
            command("run", grid, "--store", folder, "--shard", f"{i}/2", "--workers", 1), capture_output=True, text=True
        )
        assert re.match(r"(\d+) of \1 runs are stored", done.stdout), done.stderr
    both = bench("status", "--store", tmp_path / "1", "--store", tmp_path / "2").stdout
    assert f"{DRAWS} of {DRAWS} runs are stored." in both
