"""`odinfer fit --each` as a user starts it: tables and a page, without JAX, and nothing lost to a kill."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from apps.command.commands import MAIN, odinfer
from bench_runs import children, gone, wait_for_records
from odinfer.apps.command.each import STORE
from odinfer.parallel.store import Store
from stores import writes

T = np.linspace(0.0, 4.0, 12)


def write_series(folder: Path, count: int) -> None:
    (folder / "decay.ode").write_text("x' = -k*x\nlog k\n")
    rng = np.random.default_rng(0)
    with open(folder / "many.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["plot", "time", "x"])
        for i in range(count):
            y = 3.0 * np.exp(-0.7 * T) + 0.05 * rng.normal(size=12)
            rows.writerows([f"p{i}", t, x] for t, x in zip(T.tolist(), y.tolist(), strict=True))
        rows.writerows([["short", 0.0, 3.0], ["short", 1.0, 1.5]])


def each(folder: Path, *more: object):
    return odinfer("fit", "decay.ode", "many.csv", "--each", "--map", "plot=experiment", *more, cwd=folder)


@pytest.fixture
def without_jax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JAX that cannot be imported, by the command or by its workers."""
    broken = tmp_path / "broken" / "jax"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('JAX was imported')")
    path = os.pathsep.join(filter(None, [str(broken.parent), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)


def test_every_series_has_a_row_and_a_panel_and_neither_command_nor_workers_import_jax(tmp_path, without_jax):
    imported = subprocess.run([sys.executable, "-c", "import jax"], capture_output=True, text=True)
    assert "JAX was imported" in imported.stderr  # the trap works
    write_series(tmp_path, 14)
    done = each(tmp_path, "--workers", 2)
    assert done.code == 0, done.stderr
    assert "15 series, fitted one by one: 14 converged." in done.stdout
    assert "short (failed: state 'x' has too few observations: 2; 4 are needed)" in " ".join(done.stdout.split())
    assert "Open decay-each/report.html first. Also in decay-each: estimates.csv" in done.stdout
    with open(tmp_path / "decay-each" / "estimates.csv", newline="") as file:
        table = {row["experiment"]: row for row in csv.DictReader(file)}
    assert len(table) == 15
    inside = [float(r["k_low"]) < 0.7 < float(r["k_high"]) for r in table.values() if r["k"]]
    assert len(inside) == 14
    assert sum(inside) >= 11
    assert (tmp_path / "decay-each" / "report.html").read_text().count("<figure") == 14
    again = each(tmp_path, "--json")  # from the store
    rows = json.loads(again.stdout)
    assert [row["experiment"] for row in rows] == list(table)
    assert writes(tmp_path / "decay-each" / STORE) == 14


def test_after_a_kill_in_the_middle_the_same_command_computes_only_what_is_missing(tmp_path):
    write_series(tmp_path, 40)
    command = [sys.executable, "-c", MAIN, "fit", "decay.ode", "many.csv", "--each", "--map", "plot=experiment"]
    process = subprocess.Popen(
        [*command, "--workers", "1"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    store = tmp_path / "decay-each" / STORE
    wait_for_records(store, process)
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert workers
    assert gone(workers)
    before = dict(Store(store).records)
    assert 0 < len(before) < 40
    assert not (tmp_path / "decay-each" / "report.html").exists()
    done = each(tmp_path, "--workers", 1)
    assert done.code == 0, done.stderr
    after = Store(store).records
    assert len(after) == 40
    assert writes(store) == 40  # none twice
    assert after.items() >= before.items()


def test_who_terminates_it_is_told_where_the_results_are(tmp_path):
    write_series(tmp_path, 40)
    command = [sys.executable, "-c", MAIN, "fit", "decay.ode", "many.csv", "--each", "--map", "plot=experiment"]
    process = subprocess.Popen(
        [*command, "--workers", "1"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_records(tmp_path / "decay-each" / STORE, process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert (out, err) == (
        "", f"terminated; finished series are in decay-each/{STORE}, and the same command resumes\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--store", "s", "--timeout", "3"], "--timeout is for --each, which was not given"),
        (["--each", "--truth", "k=1"], "--truth cannot be used with --each"),
        (["--each", "--workers", "0"], "workers must be a whole number from 1 on"),
        (["--each", "--timeout", "0"], "timeout must be positive"),
        (["--each", "--store", "decay.ode"], "cannot write to the store 'decay.ode'"),
    ],
)
def test_flags_that_cannot_be_meant_are_refused_in_one_line(tmp_path, flags, words):
    write_series(tmp_path, 2)
    done = odinfer("fit", "decay.ode", "many.csv", "--map", "plot=experiment", *flags, cwd=tmp_path)
    assert done.code == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "decay-each" / "report.html").exists()
