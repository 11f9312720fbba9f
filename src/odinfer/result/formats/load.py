"""Load a FitResult from a JSON file without loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.files import readable
from odinfer.gp.curves import Curve, Gradients
from odinfer.result.fit import FitResult
from odinfer.result.formats.json_format import AT_DATA, BY_NAME, CURVE, GRADIENTS, KNOWN, ON_CURVE, STAGE, TEXTS
from odinfer.result.formats.json_values import decode, decode_array, decode_record
from odinfer.result.formats.validation import validate
from odinfer.result.stages import ExperimentFit, Stage
from odinfer.uncertainty.results import Bootstrap, Posterior, Profile, Uncertainty

Array = NDArray[np.float64]


def load(path: str | Path) -> FitResult:
    """Read a result from a `.json` file that `Fit.save` or the command made; it has every number of the fit.

    What has to be computed anew, such as a forecast, needs the model and the data:
    `od.load("fit.json").attach(od.Problem(model, data)).forecast(t)`.

    Raises:
        InputError: if the file is missing, is not JSON, is no fit, or was written by a newer odinfer.
    """
    try:
        text = readable(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a JSON file; give the .json file (.nc is for xarray.open_dataset)") from None
    except ValueError as error:  # a zero character
        raise InputError(f"cannot read {path}: {error}") from None
    return loads(text, str(path))


def loads(text: str, path: str) -> FitResult:
    """A fit from the text of such a file, which messages call by its path.

    Raises:
        InputError: as `load` does.
    """
    try:
        content = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        where = f": line {error.lineno}, {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{path} is not a JSON file{where}; was it cut off or edited?") from None
    kind = str(content.get("format")) if isinstance(content, dict) else ""
    if not kind.startswith("odinfer-fit/"):
        raise InputError(f"{path} is not an odinfer fit; give a file that fit.save('name.json') wrote")
    if kind not in KNOWN:
        raise InputError(f"{path} was written by a newer odinfer (format {kind[:40]}); update odinfer to read it")
    try:
        if "\\ud" in text.lower():  # half a character, which JSON can spell, could neither be printed nor written
            json.dumps(content, ensure_ascii=False).encode()
        return validate(_fit(content))
    except KeyError as error:
        problem = f"{error} is missing"
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        problem = str(error)
    raise InputError(f"{path} is a damaged odinfer fit: {' '.join(problem.split())[:200]}")


def _fit(content: dict[str, Any]) -> FitResult:
    parts_of_fit: dict[str, Any] = {key: content[key] for key in ("seed", "converged")}
    parts_of_fit["equations"] = None if content["equations"] is None else _require_text(content["equations"])
    parts_of_fit |= {key: _require_text(content[key]) for key in ("model", "method", "status")}
    content = {"columns": content["state_names"], "noise": {}} | content  # those of a file of version 1
    parts_of_fit |= {key: tuple(_require_text(text) for text in _require_list(content[key])) for key in TEXTS}
    parts_of_fit |= {key: _floats_by_name(content[key]) for key in (*BY_NAME, "gamma_user")}
    parts_of_fit |= {key: decode(content[key]) for key in ("options", "details")}
    parts_of_fit["verdicts"] = {name: _require_text(verdict) for name, verdict in content["verdicts"].items()}
    parts_of_fit["noise"] = {name: _require_text(family) for name, family in content["noise"].items()}
    states, columns = parts_of_fit["state_names"], parts_of_fit["columns"]
    experiments: dict[str, ExperimentFit] = {}
    for e in _require_list(content["experiments"]):
        curve = Curve(**_arrays(e["curve"], CURVE, len(states)))
        gp = e["gradients"] and Gradients(**_arrays(e["gradients"], GRADIENTS, len(states)))
        best = Curve(**_arrays(e["best"], CURVE, len(states))) if "best" in e else None
        data: dict[str, Any] = _arrays(e, ("t", "y", *(key for key in AT_DATA if key in e)), len(columns))
        data |= {key: decode_array(e[key], len(curve.t), len(columns)) for key in ON_CURVE if key in e}
        if "limit" in data:
            data["limit"] = data["limit"].astype(np.int8)
        experiments[_require_text(e["name"])] = ExperimentFit(**data, curve=curve, gradients=gp, best=best)
    stages = {}
    for name, stage in content["stages"].items():
        times = [e.t for e in experiments.values()]
        x = tuple(decode_array(v, len(t), len(states)) for v, t in zip(_require_list(stage["x"]), times, strict=True))
        parts: dict[str, Any] = {key: _floats_by_name(stage[key]) for key in BY_NAME}
        parts |= {key: float(decode_array(stage[key])) for key in STAGE}
        stages[name] = Stage(**parts, x=x, note=_require_text(stage["note"]), t=times[0], state_names=states)
    samples = {name: np.array(draws, float) for name, draws in content.get("samples", {}).items()}
    profiles = [decode_record(Profile, r) for r in content.get("profiles") or ()]
    return FitResult(
        **parts_of_fit, experiments=experiments, stages=stages, samples=samples,
        uncertainty=decode_record(Uncertainty, content.get("uncertainty")),
        profiles={p.name: p for p in profiles},
        bootstrapped=decode_record(Bootstrap, content.get("bootstrap")),
        sampled=decode_record(Posterior, content.get("posterior")),
    )  # fmt: skip


def _arrays(content: dict[str, Any], keys: tuple[str, ...], width: int) -> dict[str, Array]:
    return {key: decode_array(content[key], len(content["t"]), *([] if key == "t" else [width])) for key in keys}


def _floats_by_name(values: dict[str, Any]) -> dict[str, float]:
    return {name: float(decode_array(value)) for name, value in values.items()}


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a text is expected")
    if "\0" in value:
        raise ValueError("a text has a zero character")
    return value


def _require_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} stands where a list is expected")
    return value


def _reject_constant(token: str) -> float:
    raise ValueError(f"{token} is not JSON")
