"""Write files atomically, and only inside the folder that was asked for.

What is being written waits in a hidden folder beside its target. The folder is locked while its process lives; the
system releases the lock however the process ends, so whoever writes there next can tell what is left over from a kill.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from odinfer.errors import InputError

_HIDDEN_NAME = re.compile(r"\.odinfer-[0-9a-f]{12}")
_NAME = re.compile(r"\w([\w .-]{0,58}\w)?")
_DIGEST = re.compile(r"-[0-9a-f]{16}")


def readable(path: str | os.PathLike[str]) -> Path:
    """The path of a file or a pipe.

    Raises:
        OSError: it is not there, or is a device, whose content may have no end.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise OSError(errno.EINVAL, "it is a device and no file")
    return Path(path)


def safe_name(text: str) -> str:
    """A file name from any text, different for different ones: every name made of what a user wrote comes from here.

    Words, spaces, points and hyphens stay as they are. Any other text is cut down to these and gets a digest of itself.
    """
    plain = _NAME.fullmatch(text) and len(text.encode()) <= 120 and unicodedata.normalize("NFC", text) == text
    # A text that ends like a digest could be meant to be taken for another one's name.
    if plain and not _DIGEST.fullmatch(text[-17:]):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9]+', '_', text[:60]).strip('_') or 'name'}-{digest}"


@contextlib.contextmanager
def staged_folder(folder: str | Path, names: Iterable[str] = ()) -> Iterator[Path]:
    """A hidden folder whose files move to `folder` at the end: all of them or, after an error, none.

    It is made at once, so that a place that cannot be written to is reported before anything is computed, and so is
    what stands in the way of one of the `names`.

    Raises:
        InputError: if the operating system refuses.
    """
    folder = _path(folder)
    try:
        _check_free(folder, names)
        with _hidden_folder(_nearest_existing(folder)) as stage:
            yield stage
            files = sorted(stage.iterdir())
            _check_free(folder, (file.name for file in files))
            _move(files, folder, stage / ".replaced")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot write to '{folder}': {reason}; choose another place") from error


def _path(path: str | Path) -> Path:
    if "\0" in str(path):  # which Python refuses, but not as an error of the system
        raise InputError(f"cannot write to '{path}': a path has no zero characters")
    return Path(path)


def _check_free(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        if (folder / name).is_dir():
            raise InputError(f"cannot write to '{folder}': there is a folder named '{name}'; choose another place")


def _nearest_existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists; what is in the way counts as one, to be refused later."""
    folder = folder.absolute()
    while not os.path.lexists(folder):
        folder = folder.parent
    return folder


def _move(files: Iterable[Path], folder: Path, kept: Path) -> None:
    """Rename files into a folder; if one cannot be, put back what those before it have replaced."""
    new = not folder.exists()
    done: list[tuple[Path, Path]] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept.mkdir()
        for file in files:
            target, old = folder / file.name, kept / file.name
            if os.path.lexists(target):
                try:
                    os.link(target, old, follow_symlinks=False)
                except OSError:  # a file system without such links
                    shutil.copy2(target, old, follow_symlinks=False)
            os.replace(file, target)
            done.append((target, old))
    except BaseException:
        with contextlib.suppress(OSError):
            for target, old in reversed(done):
                os.replace(old, target) if os.path.lexists(old) else target.unlink()
            if new:
                folder.rmdir()
        raise


@contextlib.contextmanager
def _hidden_folder(base: Path) -> Iterator[Path]:
    """A new folder in `base`, locked while it is used; those that nobody uses any longer are removed."""
    import fcntl

    _remove_leftovers(base)
    while True:
        folder = base / f".odinfer-{secrets.token_hex(6)}"
        folder.mkdir()
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            with contextlib.suppress(OSError):  # a file system without locks, where nothing is swept
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                break
            os.close(lock)  # swept by another process before it was locked
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A temporary folder that only this user can read; those that killed processes have left are removed.

    Raises:
        InputError: if the operating system refuses.
    """
    import fcntl

    base = Path(tempfile.gettempdir())
    _remove_leftovers(base, re.compile(rf"{re.escape(prefix)}\w+"))
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(f"cannot make a temporary folder in {base}: {error.strerror or error}") from None
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_leftovers(base: Path, pattern: re.Pattern[str] = _HIDDEN_NAME) -> None:
    import fcntl

    with contextlib.suppress(OSError):
        for name in os.listdir(base):
            if pattern.fullmatch(name):
                with contextlib.suppress(OSError):
                    lock = os.open(base / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(base / name, ignore_errors=True)
                    finally:
                        os.close(lock)


@contextlib.contextmanager
def replaced_file(path: str | Path) -> Iterator[Path]:
    """Give a new, empty file to write to; it takes the place of `path` if all goes well.

    Raises:
        InputError: if the operating system refuses.
    """
    try:
        # Through a link, since replacing the link itself would leave what it points to as it was.
        target = Path(os.path.realpath(_path(path)))
        with _hidden_folder(target.parent) as hidden:
            temporary = hidden / target.name
            # Unlike tempfile's, this file gets the permissions that any new file of the user gets.
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            if target.exists():
                shutil.copymode(target, temporary)
            yield temporary
            os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, if it is not there.

    Raises:
        InputError: if the operating system refuses.
    """
    try:
        _path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a text or bytes to a file by `replaced_file`."""
    with replaced_file(path) as temporary:
        temporary.write_bytes(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
