"""The addresses of the page, and how they are served."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
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

from odinfer.apps.studio import initial_guess, interactive, jobs
from odinfer.apps.studio.access import Guard, TooLarge, is_loopback
from odinfer.apps.studio.sessions import Queue, Session, Sessions
from odinfer.apps.studio.worker_process import Ended, Lane
from odinfer.checks import whole
from odinfer.errors import InputError, nearest
from odinfer.style.html import LIVE

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

PAGE = Path(__file__).parent / "page"
_SHARED = {name: LIVE / name for name in ("uplot.js", "uplot.css")}  # with reports
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_PATIENCE = 30.0  # seconds for reading a table or a text
_GUESSING = 15.0  # seconds after which sliders start without a guess
_GRACE = 2  # seconds that open streams get when the studio ends
_MOST_MODELS = 26


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
        self.desk, self.lane, self.guesser = Lane(_begin_desk), Lane(jobs.begin), Lane(initial_guess.begin)
        self.queue: Queue | None = None

    def session(self, request: Request) -> Session:
        found = self.sessions.get(request.headers.get("x-session", ""))
        if found is None:
            raise _Gone
        return found

    async def read(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return await self.desk.call(function, *args, timeout=_PATIENCE)
        except Ended:
            raise InputError("this could not be read: it needs too much memory; bring less") from None

    def close(self) -> None:
        for lane in (self.lane, self.desk, self.guesser):
            lane.close()


class _Gone(Exception):
    """The session of a tab is not there any longer."""


def _begin_desk() -> None:
    pass


def application(studio: Studio) -> Starlette:
    """All addresses; what guards them is `guard.Guard`."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
    from starlette.responses import Response as Plain
    from starlette.routing import Route

    reading, guessing = asyncio.Lock(), asyncio.Lock()  # each has one lane

    async def understood(function: Callable[..., Any], *args: Any) -> Any:
        async with reading:
            return await studio.read(function, *args)

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        path = _SHARED.get(name) or (PAGE / name).resolve()
        inside = name in _SHARED or path.is_relative_to(PAGE)
        if not inside or path.suffix not in _TYPES or not path.is_file():
            return PlainTextResponse("there is no such page", 404)
        return Plain(path.read_bytes(), media_type=_TYPES[path.suffix])

    async def module(request: Request) -> Response:
        text = studio.sessions.module(request.path_params["key"])
        return PlainTextResponse("gone", 404) if text is None else Plain(text, media_type="text/javascript")

    async def begin(request: Request) -> Response:
        session = studio.sessions.new()
        o = studio.opening
        if o.data is not None:
            session.keep(o.name, o.data)
        if o.text is not None or o.data is not None:
            opened = {"models": [{"name": o.model or "model", "text": o.text}]} if o.text is not None else {}
            session.page = json.dumps(opened)
        return JSONResponse({"id": session.id})

    async def found(request: Request) -> Response:
        session = studio.session(request)
        jobs = [job.shown() for job in session.jobs.values()]
        examples = [{"name": name, "title": e.title} for name, e in studio.examples.items()]
        return JSONResponse(
            {"page": json.loads(session.page), "data": session.name or None, "jobs": jobs, "examples": examples}
        )

    async def keep(request: Request) -> Response:
        session, given = studio.session(request), await _json(request)
        session.page = json.dumps(given)
        return JSONResponse({})

    async def upload(request: Request) -> Response:
        session = studio.session(request)
        name = unquote(request.headers.get("x-name", "data.csv"))[-200:]
        content = await request.body()
        before = session.data, session.name
        session.keep(name, content)
        try:
            table = await understood(interactive.table, session.source(interactive.choice_of({})))
        except InputError:
            session.data, session.name = before
            raise
        return JSONResponse({"name": name, **table})

    async def example(request: Request) -> Response:
        session, given = studio.session(request), await _json(request)
        name = str(given.get("name"))
        if name not in studio.examples:
            raise InputError(f"there is no example '{name[:60]}'{nearest(name, studio.examples)}")
        chosen = studio.examples[name]
        session.keep(f"{name}.csv", chosen.data)
        table = await understood(interactive.table, session.source(interactive.choice_of({})))
        return JSONResponse({"name": f"{name}.csv", "model": name, "text": chosen.text, **table})

    async def table(request: Request) -> Response:
        session, given = studio.session(request), await _json(request)
        source = session.source(interactive.choice_of(given))
        if source is None:
            raise InputError("there are no data yet")
        return JSONResponse({"name": session.name, **await understood(interactive.table, source)})

    async def understand(request: Request) -> Response:
        session, given = studio.session(request), await _json(request)
        name, text = _model(given)
        source = session.source(interactive.choice_of(given.get("choice") or {}))
        answer = await understood(interactive.understand, text, name, source)
        if "module" in answer:
            answer["module"] = f"/model/{session.module(answer['module'])}.js"
        return JSONResponse(answer)

    async def guessed(request: Request) -> Response:
        session, given = studio.session(request), await _json(request)
        name, text = _model(given)
        source = session.source(interactive.choice_of(given.get("choice") or {}))
        if source is None:
            return JSONResponse({})
        async with guessing:
            try:
                return JSONResponse(
                    await studio.guesser.call(initial_guess.guess, text, name, source, timeout=_GUESSING)
                )
            except (InputError, Ended, RuntimeError):  # sliders start somewhere in any case
                return JSONResponse({})

    async def order(request: Request) -> Response:
        session, given = studio.session(request), await _json(request)
        models = given.get("models")
        if not isinstance(models, list) or not 1 <= len(models) <= _MOST_MODELS:
            raise InputError(f"give one model, or up to {_MOST_MODELS} to compare")
        assert studio.queue is not None
        choice = interactive.choice_of(given.get("choice") or {})
        job = studio.queue.add(session, str(given.get("kind")), tuple(_model(m) for m in models), choice)
        return JSONResponse(job.shown())

    async def stream(request: Request) -> Response:
        job = _job(studio.session(request), request)

        async def lines() -> AsyncIterator[str]:
            async for message in job.stream():
                yield json.dumps(message) + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def cancel(request: Request) -> Response:
        job = _job(studio.session(request), request)
        assert studio.queue is not None
        await studio.queue.cancel(job)
        return JSONResponse(job.shown())

    async def file(request: Request) -> Response:
        job = _job(studio.session(request), request)
        name = request.path_params["name"]
        files = job.messages.get("files", [])
        if name == "everything.zip":
            content = await asyncio.to_thread(_zipped, job.order.folder, files)
        elif name in files:
            content = (job.order.folder / name).read_bytes()
        else:
            return PlainTextResponse("there is no such file", 404)
        # Never shown as a page of this address, whatever is in it.
        headers = {"content-disposition": "attachment", "content-security-policy": "sandbox"}
        return Plain(content, media_type="application/octet-stream", headers=headers)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        studio.queue = Queue(studio.lane)
        working = asyncio.create_task(studio.queue.work())
        try:
            yield
        finally:
            working.cancel()
            studio.close()

    def refused(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, 400)

    def too_large(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, 413, {"connection": "close"})

    def gone(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "this tab is not known any longer; reload it"}, 410)

    routes = [
        Route("/", page),
        Route("/static/{name:path}", page),
        Route("/model/{key}.js", module),
        Route("/api/session", begin, methods=["POST"]),
        Route("/api/session", found, methods=["GET"]),
        Route("/api/page", keep, methods=["PUT"]),
        Route("/api/data", upload, methods=["POST"]),
        Route("/api/example", example, methods=["POST"]),
        Route("/api/table", table, methods=["POST"]),
        Route("/api/understand", understand, methods=["POST"]),
        Route("/api/guess", guessed, methods=["POST"]),
        Route("/api/jobs", order, methods=["POST"]),
        Route("/api/jobs/{id}", cancel, methods=["DELETE"]),
        Route("/api/jobs/{id}/stream", stream),
        Route("/api/jobs/{id}/files/{name}", file),
    ]
    handlers: Any = {InputError: refused, TooLarge: too_large, _Gone: gone}
    return Starlette(routes=routes, lifespan=life, exception_handlers=handlers)


