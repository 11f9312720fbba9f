"""`odinfer bench`: what is wrong is said before anything is computed, and what is stored is told and reported."""

import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from bench_runs import bench, write_grid
from odinfer.apps.command import bench as commands
from odinfer.apps.command import cli
from odinfer.paper.bench import grid as grids
from odinfer.parallel import workers
from odinfer.parallel.resume import JobProgress
from odinfer.parallel.store import Store
from stores import writes


@pytest.fixture(scope="module")
def grid(tmp_path_factory) -> Path:
    return write_grid(tmp_path_factory.mktemp("grid"))


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """Results that nobody computed: of three draws two, one of which failed; and one of another grid."""
    folder = tmp_path_factory.mktemp("store")
    grid = grids.read(str(write_grid(tmp_path_factory.mktemp("other"))))
    first, second, _ = (run for _, run in grid.runs(grid.chosen()))
    theta = {"a": 2.0, "b": 1.0, "c": 4.0, "d": 1.0}
    good = {"status": "converged", "converged": True, "theta": theta, "state_rmse": 0.05, "trmse": 0.04}
    bad = {"status": "failed: nothing is finite", "converged": False, "theta": {}}
    timing = {"seconds": 0.1, "cpu": 0.1, "first": False}
    found = [(first.key, first, good), (second.key, second, bad), ("other", first, good)]
    with Store(folder, create=True) as opened:
        opened.add_grid(grid.content)
        opened.add([{"key": k, "run": asdict(run), "outcome": o, "timing": timing} for k, run, o in found])
    return folder


def run(monkeypatch, capsys, *arguments: object) -> tuple[int, str, str]:
    """The command in this process: exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "argv", ["odinfer", "bench", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    return left.value.code, *capsys.readouterr()


BAD = {
    "workers": (["--workers", "0"], "workers must be a whole number from 1 on, not 0"),
    "shard": (["--shard", "3/2"], "--shard takes i/n"),
    "method": (["--methods", "odinn"], "did you mean 'odin'?"),
    "system": (["--systems", "lotka_voltera"], "did you mean 'lotka_volterra'?"),
    "draws": (["--draws", "0"], "--draws must be a whole number from 1 on"),
    "cluster": (["--cluster", "tcp://127.0.0.1:9"], "no Dask scheduler answers at 'tcp://127.0.0.1:9'"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line_before_anything_is_computed(grid, tmp_path, what, monkeypatch, capsys):
    flags, words = BAD[what]
    connect = workers.DaskCluster.connect
    monkeypatch.setattr(workers.DaskCluster, "connect", staticmethod(lambda address: connect(address, patience=0.5)))
    monkeypatch.setattr(sys, "argv", ["odinfer", "bench", "run", str(grid), "--store", str(tmp_path / "s"), *flags])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert writes(tmp_path / "s") == 0


def test_a_store_that_cannot_be_written_to_is_said_before_computing(grid, tmp_path):
    (tmp_path / "file").write_text("")
    done = bench("run", grid, "--store", tmp_path / "file" / "s", code=2)
    assert "cannot write to the store" in done.stderr
    assert bench("report", "--store", tmp_path / "none", code=2).stderr.count("\n") == 1
    assert "there are no results" in bench("status", "--store", tmp_path / "none", code=2).stderr


def test_status_says_what_is_stored_what_is_missing_and_what_failed(store, monkeypatch, capsys):
    code, out, err = run(monkeypatch, capsys, "status", "--store", store)
    assert (code, err) == (0, "")
    header, row, *rest = out.splitlines()
    assert header.split("  ")[0] == "setting"
    assert row.split()[-5:] == ["odin", "2", "3", "1", "0"]
    assert rest == ["", "2 of 3 runs are stored.", "1 more results belong to other grids or versions."]


def test_a_report_is_written_from_the_store_alone_and_says_what_to_open(store, tmp_path, monkeypatch, capsys):
    code, out, err = run(monkeypatch, capsys, "report", "--store", store, "-o", tmp_path / "r")
    assert (code, err) == (0, "")
    folder = tmp_path / "r"
    names = {path.name for path in folder.iterdir()}
    assert {"index.html", "1_states.csv", "1_states.png"} <= names
    assert out == f"Open {folder / 'index.html'} first. Also in {folder}: {len(names) - 1} tables and figures\n"


def test_a_grid_without_results_is_not_reported(store, tmp_path, monkeypatch, capsys):
    code, out, err = run(monkeypatch, capsys, "report", "paper", "--store", store, "-o", tmp_path / "r")
    assert (code, out) == (2, "")
    assert err.startswith("error: the store has no results of this grid")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (JobProgress(5, before=5), "5 of 5 runs are stored."),
        (JobProgress(5, 2, 3, seconds=7.4), "5 of 5 runs are stored; 3 of them computed now in 7.4 s."),
        (JobProgress(9, 1, 4, seconds=300.0), "5 of 9 runs are stored; 4 of them computed now in 5 min."),
        (JobProgress(9, 5, failed=2), "5 of 9 runs are stored; 2 failed."),
        (JobProgress(9, 5, claimed_by_others=4), "5 of 9 runs are stored; 4 are being computed by another process."),
        (JobProgress(5, before=5, damaged=1), "5 of 5 runs are stored; 1 damaged results of the store were discarded."),
    ],
)
def test_how_a_run_ended_is_said_in_a_sentence(state, words):
    assert commands._end_message(state) == words


def test_without_a_terminal_progress_is_a_line_now_and_then(monkeypatch, capsys):
    state = JobProgress(9, 1, 4, failed=2, left=60.0)
    with commands._progress(quiet=False) as tell:
        tell(state)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(commands, "PROGRESS_SECONDS", 0.0)
        tell(state)
        assert capsys.readouterr().err == "5 of 9 runs, 2 failed, 60 s left\n"
    with commands._progress(quiet=True) as tell:
        assert tell is None
