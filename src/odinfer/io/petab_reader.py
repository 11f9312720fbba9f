"""Read a PEtab problem: its SBML model, tables and conditions.

Every experiment is a simulation condition, by itself or after a preequilibration condition. What differs between them
is an input with one value each, or chosen by `condition`, the number of the experiment. A system that settles first
starts long before time 0; a measurement at time ∞ is made long after all others.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from odinfer.data.data import Data, Experiment, make_experiment
from odinfer.errors import InputError, InputWarning
from odinfer.io.formula import Writer, named, number, parsed
from odinfer.io.petab_tables import Measurement, Observable, Parameter, Study, is_number, read_study
from odinfer.io.sbml_document import load_document
from odinfer.io.sbml_system import System, names_in, needed_definitions, statements
from odinfer.io.sbml_translation import translate
from odinfer.model.model import Model
from odinfer.problem.observables import UnusedParameters
from odinfer.problem.problem import Problem

_SETTLING, _SPANS = 1e6, 1e3  # how long a system settles: so long, and at least so many times the time of the data
_APART = 1e-10  # of their time: how far apart replicates are put where all is measured at one


def read_petab(path: str | Path) -> Problem:
    """A problem from a PEtab file (`problem.yaml`), version 1 or 2, with its SBML model.

    Parameters have their names, scales, bounds and priors; those that are not estimated are fixed. Nominal values are
    not used: see `nominal`.

    Raises:
        InputError: a file cannot be read, or asks for what we cannot do, which is named.
    """
    return problem_of(read_study(path))


def nominal(path: str | Path) -> dict[str, float]:
    """The nominal values of the parameters that are estimated, by their names in the Problem."""
    study = read_study(path)
    free = problem_of(study).free
    return {name: value for name, value in _nominal_values(study).items() if name in free}


def problem_of(study: Study) -> Problem:
    """The Problem that the tables of a study describe."""
    text, data = _Joined(study).told()
    model = Model.from_text(text, study.name)
    try:
        return Problem(model, data)
    except UnusedParameters as error:
        known, names = _nominal_values(study), error.names
        shown = f"{', '.join(names[:10])}{', …' * (len(names) > 10)}"
        words = f"{study.name}: parameters without influence on anything observed, fixed at nominal values: {shown}"
        warnings.warn(words, InputWarning, stacklevel=3)
        return Problem(model, data, fixed={name: known.get(name, 1.0) for name in names})


def _nominal_values(study: Study) -> dict[str, float]:
    """The nominal values of all parameters, by their names in the Problem."""
    own = {name: study.entities.get(name, name) for name in study.parameters}
    names = named([*own.values()])
    return {names[own[p.name]]: p.nominal for p in study.parameters.values() if p.nominal is not None}


@dataclass
class _Columns:
    """The columns of the data: which measurements go where."""

    lines: list[str] = field(default_factory=list)
    of: dict[tuple[str, ...], str] = field(default_factory=dict)  # observable and what is given → column


class _Joined:
    """A study in work: text and inputs grow as its parts are told."""

    def __init__(self, study: Study) -> None:
        self.study, self.where = study, study.name
        self.experiments = [*study.experiments]
        self.inputs: dict[str, list[float]] = {}
        self.definitions: dict[str, str] = {}
        self.document = load_document(study.model)
        self.settles = any(p[0].time == -math.inf for p in study.experiments.values())
        last = max((m.time for m in study.measurements if math.isfinite(m.time)), default=0.0)
        self.long = max(_SETTLING, _SPANS * last)
        starts = [p[0].time for p in study.experiments.values() if math.isfinite(p[0].time)]
        first = -self.long if self.settles else min([0.0, *starts])
        self.begin = number(first)
        targets = {t for periods in study.experiments.values() for p in periods for t in p.values}
        self.names = named(dict.fromkeys([*study.parameters, *study.observables, *targets, *study.entities]))
        self.taken = {*self.names.values(), *self._identifiers()}

    def _identifiers(self) -> list[str]:
        model = self.document.getModel()
        every = [model.getListOfSpecies(), model.getListOfParameters(), model.getListOfCompartments()]
        every += [model.getListOfReactions(), model.getListOfFunctionDefinitions()]
        return [items.get(i).getId() for items in every for i in range(items.size())]

    def _fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        own = next(iter(named([name]).values()))
        while own in self.taken:
            own += "_"
        self.taken.add(own)
        return own

    def told(self) -> tuple[str, Data]:
        """The text of the model, and the data."""
        study, fixed = self.study, self._entity
        targets = list(dict.fromkeys(t for ps in study.experiments.values() for p in ps for t in p.values))
        own = {*self._identifiers()}
        plain = translate(self.document, self.where, {fixed(p) for p in study.parameters}, begin=self.begin)
        starts = [t for t in targets if fixed(t) in plain.quantities]
        others = [t for t in targets if t not in starts]
        for target in targets:
            if fixed(target) not in own and target not in study.parameters and target not in self._in_formulas():
                raise InputError(f"{self.where}: the conditions set '{target}', which is nothing in the model")
        moved = {fixed(t) for t in others if self._moves(t)} & {c for c in own if self._is_compartment(c)}
        given: dict[str, str] = {}
        for target in others:
            default = self._default(target, plain)
            given[fixed(target)] = self._choose(target, [self._values(target, e, default) for e in self.experiments])
        for target in starts:
            default = plain.initial[plain.quantities[fixed(target)][0]]
            first = [self._values(target, e, default)[:1] for e in self.experiments]
            given[fixed(target)] = self._choose(f"{target}_initial", first)
        free = {fixed(p) for p in study.parameters} - {*given}
        others_named = [name for name in self.names if name not in study.observables]
        system = translate(self.document, self.where, free, given, moved, self.begin, others_named)
        for target in others:
            if fixed(target) not in own:
                self.definitions[self.names[target]] = given[target]
        if system.triggers and self.settles:
            raise InputError(f"{self.where}: events that states trigger in a system that settles first cannot be read")
        columns = self._observed(system)
        self._rest(system)
        self._reset(starts, system)
        return self._text(system, columns), self._data(columns)

    def _entity(self, name: str) -> str:
        return self.study.entities.get(name, name)

    def _is_compartment(self, name: str) -> bool:
        return self.document.getModel().getCompartment(name) is not None

    def _in_formulas(self) -> set[str]:
        return names_in(text for o in self.study.observables.values() for text in (o.formula, o.noise))

    def _default(self, target: str, plain: System) -> str:
        """The value of what no condition sets."""
        if target in self.study.parameters:
            return self.names[target]
        name = plain.names.get(self._entity(target), "")
        value = plain.definitions.get(name)
        return value if value is not None else ""

    def _moves(self, target: str) -> bool:
        return any(len({p.values.get(target) for p in periods}) > 1 for periods in self.study.experiments.values())

    def _values(self, target: str, experiment: str, default: str) -> list[tuple[float, str]]:
        """What a quantity is from which times on, as text of our language."""
        found: list[tuple[float, str]] = []
        for period in self.study.experiments[experiment]:
            text = period.values.get(target)
            if text is None and found and target not in period.values:
                continue  # version 2: as before
            value = default if text is None else self._expression(text)
            if not value:
                raise InputError(f"{self.where}: '{target}' has no value in the experiment '{experiment}'")
            found.append((period.time, value))
        return found

    def _expression(self, text: str) -> str:
        if is_number(text):
            return number(float(text))
        return Writer(self._prefix_errors, self.where)(parsed(text, self.where))

    def _prefix_errors(self, name: str) -> str:
        return self.names.get(name) or next(iter(named([name]).values()))

    def _choose(self, target: str, values: Sequence[Sequence[tuple[float, str]]]) -> str:
        """The text of a quantity that has values from times on in every experiment."""
        if all(len(own) == 1 for own in values):
            return self._select(target, [own[0][1] for own in values])
        times = sorted({time for own in values for time, _ in own})
        pieces = []
        for i, begin in enumerate(times):
            word = "first" if i == 0 else f"from_{number(begin)}".replace("-", "minus").replace(".", "_")
            current = [next(v for t, v in reversed(own) if t <= max(begin, own[0][0])) for own in values]
            pieces.append(self._select(f"{target}_{word}", current))
        text = pieces[-1]
        for end, piece in zip(reversed(times[1:]), reversed(pieces[:-1]), strict=True):
            text = piece if piece == text else f"where(t < {number(end)}, {piece}, {text})"
        return text

    def _select(self, name: str, values: Sequence[str]) -> str:
        """The text of what has one value per experiment: itself if it is the same, an input, or a choice."""
        if len({*values}) == 1:
            return values[0]
        if all(map(is_number, values)):
            numbers = [float(v) for v in values]
            same = next((n for n, known in self.inputs.items() if known == numbers), None)
            if same is None:
                same = name if name in self.names and name not in self.inputs else self._fresh(name)
                same = self.names.get(same, same)
                self.inputs[same] = numbers
            return same
        numbers = [float(i + 1) for i in range(len(values))]
        if self._condition not in self.inputs:
            self.inputs[self._condition] = numbers
        cases: dict[str, list[int]] = {}
        for i, value in enumerate(values):
            cases.setdefault(value, []).append(i + 1)
        *first, last = sorted(cases.items(), key=lambda case: len(case[1]))
        return "piecewise(" + "".join(f"{v}, {self._any_of(own)}, " for v, own in first) + f"{last[0]})"

    def _any_of(self, conditions: Sequence[int]) -> str:
        return " or ".join(f"{self._condition} == {i}" for i in conditions)

    @property
    def _condition(self) -> str:
        if not hasattr(self, "_index"):
            self._index = self._fresh("condition")
        return self._index

    def _rest(self, system: System) -> None:
        """Let the states of experiments that start later than others stay as they are until then."""
        waiting: dict[float, list[int]] = {}
        for i, experiment in enumerate(self.experiments):
            start = self.study.experiments[experiment][0].time
            if start > float(self.begin):
                waiting.setdefault(start, []).append(i + 1)
        if not waiting:
            return
        latest = max(waiting)
        if not self.settles and (system.triggers or min([*system.events, *system.events_after, latest]) < latest):
            raise InputError(f"{self.where}: events before an experiment starts at {latest:g} cannot be read")
        rests = []
        for start, own in sorted(waiting.items()):
            if len(own) == len(self.experiments):
                rests.append(f"t < {number(start)}")
                continue
            self.inputs.setdefault(self._condition, [float(i + 1) for i in range(len(self.experiments))])
            rests.append(f"t < {number(start)} and ({self._any_of(own)})")
        for name, text in system.states.items():
            system.states[name] = f"where({' or '.join(rests)}, 0, {text})"

    def _reset(self, starts: Sequence[str], system: System) -> None:
        """Let states get new values when a later period begins."""
        times = sorted({p.time for periods in self.study.experiments.values() for p in periods[1:]})
        for target, time in itertools.product(starts, times):
            state, size = system.quantities[self._entity(target)]
            values = []
            for periods in self.study.experiments.values():
                text = next((p.values.get(target) for p in periods[1:] if p.time == time), None)
                value = state if text is None else self._expression(text)
                values.append(value if text is None or not size else f"({value}){size}")
            if any(value != state for value in values):
                word = f"{target}_from_{number(time)}".replace(".", "_")
                system.events.setdefault(time, {})[state] = self._select(word, values)

    def _observed(self, system: System) -> _Columns:
        """A column for every observable, and for all that is given to it in rows of its measurements."""
        columns = _Columns()
        for m in self.study.measurements:
            observable = self.study.observables[m.observable]
            key = self._key(m, observable)
            if key in columns.of:
                continue
            taken = sum(name == observable.name for name, *_ in columns.of)
            own = self.names[observable.name]
            if taken or own in system.names.values() or own in system.states:
                own = self._fresh(f"{own}_{taken + 1}" if taken else f"{own}_observed")
            columns.of[key] = own
            columns.lines += self._column(own, observable, key, system)
        return columns

    def _by_row(self, m: Measurement, observable: Observable) -> bool:
        """Whether the noise of a measurement is a number that stands in its row."""
        names, given = observable.placeholders[1], m.given[1]
        alone = (
            len(names) == 1 and observable.noise.strip() == names[0] and observable.family in ("normal", "lognormal")
        )
        return alone and is_number(given[0]) and float(given[0]) > 0

    def _key(self, m: Measurement, observable: Observable) -> tuple[str, ...]:
        noise = ("by row",) if self._by_row(m, observable) else m.given[1]
        return (observable.name, *m.given[0], ";", *noise)

    def _column(self, own: str, observable: Observable, key: tuple[str, ...], system: System) -> list[str]:
        split = key.index(";")
        given = dict(zip(observable.placeholders[0], key[1:split], strict=True))
        rows = key[split + 1 :] == ("by row",) and observable.placeholders[1] != ()
        if not rows:
            given |= dict(zip(observable.placeholders[1], key[split + 1 :], strict=True))
        texts = {name: number(float(v)) if is_number(v) else self._known_name(v, system) for name, v in given.items()}

        def symbol(name: str) -> str:
            if name in texts:
                return texts[name] if not texts[name].startswith("-") else f"({texts[name]})"
            return own if name == observable.name else self._known_name(name, system)

        write = Writer(symbol, f"{self.where}: observable '{observable.name}'")
        formula = write(parsed(observable.formula, write.where))
        lines = [f"{own} = {formula}"] if formula != own else []
        if rows:
            return [*lines, f"{own} ~ {observable.family}({own})"]
        noise = write(parsed(observable.noise, write.where))
        if observable.factor != 1.0:
            noise = f"log(10)*({noise})"
        return [*lines, f"{own} ~ {observable.family}({own}, {noise})"]

    def _known_name(self, name: str, system: System) -> str:
        """The name of what a formula mentions."""
        entity = self._entity(name)
        if entity in system.names and (name not in self.study.observables):
            return system.names[entity]
        if name in self.names:
            return self.names[name]
        raise InputError(f"{self.where}: '{name}' is used in a formula, but is neither in the model nor a parameter")

    def _text(self, system: System, columns: _Columns) -> str:
        body = [*statements(system, {}, self.begin), *columns.lines]
        every = {**system.definitions, **self.definitions}
        every = {name: text for name, text in every.items() if name != text}
        definitions = needed_definitions(every, body)
        lines = statements(system, definitions, self.begin)
        used = names_in([*lines, *columns.lines])
        head = [f"# PEtab problem {self.study.name}"]
        if self._condition in self.inputs:
            head += [f"# condition {i + 1} is {e}" for i, e in enumerate(self.experiments)]
        if self.settles:
            head.append(f"# the system settles from {self.begin} to 0")
        inputs = [name for name in self.inputs if name in used]
        self.inputs = {name: self.inputs[name] for name in inputs}
        lines += [*columns.lines, *([f"input {', '.join(inputs)}"] if inputs else [])]
        left: list[str] = []
        logs: list[str] = []
        for p in self.study.parameters.values():
            own = system.names.get(self._entity(p.name), self.names[p.name])
            if own in used and own not in definitions and own not in inputs:
                lines += _declarations(own, p)
                logs += [own] if p.log and p.estimated else []
            elif p.estimated and own not in used:
                left.append(p.name)
        if left:
            words = (
                f"{self.where}: {', '.join(left[:10])} {'is' if len(left) == 1 else 'are'} used nowhere and left out"
            )
            warnings.warn(words, InputWarning, stacklevel=4)
        return "\n".join([*head, *lines, *([f"log {', '.join(logs)}"] if logs else []), ""])

    def _data(self, columns: _Columns) -> Data:
        names = tuple(columns.of.values())
        place = {name: k for k, name in enumerate(names)}
        experiments: list[Experiment] = []
        last = max((m.time for m in self.study.measurements if math.isfinite(m.time)), default=0.0)
        for i, name in enumerate(self.experiments):
            own = [m for m in self.study.measurements if m.experiment == name and not math.isnan(m.value)]
            t = np.array([m.time if math.isfinite(m.time) else last + self.long for m in own])
            y, sd = (np.full((len(own), len(names)), np.nan) for _ in range(2))
            for row, m in enumerate(own):
                observable = self.study.observables[m.observable]
                k = place[columns.of[self._key(m, observable)]]
                y[row, k] = m.value
                if self._by_row(m, observable):
                    sd[row, k] = float(m.given[1][0]) * observable.factor
            if len(np.unique(t)) == 1:  # then replicates, which have no neighbours, are put apart here
                again = np.array([(~np.isnan(y[:r, np.flatnonzero(~np.isnan(y[r]))])).sum() for r in range(len(t))])
                t = t + _APART * (1.0 + np.abs(t)) * again
            order = np.argsort(t, kind="stable")
            u = {n: ([0.0], [values[i]]) for n, values in self.inputs.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InputWarning)  # replicates are what they are
                experiments.append(make_experiment(name, t[order], y[order], names, u, "keep", sd=sd[order]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            return Data.from_experiments(names, experiments)


def _declarations(name: str, p: Parameter) -> list[str]:
    """What is said about a parameter."""
    if not p.estimated:
        return [f"fixed {name} = {number(p.nominal or 0.0)}"]
    low, high = (
        (f"{number(p.low)} < " if math.isfinite(p.low) else ""),
        (f" < {number(p.high)}" if math.isfinite(p.high) else ""),
    )
    lines = [f"{low}{name}{high}"] if low or high else []
    lines += [f"linear {name}"] if not p.log and not low else []
    if p.prior is not None:
        family, numbers = p.prior
        lines.append(f"{name} ~ {family}({', '.join(map(number, numbers))})")
    return lines
