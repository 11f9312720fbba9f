"""Job store: results in an SQLite database that several processes may write to.

Every change is one transaction, so a killed process loses at most the result that it was writing. Each record carries
a checksum, since SQLite does not detect a changed byte; a record that does not match counts as not computed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from odinfer.errors import InputError

DATABASE = "runs.sqlite"
_SCHEMA = (
    "CREATE TABLE record (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, digest TEXT, content TEXT)",
    "CREATE TABLE grid (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT)",
    "CREATE TABLE process (owner TEXT PRIMARY KEY, host TEXT, pid INTEGER, birth TEXT, seen REAL)",
    "CREATE TABLE claim (key TEXT PRIMARY KEY, owner TEXT)",
)
_LOCK_TIMEOUT = 60.0  # seconds to wait for another process's transaction, each of which takes milliseconds
_SILENCE = 3600.0  # seconds without a sign after which a process on another machine counts as dead


class Store:
    """A folder with results, opened for reading or, as a context, for writing.

    Attributes:
        records: key → {"key", "run", "outcome", "timing"}, verified.
        grids: contents of the benchmark grids that were run, oldest first.
    """

    def __init__(self, folder: str | Path, create: bool = False) -> None:
        self.folder = Path(folder)
        self.records: dict[str, dict[str, Any]] = {}
        self.grids: list[dict[str, Any]] = []
        self._damaged_rows: list[tuple[int]] = []
        self._owner = secrets.token_hex(8)
        self._last_record = self._last_grid = self._version = 0
        if not create and not (self.folder / DATABASE).is_file():
            raise InputError(f"there are no results in '{self.folder}'; give the folder that --store had with them")
        self._database = self._open(create)
        weakref.finalize(self, self._database.close)
        self.refresh()

    @property
    def damaged(self) -> int:
        """Number of records found with a wrong checksum or structure since the store was opened."""
        return len(self._damaged_rows)

    def _open(self, create: bool) -> sqlite3.Connection:
        path = self.folder / DATABASE
        try:
            if create:
                self.folder.mkdir(parents=True, exist_ok=True)
            writable = os.access(path if path.exists() else self.folder, os.W_OK)
            if create and not writable:
                raise PermissionError(13, "Permission denied")
            uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw' if writable else 'ro'}"
            database = sqlite3.connect(uri, _LOCK_TIMEOUT, isolation_level=None, check_same_thread=False, uri=True)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"cannot write to the store '{self.folder}': {reason}; choose another place") from None
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            if create:
                with self._transaction(database):
                    if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
                        for statement in _SCHEMA:
                            database.execute(statement)
            with self._read_errors():
                found = database.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL").fetchall()
                if {sql for name, sql in found if not name.startswith("sqlite_")} != {*_SCHEMA}:
                    raise InputError(f"'{path}' is not a store of this version of odinfer; choose another folder")
        except BaseException:
            database.close()
            raise
        return database

    def __enter__(self) -> Store:
        """Register this process as a writer; delete damaged records and the claims of dead processes."""
        with self._transaction():
            self.refresh()
            dead = [(owner,) for owner, *process in self._processes() if not _alive(*process)]
            self._database.executemany("DELETE FROM record WHERE id = ?", self._damaged_rows)
            self._database.executemany("DELETE FROM claim WHERE owner = ?", dead)
            self._database.executemany("DELETE FROM process WHERE owner = ?", dead)
            owner = (self._owner, socket.gethostname(), os.getpid(), _birth(os.getpid()), time.time())
            self._database.execute("INSERT INTO process VALUES (?, ?, ?, ?, ?)", owner)
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(InputError), self._transaction():  # otherwise the next process finds out
            self._database.execute("DELETE FROM claim WHERE owner = ?", (self._owner,))
            self._database.execute("DELETE FROM process WHERE owner = ?", (self._owner,))

    # --- what a run needs

    def refresh(self) -> None:
        """Read what other processes have added and removed."""
        with self._read_errors():
            (version,) = self._database.execute("PRAGMA data_version").fetchone()
            if version == self._version:
                return
            keys = {row[0] for row in self._database.execute("SELECT key FROM record")}
            for key in self.records.keys() - keys:
                del self.records[key]
            rows = "SELECT id, key, digest, content FROM record WHERE id > ? ORDER BY id"
            for number, key, checksum, text in self._database.execute(rows, (self._last_record,)):
                self._last_record = number
                record = _record(text, key, checksum)
                if record is None:
                    self._damaged_rows.append((number,))
                else:
                    self.records[key] = record
            rows = "SELECT id, content FROM grid WHERE id > ? ORDER BY id"
            for number, text in self._database.execute(rows, (self._last_grid,)):
                self._last_grid = number
                if isinstance(content := _parse(text), dict) and content not in self.grids[-1:]:
                    self.grids.append(content)
            self._version = version

    def claim(self, keys: Iterable[str]) -> list[str]:
        """Reserve those of the keys that nobody has computed or is computing, for this process."""
        with self._transaction():
            self.refresh()
            taken = self.busy()
            mine = [key for key in keys if key not in self.records and key not in taken]
            if mine:
                self._database.executemany(
                    "INSERT OR REPLACE INTO claim VALUES (?, ?)", ((key, self._owner) for key in mine)
                )
                self._database.execute("UPDATE process SET seen = ? WHERE owner = ?", (time.time(), self._owner))
        return mine

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Write results; they are on the disk when this returns.

        Raises:
            InputError: they could not be written; what was stored before is intact.
        """
        texts = [(str(record["key"]), canonical(record)) for record in records]
        with self._transaction():
            self._database.executemany(
                "INSERT OR REPLACE INTO record (key, digest, content) VALUES (?, ?, ?)",
                ((key, digest(text), text) for key, text in texts),
            )
        self.records |= {key: json.loads(text) for key, text in texts}

    def add_grid(self, content: Mapping[str, Any]) -> None:
        """Remember a grid, so that its report needs no other file."""
        if not self.grids or self.grids[-1] != content:
            text = canonical(content)
            with self._transaction():
                self._database.execute("INSERT INTO grid (content) VALUES (?)", (text,))
            self.grids.append(json.loads(text))

    def forget(self, keys: Iterable[str]) -> None:
        """Remove results, which then count as not computed."""
        keys = list(keys)
        with self._transaction():
            self._database.executemany("DELETE FROM record WHERE key = ?", ((key,) for key in keys))
        for key in keys:
            self.records.pop(key, None)

    def busy(self) -> set[str]:
        """Keys that other living processes are computing."""
        with self._read_errors():
            processes = self._processes()
            alive = {owner for owner, *process in processes if owner != self._owner and _alive(*process)}
            claims = self._database.execute("SELECT key, owner FROM claim").fetchall()
        return {key for key, owner in claims if owner in alive and key not in self.records}

    # --- the database

    def _processes(self) -> list[tuple[Any, ...]]:
        return self._database.execute("SELECT owner, host, pid, birth, seen FROM process").fetchall()

    @contextlib.contextmanager
    def _transaction(self, database: sqlite3.Connection | None = None) -> Iterator[None]:
        """Make all changes inside or none, with the lock of the database held from the start."""
        connection = database or self._database
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # the failed statement may have ended the transaction
                    connection.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as error:
            raise InputError(
                f"cannot write to the store '{self.folder}': {error}; the {len(self.records)} results in it are safe, "
                "and the same command resumes from there"
            ) from None
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise self._damage(error) from None

    @contextlib.contextmanager
    def _read_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:
            raise self._damage(error) from None

    def _damage(self, error: Exception) -> InputError:
        """Describe a file that SQLite cannot use; it may quote bytes of the file that are no text."""
        error = sqlite3.DatabaseError("the file is damaged") if isinstance(error, UnicodeError) else error
        return InputError(f"cannot read the store '{self.folder}': {error}; restore it from a copy, or use a new one")


def canonical(content: Any) -> str:
    """JSON that is the same for equal contents."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)


def digest(text: str | bytes) -> str:
    """Return the SHA-256 checksum of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _parse(text: Any) -> Any:
    """Return the value of a JSON text; None if it is none."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _record(text: Any, key: Any, checksum: Any) -> dict[str, Any] | None:
    """Return a verified record; None if its checksum or structure is wrong."""
    if not isinstance(text, str) or digest(text) != checksum:
        return None
    match record := _parse(text):
        case {"key": str(own), "run": dict(), "outcome": dict(), "timing": dict()} if own == key:
            return dict(record)
    return None


def _birth(pid: int) -> str:
    """Return the start time of a process, where the system tells it, since process numbers are reused."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "never" if fields[0] == "Z" else fields[19]
    return ""


def _alive(host: Any, pid: Any, birth: Any, seen: Any) -> bool:
    """Whether a process runs; on another machine: whether it has claimed something within the last hour."""
    if not isinstance(pid, int) or not isinstance(seen, int | float):
        return False
    if host != socket.gethostname():
        return time.time() - seen < _SILENCE
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return bool(_birth(pid) == birth)
