"""A file is written whole or not at all, and where it is meant to be."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import odinfer as od
from fits import make_fit
from odinfer.errors import InputError
from odinfer.files import make_folder, replaced_file, safe_name, staged_folder, write_file
from odinfer.result.formats import write
from odinfer.result.formats.load import load


@pytest.mark.parametrize("name", ["fit.json", "fit.nc"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("boom"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, name, error, monkeypatch):
    path = tmp_path / name
    write(make_fit(seed=1), path)
    before = path.read_bytes()

    def failing(*args):
        raise error

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(InputError if isinstance(error, OSError) else type(error)):
        write(make_fit(seed=2), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_halfway_through_leaves_nothing(tmp_path: Path):
    path = tmp_path / "half.txt"

    def half() -> None:
        with replaced_file(path) as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert not list(tmp_path.iterdir())


def test_new_files_have_the_usual_permissions_and_old_ones_keep_theirs(tmp_path: Path):
    path, other = tmp_path / "fit.json", tmp_path / "other"
    other.touch()
    write(make_fit(), path)
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o600)
    write(make_fit(), path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_followed(tmp_path: Path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    write(make_fit(), link)
    assert link.is_symlink()
    assert load(target).theta == make_fit().theta


def test_a_place_that_cannot_be_written_to_is_an_input_error(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot write"):
        write(make_fit(), tmp_path / "file" / "fit.json")
    assert (tmp_path / "file").read_text() == "in the way"


# --- names

NASTY = (
    "x/../../../../PWNED",
    "..",
    ".",
    "",
    "/etc/passwd",
    "a\0b",
    "\ud800",
    "-rf",
    "a" * 5000,
    "\x1b[31m",
    "~",
    "CON ",
)


@settings(max_examples=200, deadline=None)
@given(st.text() | st.sampled_from(NASTY))
@example("a-0123456789abcdef")
def test_whatever_the_text_its_name_is_a_file_inside_the_folder(text: str):
    name = safe_name(text)
    assert 0 < len(name.encode()) <= 200
    assert Path("/some/folder", name).parent == Path("/some/folder")
    assert Path("/some/folder", name).resolve().parent == Path("/some/folder")
    assert name.isprintable()
    assert not name.startswith((".", "-"))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=5) | st.sampled_from(NASTY), st.text(max_size=5) | st.sampled_from(NASTY))
def test_different_texts_have_different_names(one: str, other: str):
    assert (safe_name(one) == safe_name(other)) == (one == other)
    # Also one that was made to look like the name of another.
    assert safe_name(safe_name(one)) == safe_name(one) if safe_name(one) == one else safe_name(safe_name(one)) != one


@pytest.mark.parametrize("name", ["lotka_volterra", "model-2", "Räuber und Beute", "v1.2", "x", "lorenz96_10"])
def test_ordinary_names_stay_as_they_are(name: str):
    assert safe_name(name) == name


def test_a_path_with_a_zero_character_is_refused_in_a_line(tmp_path: Path):
    for write_to in (lambda p: write_file(p, "x"), make_folder, lambda p: staged_folder(p).__enter__()):
        with pytest.raises(InputError, match="zero"):
            write_to(tmp_path / "a\0b")


# --- several files at once


def put(folder: Path, **contents: str) -> None:
    with staged_folder(folder) as stage:
        for name, content in contents.items():
            (stage / name).write_text(content)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_a_folder_in_the_way_of_one_file_keeps_all_others_as_they_were(tmp_path: Path):
    put(tmp_path, a="old", b="old")
    (tmp_path / "c").mkdir()
    with pytest.raises(InputError, match=r"a folder named 'c'; choose another place"):
        put(tmp_path, a="new", b="new", c="new")
    assert contents(tmp_path) == {"a": "old", "b": "old"}


def test_a_folder_in_the_way_is_said_at_once_where_the_names_are_known(tmp_path: Path):
    (tmp_path / "c").mkdir()
    with pytest.raises(InputError, match="a folder named 'c'"):
        staged_folder(tmp_path, ["a", "c"]).__enter__()
    assert os.listdir(tmp_path) == ["c"]


@pytest.mark.parametrize("new", [False, True])
def test_if_a_file_cannot_be_moved_those_before_it_are_put_back(tmp_path: Path, monkeypatch, new: bool):
    folder = tmp_path / "out"
    if not new:
        put(folder, a="old", c="old")
    replace = os.replace

    def refusing(source, target):
        if Path(target) == folder / "c" and Path(source).read_text() == "new":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refusing)
    with pytest.raises(InputError, match="No space left"):
        put(folder, a="new", b="new", c="new")
    assert (not folder.exists()) if new else contents(folder) == {"a": "old", "c": "old"}
    assert not list(tmp_path.rglob(".odinfer-*"))


FULL = """
import resource, signal, sys
from odinfer.files import staged_folder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
with staged_folder(sys.argv[1]) as stage:
    (stage / "a").write_text("new")
    (stage / "b").write_bytes(bytes(20_000))
"""


def test_a_file_that_does_not_fit_on_the_disk_leaves_everything_as_it_was(tmp_path: Path):
    put(tmp_path, a="old")
    run = subprocess.run([sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True)
    assert "InputError: cannot write to" in run.stderr
    assert "File too large" in run.stderr
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"a": "old"}


KILLED = """
import os, sys, time
from odinfer.files import replaced_file, staged_folder
with staged_folder(sys.argv[1]) as stage, replaced_file(sys.argv[1] + "/one.txt") as temporary:
    temporary.write_text("half")
    print(flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_leaves_is_removed_by_the_next_and_that_of_a_living_one_is_not(tmp_path: Path):
    one, other = (
        subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], stdout=subprocess.PIPE, text=True) for _ in range(2)
    )
    with one, other:
        for process in (one, other):
            process.stdout.readline()
        (tmp_path / ".odinfer-notes").mkdir()
        assert len(list(tmp_path.glob(".odinfer-*"))) == 5
        one.kill()
        one.wait()
        write_file(tmp_path / "two.txt", "whole")
        assert len(list(tmp_path.glob(".odinfer-*"))) == 3
        other.kill()
        other.wait()
        put(tmp_path, a="whole")
    assert sorted(os.listdir(tmp_path)) == [".odinfer-notes", "a", "two.txt"]


def test_devices_are_refused_and_pipes_are_read(tmp_path):
    for read in (od.Model.from_file, od.read_csv, od.load):
        for path in ("/dev/zero", "a\0b"):
            with pytest.raises(InputError):
                read(path)
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=pipe.write_text, args=["x' = -k*x"])
    writer.start()
    assert od.Model.from_file(pipe).states == ("x",)
    writer.join()
