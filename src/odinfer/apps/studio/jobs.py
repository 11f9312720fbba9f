"""Run the long jobs of the page in a worker process: fits, intervals and comparisons, with the files of each.

The process keeps its last fits in memory for intervals that are asked for later. A new process fits again, which gives
the same result by the seed.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from odinfer.apps.studio.interactive import Plain, Source, problems
from odinfer.apps.studio.next_steps import caveats, next_steps
from odinfer.apps.studio.scripts import compare_command, compare_script, data_file, fit_command, fit_script, model_file
from odinfer.errors import InputError
from odinfer.problem.problem import Problem
from odinfer.progress import Progress
from odinfer.result.fit import Fit
from odinfer.result.stages import state_band
from odinfer.style.text import TextTable
from odinfer.uncertainty.results import BAND

Tell = Callable[[Plain], None]

SEED = 0
_MAX_CACHED_FITS = 4  # fits in memory
_MAX_POINTS = 400  # of a curve on the page
_kept: OrderedDict[Any, Fit] = OrderedDict()


@dataclass(frozen=True)
class JobRequest:
    """What is to be done.

    Attributes:
        kind: "fit", "profile", "bootstrap", "sample" or "compare".
        models: names and texts.
        source: the data.
        name: of the data, as the user calls them.
        folder: where the files go.
    """

    kind: str
    models: tuple[tuple[str, str], ...]
    source: Source
    name: str
    folder: Path


def preload() -> None:
    """Load what every fit needs, before somebody waits for it."""
    import odinfer.methods.odin
    import odinfer.result.report  # noqa: F401


def run(order: JobRequest, tell: Tell) -> Plain:
    """Do it: tells of progress, then the answer as soon as it is known, and returns the names of the files."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its remarks about fonts are not for our users
    order.folder.mkdir(parents=True, exist_ok=True)
    names = _compare(order, tell) if order.kind == "compare" else _fit(order, tell)
    return {"files": names}


def _progress(tell: Tell) -> Progress:
    return lambda what, share: tell({"progress": what, "share": round(float(share), 4)})


def _fit(order: JobRequest, tell: Tell) -> list[str]:
    from odinfer.methods import fit
    from odinfer.optimal_design.next_measurements import with_next_measurements
    from odinfer.result import report
    from odinfer.result.extras import with_extras

    ((name, text),) = order.models
    notes: list[str] = []
    kind = None if order.kind == "fit" else order.kind
    key = name, text, repr(order.source)
    found = _kept.get(key)
    if found is None:
        every = problems(text, name, order.source, notes)
        if len(every) > 1:
            raise InputError(f"the optional terms make {len(every)} candidates; press Compare to fit them all")
        if every[0].model.said.effects:
            raise InputError("parameters vary by subject, which the studio cannot fit; use odinfer fit, or od.fit")
        found = with_next_measurements(fit(every[0], seed=SEED, progress=_progress(tell)))
    if kind is not None:
        if found.uncertainty is None:
            raise InputError(found.without_intervals)
        found = with_extras(found, kind, False, SEED, _progress(tell))
    _kept[key] = found
    _kept.move_to_end(key)
    while len(_kept) > _MAX_CACHED_FITS:
        _kept.popitem(last=False)
    command = fit_command(name, order.name, order.source.choice, kind)
    more = {"next": next_steps(found, text), "caveats": caveats(found)}
    tell({"answer": answer_of(found) | {"notes": notes, "command": command} | more})
    tell({"progress": "writing the report", "share": 1.0})
    names = [path.name for path in report.write_outputs(found, order.folder)]
    kinds = [kind for kind in found.intervals_by_kind() if kind != "likelihood"]
    script = fit_script(found.problem, order.name, order.source.choice, kinds)
    return names + _extras(order, command, "fit.py", script)


def _extras(order: JobRequest, command: str, script_name: str, script: str) -> list[str]:
    """The inputs, and how to do it again."""
    written: dict[str, bytes] = {model_file(name): text.encode() for name, text in order.models}
    written |= {data_file(order.name): order.source.path.read_bytes()}
    written |= {"command.txt": f"{command}\n".encode(), script_name: script.encode()}
    for name, content in written.items():
        (order.folder / name).write_bytes(content)
    return list(written)


