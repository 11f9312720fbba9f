"""Fits as netCDF files and xarray datasets, with groups that ArviZ reads.

Files are written by h5netcdf without xarray, whose import (pandas, and a look for Dask) takes longer than a fit.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.result.formats.json_format import AT_DATA, CURVE, FORMAT, GRADIENTS, ON_CURVE, STAGE
from odinfer.result.formats.json_values import encode
from odinfer.version import __version__

if TYPE_CHECKING:
    import xarray as xr

    from odinfer.result.fit import FitResult

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Variables and coordinates by name, each as its dimensions, its values and its attributes if it has any."""

    variables: Mapping[str, tuple[Any, ...]]
    coords: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def dataset(self) -> xr.Dataset:
        try:
            import xarray as xr
        except ImportError:
            raise InputError("this needs xarray: pip install 'odinfer[xarray]'") from None
        return xr.Dataset(self.variables, self.coords, self.attrs)

    def write(self, place: Any) -> None:
        """Into a group of an open file."""
        place.attrs.update(self.attrs)
        for name, (dims, given, *attrs) in {**self.coords, **self.variables}.items():
            dims, values = (dims,) if isinstance(dims, str) else dims, np.asarray(given)
            for dim, size in zip(dims, values.shape, strict=True):
                if dim not in place.dimensions:
                    place.dimensions[dim] = size
            more = dict(*attrs)
            if values.dtype == bool:  # which netCDF lacks; xarray reads it back by this attribute
                values, more = values.astype(np.int8), more | {"dtype": "bool"}
            kind = _string_type() if values.dtype.kind in "UO" else values.dtype
            variable = place.create_variable(name, dims, kind)
            if values.size:
                variable[...] = values.astype(object) if values.dtype.kind == "U" else values
            variable.attrs.update(more)


def _string_type() -> Any:
    import h5py

    return h5py.string_dtype()


def write(fit: FitResult, path: Path) -> None:
    import h5netcdf

    content = io.BytesIO()  # HDF5 ends the process where a disk is full
    with h5netcdf.File(content, "w") as file:
        main_group(fit).write(file)
        for name, group in further_groups(fit).items():
            group.write(file.create_group(name))
    path.write_bytes(content.getvalue())


def to_xarray(fit: FitResult) -> xr.Dataset:
    """Everything of a fit as a Dataset; see `whole`."""
    return main_group(fit).dataset()


