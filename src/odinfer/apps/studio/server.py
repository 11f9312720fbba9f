"""The HTTP server of the studio: its routes, sessions and autosave."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import html
import io
import itertools
import json
import os
import socket
import tempfile
import threading
import webbrowser
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from odinfer.apps.studio import conversion, documentation, initial_guess, interactive, jobs, live_likelihood, projects
from odinfer.apps.studio.access import Guard, TooLarge, is_loopback
from odinfer.apps.studio.sessions import Job, Queue, Session, Sessions, new_project
from odinfer.apps.studio.worker_process import WorkerEnded, WorkerProcess
from odinfer.checks import checked_integer
from odinfer.errors import InputError, nearest
from odinfer.files import temporary_folder
from odinfer.style.html import LIVE

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

PAGE = Path(__file__).parent / "page"
_SHARED = {name: LIVE / name for name in ("uplot.js", "uplot.css")}  # with reports
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PAGE_FILES = {path.name: path for path in PAGE.iterdir() if path.suffix in _TYPES}
_READ_TIMEOUT = 30.0  # seconds for reading a table or a text
_GUESS_TIMEOUT = 15.0  # seconds after which sliders start without a guess
_SHUTDOWN_SECONDS = 2  # seconds that open streams get when the studio ends
_MAX_MODELS = 26
_SAVED_AFTER = 1.0  # seconds without a change after which a tab is saved


@dataclass(frozen=True)
class Example:
    """A model with data to try."""

    title: str
    text: str
    data: bytes


@dataclass(frozen=True)
class Opening:
    """What a new tab starts with: a text, data, both or neither."""

    model: str = ""
    text: str | None = None
    name: str = ""
    data: bytes | None = None


class Studio:
    """What all requests share."""

    def __init__(self, examples: Mapping[str, Example], opening: Opening, folder: Path) -> None:
        self.examples, self.opening, self.sessions = examples, opening, Sessions(folder)
        self.reader, self.worker, self.guesser = (
            WorkerProcess(_preload_nothing),
            WorkerProcess(jobs.preload),
            WorkerProcess(initial_guess.preload),
        )
        self.queue: Queue | None = None
        self.folder = folder
        self.projects = projects.folder()

    def changed(self, session: Session) -> None:
        """Save a tab soon, if there is anything in it."""
        if session.saving is not None:
            session.saving.cancel()
        loop = asyncio.get_running_loop()
        session.saving = loop.call_later(_SAVED_AFTER, lambda: loop.create_task(asyncio.to_thread(self.save, session)))

    def job_ended(self, job: Job) -> None:
        for session in self.sessions.all():
            if job.id in session.jobs:
                self.changed(session)

    def save(self, session: Session) -> None:
        """Save a tab; a disk that refuses stops nobody from working."""
        session.saving = None
        shot = projects.snapshot(session)
        if shot.said["page"].get("models"):
            with contextlib.suppress(OSError, InputError):
                projects.save(shot, self.projects / f"{session.project}{projects.ENDING}")

    def save_all(self) -> None:
        for session in self.sessions.all():
            if session.saving is not None:
                session.saving.cancel()
                self.save(session)

    def session(self, request: Request) -> Session:
        found = self.sessions.get(request.headers.get("x-session", ""))
        if found is None:
            raise _SessionExpired
        return found

    async def read(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return await self.reader.call(function, *args, timeout=_READ_TIMEOUT)
        except WorkerEnded:
            raise InputError("this could not be read: it needs too much memory; bring less") from None

    def close(self) -> None:
        for worker in (self.worker, self.reader, self.guesser):
            worker.close()


class _SessionExpired(Exception):
    """The session of a tab is not there any longer."""


def _preload_nothing() -> None:
    pass


class Handlers:
    """The answers to all requests, a method per route; `access.Guard` decides which requests come here."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.reading, self.guessing = asyncio.Lock(), asyncio.Lock()  # each has one worker process
        self.thumbnails: dict[str, Any] = {}  # of examples: their experiments

    async def understood(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function that reads input of the user, one at a time."""
        async with self.reading:
            return await self.studio.read(function, *args)

    async def page(self, request: Request) -> Response:
        """Send a file of the page."""
        name = request.path_params.get("name", "index.html")
        path = _SHARED.get(name) or _PAGE_FILES.get(name)
        if path is None:
            return _bytes(b"there is no such page", "text/plain", 404)
        return _bytes(path.read_bytes(), _TYPES[path.suffix])

    async def help(self, request: Request) -> Response:
        """Send a page of the documentation."""
        try:
            text = await asyncio.to_thread(documentation.page, request.path_params["name"].removesuffix("/"))
        except InputError as error:
            return _bytes(str(error).encode(), "text/plain", 404)
        return _bytes(text.encode(), "text/html")

    async def module(self, request: Request) -> Response:
        """Send a translated model."""
        text = self.studio.sessions.module(request.path_params["key"])
        return _bytes(b"gone", "text/plain", 404) if text is None else _bytes(text.encode(), "text/javascript")

    async def begin(self, request: Request) -> Response:
        """Open a session."""
        session = self.studio.sessions.new()
        o = self.studio.opening
        if o.data is not None:
            session.keep(o.name, o.data)
        if o.text is not None or o.data is not None:
            opened = {"models": [{"name": o.model or "model", "text": o.text}]} if o.text is not None else {}
            session.page = json.dumps(opened)
        return _answer({"id": session.id})

    async def found(self, request: Request) -> Response:
        """Send what a session holds, after a reload."""
        session = self.studio.session(request)
        jobs = [job.shown() for job in session.jobs.values()]
        simplest = sorted(self.studio.examples.items(), key=lambda pair: len(pair[1].text))
        examples = [{"name": name, "title": e.title} for name, e in simplest]
        return _answer(
            {
                "page": json.loads(session.page),
                "data": session.name or None,
                "revision": session.revision,
                "jobs": jobs,
                "examples": examples,
                "projects": await asyncio.to_thread(projects.kept, self.studio.projects),
            }
        )

    async def keep(self, request: Request) -> Response:
        """Keep the state of the page."""
        session, given = self.studio.session(request), await _json(request)
        session.page = json.dumps(given)
        self.studio.changed(session)
        return _answer({})

    async def alive(self, request: Request) -> Response:
        """Say that the studio is there."""
        return _answer({})

    async def project(self, request: Request) -> Response:
        """Send all of a tab as one file."""
        shot = projects.snapshot(self.studio.session(request))
        content = await asyncio.to_thread(shot.content)
        return _bytes(content, "application/octet-stream", headers={"content-disposition": "attachment"})

    async def open_project(self, request: Request) -> Response:
        """Open a project in this tab: a file that is sent, or one of those that were saved by themselves."""
        session, content = self.studio.session(request), await request.body()
        key = request.headers.get("x-project", "")
        if key:
            content = projects.kept_path(self.studio.projects, key).read_bytes()
        await asyncio.to_thread(projects.load, content, session)
        if key and all(other.project != key for other in self.studio.sessions.all()):
            session.project = key  # it resumes there
        return _answer({})

    async def bring(self, session: Session, name: str, content: bytes) -> dict[str, Any]:
        """Keep a data file, if it can be read, instead of the data before; what it has."""
        before = session.data, session.name, session.revision
        session.keep(name, content)
        try:
            table = await self.understood(interactive.table, session.source(interactive.choice_of({})))
        except InputError:
            session.data, session.name, session.revision = before
            raise
        finally:
            session.remove_unused()
        return {"name": name, "revision": session.revision, **table}

    async def upload(self, request: Request) -> Response:
        """Take a data file."""
        session = self.studio.session(request)
        name = unquote(request.headers.get("x-name", "data.csv"))[-200:]
        return _answer(await self.bring(session, name, await request.body()))

    async def convert(self, request: Request) -> Response:
        """Take an SBML model or a PEtab problem, whose data replace those before."""
        session, given = self.studio.session(request), await _json(request)
        with tempfile.TemporaryDirectory(dir=session.folder) as place:
            found = await self.understood(conversion.convert, _files(given.get("files")), Path(place))
        data = found.pop("data")
        if data is not None:
            await self.begin_anew(session, given)
            found |= await self.bring(session, f"{found['model']}.csv", data)
        return _answer(found)

    async def example(self, request: Request) -> Response:
        """Load an example."""
        session, given = self.studio.session(request), await _json(request)
        name = str(given.get("name"))
        if name not in self.studio.examples:
            raise InputError(f"there is no example '{name[:60]}'{nearest(name, self.studio.examples)}")
        chosen = self.studio.examples[name]
        await self.begin_anew(session, given)
        return _answer({"model": name, "text": chosen.text, **await self.bring(session, f"{name}.csv", chosen.data)})

    async def begin_anew(self, session: Session, given: Mapping[str, Any]) -> None:
        """Leave what somebody has worked on as a project of its own, before other models take its place."""
        if given.get("leave"):
            await asyncio.to_thread(self.studio.save, session)
            session.project = new_project()

    async def thumbnail(self, request: Request) -> Response:
        """Send what an example looks like, for its picture on the start page."""
        name = request.path_params["name"]
        if name not in self.studio.examples:
            raise InputError("there is no such example")
        if name not in self.thumbnails:
            path = self.studio.folder / f"{name}.csv"
            path.write_bytes(self.studio.examples[name].data)
            table = await self.understood(interactive.table, interactive.Source(path, interactive.choice_of({})))
            self.thumbnails[name] = table["experiments"][:6]
        return _answer({"experiments": self.thumbnails[name]})

    async def table(self, request: Request) -> Response:
        """Send the table of the data."""
        session, given = self.studio.session(request), await _json(request)
        source = session.source(interactive.choice_of(given))
        if source is None:
            raise InputError("there are no data yet")
        return _answer(
            {"name": session.name, "revision": session.revision, **await self.understood(interactive.table, source)}
        )

    async def understand(self, request: Request) -> Response:
        """Read a model."""
        session, given = self.studio.session(request), await _json(request)
        name, text = _model(given)
        source = session.source(interactive.choice_of(given.get("choice") or {}))
        answer = await self.understood(interactive.understand, text, name, source)
        if "module" in answer:
            answer["module"] = f"/model/{session.module(answer['module'])}.js"
        return _answer(answer)

    async def guessed(self, request: Request) -> Response:
        """Send start values for the sliders."""
        session, given = self.studio.session(request), await _json(request)
        name, text = _model(given)
        source = session.source(interactive.choice_of(given.get("choice") or {}))
        if source is None:
            return _answer({})
        async with self.guessing:
            try:
                return _answer(
                    await self.studio.guesser.call(initial_guess.guess, text, name, source, timeout=_GUESS_TIMEOUT)
                )
            except (InputError, WorkerEnded, RuntimeError):  # sliders start somewhere in any case
                return _answer({"failed": True})

    async def loglik(self, request: Request) -> Response:
        """Send the log-likelihood of where the sliders stand."""
        session, given = self.studio.session(request), await _json(request)
        name, text = _model(given)
        source = session.source(interactive.choice_of(given.get("choice") or {}))
        values = given.get("values")
        if source is None or not isinstance(values, dict):
            return _answer({"loglik": None})
        return _answer(await self.understood(live_likelihood.live_loglik, text, name, source, values))

    async def order(self, request: Request) -> Response:
        """Add a job."""
        session, given = self.studio.session(request), await _json(request)
        models = given.get("models")
        if not isinstance(models, list) or not 1 <= len(models) <= _MAX_MODELS:
            raise InputError(f"give one model, or up to {_MAX_MODELS} to compare")
        assert self.studio.queue is not None
        choice = interactive.choice_of(given.get("choice") or {})
        options = given.get("options") or {}
        if not isinstance(options, dict):
            raise InputError("options are given by name")
        job = self.studio.queue.add(session, str(given.get("kind")), _distinct(models), choice, options)
        return _answer(job.shown())

    async def stream(self, request: Request) -> Response:
        """Send the messages of a job as they come."""
        from starlette.responses import StreamingResponse

        job = _job(self.studio.session(request), request)

        async def lines() -> AsyncIterator[str]:
            async for message in job.stream():
                yield json.dumps(message) + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def cancel(self, request: Request) -> Response:
        """Stop a job."""
        job = _job(self.studio.session(request), request)
        assert self.studio.queue is not None
        await self.studio.queue.cancel(job)
        return _answer(job.shown())

    async def file(self, request: Request) -> Response:
        """Send a file of a job, or all of them."""
        job = _job(self.studio.session(request), request)
        name = request.path_params["name"]
        files = job.messages.get("files", [])
        if name == "everything.zip":
            content = await asyncio.to_thread(_zip, job.order.folder, files)
        elif name in files:
            content = (job.order.folder / name).read_bytes()
        else:
            return _bytes(b"there is no such file", "text/plain", 404)
        # Never shown as a page of this address, whatever is in it.
        headers = {"content-disposition": "attachment", "content-security-policy": "sandbox"}
        return _bytes(content, "application/octet-stream", headers=headers)


def _answer(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(content, status, headers)


def _bytes(content: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(content, status, headers, kind)


def application(studio: Studio) -> Starlette:
    """Connect routes with handlers, and start the queue of jobs with the server."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    handle = Handlers(studio)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        studio.queue = Queue(studio.worker, studio.job_ended)
        working = asyncio.create_task(studio.queue.work())
        try:
            yield
        finally:
            working.cancel()
            studio.save_all()
            studio.close()

    def refused(request: Request, error: Exception) -> Response:
        return _answer({"error": str(error)}, 400)

    def too_large(request: Request, error: Exception) -> Response:
        return _answer({"error": str(error)}, 413, {"connection": "close"})

    def gone(request: Request, error: Exception) -> Response:
        return _answer({"error": "this tab is not known any longer; reload it"}, 410)

    routes = [
        Route("/", handle.page),
        Route("/static/{name:path}", handle.page),
        Route("/help/{name:path}", handle.help),
        Route("/model/{key}.js", handle.module),
        Route("/api/session", handle.begin, methods=["POST"]),
        Route("/api/session", handle.found, methods=["GET"]),
        Route("/api/page", handle.keep, methods=["PUT"]),
        Route("/api/alive", handle.alive),
        Route("/api/project", handle.project, methods=["GET"]),
        Route("/api/project", handle.open_project, methods=["POST"]),
        Route("/api/data", handle.upload, methods=["POST"]),
        Route("/api/convert", handle.convert, methods=["POST"]),
        Route("/api/example", handle.example, methods=["POST"]),
        Route("/api/examples/{name}", handle.thumbnail),
        Route("/api/table", handle.table, methods=["POST"]),
        Route("/api/understand", handle.understand, methods=["POST"]),
        Route("/api/guess", handle.guessed, methods=["POST"]),
        Route("/api/loglik", handle.loglik, methods=["POST"]),
        Route("/api/jobs", handle.order, methods=["POST"]),
        Route("/api/jobs/{id}", handle.cancel, methods=["DELETE"]),
        Route("/api/jobs/{id}/stream", handle.stream),
        Route("/api/jobs/{id}/files/{name}", handle.file),
    ]
    handlers: Any = {InputError: refused, TooLarge: too_large, _SessionExpired: gone}
    return Starlette(routes=routes, lifespan=life, exception_handlers=handlers)


async def _json(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()  # no NaN, no halves of characters
    except (ValueError, RecursionError):
        raise InputError("this is not JSON") from None
    if not isinstance(found, dict):
        raise InputError("this is not an object of JSON")
    return found


def _files(given: Any) -> dict[str, bytes]:
    """Files by name, from base64."""
    try:
        if isinstance(given, dict) and given:
            return {name[-200:]: base64.b64decode(content, validate=True) for name, content in given.items()}
    except (TypeError, ValueError):
        pass
    raise InputError("files are given by name, in base64")


def _model(given: Any) -> tuple[str, str]:
    name, text = (given.get("name"), given.get("text")) if isinstance(given, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(text, str) or len(name) > 200:
        raise InputError("a model has a name and a text")
    return name.strip() or "model", text


def _distinct(models: list[Any]) -> tuple[tuple[str, str], ...]:
    """Models with names that differ, also as names of files."""
    found: dict[str, str] = {}
    for name, text in map(_model, models):
        own, taken = name, {key.casefold() for key in found}
        for i in itertools.count(2):
            if own.casefold() not in taken:
                break
            own = f"{name} {i}"
        found[own] = text
    return tuple(found.items())


def _job(session: Session, request: Request) -> Any:
    found = session.jobs.get(request.path_params["id"])
    if found is None:
        raise InputError("there is no such job any longer")
    return found


def _zip(folder: Path, names: list[str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.write(folder / name, name)
    return stream.getvalue()


def serve(
    examples: Mapping[str, Example],
    opening: Opening,
    show: Callable[[str], None],
    host: str = "127.0.0.1",
    port: int = 0,
    browse: bool = True,
) -> None:
    """Serve the page until the process is interrupted.

    Args:
        examples: by name.
        opening: what a new tab starts with.
        show: prints a line: the address, with the token in it.
        host: to listen on.
        port: likewise; 0 for any that is free.
        browse: whether to open the address in a browser.

    Raises:
        InputError: the packages are not there, or the address cannot be had.
    """
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise InputError("the studio needs Starlette and uvicorn: pip install 'odinfer[studio]'") from None
    checked_integer("--port", port, 0, 65_535)
    listening = _listening_socket(host, port)
    port = listening.getsockname()[1]
    with temporary_folder("odinfer-studio-") as folder, contextlib.closing(listening):
        studio = Studio(examples, opening, folder)
        guard = Guard(application(studio), host, port)
        shown = host if not is_loopback(host) or host != "localhost" else "127.0.0.1"
        shown = socket.gethostname() if shown in ("0.0.0.0", "::") else f"[{shown}]" if ":" in shown else shown
        address = f"http://{shown}:{port}/?token={guard.token}"
        config = uvicorn.Config(
            guard, log_level="error", lifespan="on", ws="none", server_header=False, access_log=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )  # fmt: skip
        show(address)
        if browse:
            threading.Timer(0.5, webbrowser.open, [_link_file(folder, address).as_uri()]).start()

        class Server(uvicorn.Server):
            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                await asyncio.to_thread(studio.close)  # first, so that no request is left that waits for an answer
                await super().shutdown(sockets)

        try:
            Server(config).run(sockets=[listening])
        finally:
            studio.close()


def _link_file(folder: Path, address: str) -> Path:
    """A page that leads to the address: other users can read the command line of a browser, but not this file."""
    path = folder / "link.html"
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(address)}">')
    return path


def _listening_socket(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(64)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None
    return listening