async def _json(request: Request) -> dict[str, Any]:
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise InputError("this is not JSON") from None
    if not isinstance(found, dict):
        raise InputError("this is not an object of JSON")
    return found


def _model(given: Any) -> tuple[str, str]:
    name, text = (given.get("name"), given.get("text")) if isinstance(given, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(text, str) or len(name) > 200:
        raise InputError("a model has a name and a text")
    return name.strip() or "model", text


def _job(session: Session, request: Request) -> Any:
    found = session.jobs.get(request.path_params["id"])
    if found is None:
        raise InputError("there is no such job any longer")
    return found


def _zipped(folder: Path, names: list[str]) -> bytes:
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
    whole("--port", port, 0, 65_535)
    listening = _bound(host, port)
    port = listening.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="odinfer-studio-") as folder, contextlib.closing(listening):
        studio = Studio(examples, opening, Path(folder))
        guard = Guard(application(studio), host, port)
        shown = host if not is_loopback(host) or host != "localhost" else "127.0.0.1"
        shown = socket.gethostname() if shown in ("0.0.0.0", "::") else f"[{shown}]" if ":" in shown else shown
        address = f"http://{shown}:{port}/?token={guard.token}"
        config = uvicorn.Config(
            guard, log_level="error", lifespan="on", ws="none", server_header=False, access_log=False,
            timeout_graceful_shutdown=_GRACE,
        )  # fmt: skip
        show(address)
        if browse:
            threading.Timer(0.5, webbrowser.open, [address]).start()

        class Server(uvicorn.Server):
            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                await asyncio.to_thread(studio.close)  # first, so that no request is left that waits for an answer
                await super().shutdown(sockets)

        try:
            Server(config).run(sockets=[listening])
        finally:
            studio.close()


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(64)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None
    return listening
