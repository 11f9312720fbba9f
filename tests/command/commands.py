"""The command as a user starts it: in a process of its own, in a pipe or on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MAIN = "from odinfer.command import main; main()"


class Run(NamedTuple):
    folder: Path
    code: int
    stdout: str
    stderr: str


def odinfer(*arguments: object, cwd: Path, code: str = MAIN, env: dict[str, str] | None = None) -> Run:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, env=os.environ | (env or {}))
    return Run(cwd, done.returncode, done.stdout, done.stderr)


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
