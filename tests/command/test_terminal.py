"""What commands share on a terminal: progress, lines on stderr, and outputs that appear all at once or not at all."""

import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import odinfer as od
from command.commands import MAIN, on_a_terminal
from odinfer.command import example
from odinfer.command.terminal import noticed, progress, say, staged
from odinfer.errors import InputError, InputWarning

# --- outputs


def test_outputs_appear_all_at_once_and_leave_other_files_alone(tmp_path: Path):
    out = tmp_path / "deep" / "out"
    with staged(out) as stage:
        (stage / "a.txt").write_text("new")
        (stage / "b.txt").write_text("new")
        assert not out.exists()
    assert {path.name: path.read_text() for path in out.iterdir()} == {"a.txt": "new", "b.txt": "new"}
    (out / "notes.txt").write_text("mine")
    with staged(out) as stage:
        (stage / "a.txt").write_text("newer")
    assert {path.name: path.read_text() for path in out.iterdir()} == {
        "a.txt": "newer", "b.txt": "new", "notes.txt": "mine",
    }  # fmt: skip
    assert sorted(os.listdir(tmp_path)) == ["deep"]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_after_an_error_nothing_appears(tmp_path: Path, error: type[BaseException]):
    def fail() -> None:
        with staged(tmp_path / "out") as stage:
            (stage / "a.txt").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_to_is_said_before_anything_is_computed(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    computed = []

    def compute() -> None:
        with staged(tmp_path / "file" / "out"):
            computed.append(1)

    with pytest.raises(InputError, match=r"cannot write to .*choose another place"):
        compute()
    assert computed == []
    assert (tmp_path / "file").read_text() == "in the way"


def test_interrupts_are_handled_as_before_once_the_outputs_are_there(tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    with staged(tmp_path / "out"):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


# --- lines


def test_what_is_said_is_one_line_on_stderr(capsys):
    say("two\n  lines\tof text ")
    assert capsys.readouterr() == ("", "two lines of text\n")


def test_notes_and_warnings_come_at_the_end_each_of_them_once(capsys):
    with noticed() as notes:
        notes += ["first", "first"]
        for _ in range(2):
            warnings.warn("odd data", InputWarning, stacklevel=1)
        warnings.warn("of some library", DeprecationWarning, stacklevel=1)
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err == "note: first\nwarning: odd data\n"


def test_quiet_keeps_warnings_and_leaves_notes_out(capsys):
    with noticed(quiet=True) as notes:
        notes.append("first")
        warnings.warn("odd data", InputWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: odd data\n"


def test_an_error_is_not_hidden_among_notes(capsys):
    def fail() -> None:
        with noticed() as notes:
            notes.append("first")
            raise InputError("wrong")

    with pytest.raises(InputError):
        fail()
    assert capsys.readouterr().err == ""


# --- progress


def test_without_a_terminal_there_is_no_progress(capsys):
    for quiet in (False, True):
        with progress(quiet) as tell:
            assert tell is None
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_progress_and_a_table(tmp_path: Path):
    ode, data, truth = example.write("sir", tmp_path)
    code, shown = on_a_terminal("fit", ode, data, "--truth", truth, cwd=tmp_path)
    assert code == 0, shown
    assert "smoothing the data" in shown
    assert "infection" in shown
    assert "\x1b[" in shown
    assert "Traceback" not in shown


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
