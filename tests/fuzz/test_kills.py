"""Commands that are killed at any moment leave whole files or none, and the same command succeeds afterwards."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import odinfer as od
from apps.command.commands import MAIN
from bench_runs import write_grid
from fits import uncertain
from odinfer.result.formats import write as write_fit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS = 30  # of each command
DECAY = "x' = -k*x\nx(0) = 5\n"
SUBJECTS = "x' = -k*x\nx(0) = 5\nx ~ normal(x, sd)\nk ~ lognormal(k_pop, omega) by subject\n"
SAVE = """
import odinfer as od
fits = [od.load("fit.json"), od.load("other.json")]
while True:
    for fit in fits:
        fit.save("fit.json")
"""


def series(folder: Path, model: str, experiments: int) -> None:
    rng, t = np.random.default_rng(0), np.arange(6.0)
    rows = ["time,x,subject"]
    for e in range(experiments):
        x = 5.0 * np.exp(-rng.lognormal(-0.7, 0.2) * t) + 0.05 * rng.normal(size=6)
        rows += [f"{when:g},{value:.4f},s{e}" for when, value in zip(t, x, strict=True)]
    (folder / "m.ode").write_text(model)
    (folder / "d.csv").write_text("\n".join([*rows, ""]))


def prepared(what: str, folder: Path) -> list[str]:
    """The arguments of a command, whose files are put into a folder."""
    match what:
        case "fit":
            series(folder, DECAY, 1)
            return ["fit", "m.ode", "d.csv", "-o", "out"]
        case "each":
            series(folder, DECAY, 8)
            return ["fit", "m.ode", "d.csv", "--each", "-o", "out"]
        case "population":
            series(folder, SUBJECTS, 6)
            return ["fit", "m.ode", "d.csv", "-o", "out"]
    grid = write_grid(folder, draws=4)
    return ["bench", "run", str(grid), "--store", "out", "--workers", "1"]


def is_whole(folder: Path) -> None:
    """Every file of results that is there can be read."""
    for path in folder.rglob("*.json"):
        content = json.loads(path.read_text())
        if str(content["format"]).startswith("odinfer-fit/"):
            od.load(path)
    for path in folder.rglob("report.html"):
        assert path.read_text().rstrip().endswith("</html>")


@pytest.mark.parametrize("what", ["fit", "each", "population", "bench"])
def test_killed_commands_leave_whole_files_and_succeed_afterwards(what: str, tmp_path: Path):
    command = [sys.executable, "-c", MAIN, *prepared(what, tmp_path)]
    begin = time.monotonic()
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    whole, rng = time.monotonic() - begin, random.Random(0)
    expected = sorted(path.name for path in (tmp_path / "out").iterdir())
    for _ in range(KILLS):
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 1.0) * whole)
        process.kill()
        process.wait()
        is_whole(tmp_path)
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == expected
    assert not list(tmp_path.rglob(".odinfer-*"))


def test_a_fit_that_is_saved_when_the_process_is_killed_is_the_old_or_the_new_one(tmp_path: Path):
    write_fit(uncertain(), tmp_path / "fit.json")
    write_fit(uncertain(), tmp_path / "other.json")
    rng = random.Random(0)
    expected = (tmp_path / "other.json").read_bytes()
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", SAVE], cwd=tmp_path)
        time.sleep(1.0 + rng.uniform(0.0, 1.0))
        process.kill()
        process.wait()
        assert (tmp_path / "fit.json").read_bytes() == expected
    od.load(tmp_path / "fit.json").save(tmp_path / "fit.json")
    assert not list(tmp_path.glob(".odinfer-*"))
