"""Translate the events of an SBML model.

An event whose trigger is that time reaches a constant, and that does not interact with others, happens at that time;
all others are conditions with options (`when x > 1 {delay 2}: x = 0`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from odinfer.errors import InputError
from odinfer.io import libsbml
from odinfer.io.formula import Writer
from odinfer.io.sbml_document import listed
from odinfer.io.sbml_system import Changes, names_in
from odinfer.model.expression import RESERVED
from odinfer.model.program import constant

if TYPE_CHECKING:
    from odinfer.io.sbml_translation import Translation

Events = tuple[dict[float, Changes], dict[float, Changes], list[tuple[str, Changes]]]


class _Timed(NamedTuple):
    """An event at a constant time."""

    time: float
    seen: bool  # by an observation at that time
    changes: Changes


def events_of(model: Translation) -> Events:
    """Events at constant times that observations see, those that they do not see, and events with conditions."""
    events = [e for e in listed(model.model.getListOfEvents()) if _math(e.getTrigger()) is not None]
    events = [e for e in events if _changes(model, e)]
    timed = [_time_event(model, event) for event in events]
    known = [own for own in timed if own is not None]
    before: dict[float, Changes] = {}
    after: dict[float, Changes] = {}
    if len(known) == len(timed) and _independent(known):
        for own in sorted(known, key=lambda own: own.time):
            (before if own.seen else after).setdefault(own.time, {}).update(own.changes)
        return before, after, []
    return {}, {}, [(_condition(model, event), _changes(model, event)) for event in events]


def _math(element: Any) -> Any:
    return None if element is None else element.getMath()


def _independent(events: Sequence[_Timed]) -> bool:
    """Whether no two events at one time change the same state or use what the other changes."""
    for i, one in enumerate(events):
        for other in events[:i]:
            if one.time == other.time and (
                one.seen != other.seen
                or {*one.changes} & ({*other.changes} | names_in(other.changes.values()))
                or {*other.changes} & names_in(one.changes.values())
            ):
                return False
    return True


def _time_event(model: Translation, event: Any) -> _Timed | None:
    """An event whose trigger is that time reaches a constant; None for others."""
    lib, tree = libsbml(), event.getTrigger().getMath()
    late, early = (lib.AST_RELATIONAL_GEQ, lib.AST_RELATIONAL_GT), (lib.AST_RELATIONAL_LEQ, lib.AST_RELATIONAL_LT)
    sides = [tree.getChild(i) for i in range(tree.getNumChildren())]
    if tree.getType() in early:
        sides.reverse()
    if tree.getType() not in (*late, *early) or len(sides) != 2 or sides[0].getType() != lib.AST_NAME_TIME:
        return None
    time, delay = _constant(model, sides[1]), _constant(model, _math(event.getDelay()))
    if time is None or delay is None or delay < 0 or time <= float(model.begin):
        return None
    changes = _changes(model, event)
    if delay > 0 and event.getUseValuesFromTriggerTime() and names_in(changes.values()):
        return None
    strict = tree.getType() in (lib.AST_RELATIONAL_GT, lib.AST_RELATIONAL_LT)
    return _Timed(time + delay, not strict, changes)


def _constant(model: Translation, tree: Any) -> float | None:
    """The value of an expression of numbers and constants; 0 if it is absent, None if it is no constant."""
    if tree is None:
        return 0.0

    def symbol(name: str) -> str:
        moving = name in (model.free | {*model.moving, *model.assigned}) or name not in model.names
        text = None if moving or name in model.reactions else model.value(name)
        return "t" if text is None or names_in([text]) else f"({text})"  # anything that is no constant

    text = Writer(symbol, model.where, model.functions, rate_of=lambda _: "t")(tree)
    try:
        return None if names_in([text]) & {"t"} else constant(text, 1)
    except InputError:
        return None


def _condition(model: Translation, event: Any) -> str:
    """The condition of an event, with its options."""
    trigger = event.getTrigger()
    write = Writer(model.write.symbol, model.where, model.functions, rate_of=model.write.rate_of, inequalities=True)
    options = []
    if (delay := _math(event.getDelay())) is not None:
        options.append(f"delay {model.write(delay)}")
    if event.isSetPriority() and (priority := _math(event.getPriority())) is not None:
        options.append(f"priority {model.write(priority)}")
    if trigger.isSetPersistent() and not trigger.getPersistent():
        options.append("cancellable")
    if not event.getUseValuesFromTriggerTime() or _rescaled_later(model, event):
        options.append("current values")
    if trigger.isSetInitialValue() and not trigger.getInitialValue():
        options.append("initially false")
    condition = write.condition(trigger.getMath())
    return f"{condition} {{{', '.join(options)}}}" if options else condition


def _rescaled_later(model: Translation, event: Any) -> bool:
    """Whether new values are constants, but the states that stand for them depend on a size at the time of execution.

    Raises:
        InputError: the new values are those at the time of the trigger.
    """
    if _constant(model, _math(event.getDelay())) == 0 or not event.getUseValuesFromTriggerTime():
        return False
    given = _given(model, event)
    changes = _changes(model, event)
    if changes == {model.state_name(name): text for name, text in given.items()}:
        return False
    varying = {*model.moving, *model.assigned, *model.reactions}
    constants = {own for name, own in model.names.items() if name not in varying} | RESERVED - {"t"}
    if all(names_in([text]) <= constants for text in given.values()):
        return True
    raise InputError(
        f"{model.where}: an event with a delay and values from its trigger time changes concentrations in a "
        "compartment whose size changes, which cannot be read; let it use values of the time of its execution"
    )


def _given(model: Translation, event: Any) -> Changes:
    """Identifiers that an event changes, with their new values."""
    assignments = listed(event.getListOfEventAssignments())
    return {a.getVariable(): model.write(a.getMath()) for a in assignments if a.getMath() is not None}


def _changes(model: Translation, event: Any) -> Changes:
    """The states that an event changes, with their new values."""
    given, found = _given(model, event), {}
    for name, text in given.items():
        if name in model.assigned:
            raise InputError(f"{model.where}: an event changes '{name}', which has an assignment rule; keep one")
        if model.is_amount(name):
            text = f"({text})*{model.names[model.species[name].getCompartment()]}"
        found[model.state_name(name)] = text
    # An event that changes the size of a compartment changes concentrations in it, not amounts.
    for name in model.moving:
        own = model.species.get(name)
        size = "" if own is None else own.getCompartment()
        if size in given and name in model.rates and model.is_concentration(name):
            value = f"({given[name]})" if name in given else model.names[name]
            found[model.names[name]] = f"{value}*{model.names[size]}/({given[size]})"
    return found
