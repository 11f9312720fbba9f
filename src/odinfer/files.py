"""Files are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from odinfer.errors import InputError


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a new, empty file in the same folder to write to; it takes the place of `path` if all goes well.

    Raises:
        InputError: if the operating system refuses.
    """
    # Through a link, since replacing the link itself would leave what it points to as it was.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".odinfer-{secrets.token_hex(6)}.tmp")
    try:
        # Unlike tempfile's, this file gets the permissions that any new file of the user gets.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            if target.exists():
                shutil.copymode(target, temporary)
            yield temporary
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, if it is not there.

    Raises:
        InputError: if the operating system refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror}") from None


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a text or bytes to a file by `replacing`."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
