"""The semantic test suite of SBML: how many time courses are simulated right, refused, wrong, or end in an error.

    python benchmarks/sbml_suite.py FOLDER              # all cases in a folder of the suite
    python benchmarks/sbml_suite.py FOLDER 972 1103     # some of them, by number
    python benchmarks/sbml_suite.py FOLDER --list wrong # the numbers of cases with an outcome

A case passes if every value lies within the tolerances of its settings file.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
import traceback
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

import odinfer as od
from odinfer.errors import InputError
from odinfer.io.sbml_document import load_document
from odinfer.io.sbml_translation import translate

OUTCOMES = ("pass", "refused", "wrong", "error")


class Outcome(NamedTuple):
    kind: str
    reason: str
    seconds: float


class Settings(NamedTuple):
    times: np.ndarray
    variables: list[str]
    absolute: float
    relative: float
    amounts: set[str]
    concentrations: set[str]


def settings_of(folder: Path) -> Settings:
    """The settings of a case."""
    lines = (folder / f"{folder.name}-settings.txt").read_text().splitlines()
    given = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}

    def names(key: str) -> list[str]:
        return [name for name in re.split(r"[,\s]+", given.get(key, "")) if name]

    start, duration, steps = float(given["start"]), float(given["duration"]), int(given["steps"])
    times = np.linspace(start, start + duration, steps + 1)
    return Settings(
        times, names("variables"), float(given["absolute"]), float(given["relative"]),
        {*names("amount")}, {*names("concentration")},
    )  # fmt: skip


def is_time_course(folder: Path) -> bool:
    return "TimeCourse" in (folder / f"{folder.name}-model.m").read_text(encoding="utf-8", errors="replace")


def model_file(folder: Path) -> Path:
    """The model of a case in its newest level."""
    return max(folder.glob(f"{folder.name}-sbml-l*.xml"), key=lambda path: path.name)


def expected_of(folder: Path, variables: list[str]) -> np.ndarray:
    """The expected values (N, V)."""
    with (folder / f"{folder.name}-results.csv").open(encoding="utf-8-sig") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if any(cell.strip() for cell in row)]
    columns = {name: i for i, name in enumerate(rows[0])}
    return np.array([[float(row[columns[name]]) for name in variables] for row in rows[1:]])


def simulated(path: Path, settings: Settings) -> np.ndarray:
    """The values (N, V) of what the settings name, by `read_sbml` and `simulate`."""
    model = od.read_sbml(path)
    theta = np.array([{**model.start, **model.fixed}[name] for name in model.parameters])
    x = od.simulate(model, theta, {}, settings.times)
    document = load_document(path)
    names = translate(document, path.name, free=None).names
    sbml = document.getModel()

    def value(identifier: str) -> np.ndarray:
        name = names[identifier]
        if name in model.states:
            return x[:, model.states.index(name)]
        if name in model.declarations.definitions:
            program = model.program((model.declarations.definitions[name],))
            inputs = np.zeros((len(x), 0))
            return program.evaluate(settings.times, x, np.broadcast_to(theta, (len(x), len(theta))), inputs)[:, 0]
        if name in model.parameters:
            return np.full(len(x), theta[model.parameters.index(name)])
        parameter = sbml.getParameter(identifier) or sbml.getCompartment(identifier)
        return np.full(len(x), parameter.getValue() if hasattr(parameter, "getValue") else parameter.getSize())

    found = []
    for identifier in settings.variables:
        own = value(identifier)
        species = sbml.getSpecies(identifier)
        if species is not None:
            size = sbml.getCompartment(species.getCompartment())
            if size is None or size.getSpatialDimensionsAsDouble() == 0:
                pass
            elif species.getHasOnlySubstanceUnits() and identifier in settings.concentrations:
                own = own / value(species.getCompartment())
            elif not species.getHasOnlySubstanceUnits() and identifier in settings.amounts:
                own = own * value(species.getCompartment())
        found.append(own)
    return np.stack(found, -1)


def outcome_of(folder: Path) -> Outcome:
    """Run one case."""
    begin = time.process_time()
    settings = settings_of(folder)
    expected = expected_of(folder, settings.variables)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = simulated(model_file(folder), settings)
    except InputError as error:
        return Outcome("refused", str(error), time.process_time() - begin)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
        return Outcome("error", told, time.process_time() - begin)
    allowed = settings.absolute + settings.relative * np.abs(expected)
    with np.errstate(invalid="ignore"):
        same = (np.abs(found - expected) <= allowed) | (found == expected) | (np.isnan(found) & np.isnan(expected))
    seconds = time.process_time() - begin
    if same.all():
        return Outcome("pass", "", seconds)
    row, column = np.argwhere(~same)[0]
    told = f"{settings.variables[column]} at {settings.times[row]:g}: {found[row, column]:g}"
    return Outcome("wrong", f"{told} instead of {expected[row, column]:g}", seconds)


def cases(root: Path, numbers: list[int]) -> list[Path]:
    """The folders of time courses, all or by number."""
    every = sorted(path for path in root.iterdir() if path.is_dir() and path.name.isdigit())
    return [path for path in every if (not numbers or int(path.name) in numbers) and is_time_course(path)]


def general(reason: str) -> str:
    """A reason without the names and numbers of the case."""
    reason = re.sub(r"^\d+-sbml\S+?: ", "", reason)
    return re.sub(r"'[^']*'", "'…'", re.sub(r"line \d+", "line N", reason))[:110]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--list", choices=OUTCOMES, action="append", default=[], help="print cases with this outcome")
    options = parser.parse_args()
    outcomes = {path.name: outcome_of(path) for path in cases(options.folder, options.numbers)}
    for name, outcome in outcomes.items():
        if outcome.kind in options.list or options.numbers:
            print(f"{name} {outcome.kind:8} {outcome.seconds:6.2f} s {outcome.reason}")
    counts = Counter(outcome.kind for outcome in outcomes.values())
    total = sum(counts.values())
    print(
        ", ".join(f"{kind} {counts[kind]}" for kind in OUTCOMES), f"of {total} ({100 * counts['pass'] / total:.1f} %)"
    )
    for kind in OUTCOMES[1:]:
        reasons: dict[str, list[str]] = defaultdict(list)
        for name, outcome in outcomes.items():
            if outcome.kind == kind:
                reasons[general(outcome.reason) if kind != "wrong" else "values differ"].append(name)
        for reason, names in sorted(reasons.items(), key=lambda pair: -len(pair[1])):
            print(f"{len(names):5} {kind:8} {reason}: {' '.join(names[:6])}{' …' * (len(names) > 6)}")
    slow = sorted(outcomes.items(), key=lambda pair: -pair[1].seconds)[:3]
    print("slowest:", ", ".join(f"{name} {outcome.seconds:.1f} s" for name, outcome in slow))


if __name__ == "__main__":
    main()
