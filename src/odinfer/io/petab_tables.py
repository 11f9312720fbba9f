"""Parse the tables of a PEtab problem, version 1 or 2.

An experiment is a list of periods, of which each sets some quantities of the model from its time on; the first may
begin at −∞: then the system settles in it.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odinfer.errors import InputError, listed, nearest
from odinfer.io.limits import checked_text, inside

Row = Mapping[str, str]

_MOST_BYTES, _MOST_YAML = 200_000_000, 1_000_000  # of a table and of the file of a problem
_MOST_DEPTH = 30  # of nested lists and mappings in the file of a problem
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,199}", re.ASCII)
_MISSING = ("", "nan", "NaN", "NA", "None")


@dataclass(frozen=True)
class Parameter:
    """A row of the table of parameters; bounds and value are on the linear scale."""

    name: str
    log: bool
    low: float
    high: float
    nominal: float | None
    estimated: bool
    prior: tuple[str, tuple[float, ...]] | None = None


@dataclass(frozen=True)
class Observable:
    """A row of the table of observables.

    Attributes:
        family: of the noise, in our language.
        factor: by which the noise formula is to be multiplied: ln 10 where it is of a decadic logarithm.
        placeholders: names in the formulas that stand for the values of a measurement, of either kind.
    """

    name: str
    formula: str
    noise: str
    family: str
    factor: float
    placeholders: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Measurement:
    """A row of the table of measurements, with what stands for the placeholders of either kind."""

    observable: str
    experiment: str
    time: float
    value: float
    given: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Period:
    """From when on which quantities have which values; None: that of the model at first, later what it has become."""

    time: float
    values: dict[str, str | None]


@dataclass(frozen=True)
class Study:
    """A whole problem as its tables have it."""

    name: str
    model: Path
    parameters: dict[str, Parameter]
    observables: dict[str, Observable]
    experiments: dict[str, tuple[Period, ...]]
    measurements: tuple[Measurement, ...]
    entities: dict[str, str] = field(default_factory=dict)  # names that stand for identifiers of the model


def read_study(path: str | Path) -> Study:
    """Read all files that a PEtab problem names.

    Raises:
        InputError: naming the file, the row and what is wrong or cannot be used.
    """
    path = Path(path)
    top = _yaml(path)
    version = str(top.get("format_version", "")).split(".")[0]
    if version not in ("1", "2"):
        raise InputError(f"{path.name}: format_version must be 1 or 2, not {top.get('format_version')!r}")
    parts = top.get("problems") or [top]
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise InputError(f"{path.name}: 'problems' must be a list of mappings")
    if len(parts) != 1:
        raise InputError(f"{path.name}: {len(parts)} problems in one file cannot be read; give each its own")
    part = {**{k: v for k, v in top.items() if k != "problems"}, **parts[0]}
    files = {kind: _files(path, part, kind) for kind in ("parameter", "condition", "experiment", "measurement",
                                                         "observable", "mapping")}  # fmt: skip
    conditions, periods = _rows(files["condition"]), _rows(files["experiment"])
    parameters = {p.name: p for p in map(_parameter, _rows(files["parameter"]))}
    observables = {o.name: o for o in map(_observable, _rows(files["observable"]))}
    measured = _rows(files["measurement"])
    if not measured:
        raise InputError(f"{path.name}: there are no measurements")
    second = bool(periods) or (version == "2" and "simulationConditionId" not in measured[0])
    experiments = _of_version_2(conditions, periods, measured) if second else _of_version_1(conditions, measured)
    measurements = tuple(_measurement(row, observables, experiments) for row in measured)
    entities = {_cell(row, "petabEntityId"): row["modelEntityId"] for row in _rows(files["mapping"])
                if row.get("modelEntityId")}  # fmt: skip
    return Study(path.stem, _model(path, part), parameters, observables, experiments, measurements, entities)


def _yaml(path: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise InputError("PEtab needs PyYAML: pip install 'odinfer[petab]'") from None
    try:
        text = checked_text(path, _MOST_YAML)
        # Anchors and nested brackets make small files large or deep; PEtab needs neither.
        depth = 0
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            if isinstance(token, yaml.AliasToken):
                raise InputError(f"{path.name}: line {token.start_mark.line + 1}: aliases are not read; write it out")
            name = type(token).__name__
            depth += name.endswith(("SequenceStartToken", "MappingStartToken")) - name.endswith("EndToken")
            if depth > _MOST_DEPTH:
                raise InputError(f"{path.name} is nested too deeply to be a PEtab problem")
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path.name} is no YAML file: {' '.join(str(error).split())[:150]}") from None
    except RecursionError:
        raise InputError(f"{path.name} is nested too deeply to be a PEtab problem") from None
    if not isinstance(found, dict):
        raise InputError(f"{path.name} is no PEtab problem: a YAML file that begins with format_version")
    return found


def _files(path: Path, part: Mapping[str, Any], kind: str) -> list[Path]:
    found: list[Path] = []
    for key in (f"{kind}_file", f"{kind}_files"):
        names = part.get(key) or []
        names = [names] if isinstance(names, str) else names
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError(f"{path.name}: '{key}' must be the name of a file or a list of names")
        found += [inside(path.parent, name, path.name) for name in names]
    return found


def _model(path: Path, part: Mapping[str, Any]) -> Path:
    names = part.get("sbml_files") or []
    models = part.get("model_files") or {}
    if not isinstance(names, list) or not isinstance(models, dict):
        raise InputError(f"{path.name}: 'sbml_files' must be a list, 'model_files' a mapping")
    for name, model in models.items():
        if not isinstance(model, dict) or not isinstance(model.get("location"), str):
            raise InputError(f"{path.name}: the model {str(name)[:40]!r} has no location")
        if str(model.get("language", "sbml")).lower() != "sbml":
            language = str(model["language"])[:40]
            raise InputError(f"{path.name}: the model '{name}' is in {language}; only SBML can be read")
    files = [*names, *(model["location"] for model in models.values())]
    if len(files) != 1 or not isinstance(files[0], str):
        raise InputError(f"{path.name}: names {len(files)} models; one can be read")
    return inside(path.parent, files[0], path.name)


def _rows(files: Sequence[Path]) -> list[Row]:
    """The rows of tables, with where they stand as column ''."""
    found: list[Row] = []
    for path in files:
        text = checked_text(path, _MOST_BYTES)
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        try:
            table = list(csv.reader(lines, delimiter="\t"))
        except csv.Error as error:
            raise InputError(f"{path.name} is no table with tabs between its columns: {error}") from None
        head = [name.strip() for name in table[0]] if table else []
        if "" in head[:-1] or len({*head}) != len(head):
            raise InputError(f"{path.name}: the columns of the table must have different names")
        for i, cells in enumerate(table[1:], 2):
            own = [*(cell.strip() for cell in cells), *[""] * (len(head) - len(cells))]
            found.append({"": f"{path.name}: line {i}", **dict(zip(head, own, strict=False))})
    return found


def _cell(row: Row, name: str) -> str:
    if name not in row:
        raise InputError(f"{row['']}: the table has no column '{name}'{nearest(name, [n for n in row if n])}")
    return row[name]


def _identifier(row: Row, name: str) -> str:
    """A cell that names something in formulas."""
    text = _cell(row, name)
    if not _IDENTIFIER.fullmatch(text):
        raise InputError(f"{row['']}: {name} is {text[:40]!r}, which is no identifier; use letters, digits and _")
    return text


def _number(row: Row, name: str) -> float:
    text = _cell(row, name)
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{row['']}: {name} is {text[:40]!r}, which is no number") from None


def is_number(text: str) -> bool:
    """Whether a cell is a number, not a name or a formula."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parameter(row: Row) -> Parameter:
    scale = row.get("parameterScale") or "lin"
    if scale not in ("lin", "log", "log10"):
        raise InputError(f"{row['']}: unknown parameterScale {scale!r}; lin, log or log10")
    estimated = _cell(row, "estimate").lower() in ("1", "1.0", "true")
    low, high = (_number(row, name) if row.get(name) not in (None, *_MISSING) else end for name, end in
                 (("lowerBound", -math.inf), ("upperBound", math.inf)))  # fmt: skip
    nominal = _number(row, "nominalValue") if row.get("nominalValue") not in (None, *_MISSING) else None
    if not estimated and nominal is None:
        raise InputError(f"{row['']}: '{_cell(row, 'parameterId')}' is neither estimated nor has a nominal value")
    name = _identifier(row, "parameterId")
    if not estimated and not math.isfinite(nominal or 0.0):
        raise InputError(f"{row['']}: the value of '{name}' is {nominal}, not finite")
    if math.isnan(low) or math.isnan(high):
        raise InputError(f"{row['']}: a bound of '{name}' is no number")
    return Parameter(name, scale != "lin", low, high, nominal, estimated, _prior(row, scale))


