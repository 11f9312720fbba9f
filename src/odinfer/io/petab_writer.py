"""Write a problem with a text model as PEtab tables (version 1) and an SBML model.

Every experiment is a condition. PEtab starts at time 0 and measures after an event; so times count from the start of
the experiments, and an event that shall not be seen by an observation at its time comes a little later.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from odinfer.data.series import distinct_times
from odinfer.errors import InputError
from odinfer.io.formula import number
from odinfer.io.infix import Infix, identifiers
from odinfer.io.sbml_writer import Sheet, SheetEvent, write_sbml
from odinfer.model.events import Trigger
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.problem.problem import Problem

_LATER = 1e-9  # of the time span: how much later comes what an observation does not see yet
_WIDE = 1e8  # bounds, or factors of the value, of what has none
_FAMILIES = {  # distribution and transformation
    "normal": ("normal", "lin"), "lognormal": ("normal", "log"), "laplace": ("laplace", "lin"),
    "loglaplace": ("laplace", "log"),
}  # fmt: skip
_TABLES = ("parameters", "conditions", "observables", "measurements")


def write_petab(
    problem: Problem, folder: Path, values: Mapping[str, float] | None = None, name: str = ""
) -> list[Path]:
    """Write a problem as PEtab: problem.yaml, which names four tables and a model in SBML.

    Args:
        folder: where to; it must be there.
        values: nominal values by the names of the problem, those of a fit for example; "sigma x" for noise.
        name: of the model; its own if not given.

    Raises:
        InputError: something of the problem cannot be said in PEtab, which is named.
    """
    return _Writing(problem, values or {}).write(folder, name or problem.model.name)


class _Writing:
    """A problem in work: identifiers, and what grows with the experiments."""

    def __init__(self, problem: Problem, values: Mapping[str, float]) -> None:
        self.problem, self.values, self.model = problem, values, problem.model
        self.experiment_conditions = [problem.condition(e) for e in range(len(problem.data.experiments))]
        self.experiments = [e.name for e in problem.data.experiments]
        self._refuse()
        m, several = self.model, len(self.experiments) > 1
        self.free = [f"{m.states[k]}(0)" for k in m.free_initial]
        columns = [f"observed {c}" for c in problem.columns]
        noise = [f"sigma {c}" for c in problem.columns]
        inputs = ["the number of the experiment", "the first time"]
        unknown = [*problem.parameters, *ParameterVector(problem).names]
        mine = [*m.states, *m.parameters, *m.inputs, *m.declarations.definitions, *self.free, *columns, *noise, *inputs]
        doses = [f"dose {i}" for i in range(sum(len(c.experiment.doses) for c in self.experiment_conditions))]
        self.ids = identifiers(dict.fromkeys([*mine, *unknown, *doses]))
        for c in problem.columns:  # a column keeps its name where no quantity of the model has it
            if c not in {*m.states, *m.parameters, *m.inputs, *m.declarations.definitions}:
                self.ids[f"observed {c}"] = identifiers([*self.ids.values(), f"{c}"])[c] if c in self.ids else c
        self.conditions = identifiers(self.experiments)
        self.columns: dict[str, list[str]] = {}  # of the table of conditions
        starts = [c.start for c in self.experiment_conditions]
        self.start = starts[0] if len({*starts}) == 1 else None
        self.time = self._time(starts)
        shared = {
            i: self.ids[n] for n, i in m.declarations.definitions.items() if m.code[i][0] not in ("name", "number")
        }
        self.formula = Infix(m.code, self._symbol, shared)
        self.several = several

    def _refuse(self) -> None:
        m = self.model
        if m.text is None:
            raise InputError("PEtab needs the equations: the model is a function; give it as text")
        for effect in m.declarations.effects.subject:
            raise InputError(f"line {effect.line}: '{effect.name}' varies by {effect.by}, which PEtab does not have")
        for column in self.problem.observed:
            if column.words not in _FAMILIES:
                raise InputError(f"'{column.name}' is {column.words}, which PEtab does not have")
        for e in self.problem.data.experiments:
            if e.limit is not None:
                raise InputError(f"experiment '{e.name}' has limits of detection, which PEtab does not have")
            if any(dose.steady for dose in e.doses):
                raise InputError(f"experiment '{e.name}' has a dose at steady state, which PEtab does not have")
        if callable(self.problem.prior):
            raise InputError("a prior that is a function cannot be written as PEtab")
        if self.problem.inequalities:
            raise InputError(f"'{m.declarations.inequalities[0].text}' cannot be written as PEtab; remove it")

    def _time(self, starts: Sequence[float]) -> str:
        if self.start is not None:
            return "time" if self.start == 0 else f"(time + ({number(self.start)}))"
        own = self.ids["the first time"]
        self.columns[own] = [number(start) for start in starts]
        return f"(time + {own})"

    def _symbol(self, name: str) -> str:
        return self.time if name == "t" else self.ids[name]

    def _when(self, time: float) -> str:
        """The trigger of what happens at a time."""
        if self.start is None:
            raise InputError("experiments start at different times and have events, which PEtab cannot say; shift them")
        return f"time >= {number(time - self.start)}"

    def write(self, folder: Path, name: str) -> list[Path]:
        sheet = self._sheet(next(iter(identifiers([name]).values())))
        tables = {
            "parameters": self._parameters(), "observables": self._observables(), "measurements": self._measurements(),
            "conditions": self._conditions(),
        }  # fmt: skip
        files = [folder / f"{table}.tsv" for table in _TABLES]
        for path, table in zip(files, _TABLES, strict=True):
            with open(path, "w", newline="", encoding="utf-8") as file:
                csv.writer(file, delimiter="\t", lineterminator="\n").writerows(tables[table])
        write_sbml(sheet, folder / "model.xml")
        (folder / "problem.yaml").write_text(
            "format_version: 1\nparameter_file: parameters.tsv\nproblems:\n- condition_files:\n  - conditions.tsv\n"
            "  measurement_files:\n  - measurements.tsv\n  observable_files:\n  - observables.tsv\n"
            "  sbml_files:\n  - model.xml\n",
            "utf-8",
        )
        return [folder / "problem.yaml", *files, folder / "model.xml"]

    def _sheet(self, name: str) -> Sheet:
        """The model; on the way, the table of conditions gets what differs between experiments."""
        m, ids, sheet = self.model, self.ids, Sheet(name)
        for p in m.parameters:
            self._by_experiment(p, sheet)
        for state in self.free:
            own = [f"{state}[{e}]" if self.several else state for e in self.experiments]
            self._set(ids[state], [ids[n] for n in own], sheet)
        for u in m.inputs:
            self._input(u, sheet)
        extra = self._infusions(sheet)
        for state, output in zip(m.states, m.declarations.outputs, strict=True):
            i = m.declarations.initial.get(state)
            first = ids[f"{state}(0)"] if i is None else self.formula(i, itself=False)
            sheet.states[ids[state]] = (self.formula(output, itself=False) + extra.get(state, ""), first)
        for n, i in m.declarations.definitions.items():
            if i in self.formula.shared and self.formula.shared[i] == ids[n]:
                sheet.rules[ids[n]] = self.formula(i)
        self._events(sheet)
        for column, texts in self.columns.items():
            sheet.constants.setdefault(column, next((float(t) for t in texts if _is_number(t)), 0.0))
        return sheet

    def _by_experiment(self, p: str, sheet: Sheet) -> None:
        """A parameter: one for all, or one per experiment that the conditions name."""
        copies = [f"{p}[{e}]" for e in self.experiments]
        if copies[0] in self.problem.parameters:
            self._set(self.ids[p], [self.ids[n] for n in copies], sheet)
        else:
            sheet.constants[self.ids[p]] = self._nominal(p)

    def _set(self, own: str, texts: Sequence[str], sheet: Sheet) -> None:
        """A constant of the model with one value, or name of a parameter, per experiment."""
        if len({*texts}) > 1 or texts[0] != own:
            self.columns[own] = list(texts)
        sheet.constants[own] = next((float(t) for t in texts if _is_number(t)), 1.0)

    def _input(self, u: str, sheet: Sheet) -> None:
        series = [c.experiment.u[u] for c in self.experiment_conditions]
        if all(len(np.unique(v)) == 1 for _, v in series):
            return self._set(self.ids[u], [number(float(v[0])) for _, v in series], sheet)
        step = u in self.model.declarations.steps
        texts = [_course_of(self.time, t, v, step) for t, v in series]
        if len({*texts}) == 1:
            sheet.rules[self.ids[u]] = texts[0]
            return None
        index = self.ids["the number of the experiment"]
        self.columns[index] = [str(i + 1) for i in range(len(texts))]
        text = texts[-1]
        for i, own in reversed([*enumerate(texts[:-1])]):
            text = f"piecewise({own}, {index} == {i + 1}, {text})"
        sheet.rules[self.ids[u]] = text
        return None

    def _infusions(self, sheet: Sheet) -> dict[str, str]:
        """What infusions add to the right-hand sides."""
        found: dict[str, str] = {}
        every = [(e, i) for e, c in enumerate(self.experiment_conditions) for i in c.infusions]
        for n, (e, i) in enumerate(every):
            own = self.ids[f"dose {n}"]
            self._set(
                own, [number(i.rate) if e == other else "0" for other in range(len(self.experiment_conditions))], sheet
            )
            state = self.model.states[i.k]
            between = f"{self.time} >= {number(i.begin)} && {self.time} < {number(i.end)}"
            found[state] = found.get(state, "") + f" + piecewise({own}, {between}, 0)"
        return found

    def _events(self, sheet: Sheet) -> None:
        m, taken = self.model, set[float]()
        happening: list[tuple[float, bool, dict[str, str]]] = []
        for event in m.declarations.events:
            changes = {self.ids[s]: self.formula(i, itself=False) for s, i in event.changes}
            happening += [(time, event.before, changes) for time in event.times]
        count = sum(len(c.infusions) for c in self.experiment_conditions)
        given: dict[tuple[float, int], list[float]] = {}
        for e, condition in enumerate(self.experiment_conditions):
            for jump in (j for j in condition.jumps if j.program is None):
                k = int(np.flatnonzero(jump.amounts)[0])
                given.setdefault((jump.time, k), [0.0] * len(self.experiment_conditions))[e] += float(jump.amounts[k])
        for n, ((time, k), amounts) in enumerate(given.items()):
            own, state = self.ids[f"dose {count + n}"], self.ids[m.states[k]]
            self._set(own, [number(a) for a in amounts], sheet)
            happening.append((time, False, {state: f"{state} + {own}"}))
        for time, before, changes in sorted(happening, key=lambda h: h[0]):
            if before and time in taken:
                raise InputError(f"several events at time {time:g} cannot be written as PEtab; join them")
            at = time if before else time + self._later(time)
            while at in taken:  # one after the other, as they happen here
                at += _LATER * self._span
            taken.add(at)
            sheet.events.append(SheetEvent(self._when(at), changes))
        sheet.events += [self._trigger(trigger) for trigger in m.declarations.triggers]

    def _trigger(self, trigger: Trigger) -> SheetEvent:
        """An event with a condition."""
        changes = {self.ids[s]: self.formula(i, itself=False) for s, i in trigger.changes}
        delay, priority = (
            "" if i is None else self.formula(i, itself=False) for i in (trigger.delay, trigger.priority)
        )
        return SheetEvent(
            self.formula(trigger.condition), changes, delay, priority, not trigger.cancellable,
            not trigger.current_values, not trigger.initially_false,
        )  # fmt: skip

    @property
    def _span(self) -> float:
        return max(float(np.ptp(c.times)) for c in self.experiment_conditions) or 1.0

    def _later(self, time: float) -> float:
        """How much later an event comes so that what is observed at its time comes first."""
        span = self._span
        seen = any(
            np.isclose(c.experiment.t, time, rtol=0, atol=_LATER * span).any() for c in self.experiment_conditions
        )
        return _LATER * span if seen or time == self.start else 0.0

    def _nominal(self, name: str) -> float:
        """A value of an unknown: the one that is given, fixed or where a search starts, else in its bounds."""
        p = self.problem
        for known in (self.values, p.fixed, p.start):
            if name in known:
                return float(known[name])
        low, high = p.limits(name) if name in p.parameters else (-np.inf, np.inf)
        if p.scale_of(name) == "log" and np.isfinite(high) and low > 0:
            return float(np.sqrt(low * high))
        ends = [v for v in (low, high) if np.isfinite(v)]
        return float(np.mean(ends)) if ends and not (len(ends) == 1 and ends[0] == 0) else 1.0

    def _parameters(self) -> list[list[Any]]:
        p = self.problem
        rows: list[list[Any]] = [[
            "parameterId", "parameterName", "parameterScale", "lowerBound", "upperBound", "nominalValue", "estimate",
            "objectivePriorType", "objectivePriorParameters",
        ]]  # fmt: skip
        for name in p.parameters:
            low, high = p.limits(name)
            rows.append(self._row(name, low, high, p.scale_of(name) == "log", name not in p.fixed))
        for name in ParameterVector(p).names[: len(self.experiments) * len(self.free)]:
            low, high = p.limits(name.partition("(0)")[0])
            rows.append(self._row(name, low, high, False, True))
        for c, estimated in zip(p.columns, p.estimated_noise, strict=True):
            if estimated:
                rows.append(self._row(f"sigma {c}", 0.0, math.inf, True, True))
        return rows

    def _row(self, name: str, low: float, high: float, log: bool, estimated: bool) -> list[Any]:
        value = self._nominal(name)
        size = abs(value) or 1.0
        low = low if np.isfinite(low) and not (log and low <= 0) else size / _WIDE if log else -_WIDE * size
        high = high if np.isfinite(high) else _WIDE * size
        kind, numbers = self._prior(name, log)
        scale = "log10" if log else "lin"
        return [self.ids[name], name, scale, repr(low), repr(high), repr(value), int(estimated), kind, numbers]

    def _prior(self, name: str, log: bool) -> tuple[str, str]:
        if isinstance(self.problem.prior, Mapping) and name in self.problem.prior and name not in self.problem.fixed:
            match self.problem.prior[name]:
                case ("normal" | "uniform" as family, a, b):
                    return family, f"{a!r};{b!r}"
                case ("lognormal", a, b):
                    return "logNormal", f"{math.log(a)!r};{b!r}"
                case ("near", a, b) if log:
                    return "parameterScaleNormal", f"{math.log10(a)!r};{b / math.log(10)!r}"
                case ("laplace", a, b):
                    return "laplace", f"{a!r};{b!r}"
                case ("loglaplace", a, b):
                    return "logLaplace", f"{math.log(a)!r};{b!r}"
                case ("nearlaplace", a, b) if log:
                    return "parameterScaleLaplace", f"{math.log10(a)!r};{b / math.log(10)!r}"
            raise InputError(f"the prior of '{name}' cannot be written as PEtab")
        return "", ""

    def _conditions(self) -> list[list[Any]]:
        rows: list[list[Any]] = [["conditionId", "conditionName", *self.columns]]
        for i, e in enumerate(self.experiments):
            rows.append([self.conditions[e], e, *(texts[i] for texts in self.columns.values())])
        return rows

    def _by_row(self, m: int) -> bool:
        return any(e.sd is not None and np.isfinite(e.sd[:, m]).any() for e in self.problem.data.experiments)

    def _observables(self) -> list[list[Any]]:
        head = ["observableId", "observableName", "observableFormula", "noiseFormula", "observableTransformation"]
        rows: list[list[Any]] = [[*head, "noiseDistribution"]]
        for m, column in enumerate(self.problem.observed):
            own, known = self.ids[f"observed {column.name}"], self.problem.known_sigma[m]
            if not column.profiled:
                noise = self.formula(column.arguments[1], itself=False)
            elif self._by_row(m):
                noise = f"noiseParameter1_{own}"
            else:
                noise = self.ids[f"sigma {column.name}"] if np.isnan(known) else number(float(known))
            family, scale = _FAMILIES[column.words]
            mean = self.formula(column.arguments[0], itself=False)
            rows.append([own, column.name, mean, noise, scale, family])
        return rows

    def _measurements(self) -> list[list[Any]]:
        rows: list[list[Any]] = [["observableId", "simulationConditionId", "time", "measurement", "noiseParameters"]]
        for e, condition in zip(self.problem.data.experiments, self.experiment_conditions, strict=True):
            once = distinct_times(e.t)
            t = once[np.searchsorted(once, e.t, side="right") - 1] - condition.start
            for n, m in np.argwhere(np.isfinite(e.y)).tolist():
                own = self.ids[f"observed {self.problem.columns[m]}"]
                sd = "" if not self._by_row(m) or e.sd is None else repr(float(e.sd[n, m]))
                rows.append([own, self.conditions[e.name], repr(float(t[n])), repr(float(e.y[n, m])), sd])
        return rows


def _is_number(text: str) -> bool:
    return text.lstrip("-")[:1].isdigit()


def _course_of(time: str, t: np.ndarray, values: np.ndarray, step: bool) -> str:
    """The formula of an input: constant between its values, or linear."""
    text = number(float(values[-1]))
    for i in reversed(range(len(t) - 1)):
        slope = 0.0 if step else float((values[i + 1] - values[i]) / (t[i + 1] - t[i]))
        piece = number(float(values[i]))
        if slope:
            piece = f"({piece}) + ({number(slope)})*({time} - ({number(float(t[i]))}))"
        text = f"piecewise({piece}, {time} < {number(float(t[i + 1]))}, {text})"
    if step or len(t) == 1:
        return text
    return f"piecewise({number(float(values[0]))}, {time} < {number(float(t[0]))}, {text})"
