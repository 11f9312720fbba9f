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
from apps.command.commands import INTERRUPTIBLE, MAIN, odinfer, on_a_terminal
from bench_runs import children, gone
from odinfer.apps.command import example
from odinfer.apps.command.terminal import collected_notes, progress, say, show, staged
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


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN], ids=["foreground", "background"])
def test_interrupts_are_handled_as_before_once_the_outputs_are_there(tmp_path: Path, before):
    outside = signal.signal(signal.SIGINT, before)
    try:
        with staged(tmp_path / "out"):
            handled = signal.getsignal(signal.SIGINT)
        assert (handled is before) == (before is signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, outside)


# --- lines


def test_what_is_said_is_one_line_on_stderr(capsys):
    say("two\n  lines\tof text ")
    assert capsys.readouterr() == ("", "two lines of text\n")


def test_nothing_that_is_printed_commands_the_terminal(capsys):
    show("a name\x1b[31m\n  and \x07 another\u202e")
    say("a \x1b]0;title\x07 column")
    out, err = capsys.readouterr()
    assert (
        out == "a name\N{REPLACEMENT CHARACTER}[31m\n  and \N{REPLACEMENT CHARACTER} another\N{REPLACEMENT CHARACTER}\n"
    )
    assert err == "a \N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER} column\n"


def test_a_line_is_never_longer_than_can_be_read(capsys):
    say(f"cannot use '{'x' * 100_000}'; write y")
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) == 400
    assert line.endswith("xx'; write y")


def test_file_names_and_columns_reach_the_terminal_without_their_escapes(tmp_path: Path):
    name = "m\x1b[31m\x07"
    (tmp_path / f"{name}.ode").write_text("x' = -k*x")
    (tmp_path / "d.csv").write_text("time,x\n" + "".join(f"{i},{3 * 0.5**i}\n" for i in range(8)))
    run = odinfer("fit", f"{name}.ode", "d.csv", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert "\x1b" not in run.stdout + run.stderr
    assert "\x07" not in run.stdout + run.stderr
    folder = next(path for path in tmp_path.iterdir() if path.is_dir())
    assert f"Open {folder.name}/report.html first" in run.stdout
    code, shown = on_a_terminal("check", f"{name}.ode", "d.csv", cwd=tmp_path)
    assert code == 0, shown
    assert "\x1b[31m" not in shown
    (tmp_path / "e.csv").write_text("time,x\x1b[31m\n0,1\n")
    run = odinfer("fit", f"{name}.ode", "e.csv", cwd=tmp_path)
    assert run.code == 2
    assert "\x1b" not in run.stderr


# --- streams


@pytest.fixture(scope="module")
def decay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decay")
    (folder / "m.ode").write_text("α' = -k*α")
    (folder / "d.csv").write_text("time,α\n" + "".join(f"{i},{3 * 0.5**i + 0.01 * (-1) ** i}\n" for i in range(8)))
    return folder


def shell(folder: Path, words: str, **environment: str) -> tuple[int, bytes, bytes]:
    """A command line of a shell in which `odinfer` is the command."""
    script = f"""odinfer() {{ '{sys.executable}' -c '{MAIN}' "$@"; }}; {words}"""
    run = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, env={**os.environ, **environment})
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_a_closed_stream_changes_neither_the_outcome_nor_the_files(decay: Path, closed: str):
    code, _, err = shell(decay, f"odinfer fit m.ode d.csv -o out {closed}")
    assert (code, err) == (0, b"")
    assert od.load(decay / "out" / "fit.json").converged
    assert sorted(os.listdir(decay / "out")) == ["fit.json", "fit.nc", "plot.png", "report.html", "states.csv"]
    assert shell(decay, f"odinfer fit no.ode d.csv {closed}")[0] == 2


def test_a_reader_that_has_seen_enough_is_no_error(decay: Path):
    code, out, err = shell(decay, "odinfer check m.ode d.csv | true; exit ${PIPESTATUS[0]}")
    assert (code, out, err) == (0, b"", b"")


def test_a_full_disk_behind_the_output_is_one_line(decay: Path):
    for command in ("check m.ode d.csv", "--version", "--help"):
        code, _, err = shell(decay, f"odinfer {command} > /dev/full")
        assert code == 2
        assert err.count(b"\n") == 1
        assert b"No space left on device" in err


def test_a_name_that_the_encoding_of_a_pipe_does_not_have_is_spelled_out(decay: Path):
    code, out, err = shell(decay, "odinfer check m.ode d.csv", PYTHONIOENCODING="latin-1")
    assert (code, err) == (0, b"")
    assert rb"\u03b1" in out


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["C", "POSIX", "tr_TR.ISO-8859-9", "ja_JP.SJIS"])
def test_files_are_the_same_in_any_locale(decay: Path, locale: str):
    fits = []
    for folder, environment in (("here", {}), (locale, {"LC_ALL": locale, "PYTHONUTF8": "0"})):
        assert shell(decay, f"odinfer fit m.ode d.csv -o {folder}", **environment)[0] == 0
        fits.append(od.load(decay / folder / "fit.json"))
    assert fits[1].theta == fits[0].theta
    assert (decay / locale / "states.csv").read_bytes() == (decay / "here" / "states.csv").read_bytes()


