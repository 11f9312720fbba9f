"""Loops over single numbers, compiled: what is done step by step cannot be done for all steps at once in numpy.

Numba compiles a function when it is first called, and keeps the result beside the source or in the user's cache, so
that this happens once for every installation. Models are not compiled: their instructions are numbers (tape.py), and
the function that runs them is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def compiled(function: _Function) -> _Function:
    """The same function, compiled; numbers that are not finite arise as in numpy."""
    found: Any = numba.njit(cache=True, error_model="numpy")(function)
    return cast(_Function, found)


def inlined(function: _Function) -> _Function:
    """The same for a function that is written out wherever it is called: to hand many arrays over takes a while."""
    found: Any = numba.njit(inline="always", error_model="numpy")(function)
    return cast(_Function, found)
