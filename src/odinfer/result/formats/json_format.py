"""Write fits as JSON, with the version of the format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from odinfer.result.formats.json_values import encode, encode_numbers, encode_record
from odinfer.version import __version__

if TYPE_CHECKING:
    from odinfer.result.fit import FitResult

FORMAT = "odinfer-fit/2"  # the version of what is in the file; a reader refuses what it does not know
KNOWN = ("odinfer-fit/1", FORMAT)  # 1 had no columns but the states
TEXTS = ("state_names", "parameter_names", "columns", "warnings")
BY_NAME, STAGE = ("theta", "gamma", "sigma"), ("objective", "loglik", "seconds")
# By column, where these are not just the states.
AT_DATA, ON_CURVE = ("fitted", "scores", "limit"), ("expected", "expected_sd")
CURVE, GRADIENTS = ("t", "x", "slope", "sd"), ("t", "f", "gp", "sd")


def write(fit: FitResult, path: Path) -> None:
    path.write_text(dumps(fit), encoding="utf-8")


def dumps(fit: FitResult) -> str:
    """A fit as strict JSON, a line per entry; numbers that JSON has not are null (NaN), "inf" and "-inf"."""
    experiments = [
        {
            "name": name,
            **{key: encode_numbers(getattr(e, key)) for key in ("t", "y")},
            "curve": {key: encode_numbers(getattr(e.curve, key)) for key in CURVE},
            **{key: encode_numbers(v) for key in (*AT_DATA, *ON_CURVE) if (v := getattr(e, key)) is not None},
            **({"best": {key: encode_numbers(getattr(e.best, key)) for key in CURVE}} if e.best is not None else {}),
            "gradients": e.gradients and {key: encode_numbers(getattr(e.gradients, key)) for key in GRADIENTS},
        }
        for name, e in fit.experiments.items()
    ]
    stages = {
        name: {key: encode_numbers(s[key]) for key in (*BY_NAME, *STAGE)}
        | {"x": [*map(encode_numbers, s.x)], "note": s.note}
        for name, s in fit.stages.items()
    }
    content = {
        "format": FORMAT,
        "version": fit.details.get("version", __version__),
        **{key: getattr(fit, key) for key in ("model", "equations", "method", "seed", "status", "converged", *TEXTS)},
        **{key: encode_numbers(getattr(fit, key)) for key in (*BY_NAME, "gamma_user")},
        "verdicts": fit.verdicts,
        "noise": fit.noise,
        **{key: encode(getattr(fit, key)) for key in ("options", "details")},
        "stages": stages,
        "experiments": experiments,
        "samples": encode_numbers(fit.samples),
        "uncertainty": fit.uncertainty and encode_record(fit.uncertainty),
        "profiles": [encode_record(p) for p in fit.profiles.values()],
        "bootstrap": fit.bootstrapped and encode_record(fit.bootstrapped),
        "posterior": fit.sampled and encode_record(fit.sampled),
    }
    lines = (f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
