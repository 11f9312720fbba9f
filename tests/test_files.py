"""A file is written whole or not at all."""

import os
from pathlib import Path

import pytest

from fits import make_fit
from odinfer.errors import InputError
from odinfer.files import replacing
from odinfer.result.store import write
from odinfer.result.store.load import load


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
        with replacing(path) as temporary:
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
