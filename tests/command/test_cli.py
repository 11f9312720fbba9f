"""The command as a user runs it: in a process of its own, in a pipe, on a terminal, interrupted."""

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import odinfer as od
from odinfer.command import describe as check
from odinfer.command import example
from odinfer.problem.csv_file import read_csv
from odinfer.problem.model import Model
from odinfer.problem.problem import Problem


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """Compiled code of the tests stays out of the user's cache, and the first fit is a cold one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


MAIN = "from odinfer.command.cli import main; main()"
OUTPUTS = {"fit.json", "fit.nc", "states.csv", "plot.png", "report.html"}


class Run(NamedTuple):
    folder: Path
    code: int
    stdout: str
    stderr: str


def odinfer(*arguments: object, cwd: Path, code: str = MAIN) -> Run:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)
    return Run(cwd, done.returncode, done.stdout, done.stderr)


def on_a_terminal(*arguments: object, cwd: Path) -> tuple[int, str]:
    master, slave = pty.openpty()
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=cwd, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 4096):
            shown += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(master)
    return process.wait(), shown.decode()


def near_truth(estimated: dict[str, float], truth: dict[str, float], tolerance: float = 0.25) -> bool:
    return all(abs(estimated[name] - value) <= tolerance * abs(value) for name, value in truth.items())


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("fit")
    example.write("lotka_volterra", folder)
    return odinfer("fit", "lotka_volterra.ode", "lotka_volterra.csv", "--truth", "truth.json", cwd=folder)


# --- fit


def test_a_fit_ends_well_and_finds_the_truth(fitted: Run):
    assert (fitted.code, fitted.stderr) == (0, "")
    content = json.loads((fitted.folder / "lotka_volterra-fit" / "fit.json").read_text())
    assert near_truth(content["theta"], json.loads((fitted.folder / "truth.json").read_text()))


def test_a_fit_in_a_pipe_prints_plain_text_with_all_names_and_what_to_open(fitted: Run):
    assert "\x1b" not in fitted.stdout
    for word in ("a", "b", "c", "d", "prey", "predator", "converged"):
        assert word in fitted.stdout.split() or word in fitted.stdout
    last = fitted.stdout.splitlines()[-1]
    assert last.startswith(f"Open {Path('lotka_volterra-fit') / 'report.html'} first")
    for name in OUTPUTS:
        assert name in last


def test_a_fit_writes_its_outputs_and_nothing_else(fitted: Run):
    folder = fitted.folder / "lotka_volterra-fit"
    assert {path.name for path in folder.iterdir()} == OUTPUTS
    assert all(path.stat().st_size > 100 for path in folder.iterdir())
    assert set(os.listdir(fitted.folder)) == {
        "lotka_volterra.ode",
        "lotka_volterra.csv",
        "truth.json",
        "lotka_volterra-fit",
    }


def test_json_is_one_document_and_an_undeclared_column_becomes_an_input(tmp_path: Path):
    ode, data, truth = example.write("driven_oscillator", tmp_path)
    ode.write_text(ode.read_text().replace("input u\n", ""))
    run = odinfer("fit", ode, data, "--json", "-o", "deep/out", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert near_truth(json.loads(run.stdout)["theta"], json.loads(truth.read_text()))
    assert json.loads(run.stdout) == json.loads((tmp_path / "deep" / "out" / "fit.json").read_text())
    (note,) = run.stderr.splitlines()
    assert note.startswith("note: 'u' is a column of the data")


def test_quiet_prints_nothing_and_replaces_older_outputs_only(tmp_path: Path):
    ode, data, truth = example.write("two_doses", tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    (out / "fit.json").write_text("old")
    (out / "notes.txt").write_text("mine")
    run = odinfer("fit", ode, data, "--quiet", "-o", "out", cwd=tmp_path)
    assert run[1:] == (0, "", "")
    content = json.loads((out / "fit.json").read_text())
    assert near_truth(content["theta"], json.loads(truth.read_text()))
    assert len(content["experiments"]) == 2
    assert (out / "notes.txt").read_text() == "mine"


def test_a_terminal_sees_progress_and_a_table(tmp_path: Path):
    ode, data, truth = example.write("sir", tmp_path)
    code, shown = on_a_terminal("fit", ode, data, "--truth", truth, cwd=tmp_path)
    assert code == 0, shown
    assert "smoothing the data" in shown
    assert "infection" in shown
    assert "\x1b[" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(("kind", "words"), [("profile", "profile likelihood"), ("bootstrap", "bootstrap")])
def test_other_intervals_are_printed_saved_and_drawn(tmp_path: Path, kind: str, words: str):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    run = odinfer("fit", ode, data, "--uncertainty", kind, "-o", "out", cwd=tmp_path)
    assert (run.code, run.stderr) == (0, "")
    assert f"Intervals: {words}, 95 %." in run.stdout
    fit = od.load(tmp_path / "out" / "fit.json")
    assert fit.interval(kind=kind) != fit.interval()
    printed = next(line for line in run.stdout.splitlines() if line.split()[:1] == ["a"])
    low, high = fit.interval(kind=kind)["a"]
    assert f"{low:.4g}" in printed
    assert f"{high:.4g}" in printed


def test_sampling_shows_its_progress_on_a_terminal(tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    code, shown = on_a_terminal("fit", ode, data, "--uncertainty", "sample", "-o", "out", cwd=tmp_path)
    assert code == 0, shown
    assert "finding step widths" in shown
    assert "Intervals: posterior, 95 %." in shown
    fit = od.load(tmp_path / "out" / "fit.json")
    assert fit.posterior.converged
    low, high = fit.interval(kind="sample")["a"]
    assert low < fit.theta["a"] < high
    assert "Pairs of parameters" in (tmp_path / "out" / "report.html").read_text()


def test_uncertainty_of_what_has_none_is_a_note_and_an_unknown_kind_an_error(tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    run = odinfer("fit", ode, data, "--method", "gpr", "--uncertainty", "bootstrap", cwd=tmp_path)
    assert run.code == 0
    assert run.stderr.startswith("note: no bootstrap: ")
    run = odinfer("fit", ode, data, "--uncertainty", "bootstap", cwd=tmp_path)
    assert run[1:] == (2, "", "error: --uncertainty: unknown kind 'bootstap'; did you mean 'bootstrap'?\n")


def test_a_fit_that_does_not_converge_is_exit_code_1_and_still_written(tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    code = (
        "import dataclasses, odinfer.methods.odin as o; from odinfer.command.cli import main\n"
        "fit = o.Odin.fit\n"
        "o.Odin.fit = lambda *a, **k: dataclasses.replace(fit(*a, **k), converged=False, status='gave up')\n"
        "main()"
    )
    run = odinfer("fit", ode, data, "--no-refine", "--gamma", "0.01", "--kernel", "rbf", cwd=tmp_path, code=code)
    assert run.code == 1
    assert run.stderr == "not converged: gave up\n"
    options = json.loads((tmp_path / "lotka_volterra-fit" / "fit.json").read_text())["options"]
    assert (options["refine"], options["gamma"], options["kernel"]) == (False, 0.01, "rbf")


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(ode))
    run = odinfer("fit", ode, data, "--quiet", cwd=tmp_path)
    assert run[1:] == (0, "", "")


def test_ctrl_c_leaves_nothing_and_is_exit_code_130(tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    before = sorted(os.listdir(tmp_path))
    slow = [sys.executable, "-c", MAIN, "fit", ode, data, "--grid", "60", "--starts", "400", "--optimizer", "lbfgsb"]
    process = subprocess.Popen(slow, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(tmp_path.glob(".odinfer-*")):
        time.sleep(0.05)
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert (stdout, stderr) == ("", "interrupted; nothing was written\n")
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("method", ["agm", "fgpgm"])
def test_a_sampler_shows_the_time_left_and_ctrl_c_leaves_nothing(tmp_path: Path, method: str):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    before = sorted(os.listdir(tmp_path))
    screen, terminal = os.openpty()
    size = {"COLUMNS": "100", "LINES": "20", "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "fit", ode, data, "--method", method],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, env=os.environ | size,
    )  # fmt: skip
    os.close(terminal)
    shown = ""
    with process:
        try:
            while not re.search(r"(adapting|finding step widths) .*\d+% \d+:\d\d left", shown):
                more = os.read(screen, 4096)  # an error where the command has ended before
                shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", more.decode(errors="ignore"))
            process.send_signal(signal.SIGINT)
            stdout, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    os.close(screen)
    assert (process.returncode, stdout) == (130, b"")
    assert sorted(os.listdir(tmp_path)) == before


# --- check


def test_check_describes_and_warns_without_writing(tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    lines = data.read_text().splitlines()
    data.write_text("\n".join([f"{lines[0]},note", *(f"{line},x" for line in lines[1:])]))
    before = sorted(os.listdir(tmp_path))
    run = odinfer("check", ode, data, "--set", "a=0:10", "--log", "b,c", "--positive", cwd=tmp_path)
    assert run.code == 0
    assert "Looks good." in run.stdout
    assert "0 to 10" in run.stdout
    assert run.stderr.splitlines() == [run.stderr.rstrip()]
    assert run.stderr.startswith("warning: ")
    assert "'note'" in run.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_a_parameter_the_user_speaks_about_is_not_taken_for_a_column(tmp_path: Path):
    ode, data, _ = example.write("driven_oscillator", tmp_path)
    ode.write_text(ode.read_text().replace("input u\n", ""))
    run = odinfer("check", ode, data, "--start", "u=2", "--fixed", "gain=1", cwd=tmp_path)
    assert run.code == 0
    assert "3 parameters to estimate" in run.stdout
    assert "note:" not in run.stderr


def test_inputs_are_found_in_long_tables_too(tmp_path: Path):
    (tmp_path / "m.ode").write_text("x' = -k*x + u")
    rows = [f"{t},{name},{value}" for t in range(6) for name, value in (("x", 5 - t / 2), ("u", t % 2))]
    (tmp_path / "d.csv").write_text("\n".join(["time,observable,value", *rows]))
    run = odinfer("check", "m.ode", "d.csv", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert "1 parameter to estimate" in run.stdout
    assert "'u' is a column" in run.stderr


# --- simulate


def table(text: str) -> tuple[list[str], np.ndarray]:
    header, *rows = csv.reader(io.StringIO(text))
    return header, np.array([[float(cell or "nan") for cell in row] for row in rows])


def test_simulate_prints_the_solution_or_writes_it(tmp_path: Path):
    (tmp_path / "m.ode").write_text("x' = -k*x\ny' = k*x\nfixed k = 0.5")
    command = ("simulate", "m.ode", "--x0", "x=2,y=0", "--times")
    printed = odinfer(*command, "0:4:5", cwd=tmp_path)
    header, values = table(printed.stdout)
    assert header == ["time", "x", "y"]
    np.testing.assert_allclose(values[:, 0], np.arange(5))
    np.testing.assert_allclose(values[:, 1], 2 * np.exp(-0.5 * np.arange(5)), rtol=1e-7)
    noisy = [odinfer(*command, "0,1,2.5", "--noise", "0.1", "--seed", "7", "-o", name, cwd=tmp_path) for name in "ab"]
    assert [run[1:] for run in noisy] == [(0, "", "")] * 2
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert table((tmp_path / "a").read_text())[1][:, 0].tolist() == [0.0, 1.0, 2.5]
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "m.ode"]


def test_simulate_takes_inputs_and_parameters_from_files(tmp_path: Path):
    ode, data, truth = example.write("driven_oscillator", tmp_path)
    command = ("simulate", ode, "--theta", truth, "--x0", "position=1,velocity=0", "--times", "0:10:41")
    run = odinfer(*command, "--inputs", data, cwd=tmp_path)
    assert run.code == 0, run.stderr
    observed = read_csv(data, ["position", "velocity"], ["u"]).y
    assert np.abs(table(run.stdout)[1][:, 1:] - observed).max() < 0.25


def test_a_solution_that_blows_up_is_exit_code_1_and_said(tmp_path: Path):
    (tmp_path / "m.ode").write_text("x' = x^2")
    run = odinfer("simulate", "m.ode", "--x0", "x=1", "--times", "0:2:5", cwd=tmp_path)
    assert run.code == 1
    assert "blows up before time 2" in run.stderr
    values = table(run.stdout)[1]
    assert values[0].tolist() == [0.0, 1.0]
    assert np.isnan(values[2:, 1]).all()


# --- examples, help, version


def test_examples_are_listed_and_written_unless_a_file_would_be_lost(tmp_path: Path):
    listed = odinfer("example", cwd=tmp_path)
    assert listed.code == 0
    assert all(name in listed.stdout for name in example.names())
    written = odinfer("example", "sir", cwd=tmp_path)
    assert written.code == 0
    assert sorted(os.listdir(tmp_path / "sir")) == ["sir.csv", "sir.ode", "truth.json"]
    assert odinfer("example", "sir", cwd=tmp_path).code == 0
    (tmp_path / "sir" / "sir.csv").write_text("mine")
    refused = odinfer("example", "sir", "sir", cwd=tmp_path)
    assert refused.code == 2
    assert "--force" in refused.stderr
    assert (tmp_path / "sir" / "sir.csv").read_text() == "mine"
    assert odinfer("example", "sir", "sir", "--force", cwd=tmp_path).code == 0
    assert (tmp_path / "sir" / "sir.csv").read_text() != "mine"


@pytest.mark.parametrize("name", example.names())
def test_every_example_reads_without_a_finding(name: str, tmp_path: Path):
    ode, data, truth = example.write(name, tmp_path)
    model = Model.from_file(ode)
    problem = Problem(model, read_csv(data, model.states, model.inputs))
    assert check.findings(problem) == []
    assert set(json.loads(truth.read_text())) == set(problem.free)


@pytest.mark.parametrize("command", ["fit", "check", "simulate", "example"])
def test_help_shows_examples(command: str, tmp_path: Path):
    run = odinfer(command, "--help", cwd=tmp_path)
    assert run.code == 0
    assert f"odinfer {command} " in run.stdout.partition("Example")[2]


def test_help_and_version_are_quick_since_they_load_nothing_heavy(tmp_path: Path):
    heavy = "{'jax', 'scipy', 'pandas', 'matplotlib', 'xarray'} & {*sys.modules}"
    code = f"import sys; from odinfer.command.cli import main\ntry: main()\nfinally: print({heavy})"
    for arguments in (["--help"], ["--version"], ["example"]):
        run = odinfer(*arguments, cwd=tmp_path, code=code)
        assert run.code == 0
        assert run.stdout.splitlines()[-1] == "set()"
    assert odinfer("--version", cwd=tmp_path).stdout.startswith("odinfer ")
