"""Numbers, arrays and nested records as strict JSON, and back exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def numbers(values: ArrayLike | Mapping[str, Any]) -> Any:
    """Numbers as (nested) lists, by name, or one number, with null and "inf" where JSON has no number."""
    if isinstance(values, Mapping):
        return {name: numbers(value) for name, value in values.items()}
    array = np.asarray(values, float)
    if np.isfinite(array).all():
        return array.tolist()
    cells = [v if math.isfinite(v) else None if math.isnan(v) else str(v) for v in array.ravel().tolist()]
    return np.array(cells, dtype=object).reshape(array.shape).tolist()


def array(values: Any, *shape: int) -> Array:
    array = np.array(values, dtype=float)  # numpy reads None as NaN and "-inf" as a number
    if array.shape != shape and array.size + math.prod(shape) > 0:
        raise ValueError(f"an array has shape {array.shape} instead of {shape}")
    return array.reshape(shape)


def packed(value: Any, arrays: bool = False) -> Any:
    """What may hold anything as JSON; what JSON has not is an object with one $key. Arrays become lists if not kept."""
    match value:
        case np.ndarray() if arrays:
            return {"$array": [list(value.shape), numbers(value.ravel())]}
        case np.generic() | np.ndarray():
            return packed(value.tolist())
        case float() if not math.isfinite(value):
            return {"$float": str(value)}
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return {"$tuple": [packed(v, arrays) for v in value]}
        case list():
            return [packed(v, arrays) for v in value]
        case Mapping() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: packed(v, arrays) for key, v in value.items()}
        case Mapping():
            return {"$dict": [[packed(key), packed(v, arrays)] for key, v in value.items()]}
    return str(value)  # better a text in the file than no file


def unpacked(value: Any) -> Any:
    match value:
        case {"$array": [shape, cells]}:
            return array(cells, math.prod(shape)).reshape(shape)
        case {"$float": text}:
            return float(text)
        case {"$tuple": cells}:
            return tuple(unpacked(v) for v in cells)
        case {"$dict": pairs}:
            return {unpacked(key): unpacked(v) for key, v in pairs}
    if isinstance(value, dict):
        return {key: unpacked(v) for key, v in value.items()}
    return [unpacked(v) for v in value] if isinstance(value, list) else value


def record(value: Any) -> Any:
    """A dataclass of texts, numbers and arrays, nested at will."""
    return {f.name: packed(getattr(value, f.name), arrays=True) for f in fields(value)}


def of_record(kind: type[Any], content: dict[str, Any] | None) -> Any:
    return None if content is None else kind(**{key: unpacked(value) for key, value in content.items()})
