"""An SBML model as equations, definitions and events, and its text in the model language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from odinfer.io.formula import number

_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")

Changes = dict[str, str]  # state → new value


@dataclass(frozen=True)
class System:
    """The contents of an SBML model in the model language.

    Attributes:
        states: state → right-hand side.
        initial: state → initial value.
        definitions: of everything else that is not a parameter.
        events: time → changes that an observation at that time sees, in the order of the times.
        events_after: time → changes that an observation at that time does not see.
        triggers: conditions with options, and the changes each time one becomes true.
        parameters: constant → its value in the file; None if it has none.
        names: identifier → name.
        quantities: identifiers of states → the state, and what to multiply a value with (amounts in a compartment
            whose size changes).
    """

    states: dict[str, str]
    initial: dict[str, str]
    definitions: dict[str, str]
    parameters: dict[str, float | None]
    names: dict[str, str]
    quantities: dict[str, tuple[str, str]]
    events: dict[float, Changes] = field(default_factory=dict)
    events_after: dict[float, Changes] = field(default_factory=dict)
    triggers: list[tuple[str, Changes]] = field(default_factory=list)


def names_in(texts: Iterable[str]) -> set[str]:
    """The names in some texts."""
    return {word for text in texts for word in _WORD.findall(text)}


def needed_definitions(definitions: Mapping[str, str], texts: Iterable[str]) -> dict[str, str]:
    """The definitions that some texts use, by way of each other."""
    found: set[str] = set()
    new = names_in(texts) & {*definitions}
    while new:
        found |= new
        new = names_in(definitions[name] for name in new) & {*definitions} - found
    return {name: text for name, text in definitions.items() if name in found}


def statements(system: System, definitions: Mapping[str, str], begin: str = "0") -> list[str]:
    """The statements of a system, with some of its definitions; initial values hold at time `begin`.

    A system without differential equations gets a state, which a model needs.
    """
    lines = [f"{name}' = {text}" for name, text in system.states.items()]
    if not lines:
        name = _placeholder(system)
        lines = [f"{name}' = 0; {name}({begin}) = 1  # there is no differential equation"]
    lines += [f"{name} = {text}" for name, text in definitions.items()]
    lines += [f"{name}({begin}) = {text}" for name, text in system.initial.items()]
    lines += [f"before {number(time)}: {_list(changes)}" for time, changes in system.events.items()]
    lines += [f"at {number(time)}: {_list(changes)}" for time, changes in system.events_after.items()]
    return [*lines, *(f"when {condition}: {_list(changes)}" for condition, changes in system.triggers)]


def _placeholder(system: System) -> str:
    """A name for the state of a model that has none."""
    name = "placeholder"
    while name in system.names.values() or name in system.definitions:
        name += "_"
    return name


def _list(changes: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {text}" for name, text in changes.items())
