"""Worker processes of the studio, which run one call at a time and are killed to cancel it.

A process that dies, hangs or fills its memory takes nothing with it; the next call finds a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

from odinfer.errors import InputError
from odinfer.parallel.workers import exit_with_parent, worker_environment

_MEMORY_LIMIT = 8 << 30  # bytes of address space a worker may ask for: a file that unpacks to more is refused


class WorkerEnded(Exception):
    """The worker process was killed or died while it had a call."""


class WorkerProcess:
    """One process at a time.

    Args:
        begin: called there first, to load what calls will need.
    """

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin, self._lock = begin, threading.Lock()
        self._process: Any = None
        self._closed = False
        self.start()

    def start(self) -> None:
        """Have a process, if there is none."""
        with self._lock:
            if self._closed or (self._process is not None and self._process.is_alive()):
                return
            context = get_context("spawn")
            ours, theirs = context.Pipe()
            with worker_environment():
                self._process = context.Process(target=_serve, args=(theirs, self._begin), daemon=True)
                self._process.start()
            theirs.close()
            self._connection = ours

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.join()

    def close(self) -> None:
        """End the process for good: who waits for it, or asks from now on, is told that it has ended."""
        self._closed = True
        self.kill()

    async def call(
        self,
        function: Callable[..., Any],
        *args: Any,
        tell: Callable[[Any], None] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """function(*args) there.

        Args:
            function: of a module.
            args: its arguments.
            tell: takes what the function tells on its way; the function gets one more argument, by which it does.
            timeout: seconds after which the process is killed.

        Raises:
            InputError: the function refuses, or takes too long.
            Ended: the process was killed or died.
        """
        loop = asyncio.get_running_loop()

        def told(message: Any) -> None:
            if tell is not None:
                loop.call_soon_threadsafe(tell, message)

        return await asyncio.to_thread(self._exchange, function, args, told if tell else None, timeout)

    def _exchange(
        self, function: Callable[..., Any], args: tuple[Any, ...], told: Callable[[Any], None] | None,
        timeout: float | None,
    ) -> Any:  # fmt: skip
        self.start()
        if self._closed:
            raise WorkerEnded("closed")
        deadline = None if timeout is None else time.monotonic() + timeout
        connection = self._connection
        try:
            connection.send((function, args, told is not None))
            while True:
                if deadline is not None and not connection.poll(max(0.0, deadline - time.monotonic())):
                    self.kill()
                    raise InputError(f"this takes longer than {timeout:g} seconds; bring less")
                kind, content = connection.recv()
                match kind:
                    case "told":
                        if told is not None:
                            told(content)
                    case "answer":
                        return content
                    case "refused":
                        raise InputError(content)
                    case _:
                        raise RuntimeError(content)
        except (EOFError, OSError) as error:
            self.kill()  # it may still be about to end, and look alive to the next call
            raise WorkerEnded(str(error) or type(error).__name__) from None


def _serve(connection: Any, begin: Callable[[], None]) -> None:
    """In the worker process: answer calls one after the other until the connection ends."""
    import warnings

    exit_with_parent()
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, resource.getrlimit(resource.RLIMIT_AS)[1]))
    warnings.simplefilter("ignore")
    os.nice(5)  # the page stays quick
    begin()

    def tell(content: Any) -> None:
        connection.send(("told", content))

    while True:
        try:
            function, args, telling = connection.recv()
        except (EOFError, OSError):
            return
        try:
            reply = "answer", function(*args, *([tell] if telling else []))
        except InputError as error:
            reply = "refused", str(error)
        except MemoryError:
            reply = "refused", "there is not enough memory for this; bring less"
        except OSError as error:
            reply = "refused", error.strerror or str(error)
        except Exception as error:
            reply = "failed", f"{type(error).__name__}: {error}"
        connection.send(reply)
