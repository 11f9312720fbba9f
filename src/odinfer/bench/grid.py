"""A grid: systems × noise levels × methods × draws, read from a TOML file; users write their own."""

from __future__ import annotations

import functools
import itertools
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from odinfer.bench.compute import method_of, system_of
from odinfer.bench.runs import LIMIT, Run
from odinfer.bench.store import canonical
from odinfer.errors import InputError, nearest

PAPER = "paper"
PRESETS = ("default", "paper")


@dataclass(frozen=True, eq=False)
class Case:
    """A system at its noise levels.

    Attributes:
        name, label: in the grid, and in tables.
        spec: what a Run takes as its system.
        noise: levels.
        size: number of states, of a system that comes in sizes.
    """

    name: str
    label: str
    spec: Mapping[str, Any]
    noise: tuple[float, ...]
    size: int | None = None


@dataclass(frozen=True, eq=False)
class Entry:
    """A method with its settings; `draws` at most unless the full grid is asked for, on `systems` only if given."""

    name: str
    label: str
    method: str
    preset: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)
    draws: int | None = None
    systems: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Candidate:
    """Equations to be fitted to a system's data instead of its own, and the states whose equations are wrong."""

    name: str
    equations: str
    wrong: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Cell:
    """One entry of the tables: a setting and a method; its draws differ by their seeds."""

    case: Case
    noise: float
    method: Entry
    candidate: Candidate | None
    draws: int
    full: int

    @functools.cached_property
    def setting(self) -> str:
        """Such as 'LV, σ = 0.1'."""
        symbol = "SNR" if system_of(canonical(self.case.spec)).snr else "σ"
        return f"{self.case.label}, {symbol} = {self.noise:g}"

    def run(self, seed: int) -> Run:
        candidate = None
        if self.candidate is not None:
            candidate = {"name": self.candidate.name, "equations": self.candidate.equations}
        m = self.method
        return Run(self.case.spec, self.noise, candidate, m.method, m.preset, m.options, seed)


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
        text, folder, where = (resources.files("odinfer.bench") / "paper.toml").read_text("utf-8"), None, "paper.toml"
    else:
        path = Path(name)
        try:
            text, folder, where = path.read_text("utf-8-sig"), path.parent, str(path)
        except FileNotFoundError:
            raise InputError(f"there is no grid '{name}'; give 'paper' or a TOML file") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the grid '{name}' cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from None
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is not valid TOML: {error}") from None
    for key, system in (content.get("systems") or {}).items():
        if isinstance(system, dict) and "model" in system and folder is not None:
            try:
                system["equations"] = (folder / system.pop("model")).read_text("utf-8-sig")
            except (OSError, UnicodeDecodeError, TypeError) as error:
                raise InputError(f"{where}, systems.{key}: the model file cannot be read: {error}") from None
    return of_content(content, where)


def of_content(content: Mapping[str, Any], where: str = "the grid in the store") -> Grid:
    """A grid from the content of its file; everything in it is checked here, before anything is computed."""
    top = _taken(content, where, {
        "title": (_text, "Benchmark"), "draws": (_count, 100), "first_seed": (_whole, 0), "timeout": (_positive, 600.0),
        "systems": (_table, None), "methods": (_table, None), "candidates": (_table, {}), "experiments": (_list, None),
        "report": (_table, {}),
    })  # fmt: skip
    cases: dict[str, list[Case]] = {n: list(_cases(n, t, f"{where}, systems.{n}")) for n, t in top["systems"].items()}
    entries = {n: _entry(n, t, f"{where}, methods.{n}") for n, t in top["methods"].items()}
    candidates = {n: _candidate(n, t, f"{where}, candidates.{n}") for n, t in top["candidates"].items()}
    cells: dict[tuple[Any, ...], Cell] = {}
    for i, table in enumerate(top["experiments"]):
        here = f"{where}, experiment {i + 1}"
        e = _taken(table, here, {
            "systems": (_list, None), "methods": (_list, None), "noise": (_levels, ()), "candidates": (_list, []),
            "draws": (_count, top["draws"]), "name": (_text, ""), "full": (_count, 0),
        })  # fmt: skip
        for system in e["systems"]:
            for case in _known(here, "system", system, cases):
                for noise in e["noise"] or case.noise:
                    for method in e["methods"]:
                        entry = _known(here, "method", method, entries)
                        if entry.systems is not None and system not in entry.systems:
                            continue
                        for name in e["candidates"] or [None]:
                            candidate = None if name is None else _known(here, "candidate", name, candidates)
                            full = e["full"] or max(e["draws"], top["draws"])
                            draws = min(e["draws"], entry.draws or e["draws"])
                            cell = Cell(case, noise, entry, candidate, draws, full)
                            _check(cell, here)
                            cells.setdefault((case.name, noise, method, name), cell)
    if not cells:
        raise InputError(f"{where} has no runs: it needs systems, methods and experiments")
    return Grid(top["title"], tuple(cells.values()), top["first_seed"], top["timeout"], top["report"], content)