def test_notes_and_warnings_come_at_the_end_each_of_them_once(capsys):
    with collected_notes() as notes:
        notes += ["first", "first"]
        for _ in range(2):
            warnings.warn("odd data", InputWarning, stacklevel=1)
        warnings.warn("of some library", DeprecationWarning, stacklevel=1)
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err == "note: first\nwarning: odd data\n"


def test_quiet_keeps_warnings_and_leaves_notes_out(capsys):
    with collected_notes(quiet=True) as notes:
        notes.append("first")
        warnings.warn("odd data", InputWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: odd data\n"


def test_an_error_is_not_hidden_among_notes(capsys):
    def fail() -> None:
        with collected_notes() as notes:
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
    assert "━" in shown  # a bar; its words may be gone before they are drawn
    assert "infection" in shown
    assert "\x1b[" in shown
    assert "Traceback" not in shown


def test_sampling_shows_its_progress_on_a_terminal(tmp_path: Path):
    (tmp_path / "m.ode").write_text("x' = -a*x + b")
    rows = (f"{0.4 * i},{1 + 3 * 0.7**i + 0.05 * (-1) ** (i % 3)}\n" for i in range(12))
    (tmp_path / "d.csv").write_text("time,x\n" + "".join(rows))
    code, shown = on_a_terminal("fit", "m.ode", "d.csv", "--uncertainty", "sample", "-o", "out", cwd=tmp_path)
    assert code == 0, shown
    assert "finding step widths" in shown
    assert "Credible intervals: 95 %, posterior." in shown
    fit = od.load(tmp_path / "out" / "fit.json")
    assert fit.sampled.converged
    low, high = fit.interval(kind="sample")["a"]
    assert low < fit.theta["a"] < high
    assert "Pairs of parameters" in (tmp_path / "out" / "report.html").read_text()


def slow_fit(folder: Path) -> subprocess.Popen[str]:
    """A fit that has begun, and will not end soon."""
    ode, data, _ = example.write("lotka_volterra", folder)
    options = ["--grid", "60", "--starts", "400", "--optimizer", "lbfgsb"]
    command = [sys.executable, "-c", INTERRUPTIBLE, "fit", ode, data, *options]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(folder.glob(".odinfer-*")):
        time.sleep(0.02)
    return process


def test_ctrl_c_leaves_nothing_and_is_exit_code_130(tmp_path: Path):
    process = slow_fit(tmp_path)
    before = sorted(set(os.listdir(tmp_path)) - {p.name for p in tmp_path.glob(".odinfer-*")})
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert (stdout, stderr) == ("", "interrupted; nothing was written\n")
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("module", ["typer", "numpy", "odinfer.apps.command.flags", "odinfer.model.model"])
def test_ctrl_c_while_something_is_still_being_loaded_is_one_line(tmp_path: Path, module: str):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    code = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
{INTERRUPTIBLE}"""
    run = odinfer("fit", ode, data, cwd=tmp_path, code=code)
    assert (run.code, run.stdout, run.stderr) == (130, "", "interrupted; nothing was written\n")


def test_who_is_terminated_leaves_nothing_and_who_is_killed_what_the_next_removes(tmp_path: Path):
    process = slow_fit(tmp_path)
    before = sorted(set(os.listdir(tmp_path)) - {p.name for p in tmp_path.glob(".odinfer-*")})
    process.terminate()
    assert process.communicate(timeout=60) == ("", "terminated; nothing was written\n")
    assert process.returncode == 143
    assert sorted(os.listdir(tmp_path)) == before
    process = slow_fit(tmp_path)
    process.kill()
    process.communicate(timeout=60)
    assert len(list(tmp_path.glob(".odinfer-*"))) == 1
    with staged(tmp_path / "out"):
        assert len(list(tmp_path.glob(".odinfer-*"))) == 1
    assert not list(tmp_path.glob(".odinfer-*"))


def test_ctrl_c_while_workers_compare_is_one_line(tmp_path: Path):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    other = tmp_path / "other.ode"
    other.write_text(ode.read_text().replace("d*", "2*d*"))
    command = [sys.executable, "-c", INTERRUPTIBLE, "compare", ode, other, data, "--workers", "2", "--draws", "5000"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and len(children(process.pid)) < 2:
        time.sleep(0.05)
    workers = children(process.pid)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)  # also until those who hold its stderr have ended
    assert (process.returncode, stdout, stderr) == (130, "", "interrupted; nothing was written\n")
    assert gone(workers)


@pytest.mark.parametrize("method", ["agm", "fgpgm"])
def test_a_sampler_shows_the_time_left_and_ctrl_c_leaves_nothing(tmp_path: Path, method: str):
    ode, data, _ = example.write("lotka_volterra", tmp_path)
    before = sorted(os.listdir(tmp_path))
    screen, terminal = os.openpty()
    size = {"COLUMNS": "100", "LINES": "20", "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "fit", ode, data, "--method", method],
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
