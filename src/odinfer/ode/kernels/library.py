"""Call the kernels with numbers, arrays and NamedTuples of them."""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odinfer.errors import InputError
from odinfer.ode.kernels.build import FOLDER, NoCompiler, build, file_name

_TYPES = frozenset(np.dtype(own).char for own in (np.float64, np.int64, np.bool_))
_ARRAY = tuple("q" * (1 + dimensions) for dimensions in range(5))


@dataclass(frozen=True, eq=False)
class Packed:
    """Arguments as a kernel takes them, for those that stay the same from call to call, and the arrays behind them."""

    words: bytes
    behind: tuple[object, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pack the arrays again where a copy of them is: pointers mean nothing to other processes."""
        return pack, self.behind


def pack(*arguments: object) -> Packed:
    """Lay out arguments: eight bytes for a number, a pointer and its shape for an array, its fields for a tuple.

    Arrays are of float64, int64 or bool and contiguous.
    """
    form: list[str] = []
    words: list[float] = []
    _flatten(arguments, form, words)
    return Packed(struct.pack("=" + "".join(form), *words), arguments)


def call(name: str, *arguments: object) -> int:
    """Call a kernel, which may write into the arrays, with arguments of which some may be packed."""
    parts: list[bytes] = []
    rest: list[object] = []
    for value in arguments:
        if isinstance(value, Packed):
            parts += [pack(*rest).words, value.words]
            rest = []
        else:
            rest.append(value)
    return int(_kernel(name)(b"".join([*parts, pack(*rest).words])))


def _flatten(values: Iterable[object], form: list[str], words: list[float]) -> None:
    for value in values:
        if isinstance(value, np.ndarray):
            if value.dtype.char not in _TYPES or not value.flags.c_contiguous:
                raise TypeError(f"kernels take contiguous arrays of numbers, not {value.dtype} {value.strides}")
            form.append(_ARRAY[value.ndim])
            words += (value.__array_interface__["data"][0], *value.shape)
        elif isinstance(value, tuple):
            _flatten(value, form, words)
        elif isinstance(value, float):
            form.append("d")
            words.append(value)
        else:
            form.append("q")
            words.append(int(value))  # type: ignore[call-overload]


@functools.cache
def _kernel(name: str) -> Any:
    function = getattr(_library(), name)
    function.argtypes, function.restype = (ctypes.c_char_p,), ctypes.c_int64
    return function


@functools.cache
def _library() -> ctypes.CDLL:
    """The library of the installation; where that has none, as in a checkout, it is compiled once for every user."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odinfer" / "kernels"
    for folder in (FOLDER, cache):
        if (folder / file_name()).exists():
            return ctypes.CDLL(str(folder / file_name()))
    try:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            return ctypes.CDLL(str(build(cache)))
        except OSError:  # the cache cannot be written to
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
                return ctypes.CDLL(str(build(Path(temporary))))
    except NoCompiler as error:
        raise InputError(f"this needs the compiled loops of odinfer, which were not installed, and {error}") from None