def _compare(order: JobRequest, tell: Tell) -> list[str]:
    from odinfer.selection import report
    from odinfer.selection.compare import compare

    notes: list[str] = []
    every: list[Problem] = []
    for name, text in order.models:
        every += problems(text, name, order.source, notes)
    found = compare(every, seed=SEED, progress=_progress(tell))
    command = compare_command([name for name, _ in order.models], order.name, order.source.choice)
    table = found.table
    rows = [
        {"name": name, **{c: _number(table.loc[name, c]) for c in table.columns if c != "status"}}
        for name in table.index
    ]
    tell(
        {
            "answer": {
                "kind": "compare",
                "headline": report.headline(found),
                "tone": "good" if report.is_supported(found) else "bad",
                "sentences": [report.sentence(name, c, found.level) for name, c in found.candidates.items()],
                "rows": rows,
                "verdicts": found.verdicts,
                "fits": {name: answer_of(f) for name, f in found.fits.items()},
                "notes": [*dict.fromkeys(notes)],
                "command": command,
            }
        }
    )
    tell({"progress": "writing the report", "share": 1.0})
    names = [path.name for path in report.write_outputs(found, order.folder)]
    return names + _extras(order, command, "compare.py", compare_script(every, order.name, order.source.choice))


# --- a fit as the page shows it


def answer_of(fit: Fit) -> Plain:
    """All that the page shows of a fit."""
    from odinfer.result.estimates import correlation_table, parameter_table, solutions_table
    from odinfer.result.summary import data_counts, facts, headline, state_table, tone

    fixed = fit.details.get("fixed") or ()
    by_kind = fit.intervals_by_kind()
    return {
        "kind": "fit",
        "model": fit.model,
        "equations": fit.equations,
        "headline": headline(fit),
        "tone": tone(fit),
        "status": fit.status,
        "converged": fit.converged,
        "warnings": [*fit.warnings],
        "facts": [line for line in facts(fit) if line not in data_counts(fit)],
        "amounts": data_counts(fit),
        "parameters": _table(parameter_table(fit)),
        "solutions": _table(solutions_table(fit)),
        "correlations": _table(correlation_table(fit)),
        "theta": {name: _number(value) for name, value in fit.theta.items()},
        "fixed": [*fixed],
        "given": [*fit.details.get("given", ())],
        "intervals": {
            kind: {name: [_number(low), _number(high)] for name, (low, high) in found.items()}
            for kind, found in by_kind.items()
        },
        "states": _table(state_table(fit)),
        "verdicts": fit.verdicts,
        "experiments": {name: _curves(fit, name) for name in fit.experiments},
        "profiles": [
            {
                "name": p.name,
                "estimate": p.estimate,
                "interval": [_number(v) for v in p.interval()],
                "values": _numbers(p.values),
                "likelihoods": _numbers(p.likelihoods),
            }
            for p in fit.profiles.values()
        ],
        "draws": _draws(fit),
    }


def _table(table: TextTable | None) -> Plain | None:
    return None if table is None else {"header": [*table.header], "rows": [[*row] for row in table.rows]}


def _curves(fit: Fit, name: str) -> Plain:
    """States and columns with their bands along the curve, and residuals."""
    e = fit.experiments[name]
    rows = np.unique(np.linspace(0, len(e.curve.t) - 1, _MAX_POINTS).astype(int)) if len(e.curve.t) else slice(0)
    tables = [(fit.state_names, e.curve.x, *state_band(fit, e.curve.x, e.curve.sd))]
    if e.expected is not None and e.expected_sd is not None:
        half = BAND * e.expected_sd
        tables.append((fit.columns, e.expected, e.expected - half, e.expected + half))
    columns = {}
    for names, *band in tables:
        for k, column in enumerate(names):
            columns[column] = {name: _numbers(v[rows, k]) for name, v in zip(("y", "low", "high"), band, strict=True)}
    residuals = {c: _numbers(r) for c, r in zip(fit.columns, e.residuals.T, strict=True)}
    first = e.curve.x[0] if len(e.curve.t) else []
    return {
        "t": _numbers(e.curve.t[rows]),
        "columns": columns,
        "times": _numbers(e.t),
        "residuals": residuals,
        "initial": {state: _number(v) for state, v in zip(fit.state_names, first, strict=False)},
    }


def _draws(fit: Fit) -> dict[str, dict[str, list[float | None]]]:
    """Refits and posterior draws of the parameters, thinned."""
    found = {}
    if fit.bootstrapped is not None:
        found["bootstrap"] = fit.bootstrapped.theta
    if fit.posterior is not None:
        found["sample"] = {name: np.ravel(draws) for name, draws in fit.posterior.theta.items()}
    return {
        kind: {name: _numbers(v[:: max(1, len(v) // 500)]) for name, v in theta.items()}
        for kind, theta in found.items()
    }


def _number(value: Any) -> Any:
    """A number that JSON has: infinite ones are texts, and what is none is null."""
    if not isinstance(value, float | int | np.number):
        return value
    value = float(value)
    return value if math.isfinite(value) else None if math.isnan(value) else "∞" if value > 0 else "−∞"


def _numbers(values: Sequence[float] | Any) -> list[float | None]:
    return [float(f"{v:.10g}") if math.isfinite(v) else None for v in np.asarray(values, float).tolist()]