def _prior(row: Row, scale: str) -> tuple[str, tuple[float, ...]] | None:
    """The prior in our language, as far as there is one."""
    kind = row.get("objectivePriorType") or row.get("priorDistribution") or ""
    if kind in _MISSING:
        return None
    text = row.get("objectivePriorParameters") or row.get("priorParameters") or ""
    count = 1 if kind in ("exponential", "chisquare", "rayleigh") else 2
    try:
        numbers = [float(part) for part in text.split(";")]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        told = f"the prior {kind[:40]!r} has the parameters {text[:40]!r}"
        raise InputError(f"{row['']}: {told}, not {'two numbers' if count == 2 else 'one number'}")
    a, b = (*numbers, 0.0)[:2]
    try:
        return _prior_of(kind, a, b, scale, row)
    except (OverflowError, ZeroDivisionError):
        raise InputError(
            f"{row['']}: the prior {kind!r} has the parameters {text[:40]!r}, beyond what it can"
        ) from None


def _prior_of(kind: str, a: float, b: float, scale: str, row: Row) -> tuple[str, tuple[float, ...]]:
    unit = {"lin": 0.0, "log": 1.0, "log10": math.log(10.0)}[scale]
    match kind:
        case "uniform" | "normal" | "laplace" | "cauchy":
            return kind, (a, b)
        case "parameterScaleUniform":
            return "uniform", (math.exp(unit * a), math.exp(unit * b)) if unit else (a, b)
        case "parameterScaleNormal" if not unit:
            return "normal", (a, b)
        case "parameterScaleNormal":
            return "near", (math.exp(unit * a), unit * b)
        case "parameterScaleLaplace":
            return ("nearlaplace", (math.exp(unit * a), unit * b)) if unit else ("laplace", (a, b))
        case "logNormal" | "log-normal":
            return "lognormal", (math.exp(a), b)
        case "logLaplace" | "log-laplace":
            return "loglaplace", (math.exp(a), b)
        case "log-uniform":
            return "loguniform", (a, b)
        case "gamma":  # shape and scale
            return "gamma", (a, 1.0 / b)
        case "exponential":  # scale
            return "gamma", (1.0, 1.0 / a)
        case "chisquare":  # degrees of freedom
            return "gamma", (a / 2.0, 0.5)
        case "rayleigh":
            return "rayleigh", (0.0, a)
    raise InputError(f"{row['']}: the prior {kind!r} of '{row['parameterId']}' is not known")


