"""Save and load projects: a zip of `project.json`, the data and the files of results.

Every tab is saved by itself to a folder of the user, so that nothing is lost when the studio ends; the start page
offers what is there. Files from elsewhere are opened with care: names are checked, sizes are limited.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odinfer.apps.studio.answers import ANSWERS
from odinfer.apps.studio.interactive import Source, choice_of
from odinfer.apps.studio.jobs import JobRequest
from odinfer.apps.studio.scripts import data_file
from odinfer.apps.studio.sessions import KINDS, Job, Session
from odinfer.errors import InputError
from odinfer.files import write_file

ENDING = ".odinfer"
_VERSION = 1
_MOST_BYTES = 300_000_000  # unpacked
_MOST_KEPT = 30  # projects in the folder of the user
_ID = re.compile(r"[0-9a-f]{16}")
_FILE = re.compile(r"[^/\\\x00]{1,255}")


def folder() -> Path:
    """Where projects are saved by themselves: in the folder for the state of programs."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "odinfer" / "projects"


@dataclass(frozen=True)
class Snapshot:
    """A tab at a moment: what `project.json` says, and the files beside it by their names in the zip."""

    said: Mapping[str, Any]
    files: Mapping[str, Path]

    def content(self) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr("project.json", json.dumps(self.said))
            for name, path in self.files.items():
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile, with the job that it was of
                    archive.write(path, name)
        return stream.getvalue()


def snapshot(session: Session) -> Snapshot:
    """All of a tab but the jobs that have not ended."""
    done = [job for job in session.jobs.values() if job.ended and "answer" in job.messages]
    files = {} if session.data is None else {f"data/{session.data.name}": session.data}
    for job in done:
        files |= {f"jobs/{job.id}/{name}": job.order.folder / name for name in job.messages.get("files", ())}
    jobs = [{"id": j.id, "kind": j.kind, "models": j.order.models, "messages": j.messages} for j in done]
    said = {"version": _VERSION, "page": json.loads(session.page), "data": session.name, "revision": session.revision}
    return Snapshot(said | {"jobs": jobs}, files)


def save(shot: Snapshot, path: Path) -> None:
    """To a file of the user's own folder, for nobody else; the oldest go when there are too many."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_file(path, shot.content())
    path.chmod(0o600)
    for old in _newest_first(path.parent)[_MOST_KEPT:]:
        old.unlink(missing_ok=True)


def kept(base: Path) -> list[dict[str, Any]]:
    """What the start page says of the projects in a folder, the latest first."""
    found = []
    for path in _newest_first(base):
        try:
            with zipfile.ZipFile(path) as archive:
                said = json.loads(archive.read("project.json"))
            models = [str(m["name"]) for m in said["page"]["models"]]
            found.append({"id": path.stem, "data": said["data"], "models": models, "when": path.stat().st_mtime})
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            continue  # not ours, or only half written
    return found


def kept_path(base: Path, key: str) -> Path:
    """The file of a project that the start page names.

    Raises:
        InputError: there is none.
    """
    path = base / f"{key}{ENDING}"
    if not _ID.fullmatch(key) or not path.is_file():
        raise InputError("this project is not there any longer")
    return path


def _newest_first(base: Path) -> list[Path]:
    found = [path for path in base.glob(f"*{ENDING}") if _ID.fullmatch(path.stem)] if base.is_dir() else []
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def load(content: bytes, session: Session) -> None:
    """Put what a project holds into a session in place of all that it has.

    Raises:
        InputError: it is not a project, or not one of this version.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(item.file_size for item in archive.infolist()) > _MOST_BYTES:
                raise InputError("this project unpacks to more than 300 MB")
            said = json.loads(archive.read("project.json"))
            _check(said)
            files = {name: archive.read(name) for name in archive.namelist()}
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error):
        raise InputError("this is not a project of odinfer studio, or it is damaged") from None
    if said["version"] != _VERSION:
        raise InputError(f"this project has version {said['version']}; this odinfer reads version {_VERSION}")
    name, kept_name = said["data"], data_file(said["data"]) if said["data"] else ""
    if name:
        if f"data/{kept_name}" not in files:
            raise InputError("this project has no data with it")
        session.keep(name, files[f"data/{kept_name}"])
        session.revision, session.uploads = said["revision"], max(session.uploads, said["revision"])
    else:
        session.data, session.name, session.revision = None, "", 0
    session.jobs.clear()
    for given in said["jobs"]:
        session.jobs[given["id"]] = _job(given, said, files, session)
    session.page = json.dumps(said["page"])


def _check(said: Any) -> None:
    """Raise ValueError unless a project says what it must; the page takes the rest as it is."""
    right = isinstance(said, dict) and isinstance(said["version"], int) and isinstance(said["data"], str)
    right = right and isinstance(said["page"], dict) and isinstance(said["revision"], int)
    models = said["page"].get("models", []) if right else None
    right = right and isinstance(models, list) and all(
        isinstance(m, dict) and isinstance(m["name"], str) and isinstance(m["text"], str) for m in models
    )  # fmt: skip
    choice_of(said["page"].get("choice") or {}) if right else None
    for job in said["jobs"] if right else ():
        answer = job["messages"]["answer"]
        pairs = all(isinstance(name, str) and isinstance(text, str) for name, text in job["models"])
        right = right and bool(_ID.fullmatch(job["id"])) and job["kind"] in KINDS and pairs and isinstance(answer, dict)
        right = right and answer["kind"] in ANSWERS and isinstance(answer["headline"], str)
        right = right and all(_FILE.fullmatch(n) and n not in (".", "..") for n in job["messages"].get("files", ()))
    if not right:
        raise ValueError


def _job(given: dict[str, Any], said: dict[str, Any], files: Mapping[str, bytes], session: Session) -> Job:
    place = session.folder / given["id"]
    place.mkdir(parents=True, exist_ok=True)
    messages = dict(given["messages"])
    there = [n for n in messages.get("files", ()) if f"jobs/{given['id']}/{n}" in files]
    for name in there:
        (place / name).write_bytes(files[f"jobs/{given['id']}/{name}"])
    models = tuple((name, text) for name, text in given["models"])
    source = Source(session.data or place, choice_of(said["page"].get("choice") or {}))
    order = JobRequest(given["kind"], models, source, session.name, place)
    job = Job(given["id"], given["kind"], tuple(name for name, _ in models), order, "done", messages)
    job.messages["files"] = there
    return job
