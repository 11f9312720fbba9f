"""Compile the kernels into a shared library; `setup.py` runs this file alone, so it imports nothing of the package."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
# The same numbers on every machine: products and sums are rounded one by one.
_FLAGS = ("-std=c99", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-math-errno", "-ffp-contract=off")


class NoCompiler(Exception):
    """There is no C compiler, or it failed; the message says what to do."""


def file_name() -> str:
    """The name of the library that belongs to these sources."""
    digest = hashlib.sha256(" ".join((*_FLAGS, sys.platform, platform.machine())).encode())
    for source in sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.h")]):
        digest.update(source.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}.{'dll' if os.name == 'nt' else 'so'}"


def compiler() -> list[str] | None:
    """The command of a C compiler: that of the environment, of the system, or Zig's from PyPI."""
    if own := os.environ.get("CC"):
        return shlex.split(own)
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return [path]
    return [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None


def build(folder: Path) -> Path:
    """Compile the library into a folder; processes that do so at once do not disturb each other."""
    command = compiler()
    if command is None:
        raise NoCompiler("there is no C compiler: install one, or `pip install ziglang`")
    with tempfile.TemporaryDirectory(dir=folder) as work:
        made = Path(work) / "kernels"
        own = ["-o", str(made), *sorted(map(str, FOLDER.glob("*.c"))), *([] if os.name == "nt" else ["-lm"])]
        try:
            run = subprocess.run([*command, *_FLAGS, *own], capture_output=True, text=True)
        except OSError as error:
            raise NoCompiler(f"the C compiler cannot be started: {error}") from None
        if run.returncode:
            raise NoCompiler(f"the C compiler failed ({' '.join(command)}): {run.stderr.strip()[:500]}")
        os.replace(made, folder / file_name())
    return folder / file_name()
