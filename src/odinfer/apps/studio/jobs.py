"""Run the long jobs of the page in a worker process: fits, intervals and comparisons, with the files of each.

The process keeps its last fits in memory for intervals that are asked for later. A new process fits again, which gives
the same result by the seed.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from odinfer.apps.studio.answers import answer_of, number
from odinfer.apps.studio.interactive import GaussianNoise, Source, problems
from odinfer.apps.studio.next_steps import caveats, next_steps
from odinfer.apps.studio.scripts import (
    compare_command,
    compare_script,
    data_file,
    design_command,
    discover_command,
    fit_command,
    fit_script,
    model_file,
)
from odinfer.errors import InputError
from odinfer.population.result import PopulationFit
from odinfer.problem.problem import Problem
from odinfer.progress import Progress
from odinfer.result.fit import Fit

if TYPE_CHECKING:
    from odinfer.population.compare import PopulationComparison

Tell = Callable[[GaussianNoise], None]

SEED = 0
_MAX_CACHED_FITS = 4  # fits in memory
_kept: OrderedDict[Any, Fit | PopulationFit] = OrderedDict()


@dataclass(frozen=True)
class JobRequest:
    """What is to be done.

    Attributes:
        kind: "fit", "profile", "bootstrap", "sample", "discover", "design" or "compare".
        models: names and texts.
        source: the data.
        name: of the data, as the user calls them.
        folder: where the files go.
        options: of a design: how many samples, and the last time.
    """

    kind: str
    models: tuple[tuple[str, str], ...]
    source: Source
    name: str
    folder: Path
    options: Mapping[str, Any] = field(default_factory=dict)


def preload() -> None:
    """Load what every fit needs, before somebody waits for it."""
    import odinfer.methods.odin
    import odinfer.result.report  # noqa: F401


def run(order: JobRequest, tell: Tell) -> GaussianNoise:
    """Do it: tells of progress, then the answer as soon as it is known, and returns the names of the files."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its remarks about fonts are not for our users
    order.folder.mkdir(parents=True, exist_ok=True)
    do = {"compare": _compare, "discover": _discover, "design": _design}.get(order.kind, _fit)
    names = do(order, tell)
    return {"files": names}


def _progress(tell: Tell) -> Progress:
    return lambda what, share: tell({"progress": what, "share": round(float(share), 4)})


def _posed(order: JobRequest, notes: list[str]) -> Problem:
    ((name, text),) = order.models
    every = problems(text, name, order.source, notes)
    if len(every) > 1:
        raise InputError(f"the optional terms make {len(every)} candidates; press Compare to fit them all")
    return every[0]


def _fitted(order: JobRequest, tell: Tell, notes: list[str], problem: Problem | None = None) -> Fit | PopulationFit:
    """The fit of a model, from memory if it is there."""
    from odinfer.methods import fit
    from odinfer.population.fit import fit_population

    key = _key(order)
    if (found := _kept.get(key)) is None:
        problem = problem or _posed(order, notes)
        does = fit_population if problem.model.declarations.effects else fit
        found = does(problem, seed=SEED, progress=_progress(tell))
    _keep(key, found)
    return found


def _key(order: JobRequest) -> Any:
    return *order.models[0], repr(order.source)


def _keep(key: Any, found: Fit | PopulationFit) -> None:
    _kept[key] = found
    _kept.move_to_end(key)
    while len(_kept) > _MAX_CACHED_FITS:
        _kept.popitem(last=False)


def _fit(order: JobRequest, tell: Tell) -> list[str]:
    from odinfer.optimal_design.next_measurements import with_next_measurements
    from odinfer.result import report
    from odinfer.result.extras import with_extras

    ((name, text),) = order.models
    notes: list[str] = []
    kind = None if order.kind == "fit" else order.kind
    found = _fitted(order, tell, notes)
    command = fit_command(name, order.name, order.source.choice, kind)
    if isinstance(found, PopulationFit):
        if kind is not None:
            raise InputError("a population fit has its intervals already, from the profile of its likelihood")
        return _population(order, found, {"notes": notes, "command": command}, tell)
    found = with_next_measurements(found)
    if kind is not None:
        if found.uncertainty is None:
            raise InputError(found.without_intervals)
        found = with_extras(found, kind, False, SEED, _progress(tell))
        _keep(_key(order), found)
    more = {"next": next_steps(found, text), "caveats": caveats(found)}
    tell({"answer": answer_of(found) | {"notes": notes, "command": command} | more})
    tell({"progress": "writing the report", "share": 1.0})
    names = [path.name for path in report.write_outputs(found, order.folder)]
    kinds = [kind for kind in found.intervals_by_kind() if kind != "likelihood"]
    script = fit_script(found.problem, order.name, order.source.choice, kinds)
    return names + _extras(order, command, "fit.py", script)


def _population(order: JobRequest, found: PopulationFit, more: GaussianNoise, tell: Tell) -> list[str]:
    from odinfer.apps.studio.population import answer_of_population, picture_file
    from odinfer.population import report

    tell({"progress": "computing individual curves", "share": 0.98})
    tell({"answer": answer_of_population(found) | more})
    tell({"progress": "drawing the pictures", "share": 1.0})
    drawn = report.pictures(found)
    for name, image in drawn.items():
        (order.folder / picture_file(name)).write_bytes(image)
    names = [path.name for path in report.write_outputs(found, order.folder, drawn)]
    script = fit_script(found.problem, order.name, order.source.choice, ())
    return [*names, *map(picture_file, drawn), *_extras(order, more["command"], "fit.py", script)]


def _discover(order: JobRequest, tell: Tell) -> list[str]:
    from odinfer.apps.studio.studies import discover

    notes: list[str] = []
    problem = _posed(order, notes)
    if problem.model.declarations.effects:
        raise InputError("missing terms are searched in models without random effects; leave `by subject` out")
    answer, names = discover(problem, SEED, _progress(tell), order.folder)
    command = discover_command(order.models[0][0], order.name, order.source.choice)
    tell({"answer": answer | {"notes": notes, "command": command}})
    return names


def _design(order: JobRequest, tell: Tell) -> list[str]:
    from odinfer.apps.studio.studies import plan

    notes: list[str] = []
    found = _fitted(order, tell, notes)
    if isinstance(found, PopulationFit):
        raise InputError("for a population, `odinfer design` plans a study from the values of the parameters")
    answer, names = plan(found, order.options, _progress(tell), order.folder)
    command = design_command(order.models[0][0], order.name, order.source.choice, **answer["options"])
    tell({"answer": answer | {"notes": notes, "command": command}})
    return names


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
    script = compare_script(every, order.name, order.source.choice)
    if every[0].model.declarations.effects:
        from odinfer.apps.studio.population import compared

        answer = compared(cast("PopulationComparison", found)) | {"notes": [*dict.fromkeys(notes)], "command": command}
        tell({"answer": answer})
        (order.folder / "comparison.csv").write_text(found.table.to_csv())
        return ["comparison.csv", *_extras(order, command, "compare.py", script)]
    table = found.table
    rows = [
        {"name": name, **{c: number(table.loc[name, c]) for c in table.columns if c != "status"}}
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
    return names + _extras(order, command, "compare.py", script)
