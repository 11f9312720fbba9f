"""Encode numbers, arrays and nested records as strict JSON without loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def encode_numbers(values: ArrayLike | Mapping[str, Any]) -> Any:
    """Numbers as (nested) lists, by name, or one number, with null and "inf" where JSON has no number."""
    if isinstance(values, Mapping):
        return {name: encode_numbers(value) for name, value in values.items()}
    decode_array = np.asarray(values, float)
    if np.isfinite(decode_array).all():
        return decode_array.tolist()
    cells = [v if math.isfinite(v) else None if math.isnan(v) else str(v) for v in decode_array.ravel().tolist()]
    return np.array(cells, dtype=object).reshape(decode_array.shape).tolist()


def decode_array(values: Any, *shape: int) -> Array:
    decode_array = np.array(values, dtype=float)  # numpy reads None as NaN and "-inf" as a number
    if decode_array.shape != shape and decode_array.size + math.prod(shape) > 0:
        raise ValueError(f"an array has shape {decode_array.shape} instead of {shape}")
    return decode_array.reshape(shape)


def encode(value: Any, arrays: bool = False) -> Any:
    """What may hold anything as JSON; what JSON has not is an object with one $key. Arrays become lists if not kept."""
    match value:
        case np.ndarray() if arrays:
            return {"$array": [list(value.shape), encode_numbers(value.ravel())]}
        case np.generic() | np.ndarray():
            return encode(value.tolist())
        case float() if not math.isfinite(value):
            return {"$float": str(value)}
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return {"$tuple": [encode(v, arrays) for v in value]}
        case list():
            return [encode(v, arrays) for v in value]
        case Mapping() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encode(v, arrays) for key, v in value.items()}
        case Mapping():
            return {"$dict": [[encode(key), encode(v, arrays)] for key, v in value.items()]}
    return str(value)  # better a text in the file than no file


def decode(value: Any) -> Any:
    match value:
        case {"$array": [shape, cells]}:
            return decode_array(cells, math.prod(shape)).reshape(shape)
        case {"$float": text}:
            return float(text)
        case {"$tuple": cells}:
            return tuple(decode(v) for v in cells)
        case {"$dict": pairs}:
            return {decode(key): decode(v) for key, v in pairs}
    if isinstance(value, dict):
        return {key: decode(v) for key, v in value.items()}
    return [decode(v) for v in value] if isinstance(value, list) else value


def encode_record(value: Any) -> Any:
    """A dataclass of texts, numbers and arrays, nested at will."""
    return {f.name: encode(getattr(value, f.name), arrays=True) for f in fields(value)}


def decode_record(kind: type[Any], content: dict[str, Any] | None) -> Any:
    return None if content is None else kind(**{key: decode(value) for key, value in content.items()})
