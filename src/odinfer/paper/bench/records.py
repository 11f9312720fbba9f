"""Validate records of a store."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from odinfer.parallel.store import canonical, digest

Check = Callable[[Any], bool]


def usable(record: Mapping[str, Any]) -> bool:
    """Whether a record holds what its run says, and everything in it is of the kind that reports expect."""
    try:
        same = digest(canonical(record["run"])) == record["key"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return False
    return same and _has(record, {"run": _table({"seed": _is_whole}), "outcome": _outcome, "timing": _timing})


def _has(table: Any, required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> bool:
    if not isinstance(table, dict) or not all(key in table and check(table[key]) for key, check in required.items()):
        return False
    return all(check(table[key]) for key, check in (optional or {}).items() if key in table)


def _table(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    return lambda value: _has(value, required, optional)


def _by_name(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    """As `compute.plain` writes numbers; whole ones may be any that a float can hold."""
    if value is None or value in ("inf", "-inf"):
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300


def _series(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(_number, value))


def _moments(value: Any) -> bool:
    names = ("mean", "sd", "skewness", "kurtosis")
    return isinstance(value, dict) and all(_number(value.get(n, "")) and value[n] is not None for n in names)


def _finite(value: Any) -> bool:
    return _series(value) and all(isinstance(v, int | float) and math.isfinite(v) for v in value)


_timing = _table({"seconds": _time, "cpu": _time})
_ERRORS: dict[str, Check] = dict.fromkeys(("state_rmse", "trmse", "trmse_paper", "objective", "gamma_highest"), _number)
_ERRORS |= dict.fromkeys(("theta", "state_rmses", "trmses_paper"), _by_name(_number))
_outcome = _table(
    {"status": _text, "converged": _flag, "theta": _by_name(_number)},
    _ERRORS
    | {
        **dict.fromkeys(("gamma", "sigma"), _by_name(_number)),
        "verdicts": _by_name(_text),
        "trajectory": _by_name(_series),
        "stages": _by_name(_table({}, _ERRORS)),
        "quantiles": _by_name(_finite),
        "moments": _by_name(_moments),
    },
)
