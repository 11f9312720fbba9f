"""The report as a whole: every item of the paper has its table and figure, and names are text, not markup."""

import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from bench_runs import bench, command, outcomes, start, wait_for_records
from odinfer.errors import InputError
from odinfer.paper.bench import grid as grids
from odinfer.paper.bench.report.page import PAGE, troubles, write
from odinfer.paper.bench.report.results import Results
from odinfer.parallel.store import Store
from paper.bench.report.invented import emptied, rows


def test_every_item_of_the_paper_has_a_table_and_a_figure(written):
    _, folder = written
    for item in range(1, 9):
        tables, figures = list(folder.glob(f"{item}_*.csv")), list(folder.glob(f"{item}_*.png"))
        assert tables, item
        assert figures, item
        assert all(len(rows(path)) > 0 for path in tables)
        assert all(path.stat().st_size > 5000 for path in figures)
    page = (folder / PAGE).read_text("utf-8")
    assert page.count("<table>") >= 10
    assert page.count("data:image/svg+xml") == len(list(folder.glob("*.png")))  # which follow the page by night
    assert "data:image/png" not in page
    for alt in re.findall(r'<img alt="([^"]*)"', page):
        assert re.search(r"\. \w.*\d", alt), alt
    assert "Not run yet" not in page


def test_names_in_a_grid_of_ones_own_are_text_and_not_markup(tmp_path):
    text = """
title = "<script>alert(1)</script>"
draws = 3
[systems.decay]
label = "=cmd <b>"
equations = "x' = -k*x"
theta = { k = 0.7 }
x0 = { x = 3.0 }
times = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
noise = [0.05]
[methods.odin]
[methods.gpr]
[methods.limit]
[candidates.growth]
equations = "x' = k"
wrong = ["x"]
[[experiments]]
systems = ["decay"]
methods = ["odin", "gpr", "limit"]
[[experiments]]
systems = ["decay"]
methods = ["odin"]
candidates = ["growth"]
"""
    (tmp_path / "g.toml").write_text(text)
    bench("run", tmp_path / "g.toml", "--store", tmp_path / "s", "--workers", 1)
    done = bench("report", "--store", tmp_path / "s", "-o", tmp_path / "r")
    assert done.stdout.startswith(f"Open {tmp_path / 'r' / PAGE} first")
    page = (tmp_path / "r" / PAGE).read_text("utf-8")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert not rows(tmp_path / "r" / "1_states.csv")[0]["setting"].startswith("=")
    (row,) = rows(tmp_path / "r" / "7_model_selection.csv")
    assert row["equation_is_wrong"] == "True"
    limits = rows(tmp_path / "r" / "2_limit.csv")[0]
    assert float(limits["ratio"]) == pytest.approx(1.0, abs=0.05)
    errors = rows(tmp_path / "r" / "1_states.csv")
    assert {r["method"] for r in errors} == {"odin", "gpr", "limit"}
    assert all(0 < float(r["median"]) < 0.1 for r in errors)


def test_what_went_wrong_is_counted_by_sentence_without_its_numbers(results):
    (line, count), *others = troubles(results)
    assert line == "two-step: timed out: took longer than … s"
    assert count == 3
    assert all(n <= count for _, n in others)


def test_a_grid_before_its_first_result_is_not_reported(results, tmp_path):
    with pytest.raises(InputError, match="run it first"):
        write(emptied(results), tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_folder_that_cannot_be_made_is_said_before_anything_is_drawn(results, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write to .*choose another place"):
        write(results, tmp_path / "file" / "report")


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_the_paper_in_small_is_produced_by_one_command_also_after_a_kill(tmp_path):
    makefile = (Path(__file__).parents[4] / "Makefile").read_text()
    recipe = makefile.split("\npaper:")[1].split("\n\n")[0].replace("\\\n", " ").split("\n")[1:]
    settings = makefile.split("SETTINGS := ")[1].split("\n")[0]
    store, page = str(tmp_path / "runs"), str(tmp_path / "report")
    commands = []
    for line in recipe:
        words = line.replace("$(SETTINGS)", settings).replace("-o paper-report", f"-o {page}").split()
        assert words[:2] == ["$(BIN)/odinfer", "bench"]
        commands.append([store if word == "paper-report/runs" else word for word in words[2:]])
    process = start(*commands[0])
    wait_for_records(Path(store), process, 20)
    process.kill()
    process.communicate()
    before = outcomes(Path(store))
    for arguments in commands:
        done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=2500)
        assert done.returncode == 0, done.stderr
    after = outcomes(Path(store))
    assert before.items() <= after.items()
    for item in range(1, 9):
        assert list((tmp_path / "report").glob(f"{item}_*.csv")), item
        assert list((tmp_path / "report").glob(f"{item}_*.png")), item
    text = (tmp_path / "report" / PAGE).read_text("utf-8")
    assert "Not run yet" not in text
    assert text.count('class="badge') >= 8


GRID = """
title = "mine"
draws = 1
[systems."x/../../../../PWNED"]
label = "$\\\\frac$ \\u001b[31m"
equations = "x' = -k*x"
theta = { k = 0.7 }
x0 = { x = 3.0 }
times = { start = 0.0, stop = 4.0, count = 12 }
noise = [0.05]
[methods.gpr]
label = "$x_{$"
[[experiments]]
systems = ["x/../../../../PWNED"]
methods = ["gpr"]
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A store of a grid whose names are paths, escapes of terminals and broken mathematics."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "grid.toml").write_text(GRID)
    grid = grids.read(str(folder / "grid.toml"))
    ((_, run),) = grid.runs(grid.chosen())
    outcome = {"status": "converged", "converged": True, "theta": {"k": 0.7}, "state_rmse": 0.1, "trmse": 0.1}
    outcome |= {"trmse_paper": 0.1, "trmses_paper": {"x": 0.1}}
    with Store(folder / "store", create=True) as store:
        store.add_grid(grid.content)
        timing = {"seconds": 1.0, "cpu": 1.0}
        store.add([{"key": run.key, "run": asdict(run), "outcome": outcome, "timing": timing}])
    return folder / "store"


def test_names_that_are_paths_write_nothing_outside_the_folder_and_labels_are_no_mathematics(hostile, tmp_path):
    out = tmp_path / "a" / "b" / "c" / "d" / "report"
    names = write(Results.of([hostile]), out)
    assert sorted(os.listdir(out)) == sorted(names)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != out] == []
    (one,) = [name for name in names if "PWNED" in name]
    assert re.fullmatch(r"2_trmse_x_PWNED-[0-9a-f]{16}\.png", one)


FULL = """
import resource, signal, sys
from pathlib import Path
from odinfer.paper.bench.report.page import write
from odinfer.paper.bench.report.results import Results
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
write(Results.of([Path(sys.argv[1])]), Path(sys.argv[2]))
"""


def test_a_full_disk_leaves_the_report_before_as_it_was(hostile, tmp_path):
    (tmp_path / "index.html").write_text("old")
    run = subprocess.run([sys.executable, "-c", FULL, hostile, tmp_path], capture_output=True, text=True)
    assert "InputError: cannot write to" in run.stderr, run.stderr
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"index.html": "old"}
