"""Compile loops with Numba, cached on disk.

Numba compiles a function when it is first called, and keeps the result beside the source or in the user's cache, so
that this happens once for every installation. Models are not compiled: their instructions are numbers (bytecode.py),
and the function that runs them is the same for all.

Compiled functions allocate nothing: arrays to work on are arguments. So no references need to be counted, which makes
them three times as fast and quicker to compile. Slices are not assigned to, since the error message for shapes that
differ takes longer to compile than the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """Compile a function that allocates no arrays; numbers that are not finite arise as in numpy."""
    options: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}
    try:
        return cast(_Function, numba.njit(**options)(function))
    except RuntimeError:  # neither the package's folder nor the user's cache can be written to
        return cast(_Function, numba.njit(**options | {"cache": False})(function))
