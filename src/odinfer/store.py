"""Fits in files: JSON that loads back exactly, and netCDF for xarray; a file is written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odinfer import __version__
from odinfer.curve import Curve, ExperimentFit, Gradients, Stage, frame
from odinfer.errors import InputError
from odinfer.fit import Fit
from odinfer.uncertainty import Bootstrap, Posterior, Profile, Uncertainty

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]

FORMAT = "odinfer-fit/1"
_TEXTS = ("state_names", "parameter_names", "warnings")
_BY_NAME, _STAGE = ("theta", "gamma", "sigma"), ("objective", "loglik", "seconds")
_CURVE, _GRADIENTS = ("t", "x", "slope", "sd"), ("t", "f", "gp", "sd")


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


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a new, empty file in the same folder to write to; it takes the place of `path` if all goes well.

    Raises:
        InputError: if the operating system refuses.
    """
    # Through a link, since replacing the link itself would leave what it points to as it was.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".odinfer-{secrets.token_hex(6)}.tmp")
    try:
        # Unlike tempfile's, this file gets the permissions that any new file of the user gets.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            if target.exists():
                shutil.copymode(target, temporary)
            yield temporary
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def version() -> str:
    """The version of this package."""
    return __version__


def estimate(e: ExperimentFit) -> tuple[Array, Array]:
    """States and their standard deviations (N, K) at the observation times; NaN where a failed fit has none."""
    if len(e.curve.t) < 2 or not np.isfinite([e.curve.x, e.curve.slope]).all():
        return np.full(e.y.shape, np.nan), np.full(e.y.shape, np.nan)
    x, _, sd = e.curve.at(e.t)
    return x, sd


# --- JSON


def dumps(fit: Fit) -> str:
    """A fit as strict JSON, a line per entry; numbers that JSON has not are null (NaN), "inf" and "-inf"."""
    experiments = [
        {
            "name": name,
            **{key: _numbers(getattr(e, key)) for key in ("t", "y")},
            "curve": {key: _numbers(getattr(e.curve, key)) for key in _CURVE},
            "gradients": e.gradients and {key: _numbers(getattr(e.gradients, key)) for key in _GRADIENTS},
        }
        for name, e in fit.experiments.items()
    ]
    stages = {
        name: {key: _numbers(s[key]) for key in (*_BY_NAME, *_STAGE)} | {"x": [*map(_numbers, s.x)], "note": s.note}
        for name, s in fit.stages.items()
    }
    content = {
        "format": FORMAT,
        "version": fit.details.get("version", version()),
        **{key: getattr(fit, key) for key in ("model", "equations", "method", "seed", "status", "converged", *_TEXTS)},
        **{key: _numbers(getattr(fit, key)) for key in (*_BY_NAME, "gamma_user")},
        "verdicts": fit.verdicts,
        **{key: _packed(getattr(fit, key)) for key in ("options", "details")},
        "stages": stages,
        "experiments": experiments,
        "samples": _numbers(fit.samples),
        "uncertainty": fit.uncertainty and _record(fit.uncertainty),
        "profiles": [_record(p) for p in fit.profiles.values()],
        "bootstrap": fit.bootstrapped and _record(fit.bootstrapped),
        "posterior": fit.posterior and _record(fit.posterior),
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
    parts_of_fit |= {key: _named(content[key]) for key in (*_BY_NAME, "gamma_user")}
    parts_of_fit |= {key: _unpacked(content[key]) for key in ("options", "details")}
    parts_of_fit["verdicts"] = {name: _text(verdict) for name, verdict in content["verdicts"].items()}
    states = parts_of_fit["state_names"]
    experiments: dict[str, ExperimentFit] = {}
    for e in content["experiments"]:
        curve = Curve(**_series(e["curve"], _CURVE, len(states)))
        gp = e["gradients"] and Gradients(**_series(e["gradients"], _GRADIENTS, len(states)))
        data = _series(e, ("t", "y"), len(states))
        experiments[_text(e["name"])] = ExperimentFit(**data, curve=curve, gradients=gp)
    stages = {}
    for name, stage in content["stages"].items():
        times = [e.t for e in experiments.values()]
        x = tuple(_array(v, len(t), len(states)) for v, t in zip(stage["x"], times, strict=True))
        parts: dict[str, Any] = {key: _named(stage[key]) for key in _BY_NAME}
        parts |= {key: float(_array(stage[key])) for key in _STAGE}
        stages[name] = Stage(**parts, x=x, note=_text(stage["note"]), states=frame(times[0], x[0], states))
    samples = {name: np.array(draws, float) for name, draws in content.get("samples", {}).items()}
    profiles = [_of_record(Profile, r) for r in content.get("profiles") or ()]
    return Fit(
        **parts_of_fit, experiments=experiments, stages=stages, samples=samples,
        uncertainty=_of_record(Uncertainty, content.get("uncertainty")),
        profiles={p.name: p for p in profiles},
        bootstrapped=_of_record(Bootstrap, content.get("bootstrap")),
        posterior=_of_record(Posterior, content.get("posterior")),
    )  # fmt: skip


def _numbers(values: ArrayLike | Mapping[str, Any]) -> Any:
    """Numbers as (nested) lists, by name, or one number, with null and "inf" where JSON has no number."""
    if isinstance(values, Mapping):
        return {name: _numbers(value) for name, value in values.items()}
    array = np.asarray(values, float)
    if np.isfinite(array).all():
        return array.tolist()
    cells = [v if math.isfinite(v) else None if math.isnan(v) else str(v) for v in array.ravel().tolist()]
    return np.array(cells, dtype=object).reshape(array.shape).tolist()


def _array(values: Any, *shape: int) -> Array:
    array = np.array(values, dtype=float)  # numpy reads None as NaN and "-inf" as a number
    if array.shape != shape and array.size + math.prod(shape) > 0:
        raise ValueError(f"an array has shape {array.shape} instead of {shape}")
    return array.reshape(shape)


def _series(content: dict[str, Any], keys: tuple[str, ...], width: int) -> dict[str, Array]:
    return {key: _array(content[key], len(content["t"]), *([] if key == "t" else [width])) for key in keys}


def _named(values: dict[str, Any]) -> dict[str, float]:
    return {name: float(_array(value)) for name, value in values.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} stands where a text is expected")
    return value


def _refused(token: str) -> float:
    raise ValueError(f"{token} is not JSON")


def _packed(value: Any, arrays: bool = False) -> Any:
    """What may hold anything as JSON; what JSON has not is an object with one $key. Arrays become lists if not kept."""
    match value:
        case np.ndarray() if arrays:
            return {"$array": [list(value.shape), _numbers(value.ravel())]}
        case np.generic() | np.ndarray():
            return _packed(value.tolist())
        case float() if not math.isfinite(value):
            return {"$float": str(value)}
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return {"$tuple": [_packed(v, arrays) for v in value]}
        case list():
            return [_packed(v, arrays) for v in value]
        case Mapping() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _packed(v, arrays) for key, v in value.items()}
        case Mapping():
            return {"$dict": [[_packed(key), _packed(v, arrays)] for key, v in value.items()]}
    return str(value)  # better a text in the file than no file