def _observable(row: Row) -> Observable:
    name, scale = _identifier(row, "observableId"), row.get("observableTransformation") or "lin"
    noise = row.get("noiseDistribution") or "normal"
    if noise.startswith("log-"):
        noise, scale = noise.removeprefix("log-"), "log"
    if noise not in ("normal", "laplace") or scale not in ("lin", "log", "log10"):
        raise InputError(f"{row['']}: the noise {noise!r} on the scale {scale!r} of '{name}' is not known")
    words = tuple(
        tuple(w.strip() for w in row[key].split(";") if w.strip()) if row.get(key) else tuple(
            f"{old}{i}_{name}" for i in range(1, 51) if f"{old}{i}_{name}" in _cell(row, "observableFormula") + " "
            + row.get("noiseFormula", "")
        )
        for key, old in (("observablePlaceholders", "observableParameter"), ("noisePlaceholders", "noiseParameter"))
    )  # fmt: skip
    noise_formula = row.get("noiseFormula") or "1"
    family = noise if scale == "lin" else f"log{noise}"
    factor = math.log(10.0) if scale == "log10" else 1.0
    return Observable(name, _cell(row, "observableFormula"), noise_formula, family, factor, (words[0], words[1]))


def _measurement(
    row: Row, observables: Mapping[str, Observable], experiments: Mapping[str, tuple[Period, ...]]
) -> Measurement:
    name = _cell(row, "observableId")
    if name not in observables:
        raise InputError(f"{row['']}: there is no observable '{name}'{nearest(name, observables)}")
    own = observables[name]
    given = tuple(
        tuple(text.strip() for text in (row.get(key) or "").split(";") if text.strip() not in _MISSING)
        for key in ("observableParameters", "noiseParameters")
    )
    for kind, names, values in zip(("observable", "noise"), own.placeholders, given, strict=True):
        if len(names) != len(values):
            raise InputError(f"{row['']}: '{name}' has {len(names)} {kind} parameters, but {len(values)} are given")
    time = _number(row, "time")
    if math.isnan(time) or time == -math.inf:
        raise InputError(f"{row['']}: the time is {time}")
    if row.get("measurementType"):
        raise InputError(f"{row['']}: measurements of the type {row['measurementType']!r} cannot be used")
    experiment = _experiment_of(row)
    return Measurement(name, experiment, time, _number(row, "measurement"), (given[0], given[1]))


