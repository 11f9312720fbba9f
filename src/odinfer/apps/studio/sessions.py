"""Sessions of the studio: data, page state and jobs of one browser tab, and the queue of all jobs."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import shutil
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odinfer.apps.studio.interactive import Source
from odinfer.apps.studio.jobs import JobRequest, run
from odinfer.apps.studio.scripts import Choice, data_file
from odinfer.apps.studio.worker_process import WorkerEnded, WorkerProcess
from odinfer.errors import InputError

MAX_SESSIONS, MAX_MODULES, MAX_JOBS = 32, 50, 24
MAX_JOB_SECONDS = 3600.0  # of one job, since others wait for it; longer ones belong on the command line
KINDS = ("fit", "profile", "bootstrap", "sample", "discover", "design", "compare")


@dataclass(eq=False)
class Job:
    """Something long that a session has asked for.

    Attributes:
        messages: everything it has told so far, for tabs that come back: the last progress, the answer, the end.
    """

    id: str
    kind: str
    models: tuple[str, ...]
    order: JobRequest
    state: str = "waiting"
    messages: dict[str, Any] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ended(self) -> bool:
        return self.state not in ("waiting", "running", "writing")

    def tell(self, message: Mapping[str, Any]) -> None:
        if "answer" in message:
            self.state = "writing"
        if not self.ended:
            self.messages.update(message)
            self._wake()

    def end(self, state: str, **more: Any) -> None:
        if not self.ended:
            self.state = state
            self.messages.update(more)
            self._wake()

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()  # a new one, so that no stream takes another's waking away

    def shown(self) -> dict[str, Any]:
        return {"id": self.id, "kind": self.kind, "models": self.models, "state": self.state, **self.messages}

    async def stream(self) -> AsyncIterator[dict[str, Any]]:
        """What it tells, as it does, from where it is now to its end; the answer once."""
        answered = False
        while True:
            changed, shown = self.changed, self.shown()
            if answered:
                shown.pop("answer", None)
            answered = answered or "answer" in shown
            yield shown
            if self.ended:
                return
            await changed.wait()


def new_project() -> str:
    """A key that no project has."""
    return secrets.token_hex(8)


@dataclass(eq=False)
class Session:
    """One tab."""

    id: str
    folder: Path
    page: str = "{}"  # what the page wants to find again after a reload, as it wrote it
    data: Path | None = None
    name: str = ""  # of the data
    revision: int = 0  # of the data: every file that is brought has another
    modules: OrderedDict[str, str] = field(default_factory=OrderedDict)
    jobs: OrderedDict[str, Job] = field(default_factory=OrderedDict)
    uploads: int = 0
    saving: asyncio.TimerHandle | None = None  # when it is about to be saved
    project: str = field(default_factory=new_project)  # under which it is saved by itself

    def keep(self, name: str, content: bytes) -> None:
        """Have these data instead of others."""
        self.uploads += 1
        folder = self.folder / f"data-{self.uploads}"  # a new path: what was read from the old one is remembered
        folder.mkdir(parents=True)
        path = folder / data_file(name)
        path.write_bytes(content)
        self.data, self.name, self.revision = path, name, self.uploads

    def remove_unused(self) -> None:
        """Remove the data that are neither shown nor needed by a job that has not ended."""
        used = {self.data, *(job.order.source.path for job in self.jobs.values() if not job.ended)}
        for folder in self.folder.glob("data-*"):
            if not any(path is not None and path.parent == folder for path in used):
                shutil.rmtree(folder, ignore_errors=True)

    def source(self, choice: Choice) -> Source | None:
        return None if self.data is None else Source(self.data, choice)

    def module(self, text: str) -> str:
        """The address of a module, which nobody else can guess."""
        key = hashlib.sha256(f"{self.id}\n{text}".encode()).hexdigest()[:40]
        self.modules[key] = text
        self.modules.move_to_end(key)
        while len(self.modules) > MAX_MODULES:
            self.modules.popitem(last=False)
        return key


class Sessions:
    """All sessions; if there are too many, the least recently used are removed."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._all = folder, OrderedDict[str, Session]()

    def new(self) -> Session:
        key = secrets.token_urlsafe(24)
        session = Session(key, self._folder / secrets.token_hex(8))
        session.folder.mkdir(parents=True)
        self._all[key] = session
        while len(self._all) > MAX_SESSIONS:
            _, old = self._all.popitem(last=False)
            shutil.rmtree(old.folder, ignore_errors=True)
        return session

    def all(self) -> list[Session]:
        return list(self._all.values())

    def get(self, key: str) -> Session | None:
        if key in self._all:
            self._all.move_to_end(key)
        return self._all.get(key)

    def module(self, key: str) -> str | None:
        return next((s.modules[key] for s in self._all.values() if key in s.modules), None)


class Queue:
    """Jobs of all sessions, one after the other, in one worker process; `ended` is told of each."""

    def __init__(self, worker: WorkerProcess, ended: Callable[[Job], None]) -> None:
        self._worker, self._waiting, self._ended = worker, deque[Job](), ended
        self._running: Job | None = None
        self._more = asyncio.Event()

    def add(
        self, session: Session, kind: str, models: tuple[tuple[str, str], ...], choice: Choice,
        options: Mapping[str, Any] | None = None,
    ) -> Job:  # fmt: skip
        """Ask for something; `options` are those of a design.

        Raises:
            InputError: it cannot be done.
        """
        source = session.source(choice)
        if source is None:
            raise InputError("there are no data yet; drop a CSV or Excel file")
        if kind not in KINDS or not models or (kind != "compare" and len(models) != 1):
            raise InputError("this cannot be computed")
        if sum(not job.ended for job in session.jobs.values()) >= MAX_JOBS // 2:
            raise InputError("too much is waiting already; cancel something")
        key = secrets.token_hex(8)
        order = JobRequest(kind, models, source, session.name, session.folder / key, options or {})
        job = Job(key, kind, tuple(name for name, _ in models), order)
        session.jobs[key] = job
        for old in [j for j in session.jobs.values() if j.ended][: max(0, len(session.jobs) - MAX_JOBS)]:
            del session.jobs[old.id]
            shutil.rmtree(old.order.folder, ignore_errors=True)
        self._waiting.append(job)
        self._places()
        self._more.set()
        return job

    async def cancel(self, job: Job) -> None:
        """Cancel a job at once; the process of a running one is killed."""
        if job in self._waiting:
            self._waiting.remove(job)
            self._places()
        answered = "answer" in job.messages
        job.end("done" if answered else "cancelled", **({"files": []} if answered else {}))
        if job is self._running:
            await asyncio.to_thread(self._worker.kill)

    def _places(self) -> None:
        for i, job in enumerate(self._waiting, int(self._running is not None)):
            job.tell({"progress": f"waiting for {i} other{'s' * (i > 1)}" if i else "starting", "share": 0.0})

    async def work(self) -> None:
        """Run waiting jobs one after the other, without end."""
        while True:
            while not self._waiting:
                self._more.clear()
                await self._more.wait()
            job = self._running = self._waiting.popleft()
            job.state = "running"
            self._places()
            try:
                found = await self._worker.call(run, job.order, tell=job.tell, timeout=MAX_JOB_SECONDS)
                job.end("done", **found)
            except InputError as error:
                job.end("failed", error=str(error))
            except WorkerEnded:
                job.end("failed", error="its process ended: perhaps there was not enough memory; try again")
            except Exception as error:
                job.end("failed", error=f"internal error: {error}")
            finally:
                self._running = None
                self._ended(job)
                await asyncio.to_thread(self._worker.start)