def _unpacked(value: Any) -> Any:
    match value:
        case {"$array": [shape, cells]}:
            return _array(cells, math.prod(shape)).reshape(shape)
        case {"$float": text}:
            return float(text)
        case {"$tuple": cells}:
            return tuple(_unpacked(v) for v in cells)
        case {"$dict": pairs}:
            return {_unpacked(key): _unpacked(v) for key, v in pairs}
    if isinstance(value, dict):
        return {key: _unpacked(v) for key, v in value.items()}
    return [_unpacked(v) for v in value] if isinstance(value, list) else value


def _record(value: Any) -> Any:
    """A dataclass of texts, numbers and arrays, nested at will."""
    return {f.name: _packed(getattr(value, f.name), arrays=True) for f in fields(value)}


def _of_record(kind: type[Any], content: dict[str, Any] | None) -> Any:
    return None if content is None else kind(**{key: _unpacked(value) for key, value in content.items()})


# --- xarray


def to_xarray(fit: Fit) -> xr.Dataset:
    """Everything of a fit as a Dataset.

    Dimensions are parameter, state, stage, experiment, and time, curve_time and gradient_time with the variables
    y, x, sd, stage_x, curve_x, curve_sd, curve_slope, gradient_f, gradient_gp and gradient_sd on them. If there are
    several experiments, these times and variables end in _0, _1 …, in the order of the coordinate `experiment`.
    """
    import xarray as xr

    states, parameters = fit.state_names, fit.parameter_names

    def along(values: Mapping[str, float], names: tuple[str, ...]) -> list[float]:
        return [float(values.get(name, np.nan)) for name in names]

    coords: dict[str, Any] = {"parameter": list(parameters), "state": list(states), "experiment": [*fit.experiments]}
    variables: dict[str, Any] = {
        "theta": ("parameter", along(fit.theta, parameters)),
        "gamma": ("state", along(fit.gamma, states), {"units": "standardised"}),
        "gamma_user": ("state", along(fit.gamma_user, states), {"units": "(state / time)^2"}),
        "sigma": ("state", along(fit.sigma, states), {"long_name": "noise standard deviation"}),
        "verdict": ("state", [fit.verdicts.get(name, "") for name in states]),
    }
    if fit.stages:
        stages = fit.stages.values()
        coords["stage"] = [*fit.stages]
        variables["stage_theta"] = ("stage", "parameter"), [along(s.theta, parameters) for s in stages]
        for key in _BY_NAME[1:]:
            variables[f"stage_{key}"] = ("stage", "state"), [along(s[key], states) for s in stages]
        for key in (*_STAGE, "note"):
            variables[f"stage_{key}"] = "stage", [s[key] for s in stages]
    for i, (name, e) in enumerate(fit.experiments.items()):
        end, note = f"_{i}" if len(fit.experiments) > 1 else "", {"experiment": name}
        x, sd = estimate(e)
        tables = {"time": (e.t, {"y": e.y, "x": x, "sd": sd})}
        tables["curve_time"] = e.curve.t, {f"curve_{key}": getattr(e.curve, key) for key in _CURVE[1:]}
        if e.gradients:
            tables["gradient_time"] = e.gradients.t, {f"gradient_{k}": getattr(e.gradients, k) for k in _GRADIENTS[1:]}
        for time, (t, columns) in tables.items():
            coords[time + end] = (time + end, t)
            variables |= {key + end: ((time + end, "state"), values, note) for key, values in columns.items()}
        if fit.stages:
            x_stages = np.stack([s.x[i] for s in fit.stages.values()])
            variables[f"stage_x{end}"] = ("stage", f"time{end}", "state"), x_stages, note
    if fit.uncertainty is not None:
        u = fit.uncertainty
        coords["free"] = coords["free_"] = list(u.names)
        variables["covariance"] = ("free", "free_"), u.covariance, {"long_name": "of log θ for log-scaled parameters"}
        ends = np.stack([u.low, u.high], -1)
        variables["interval"] = ("free", "end"), ends, {"level": u.level, "kind": "likelihood"}
    variables |= {f"posterior_{name}": (("chain", "draw"), draws) for name, draws in draws_of(fit).items()}
    attrs = {
        "format": FORMAT,
        "version": fit.details.get("version", version()),
        **{key: getattr(fit, key) for key in ("model", "method", "status")},
        "equations": fit.equations or "",
        "seed": fit.seed if fit.seed < 2**63 else str(fit.seed),
        "converged": int(fit.converged),
        "warnings": "\n".join(fit.warnings),
        **{key: json.dumps(_packed(getattr(fit, key))) for key in ("options", "details")},
    }
    return xr.Dataset(variables, coords, attrs)


