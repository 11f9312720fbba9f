"""Limits on files from elsewhere, checked before parsing: kind, size, and depth of nested elements."""

from __future__ import annotations

import stat
from pathlib import Path
from xml.parsers import expat

from odinfer.errors import InputError

MOST_BYTES = 50_000_000  # of a file
MOST_DEPTH = 1_000  # of nested XML elements; parsers recurse


def checked_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a regular file of limited size.

    Raises:
        InputError: it does not exist, is a folder, a device or a pipe, or is too large.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no regular file")
        if status.st_size > most:
            raise OSError(0, f"it has more than {most // 1_000_000} MB")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # a null byte in the path is a ValueError
        reason = getattr(error, "strerror", None) or "it is no path"
        raise InputError(f"cannot read {str(path)[-200:]!r}: {reason}") from None


def checked_text(path: Path, most: int = MOST_BYTES) -> str:
    """Read a regular file of UTF-8 text of limited size."""
    try:
        return checked_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None


def inside(folder: Path, name: str, where: str) -> Path:
    """The path of a file that another file names, which must lie in its folder.

    Raises:
        InputError: it lies elsewhere.
    """
    try:
        path = (folder / name).resolve()
        within = path.is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):
        within = False
    if not within:
        raise InputError(f"{where}: the file {name[:60]!r} lies outside the folder of the problem; copy it there")
    return folder / name


def check_xml(content: bytes, where: str) -> tuple[str, dict[str, str]]:
    """Refuse XML that is not well formed, is nested too deeply, or has a DOCTYPE or entities of its own.

    Returns:
        The name and the attributes of its outermost element.
    """
    depth, root = 0, ("", dict[str, str]())

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, root
        if not depth:
            root = name, attributes
        depth += 1
        if depth > MOST_DEPTH:
            raise InputError(f"{where}: elements are nested more than {MOST_DEPTH} deep, which is not read")

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def declared(*_: object) -> None:
        raise InputError(f"{where}: files with DOCTYPE or ENTITY are not read; remove it")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = declared
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(f"{where}: line {error.lineno}: {expat.ErrorString(error.code)}") from None
    except (ValueError, LookupError):  # an unknown encoding
        raise InputError(f"{where} has an encoding that cannot be read; save it as UTF-8") from None
    return root
