"""Write a system of rate rules, assignment rules and events as SBML, level 3."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odinfer.io import libsbml
from odinfer.io.formula import parsed


@dataclass(frozen=True)
class SheetEvent:
    """An event: its condition, the new values by identifier, and its options; formulas as in a sheet."""

    trigger: str
    changes: dict[str, str]
    delay: str = ""
    priority: str = ""
    persistent: bool = True
    values_of_trigger: bool = True
    initially_true: bool = True


@dataclass
class Sheet:
    """What a model is to say; formulas are in the syntax that SBML and PEtab share.

    Attributes:
        constants: identifier → value.
        states: identifier → (right-hand side, initial value).
        rules: identifier → formula.
        events: in any order.
    """

    name: str
    constants: dict[str, float] = field(default_factory=dict)
    states: dict[str, tuple[str, str]] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    events: list[SheetEvent] = field(default_factory=list)


def write_sbml(sheet: Sheet, path: Path) -> None:
    """Write a model of level 3, version 1."""
    lib = libsbml()
    document = lib.SBMLDocument(3, 1)
    model = document.createModel()
    model.setId(sheet.name)
    for name, value in sheet.constants.items():
        _quantity(model, name, True).setValue(value)
    for name in (*sheet.states, *sheet.rules):
        _quantity(model, name, False)
    for name, (right, initial) in sheet.states.items():
        start = model.createInitialAssignment()
        start.setSymbol(name)
        start.setMath(parsed(initial, name))
        rate = model.createRateRule()
        rate.setVariable(name)
        rate.setMath(parsed(right, name))
    for name, formula in sheet.rules.items():
        rule = model.createAssignmentRule()
        rule.setVariable(name)
        rule.setMath(parsed(formula, name))
    for i, event in enumerate(sheet.events):
        _event(model, f"event_{i + 1}", event)
    path.write_text(lib.writeSBMLToString(document), "utf-8")


def _quantity(model: Any, name: str, constant: bool) -> Any:
    own = model.createParameter()
    own.setId(name)
    own.setConstant(constant)
    own.setUnits("dimensionless")
    return own


def _event(model: Any, name: str, event: SheetEvent) -> None:
    own = model.createEvent()
    own.setId(name)
    own.setUseValuesFromTriggerTime(event.values_of_trigger)
    begun = own.createTrigger()
    begun.setInitialValue(event.initially_true)
    begun.setPersistent(event.persistent)
    begun.setMath(parsed(event.trigger, name))
    if event.delay:
        own.createDelay().setMath(parsed(event.delay, name))
    if event.priority:
        own.createPriority().setMath(parsed(event.priority, name))
    for state, formula in event.changes.items():
        change = own.createEventAssignment()
        change.setVariable(state)
        change.setMath(parsed(formula, name))
