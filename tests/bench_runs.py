"""What the tests of the benchmark suite share: a small grid, and the command as users start it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from apps.command import commands
from odinfer.parallel.store import Store
from stores import writes

GRID = """
title = "small <b>grid</b>"
draws = {draws}
first_seed = 5
timeout = {timeout}

[systems.lotka_volterra]
label = "LV"
noise = [0.1]

[systems.decay]
equations = "x' = -k*x"
theta = {{ k = 0.7 }}
x0 = {{ x = 3.0 }}
times = {{ start = 0.0, stop = 4.0, count = 12 }}
noise = [0.05]

[methods.odin]
label = "ODIN"

[methods.gpr]
preset = "default"

[methods.limit]

[methods.endless]
method = "fgpgm"
options = {{ draws = 50_000_000, chains = 1 }}

[[experiments]]
systems = {systems}
methods = {methods}
"""


def write_grid(
    folder: Path, draws: int = 3, systems: str = "['lotka_volterra']", methods: str = "['odin']", timeout: float = 100.0
) -> Path:
    path = folder / "grid.toml"
    path.write_text(GRID.format(draws=draws, systems=systems, methods=methods, timeout=timeout))
    return path


MAIN = "from odinfer.apps.command.cli import main; main()"


def command(*arguments: Any, before: str = "") -> list[str]:
    """The command line, run by this interpreter; `before` is Python to run first."""
    return [sys.executable, "-c", f"{before}\n{MAIN}", "bench", *map(str, arguments)]


def bench(*arguments: Any, code: int = 0, before: str = "") -> commands.Run:
    """Run `odinfer bench` to its end; `before` is Python to run first, in a process that starts cold."""
    own = f"{before}\n{MAIN}" if before else None
    done = commands.odinfer("bench", *arguments, cwd=Path.cwd(), code=own)
    assert done.code == code, done.stderr + done.stdout
    return done


def start(*arguments: Any) -> subprocess.Popen[str]:
    started = command(*arguments, before=commands.ON_SIGINT)
    return subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcomes(folder: Path) -> dict[str, Any]:
    """Results by key, timings aside."""
    return {key: (record["run"], record["outcome"]) for key, record in Store(folder).records.items()}


def wait_for_records(folder: Path, process: subprocess.Popen[str], count: int = 1) -> None:
    """Until so many results are stored for good, while the process still runs."""
    end = time.monotonic() + 200
    while time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        # One more than asked for: an interrupt takes the last one back if it is not yet on the disk.
        if writes(folder) > count:
            return
        time.sleep(0.01)
    raise AssertionError("no results came")


def children(pid: int) -> list[int]:
    """Processes that a process started and that run Python's spawn entry point."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                line = Path(f"/proc/{entry}/cmdline").read_bytes()
            except OSError:
                continue
            if int(stat[1]) == pid and b"spawn_main" in line and stat[0] != "Z":
                found.append(int(entry))
    return found


def gone(pids: list[int], seconds: float = 30.0) -> bool:
    """Whether processes end within a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        states = []
        for pid in pids:
            try:
                states.append(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
            except OSError:
                states.append("Z")
        if all(state == "Z" for state in states):
            return True
        time.sleep(0.05)
    return False
