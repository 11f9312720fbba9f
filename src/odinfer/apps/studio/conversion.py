"""SBML models and PEtab problems that are brought to the page, as model text and a table.

Runs in a process of its own (`worker_process.py`).
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from odinfer.apps.studio.interactive import GaussianNoise
from odinfer.errors import InputError
from odinfer.files import make_folder
from odinfer.io import PETAB, SBML
from odinfer.io.limits import inside
from odinfer.io.native_files import to_own

_MOST_BYTES = 100_000_000  # that an archive unpacks to
_MOST_FILES = 1_000  # in an archive


def convert(files: Mapping[str, bytes], folder: Path) -> GaussianNoise:
    """Read an SBML model or a PEtab problem.

    Args:
        files: by name: the model, all files of the problem, or an archive of either.
        folder: empty, to unpack them.

    Returns:
        `model`, its name, and `text`; of a problem `data`, the bytes of a CSV file, else None; `values`, the nominal
        values of its parameters.

    Raises:
        InputError: neither is among the files, or there are several, or it cannot be read.
    """
    brought, found = folder / "brought", folder / "found"
    for place in (brought, found):
        make_folder(place)
    for name, content in files.items():
        _unpack(name, content, brought)
    source = _source(brought)
    try:
        to_own(source, found)
    except InputError as error:
        raise InputError(_without_folder(str(error), source.parent)) from None
    (text,) = found.glob("*.ode")
    data, values = text.with_suffix(".csv"), found / "published.json"
    return {
        "model": source.stem,
        "text": text.read_text("utf-8"),
        "data": data.read_bytes() if data.exists() else None,
        "values": json.loads(values.read_text("utf-8")) if values.exists() else {},
    }


def _unpack(name: str, content: bytes, folder: Path) -> None:
    """Write a file, or what is in an archive, below a folder."""
    if not name.lower().endswith(".zip"):
        path = inside(folder, name, "what was brought")
        make_folder(path.parent)
        path.write_bytes(content)
        return
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            items = archive.infolist()
            if len(items) > _MOST_FILES or sum(item.file_size for item in items) > _MOST_BYTES:
                raise InputError(f"{name} unpacks to more than {_MOST_FILES} files or {_MOST_BYTES // 1_000_000} MB")
            archive.extractall(folder)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, LookupError, ValueError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name} is no zip archive that can be read, or it is damaged") from None


def _source(folder: Path) -> Path:
    """The one problem in a folder or, if there is none, the one model."""
    every = [path for path in sorted(folder.rglob("*")) if path.is_file() and not _is_hidden(path, folder)]
    for kind, endings, mark in (
        ("PEtab problems", PETAB, r"(?m)^format_version\s*:"),
        ("SBML models", SBML, r"<(\w+:)?sbml\b"),
    ):
        named = [path for path in every if path.suffix.lower() in endings]
        marked = [path for path in named if re.search(mark, path.read_text("utf-8", "replace"))] or named
        if len(marked) > 1:
            raise InputError(f"these are {len(marked)} {kind}: {', '.join(p.name for p in marked[:5])}; bring one")
        if marked:
            return marked[0]
    raise InputError("there is neither an SBML model (.xml) nor a PEtab problem (.yaml) in it")


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(path.relative_to(folder)).parts)


def _without_folder(message: str, folder: Path) -> str:
    """What is wrong without where it was unpacked; and what to do if a file of the problem is not there."""
    found = re.fullmatch(r"cannot read '(.*)': No such file or directory", message)
    if found:
        name = found[1].rpartition(f"{folder.name}/")[2]
        return f"the problem names '{name}', which is not here; bring all its files together, or a zip of them"
    return message.replace(f"{folder}/", "")