def _cases(name: str, table: Any, where: str) -> Iterator[Case]:
    from odinfer.systems import SYSTEMS

    t = _taken(table, where, {
        "label": (_text, name), "noise": (_levels, None), "sizes": (_list, []), "equations": (_text, ""),
        "theta": (_table, {}), "x0": (_table, {}), "times": (_times, ()), "snr": (_flag, False),
    })  # fmt: skip
    if t["sizes"]:
        if name != "lorenz96":
            raise InputError(f"{where}: only lorenz96 comes in sizes")
        for size in t["sizes"]:
            if not isinstance(size, int) or size < 4:
                raise InputError(f"{where}: sizes must be whole numbers from 4 on, not {size!r}")
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
            if not isinstance(t["theta"].get(parameter), int | float):
                raise InputError(f"{where}: theta has no value of '{parameter}'")
    elif name not in SYSTEMS:
        raise InputError(f"{where}: unknown system{nearest(name, [*SYSTEMS, 'lorenz96'])}; or give its model")
    yield Case(name, t["label"], spec, t["noise"])


def _entry(name: str, table: Any, where: str) -> Entry:
    from odinfer.methods import METHODS

    t = _taken(table, where, {
        "label": (_text, name), "method": (_text, name), "preset": (_text, "default"), "options": (_table, {}),
        "draws": (_count, 0), "systems": (_list, []),
    })  # fmt: skip
    if t["method"] not in (*METHODS, LIMIT):
        raise InputError(f"{where}: unknown method '{t['method']}'{nearest(t['method'], [*METHODS, LIMIT])}")
    if t["preset"] not in PRESETS:
        raise InputError(f"{where}: unknown preset '{t['preset']}'{nearest(t['preset'], PRESETS)}")
    draws, systems = t["draws"] or None, tuple(t["systems"]) or None
    return Entry(name, t["label"], t["method"], t["preset"], t["options"], draws, systems)


def _candidate(name: str, table: Any, where: str) -> Candidate:
    from odinfer.model import Model

    t = _taken(table, where, {"equations": (_text, None), "wrong": (_list, [])})
    try:
        states = Model.from_text(t["equations"], name).states
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    for state in t["wrong"]:
        _known(where, "state", state, dict.fromkeys(states))
    return Candidate(name, t["equations"], tuple(t["wrong"]))


def _check(cell: Cell, where: str) -> None:
    """That the method takes its options, and has a preset for the system."""
    if cell.method.method == LIMIT:
        return
    try:
        method_of(cell.run(0), system_of(canonical(cell.case.spec)))
    except (InputError, TypeError) as error:
        raise InputError(f"{where}: method '{cell.method.name}' on {cell.case.name}: {error}") from None


# --- values of a file


def _taken(table: Any, where: str, known: Mapping[str, tuple[Callable[[Any], Any], Any]]) -> dict[str, Any]:
    """Checked entries of a table, with defaults; None as a default means that there is none."""
    if not isinstance(table, Mapping):
        raise InputError(f"{where} must be a table of names and values")
    for key in table:
        if key not in known:
            raise InputError(f"{where}: unknown entry '{key}'{nearest(key, known)}")
    found = {}
    for key, (check, default) in known.items():
        if key not in table and default is None:
            raise InputError(f"{where}: '{key}' is missing")
        try:
            found[key] = check(table[key]) if key in table else default
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: '{key}' must be {error}, not {str(table[key])[:60]!r}") from None
    return found


def _known(where: str, what: str, name: Any, choices: Mapping[str, Any]) -> Any:
    if name not in choices:
        raise InputError(f"{where}: unknown {what} '{name}'{nearest(str(name), choices)}")
    return choices[name]


def _must(valid: bool, words: str) -> None:
    if not valid:
        raise ValueError(words)


def _text(value: Any) -> str:
    _must(isinstance(value, str) and bool(value.strip()), "a text")
    return str(value)


def _flag(value: Any) -> bool:
    _must(isinstance(value, bool), "true or false")
    return bool(value)


def _whole(value: Any) -> int:
    _must(isinstance(value, int) and not isinstance(value, bool) and value >= 0, "a whole number from 0 on")
    return int(value)


def _count(value: Any) -> int:
    _must(isinstance(value, int) and not isinstance(value, bool) and value >= 1, "a whole number from 1 on")
    return int(value)


def _positive(value: Any) -> float:
    _must(isinstance(value, int | float) and 0 < value < math.inf, "a positive number")
    return float(value)


def _table(value: Any) -> dict[str, Any]:
    _must(isinstance(value, dict), "a table")
    return dict(value)


def _list(value: Any) -> list[Any]:
    _must(isinstance(value, list), "a list")
    return list(value)


def _levels(value: Any) -> tuple[float, ...]:
    _must(isinstance(value, list) and len(value) > 0, "a list of positive numbers")
    return tuple(map(_positive, value))


def _times(value: Any) -> tuple[float, ...]:
    import numpy as np

    words = "a list of increasing times, or {start, stop, count}"
    if isinstance(value, dict):
        _must(set(value) == {"start", "stop", "count"} and isinstance(value["count"], int), words)
        value = np.linspace(value["start"], value["stop"], value["count"]).tolist()
    _must(isinstance(value, list) and all(isinstance(v, int | float) for v in value), words)
    _must(all(a < b for a, b in itertools.pairwise(value)), words)
    return tuple(map(float, value))


def _system_names(case: Case) -> tuple[str, ...]:
    return (case.name, "lorenz96") if case.size else (case.name,)


def _names(flag: str, given: str | None, known: Mapping[str, Any]) -> set[str]:
    names = [name.strip() for name in given.split(",")] if given is not None else list(known)
    for name in names:
        if name not in known:
            raise InputError(f"{flag}: the grid has no '{name}'{nearest(name, known)}")
    return set(names)
