"""Results in an append-only log that loses nothing: one line per entry, each with its checksum.

Several processes may share a store. A file lock, which the system releases when its holder dies, makes appends and
claims atomic. A line that does not match its checksum (cut off by a kill, or damaged on disk) is moved to
`damaged.log`, and its run counts as not done.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from odinfer.errors import InputError
from odinfer.files import replacing

LOG, LOCK, DAMAGED = "runs.log", "lock", "damaged.log"
# A process on another machine cannot be asked whether it lives; silent for so many seconds, it does not.
_SILENT = 3600.0


class Store:
    """A folder with results, opened for reading or, as a context, for writing.

    Attributes:
        records: key → {"key", "run", "outcome", "timing"}, verified.
        grids: contents of the benchmark's grids that were run, oldest first.
        damaged: how many lines were found damaged since the store was opened.
    """

    def __init__(self, folder: str | Path, create: bool = False) -> None:
        self.folder = Path(folder)
        self.records: dict[str, dict[str, Any]] = {}
        self.grids: list[dict[str, Any]] = []
        self.damaged = 0
        self._claims: dict[str, str] = {}
        self._owners: dict[str, dict[str, Any]] = {}
        self._owner = secrets.token_hex(8)
        self._read_to, self._inode = 0, -1
        if create:
            self._create()
        elif not (self.folder / LOG).is_file():
            raise InputError(f"there are no results in '{self.folder}'; give the folder that --store had with them")
        self.refresh()

    def _create(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in (LOG, LOCK):
                with open(self.folder / name, "ab"):
                    pass
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"cannot write to the store '{self.folder}': {reason}; choose another place") from None

    def __enter__(self) -> Store:
        with self._locked():
            self._repair()
            self._append([{"kind": "owner", "owner": self._owner, "seen": time.time(), **_this_process()}])
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(InputError), self._locked():  # if it cannot be said, the next process finds out
            self._append([{"kind": "end", "owner": self._owner}], durable=False)

    # --- what a run needs

    def refresh(self) -> None:
        """Read what others have added."""
        with self._locked(shared=True):
            self._read()

    def claim(self, keys: Iterable[str]) -> list[str]:
        """Those of the keys that nobody has done or is doing, from now on claimed by this process."""
        with self._locked():
            self._read()
            mine = [key for key in keys if key not in self.records and not self._busy(key)]
            if mine:
                claim = {"kind": "claim", "owner": self._owner, "keys": mine, "seen": time.time()}
                self._append([claim], durable=False)
        return mine

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Write results, on the disk when this returns.

        Raises:
            InputError: they could not be written; what was stored before is intact.
        """
        with self._locked():
            self._append([{"kind": "record", **record} for record in records])

    def add_grid(self, content: Mapping[str, Any]) -> None:
        """Remember a grid, so that its report needs no other file."""
        if not self.grids or self.grids[-1] != content:
            with self._locked():
                self._append([{"kind": "grid", "content": content}])

    def forget(self, keys: Iterable[str]) -> None:
        """Let results count as not done."""
        with self._locked():
            self._append([{"kind": "forget", "keys": list(keys)}])

    def busy(self) -> set[str]:
        """Keys that other living processes are computing."""
        return {key for key in self._claims if key not in self.records and self._busy(key)}

    def _busy(self, key: str) -> bool:
        owner = self._claims.get(key)
        return owner is not None and owner != self._owner and _lives(self._owners.get(owner))

    # --- the log

    @contextlib.contextmanager
    def _locked(self, shared: bool = False) -> Iterator[None]:
        import fcntl

        try:
            handle = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            if not shared:
                raise InputError(f"cannot write to the store '{self.folder}'; choose another place") from None
            yield  # somebody else's store, which may only be read
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _append(self, entries: list[dict[str, Any]], durable: bool = True) -> None:
        """All entries or, if the disk refuses, none."""
        lines = b"".join(map(_line, entries))
        path = self.folder / LOG
        try:
            handle = os.open(path, os.O_RDWR | os.O_APPEND)
            size = os.fstat(handle).st_size
            try:
                if size and os.pread(handle, 1, size - 1) != b"\n":  # a line that was cut off must not spoil ours
                    lines = b"\n" + lines
                written = 0
                while written < len(lines):
                    written += os.write(handle, lines[written:])
                if durable:
                    os.fsync(handle)
            except BaseException:
                os.ftruncate(handle, size)
                raise
            finally:
                os.close(handle)
        except OSError as error:
            raise InputError(
                f"cannot write to the store '{self.folder}': {error.strerror or error}; the {len(self.records)} "
                "results in it are safe, and the same command goes on from there"
            ) from None
        self._read()

    def _read(self) -> list[bytes]:
        """Take in the lines added since the last time; those that are damaged are returned."""
        with open(self.folder / LOG, "rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self._inode:  # repaired by somebody: from the start
                self._inode, self._read_to = inode, 0
                self.records.clear()
                self._claims.clear()
                self.grids.clear()
            file.seek(self._read_to)
            lines = file.read().split(b"\n")
        # What follows the last line's end is nothing, or a line that was cut off.
        self._read_to += sum(len(line) + 1 for line in lines[:-1])
        damaged = [lines[-1]] if lines[-1] else []
        for line in lines[:-1]:
            entry = _entry(line)
            if entry is None:
                damaged.append(line)
            else:
                self._take(entry)
        return damaged

    def _take(self, entry: dict[str, Any]) -> None:
        match entry:
            case {"kind": "record", "key": key}:
                self.records[key] = entry
            case {"kind": "claim", "owner": owner, "keys": keys}:
                self._claims |= dict.fromkeys(keys, owner)
            case {"kind": "owner", "owner": owner}:
                self._owners[owner] = entry
            case {"kind": "end", "owner": owner}:
                self._owners.pop(owner, None)
            case {"kind": "grid", "content": content}:
                self.grids.append(content)
            case {"kind": "forget", "keys": keys}:
                for key in keys:
                    self.records.pop(key, None)
        if "seen" in entry and entry.get("owner") in self._owners:
            self._owners[entry["owner"]]["seen"] = entry["seen"]

    def _repair(self) -> None:
        """Move damaged lines out of the log, under the lock; without room to do so they stay and are not read."""
        self._inode = -1
        damaged = self._read()
        self.damaged += len(damaged)
        if not damaged:
            return
        path = self.folder / LOG
        with contextlib.suppress(OSError, InputError):
            good = [line for line in path.read_bytes().split(b"\n") if _entry(line) is not None]
            with open(self.folder / DAMAGED, "ab") as aside:
                aside.write(b"".join(line + b"\n" for line in damaged))
            with replacing(path) as temporary, open(temporary, "wb") as file:
                file.write(b"".join(line + b"\n" for line in good))
                file.flush()
                os.fsync(file.fileno())
        self._read()


def canonical(content: Any) -> str:
    """JSON that is the same for equal contents."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def digest(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _line(entry: dict[str, Any]) -> bytes:
    text = canonical(entry)
    return f"{digest(text)} {text}\n".encode()


def _entry(line: bytes) -> dict[str, Any] | None:
    """The content of a line; None if it is damaged."""
    checksum, _, text = line.partition(b" ")
    if not text or digest(text).encode() != checksum:
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):  # its checksum is right: written by another program
        return None
    return entry if _is_entry(entry) else None


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("seen", 0.0), int | float):
        return False
    match entry:
        case {"kind": "record", "key": str(), "run": dict(), "outcome": dict(), "timing": dict()}:
            return True
        case {"kind": "owner", "owner": str(), "host": str(), "pid": int(), "born": str(), "seen": _}:
            return True
        case {"kind": "claim", "owner": str(), "keys": list(keys)} | {"kind": "forget", "keys": list(keys)}:
            return all(isinstance(key, str) for key in keys)
        case {"kind": "grid", "content": dict()} | {"kind": "end", "owner": str()}:
            return True
    return False


def _this_process() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid(), "born": _born(os.getpid())}


def _born(pid: int) -> str:
    """When a process started, where the system tells; process numbers are used again."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "never" if fields[0] == "Z" else fields[19]
    return ""


def _lives(owner: dict[str, Any] | None) -> bool:
    if owner is None:
        return False
    if owner["host"] != socket.gethostname():
        return bool(time.time() - owner["seen"] < _SILENT)
    try:
        os.kill(owner["pid"], 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return bool(_born(owner["pid"]) == owner["born"])