def _experiment_of(row: Row) -> str:
    """The name of a measurement's experiment: of its conditions in version 1."""
    if "simulationConditionId" not in row:
        return row.get("experimentId") or "1"
    before = row.get("preequilibrationConditionId") or ""
    return row["simulationConditionId"] if before in _MISSING else f"{before} {row['simulationConditionId']}"


def _of_version_1(conditions: Sequence[Row], measured: Sequence[Row]) -> dict[str, tuple[Period, ...]]:
    named = {_cell(row, "conditionId"): row for row in conditions}
    found: dict[str, tuple[Period, ...]] = {}
    for row in measured:
        _cell(row, "simulationConditionId")
        before = row.get("preequilibrationConditionId") or ""
        times = ([] if before in _MISSING else [(-math.inf, before)]) + [(0.0, row["simulationConditionId"])]
        periods = []
        for time, condition in times:
            if condition not in named:
                raise InputError(f"{row['']}: there is no condition '{condition}'{nearest(condition, named)}")
            own = {k: v for k, v in named[condition].items() if k not in ("", "conditionId", "conditionName")}
            periods.append(Period(time, {k: None if v in _MISSING else v for k, v in own.items()}))
        found[_experiment_of(row)] = tuple(periods)
    return found


def _of_version_2(
    conditions: Sequence[Row], periods: Sequence[Row], measured: Sequence[Row]
) -> dict[str, tuple[Period, ...]]:
    sets: dict[str, dict[str, str | None]] = {}
    for row in conditions:
        sets.setdefault(_cell(row, "conditionId"), {})[_cell(row, "targetId")] = _cell(row, "targetValue")
    found: dict[str, list[Period]] = {"1": [Period(0.0, {})]}
    for row in periods:
        condition, time = row.get("conditionId") or "", _number(row, "time")
        if condition and condition not in sets:
            raise InputError(f"{row['']}: there is no condition '{condition}'{nearest(condition, sets)}")
        own = found.setdefault(_cell(row, "experimentId"), [])
        values = dict(sets.get(condition, {}))
        if own and own[-1].time == time:
            own[-1] = Period(time, {**own[-1].values, **values})
        else:
            own.append(Period(time, values))
    for name, own in found.items():
        own.sort(key=lambda period: period.time)
        if any(math.isnan(period.time) or period.time == math.inf for period in own):
            raise InputError(f"the experiment '{name}' has a period that begins at no finite time")
    used = {_experiment_of(row) for row in measured}
    if missing := sorted(used - {*found}):
        raise InputError(f"measurements name the experiments {listed(missing)}, which are not in the table")
    return {name: tuple(own) for name, own in found.items() if name in used}


def by_experiment(study: Study) -> Iterator[tuple[str, list[Measurement]]]:
    """The measurements of every experiment."""
    for name in study.experiments:
        yield name, [m for m in study.measurements if m.experiment == name]