def draws_of(fit: Fit) -> dict[str, Array]:
    """Posterior draws (chain, draw) by parameter: of the posterior that was added, or of the method itself."""
    return fit.posterior.theta if fit.posterior is not None else fit.samples


def groups(fit: Fit) -> dict[str, xr.Dataset]:
    """Further groups of the netCDF file: posterior, sample_stats and observed_data as ArviZ reads them; profile and
    bootstrap."""
    import xarray as xr

    found: dict[str, xr.Dataset] = {}

    def of_draws(values: Mapping[str, Array]) -> xr.Dataset:
        return xr.Dataset({_safe(name): (("chain", "draw"), np.asarray(draws)) for name, draws in values.items()})

    draws = draws_of(fit)
    if draws:
        C, N = next(iter(draws.values())).shape
        more: dict[str, Array] = {}
        if fit.posterior is not None:
            more |= {f"x0_{name}": v for name, v in fit.posterior.x0.items()}
            more |= {f"sigma_{name}": v for name, v in fit.posterior.sigma.items()}
            if fit.posterior.stats:
                found["sample_stats"] = of_draws(fit.posterior.stats)
        found["posterior"] = of_draws({**draws, **more}).assign_coords(chain=np.arange(C), draw=np.arange(N))
        observed: dict[str, Any] = {}
        for i, e in enumerate(fit.experiments.values()):
            end = f"_{i}" if len(fit.experiments) > 1 else ""
            observed |= {f"time{end}": (f"time{end}", e.t), f"y{end}": ((f"time{end}", "state"), e.y)}
        found["observed_data"] = xr.Dataset(observed, {"state": list(fit.state_names)})
    if fit.profiles:
        found["profile"] = xr.Dataset(
            {f"{part}_{_safe(name)}": (f"point_{_safe(name)}", getattr(p, part))
             for name, p in fit.profiles.items() for part in ("values", "likelihoods")}
        )  # fmt: skip
    if fit.bootstrapped is not None:
        found["bootstrap"] = xr.Dataset({_safe(n): ("refit", v) for n, v in fit.bootstrapped.theta.items()})
    return found


def _safe(name: str) -> str:
    """A name for a variable of netCDF, which takes a slash for a folder."""
    return name.replace("/", "_") or "_"
