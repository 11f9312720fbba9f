"""Fits in files: JSON that loads back exactly, and netCDF for xarray; a file is written whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer import __version__
from odinfer.curve import Curve, ExperimentFit, Gradients, Stage, frame
from odinfer.dataset import BY_NAME, CURVE, FORMAT, GRADIENTS, STAGE, groups, to_xarray
from odinfer.errors import InputError
from odinfer.files import replacing
from odinfer.fit import Fit
from odinfer.packing import array, numbers, of_record, packed, record, unpacked
from odinfer.uncertainty import Bootstrap, Posterior, Profile, Uncertainty

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]

_TEXTS = ("state_names", "parameter_names", "warnings")


def write(fit: Fit, path: str | Path) -> None:
    """Write a fit to a `.json` file, which `load` reads, or to a `.nc` file (netCDF) for xarray.

    Raises:
        InputError: if the ending is another one or the file cannot be written; an older file then stays as it was.
    """
    path = Path(path)
    if path.suffix not in (".json", ".nc"):
        raise InputError(f"cannot tell the format of '{path.name}'; the name must end in .json or .nc")
    with replacing(path) as temporary:
        if path.suffix == ".json":
            temporary.write_text(dumps(fit), encoding="utf-8")
        else:
            parts: list[tuple[str | None, xr.Dataset]] = [(None, to_xarray(fit)), *groups(fit).items()]
            for group, data in parts:
                # NaN is NaN: to declare it as the filler of each variable takes time.
                encoding = {v: {"_FillValue": None} for v in data.variables}
                mode: Any = "a" if group else "w"
                data.to_netcdf(temporary, mode=mode, engine="h5netcdf", group=group, encoding=encoding)


def dumps(fit: Fit) -> str:
    """A fit as strict JSON, a line per entry; numbers that JSON has not are null (NaN), "inf" and "-inf"."""
    experiments = [
        {
            "name": name,
            **{key: numbers(getattr(e, key)) for key in ("t", "y")},
            "curve": {key: numbers(getattr(e.curve, key)) for key in CURVE},
            "gradients": e.gradients and {key: numbers(getattr(e.gradients, key)) for key in GRADIENTS},
        }
        for name, e in fit.experiments.items()
    ]
    stages = {
        name: {key: numbers(s[key]) for key in (*BY_NAME, *STAGE)} | {"x": [*map(numbers, s.x)], "note": s.note}
        for name, s in fit.stages.items()
    }
    content = {
        "format": FORMAT,
        "version": fit.details.get("version", __version__),
        **{key: getattr(fit, key) for key in ("model", "equations", "method", "seed", "status", "converged", *_TEXTS)},
        **{key: numbers(getattr(fit, key)) for key in (*BY_NAME, "gamma_user")},
        "verdicts": fit.verdicts,
        **{key: packed(getattr(fit, key)) for key in ("options", "details")},
        "stages": stages,
        "experiments": experiments,
        "samples": numbers(fit.samples),
        "uncertainty": fit.uncertainty and record(fit.uncertainty),
        "profiles": [record(p) for p in fit.profiles.values()],
        "bootstrap": fit.bootstrapped and record(fit.bootstrapped),
        "posterior": fit.posterior and record(fit.posterior),
    }
    lines = (f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load(path: str | Path) -> Fit:
    """Read a fit from a `.json` file that `write` made.

    Raises:
        InputError: if the file is missing, is not JSON, is no fit, or was written by a newer odinfer.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a JSON file; give the .json file (.nc is for xarray.open_dataset)") from None
    try:
        content = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        where = f": line {error.lineno}, {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{path} is not a JSON file{where}; was it cut off or edited?") from None
    kind = str(content.get("format")) if isinstance(content, dict) else ""
    if not kind.startswith("odinfer-fit/"):
        raise InputError(f"{path} is not an odinfer fit; give a file that fit.save('name.json') wrote")
    if kind != FORMAT:
        raise InputError(f"{path} was written by a newer odinfer (format {kind[:40]}); update odinfer to read it")
    try:
        return _fit(content)
    except KeyError as error:
        problem = f"{error} is missing"
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        problem = str(error)
    raise InputError(f"{path} is a damaged odinfer fit: {' '.join(problem.split())[:200]}")


def _fit(content: dict[str, Any]) -> Fit:
    parts_of_fit: dict[str, Any] = {key: content[key] for key in ("equations", "seed", "converged")}
    parts_of_fit |= {key: _text(content[key]) for key in ("model", "method", "status")}
    parts_of_fit |= {key: tuple(_text(text) for text in content[key]) for key in _TEXTS}
    parts_of_fit |= {key: _named(content[key]) for key in (*BY_NAME, "gamma_user")}
    parts_of_fit |= {key: unpacked(content[key]) for key in ("options", "details")}
    parts_of_fit["verdicts"] = {name: _text(verdict) for name, verdict in content["verdicts"].items()}
    states = parts_of_fit["state_names"]
    experiments: dict[str, ExperimentFit] = {}
    for e in content["experiments"]:
        curve = Curve(**_series(e["curve"], CURVE, len(states)))
        gp = e["gradients"] and Gradients(**_series(e["gradients"], GRADIENTS, len(states)))
        data = _series(e, ("t", "y"), len(states))
        experiments[_text(e["name"])] = ExperimentFit(**data, curve=curve, gradients=gp)
    stages = {}
    for name, stage in content["stages"].items():
        times = [e.t for e in experiments.values()]
        x = tuple(array(v, len(t), len(states)) for v, t in zip(stage["x"], times, strict=True))
        parts: dict[str, Any] = {key: _named(stage[key]) for key in BY_NAME}
        parts |= {key: float(array(stage[key])) for key in STAGE}
        stages[name] = Stage(**parts, x=x, note=_text(stage["note"]), states=frame(times[0], x[0], states))
    samples = {name: np.array(draws, float) for name, draws in content.get("samples", {}).items()}
    profiles = [of_record(Profile, r) for r in content.get("profiles") or ()]
    return Fit(
        **parts_of_fit, experiments=experiments, stages=stages, samples=samples,
        uncertainty=of_record(Uncertainty, content.get("uncertainty")),
        profiles={p.name: p for p in profiles},
        bootstrapped=of_record(Bootstrap, content.get("bootstrap")),
        posterior=of_record(Posterior, content.get("posterior")),
    )  # fmt: skip


def _series(content: dict[str, Any], keys: tuple[str, ...], width: int) -> dict[str, Array]:
    return {key: array(content[key], len(content["t"]), *([] if key == "t" else [width])) for key in keys}


def _named(values: dict[str, Any]) -> dict[str, float]:
    return {name: float(array(value)) for name, value in values.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a text is expected")
    return value


def _refused(token: str) -> float:
    raise ValueError(f"{token} is not JSON")