def main_group(fit: FitResult) -> Group:
    """Everything of a fit.

    Dimensions are parameter, state, column, stage, experiment, and time, curve_time and gradient_time with the
    variables y, x, sd, stage_x, curve_x, curve_sd, curve_slope, gradient_f, gradient_gp and gradient_sd on them. If
    there are several experiments, these times and variables end in _0, _1 …, in the order of the coordinate
    `experiment`. Where columns are not just the states there are fitted, scores, limit (at the times of y), expected
    and expected_sd (along the curve), too; otherwise the dimension of y and sigma is state.
    """
    states, parameters, seen = fit.state_names, fit.parameter_names, "column" if fit.noise else "state"

    def along(values: Mapping[str, float], names: tuple[str, ...]) -> list[float]:
        return [float(values.get(name, np.nan)) for name in names]

    named = {"parameter": parameters, "state": states, "experiment": (*fit.experiments,)}
    coords: dict[str, Any] = {dim: (dim, list(names)) for dim, names in named.items()}
    if fit.noise:
        coords["column"] = "column", list(fit.columns)
    variables: dict[str, Any] = {
        "theta": ("parameter", along(fit.theta, parameters)),
        "gamma": ("state", along(fit.gamma, states), {"units": "standardised"}),
        "gamma_user": ("state", along(fit.gamma_user, states), {"units": "(state / time)^2"}),
        "sigma": (seen, along(fit.sigma, fit.columns), {"long_name": "noise standard deviation"}),
        "verdict": ("state", [fit.verdicts.get(name, "") for name in states]),
    }
    if fit.stages:
        stages = fit.stages.values()
        coords["stage"] = "stage", [*fit.stages]
        variables["stage_theta"] = ("stage", "parameter"), [along(s.theta, parameters) for s in stages]
        variables["stage_gamma"] = ("stage", "state"), [along(s.gamma, states) for s in stages]
        variables["stage_sigma"] = ("stage", seen), [along(s.sigma, fit.columns) for s in stages]
        for key in (*STAGE, "note"):
            variables[f"stage_{key}"] = "stage", [s[key] for s in stages]
    for i, (name, e) in enumerate(fit.experiments.items()):
        end, note = f"_{i}" if len(fit.experiments) > 1 else "", {"experiment": name}
        x, sd = e.estimate()
        tables = {"time": (e.t, {"x": x, "sd": sd})}
        tables["curve_time"] = e.curve.t, {f"curve_{key}": getattr(e.curve, key) for key in CURVE[1:]}
        if e.gradients:
            tables["gradient_time"] = e.gradients.t, {f"gradient_{k}": getattr(e.gradients, k) for k in GRADIENTS[1:]}
        for time, (t, columns) in tables.items():
            coords[time + end] = (time + end, t)
            variables |= {key + end: ((time + end, "state"), values, note) for key, values in columns.items()}
        for time, keys in (("time", ("y", *AT_DATA)), ("curve_time", ON_CURVE)):
            found = {key: v for key in keys if (v := getattr(e, key)) is not None}
            variables |= {key + end: ((time + end, seen), values, note) for key, values in found.items()}
        if fit.stages:
            x_stages = np.stack([s.x[i] for s in fit.stages.values()])
            variables[f"stage_x{end}"] = ("stage", f"time{end}", "state"), x_stages, note
    if fit.uncertainty is not None:
        u = fit.uncertainty
        coords |= {dim: (dim, list(u.names)) for dim in ("free", "free_")}
        variables["covariance"] = ("free", "free_"), u.covariance, {"long_name": "of log θ for log-scaled parameters"}
        ends = np.stack([u.low, u.high], -1)
        variables["interval"] = ("free", "end"), ends, {"level": u.level, "kind": "likelihood"}
    if fit.noise:
        variables["noise"] = "column", [fit.noise[name] for name in fit.columns], {"long_name": "distribution"}
    variables |= {f"posterior_{name}": (("chain", "draw"), draws) for name, draws in fit.draws.items()}
    attrs = {
        "format": FORMAT,
        "version": fit.details.get("version", __version__),
        **{key: getattr(fit, key) for key in ("model", "method", "status")},
        "equations": fit.equations or "",
        "seed": fit.seed if fit.seed < 2**63 else str(fit.seed),
        "converged": int(fit.converged),
        "warnings": "\n".join(fit.warnings),
        **{key: json.dumps(encode(getattr(fit, key))) for key in ("options", "details")},
    }
    return Group(variables, coords, attrs)


def further_groups(fit: FitResult) -> dict[str, Group]:
    """Further groups of the netCDF file: posterior, sample_stats and observed_data as ArviZ reads them; profile and
    bootstrap."""
    found: dict[str, Group] = {}

    def of_draws(values: Mapping[str, Array]) -> dict[str, Any]:
        return {_variable_name(name): (("chain", "draw"), np.asarray(draws)) for name, draws in values.items()}

    draws = fit.draws
    if draws:
        C, N = next(iter(draws.values())).shape
        more: dict[str, Array] = {}
        if fit.sampled is not None:
            more |= {f"x0_{name}": v for name, v in fit.sampled.x0.items()}
            more |= {f"sigma_{name}": v for name, v in fit.sampled.sigma.items()}
            if fit.sampled.stats:
                found["sample_stats"] = Group(of_draws(fit.sampled.stats))
        along = {"chain": ("chain", np.arange(C)), "draw": ("draw", np.arange(N))}
        found["posterior"] = Group(of_draws({**draws, **more}), along)
        observed: dict[str, Any] = {}
        seen = "column" if fit.noise else "state"
        for i, e in enumerate(fit.experiments.values()):
            end = f"_{i}" if len(fit.experiments) > 1 else ""
            observed |= {f"time{end}": (f"time{end}", e.t), f"y{end}": ((f"time{end}", seen), e.y)}
        found["observed_data"] = Group(observed, {seen: (seen, list(fit.columns))})
    if fit.profiles:
        found["profile"] = Group(
            {f"{part}_{_variable_name(name)}": (f"point_{_variable_name(name)}", getattr(p, part))
             for name, p in fit.profiles.items() for part in ("values", "likelihoods")}
        )  # fmt: skip
    if fit.bootstrapped is not None:
        found["bootstrap"] = Group({_variable_name(n): ("refit", v) for n, v in fit.bootstrapped.theta.items()})
    return found


def _variable_name(name: str) -> str:
    """A name for a variable of netCDF, which takes a slash for a folder."""
    return name.replace("/", "_") or "_"
