"""How the doors are attacked: few examples in the ordinary run, many in the slow one."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LENGTHS = pytest.mark.parametrize("times", [1, pytest.param(8, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])])

SECONDS = 2.0  # of CPU time for what has at most 10 kB

# What stands where something else belongs.
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**70, 10**400, 1.5, -0.0, 1e308, 1e-308, 5e-324, "", " ", "x", "inf", "nan", "a/../b",
    "\x1b[31m", "\0", "$\\frac$", "_x", "\ud800", "é" * 300, [], [[]], {}, [1, 2], ["x"], [None], {"x": 1}, {"": []},
)  # fmt: skip
TEXTS = (
    "", " ", "0", "1", "-1", "2", "0.5", "1e308", "1e-308", "-1e308", "nan", "inf", "-inf", "9" * 400, "x", "k", "x=1",
    "k=1", "k=1e308", "k=nan", "k=0:1", "k=1:0", "k=:", "k=1e300:1e308", "k~normal(0,1)", "k~normal(1e308,1e-308)",
    "k~uniform(1,1)", "k~normal(,)", "k~x(1,2)", "x=1e-300", "x=1e300", "=", ",", ":", "0:1:5", "0:1:-5", "0:0:0",
    "1,0", "0,1,2",
    "\x1b[31m", "é", "..", "/", "--", "-", "error", "mean", "learn", "auto", "rbf", "k,k", "x,k", "%", "[bold]",
    "m.ode",
)  # fmt: skip


def attack(
    check: Callable[..., None], times: int, examples: int, seconds: float = SECONDS, **strategies: Any
) -> None:  # fmt: skip
    """Call a check with so many drawn examples, or `times` as many, each of at most so many seconds of CPU time."""

    @functools.wraps(check)
    def timed(*args: Any, **more: Any) -> None:
        begin = time.process_time()
        check(*args, **more)
        assert time.process_time() - begin < seconds

    limits = settings(max_examples=times * examples, deadline=None, suppress_health_check=list(HealthCheck))
    limits(given(**strategies)(timed))()


def check_line(message: str) -> None:
    """What is refused is refused in one line that can be read."""
    assert "\n" not in message
    assert len(message) < 500


SEEDS = st.integers(0, 2**32)


def spoilt(content: Any, seed: int) -> Any:
    """A copy of nested tables and lists with one or two entries replaced, removed, moved or repeated."""
    rng = random.Random(seed)
    for _ in range(rng.choice((1, 1, 2))):
        content = _changed(content, rng, rng.randint(0, 6))
    return content


def _changed(content: Any, rng: random.Random, depth: int) -> Any:
    if not isinstance(content, dict | list) or not content or depth == 0:
        return rng.choice(ODD)
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    key = rng.choice(keys)
    copy = content.copy()
    what = rng.random()
    if what < 0.06:
        del copy[key]
    elif what < 0.12:
        other = rng.choice(keys)
        copy[key], copy[other] = copy[other], copy[key]
    elif what < 0.16 and isinstance(copy, dict):
        copy[rng.choice([o for o in ODD if isinstance(o, str)])] = copy.pop(key)
    elif what < 0.16:
        copy.append(copy[key])
    else:
        copy[key] = _changed(copy[key], rng, depth - 1)
    return copy
