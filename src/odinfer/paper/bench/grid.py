"""Benchmark grids (systems × noise levels × methods × draws) from TOML files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from odinfer.checks import is_integer
from odinfer.errors import InputError, nearest
from odinfer.files import readable
from odinfer.paper.bench import values as check
from odinfer.paper.bench.compute import method_of
from odinfer.paper.bench.runs import LIMIT, Candidate, Case, Cell, MethodEntry, Run
from odinfer.paper.systems import system_of
from odinfer.parallel.store import canonical

PAPER = "paper"
PRESETS = ("default", "paper")
_MISSING: Any = object()  # the default of what is only there if it was given
_NUMBERS = check.by_name(check.by_name(check.pair))
_REPORT: dict[str, tuple[Any, Any]] = {
    "paper": (check.label, _MISSING),
    **dict.fromkeys(("states", "compared", "also"), (check.texts, _MISSING)),
    "parameters": (check.by_name(check.texts), _MISSING),
    "marginals": (check.by_name(check.label), _MISSING),
    "seconds": (_NUMBERS, _MISSING),
    "gamma": (_NUMBERS, _MISSING),
    "authors": (check.by_name(check.numbers), _MISSING),
}


@dataclass(frozen=True, eq=False)
class Grid:
    """What is to be run and reported.

    Attributes:
        title: of the report.
        cells: in the order in which they are run.
        first_seed: of the first draw; the others count up from it.
        timeout: seconds after which a run is given up.
        report: what the tables need besides: printed numbers to compare with, parameters to show.
        content: the file, with model files read in; a grid can be made from it again.
    """

    title: str
    cells: tuple[Cell, ...]
    first_seed: int
    timeout: float
    report: Mapping[str, Any]
    content: Mapping[str, Any]

    def chosen(
        self, methods: str | None = None, systems: str | None = None, draws: int | None = None, full: bool = False
    ) -> list[tuple[Cell, int]]:
        """Cells and how many draws of each, after a choice of names separated by commas."""
        if draws is not None and draws < 1:
            raise InputError(f"--draws must be a whole number from 1 on, not {draws}")
        wanted = _names("--methods", methods, dict.fromkeys(c.method.name for c in self.cells))
        cases = _names("--systems", systems, dict.fromkeys(n for c in self.cells for n in _system_names(c.case)))
        found = []
        for cell in self.cells:
            if cell.method.name in wanted and cases & set(_system_names(cell.case)):
                most = cell.full if full else cell.draws
                found.append((cell, most if draws is None else draws if full else min(draws, most)))
        if not found:
            raise InputError("the grid has no run of these methods on these systems")
        return found

    def runs(self, chosen: list[tuple[Cell, int]]) -> Iterator[tuple[Cell, Run]]:
        """Every run of chosen cells."""
        for cell, draws in chosen:
            for i in range(draws):
                yield cell, cell.run(self.first_seed + i)


def read(name: str) -> Grid:
    """The grid of the paper, or one from a file.

    Raises:
        InputError: naming the entry and what to change.
    """
    if name == PAPER:
        text, folder, where = (
            (resources.files("odinfer.paper.bench") / "paper.toml").read_text("utf-8"),
            None,
            "paper.toml",
        )
    else:
        path = Path(name)
        try:
            text, folder, where = readable(path).read_text("utf-8-sig"), path.parent, str(path)
        except FileNotFoundError:
            raise InputError(f"there is no grid '{name}'; give 'paper' or a TOML file") from None
        except (OSError, ValueError) as error:
            raise InputError(f"the grid '{name}' cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from None
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid TOML: {error}") from None
    systems = content.get("systems")
    for key, system in systems.items() if isinstance(systems, dict) else ():
        if isinstance(system, dict) and "model" in system and folder is not None:
            try:
                system["equations"] = readable(folder / system.pop("model")).read_text("utf-8-sig")
            except (OSError, ValueError, TypeError) as error:
                raise InputError(f"{where}, systems.{key}: the model file cannot be read: {error}") from None
    return of_content(content, where)


def of_content(content: Mapping[str, Any], where: str = "the grid in the store") -> Grid:
    """A grid from the content of its file; everything in it is checked here, before anything is computed."""
    top = check.checked_table(
        content,
        where,
        {
            "title": (check.label, "Benchmark"),
            "draws": (check.count, 100),
            "first_seed": (check.whole, 0),
            "timeout": (check.positive, 600.0),
            "systems": (check.table, None),
            "methods": (check.table, None),
            "candidates": (check.table, {}),
            "experiments": (check.listed, None),
            "report": (check.table, {}),
        },
    )
    try:
        json.loads(canonical(content)), json.dumps(content, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{where} has a date, NaN or something else that means nothing in a grid") from None
    report = check.checked_table(top["report"], f"{where}, report", _REPORT)
    report = {key: value for key, value in report.items() if value is not _MISSING}
    for kind in ("systems", "methods", "candidates"):
        for name in top[kind]:
            check.checked_table({"name": name}, f"{where}, {kind}", {"name": (check.label, None)})
    cases: dict[str, list[Case]] = {n: list(_cases(n, t, f"{where}, systems.{n}")) for n, t in top["systems"].items()}
    entries = {n: _entry(n, t, f"{where}, methods.{n}") for n, t in top["methods"].items()}
    candidates = {n: _candidate(n, t, f"{where}, candidates.{n}") for n, t in top["candidates"].items()}
    cells: dict[tuple[Any, ...], Cell] = {}
    for i, table in enumerate(top["experiments"]):
        here = f"{where}, experiment {i + 1}"
        e = check.checked_table(
            table,
            here,
            {
                "systems": (check.texts, None),
                "methods": (check.texts, None),
                "noise": (check.levels, ()),
                "candidates": (check.texts, []),
                "draws": (check.count, top["draws"]),
                "name": (check.label, ""),
                "full": (check.count, 0),
            },
        )
        for system in e["systems"]:
            for case in check.checked_name(here, "system", system, cases):
                for noise in e["noise"] or case.noise:
                    for method in e["methods"]:
                        entry = check.checked_name(here, "method", method, entries)
                        if entry.systems is not None and system not in entry.systems:
                            continue
                        for name in e["candidates"] or [None]:
                            candidate = (
                                None if name is None else check.checked_name(here, "candidate", name, candidates)
                            )
                            full = e["full"] or max(e["draws"], top["draws"])
                            draws = min(e["draws"], entry.draws or e["draws"])
                            cell = Cell(case, noise, entry, candidate, draws, full)
                            _check(cell, here)
                            cells.setdefault((case.name, noise, method, name), cell)
    if not cells:
        raise InputError(f"{where} has no runs: it needs systems, methods and experiments")
    return Grid(top["title"], tuple(cells.values()), top["first_seed"], top["timeout"], report, content)


def _cases(name: str, table: Any, where: str) -> Iterator[Case]:
    from odinfer.paper.systems import SYSTEMS

    t = check.checked_table(
        table,
        where,
        {
            "label": (check.label, name),
            "noise": (check.levels, None),
            "sizes": (check.listed, []),
            "equations": (check.text, ""),
            "theta": (check.numbers, {}),
            "x0": (check.numbers, {}),
            "times": (check.times, ()),
            "snr": (check.flag, False),
        },
    )
    if t["sizes"]:
        if name != "lorenz96":
            raise InputError(f"{where}: only lorenz96 comes in sizes")
        for size in t["sizes"]:
            if not is_integer(size, 4) or size > 100_000:
                raise InputError(f"{where}: sizes must be whole numbers from 4 to 100,000, not {size!r}")
            yield Case(f"lorenz96_{size}", f"{t['label']}, K = {size}", {"name": f"lorenz96_{size}"}, t["noise"], size)
        return
    spec: dict[str, Any] = {"name": name}
    if t["equations"]:
        spec |= {key: t[key] for key in ("equations", "theta", "x0", "snr")} | {"times": list(t["times"])}
        if len(t["times"]) < 4:
            raise InputError(f"{where}: at least 4 times are needed")
        try:
            system = system_of(canonical(spec))
        except KeyError as error:
            raise InputError(f"{where}: x0 has no value of {error}") from None
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        for parameter in system.model.parameters:
            if parameter not in t["theta"]:
                raise InputError(f"{where}: theta has no value of '{parameter}'")
    elif name not in SYSTEMS:
        raise InputError(f"{where}: unknown system{nearest(name, [*SYSTEMS, 'lorenz96'])}; or give its model")
    yield Case(name, t["label"], spec, t["noise"])


def _entry(name: str, table: Any, where: str) -> MethodEntry:
    from odinfer.methods import METHODS

    t = check.checked_table(
        table,
        where,
        {
            "label": (check.label, name),
            "method": (check.text, name),
            "preset": (check.text, "default"),
            "options": (check.table, {}),
            "draws": (check.count, 0),
            "systems": (check.texts, []),
        },
    )
    if t["method"] not in (*METHODS, LIMIT):
        raise InputError(f"{where}: unknown method '{t['method']}'{nearest(t['method'], [*METHODS, LIMIT])}")
    if t["preset"] not in PRESETS:
        raise InputError(f"{where}: unknown preset '{t['preset']}'{nearest(t['preset'], PRESETS)}")
    draws, systems = t["draws"] or None, tuple(t["systems"]) or None
    return MethodEntry(name, t["label"], t["method"], t["preset"], t["options"], draws, systems)


def _candidate(name: str, table: Any, where: str) -> Candidate:
    from odinfer.model.model import Model

    t = check.checked_table(table, where, {"equations": (check.text, None), "wrong": (check.texts, [])})
    try:
        states = Model.from_text(t["equations"], name).states
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    for state in t["wrong"]:
        check.checked_name(where, "state", state, dict.fromkeys(states))
    return Candidate(name, t["equations"], tuple(t["wrong"]))


def _check(cell: Cell, where: str) -> None:
    """That the method takes its options, and has a preset for the system."""
    if cell.method.method == LIMIT:
        return
    try:
        method_of(cell.run(0), system_of(canonical(cell.case.spec)))
    except (InputError, TypeError) as error:
        raise InputError(f"{where}: method '{cell.method.name}' on {cell.case.name}: {error}") from None


def _system_names(case: Case) -> tuple[str, ...]:
    return (case.name, "lorenz96") if case.size else (case.name,)


def _names(flag: str, given: str | None, known: Mapping[str, Any]) -> set[str]:
    names = [name.strip() for name in given.split(",")] if given is not None else list(known)
    for name in names:
        if name not in known:
            raise InputError(f"{flag}: the grid has no '{name}'{nearest(name, known)}")
    return set(names)
