"""The command as a user starts it: in a process of its own, in a pipe or on a terminal.

Loading numpy, scipy and the package takes longer than most commands do. So processes of commands are forks of one that
has loaded them, but not JAX, and that does nothing else. Tests of what is loaded, of signals and of terminals start
cold ones, by `MAIN` or code of their own.
"""

from __future__ import annotations

import atexit
import json
import os
import pty
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple

MAIN = "from odinfer.apps.command import main; main()"
# A shell starts what runs in its background with interrupts ignored, and children inherit that.
ON_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
INTERRUPTIBLE = f"{ON_SIGINT}; {MAIN}"
_FORKING = """
import atexit, contextlib, gc, io, json, os, sys, time
import matplotlib.backends.backend_agg, matplotlib.figure, scipy.interpolate, scipy.optimize, scipy.special
import odinfer.apps.command.flags, odinfer.methods.odin, odinfer.result.report, odinfer.selection.report
from odinfer.apps.command.cli import main

sys.argv = ["odinfer", "check", "what is not there.ode", "nor.csv"]  # loads what reads arguments
with contextlib.suppress(SystemExit), contextlib.redirect_stderr(io.StringIO()):
    main()
assert "jax" not in sys.modules
gc.freeze()
while line := sys.stdin.readline():
    asked = json.loads(line)
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
        continue
    for number, name in enumerate(asked["streams"]):
        stream = os.open(name, os.O_RDWR)
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.argv = ["-c", *asked["arguments"]]
    code = 0
    try:
        MAIN
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # to free everything would take longer than most commands
"""


@cache
def _forking() -> subprocess.Popen[str]:
    code = _FORKING.replace("MAIN", MAIN)
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


class Run(NamedTuple):
    folder: Path
    code: int
    stdout: str
    stderr: str


def odinfer(*arguments: object, cwd: Path, code: str | None = None, env: dict[str, str] | None = None) -> Run:
    """Run a command to its end; with code of one's own, or other variables of the environment, in a cold process."""
    words = [str(argument) for argument in arguments]
    if code is None and env is None:
        return _forked(words, cwd)
    command = [sys.executable, "-c", code or MAIN, *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, env=os.environ | (env or {}))
    return Run(cwd, done.returncode, done.stdout, done.stderr)


def _forked(words: list[str], cwd: Path) -> Run:
    running = _forking()
    assert running.stdin is not None
    assert running.stdout is not None
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        streams = [os.devnull, out.name, err.name]
        asked = {"arguments": words, "cwd": str(cwd), "environ": dict(os.environ), "streams": streams}
        running.stdin.write(json.dumps(asked) + "\n")
        running.stdin.flush()
        answer = running.stdout.readline()
        assert answer, "the process that others are forked from has ended"
        return Run(cwd, int(answer), _content(out), _content(err))


def _content(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


def on_a_terminal(*arguments: object, cwd: Path) -> tuple[int, str]:
    master, slave = pty.openpty()
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=cwd, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"})
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 4096):
            shown += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(master)
    return process.wait(), shown.decode()
