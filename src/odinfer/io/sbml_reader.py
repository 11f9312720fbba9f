"""SBML, levels 2 and 3: a model of reactions, rules and events as equations of our language.

Species are concentrations, as in the formulas of the model, or amounts if they have substance units only. Those in a
compartment whose size changes are amounts here, and the concentration is a definition.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odinfer.errors import InputError
from odinfer.io import libsbml
from odinfer.io.formula import Writer, named, number
from odinfer.model.model import Model
from odinfer.model.program import constant

_MOST_BYTES = 50_000_000
_PACKAGES = ("comp", "qual", "multi", "spatial", "arrays", "distrib", "dyn")  # which change what a model means
_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")


@dataclass(frozen=True)
class System:
    """What an SBML model says, in our language.

    Attributes:
        states: state → right-hand side.
        initial: state → initial value.
        definitions: of everything else that is not a parameter.
        events: time → state → new value, in the order of the times.
        triggers: conditions, and state → new value of what happens each time one becomes true.
        parameters: constant → its value in the file; None if it has none.
        names: identifier → name.
        quantities: identifiers of states; an amount in a compartment that changes → what to multiply a value with.
    """

    states: dict[str, str]
    initial: dict[str, str]
    definitions: dict[str, str]
    events: dict[float, dict[str, str]]
    triggers: list[tuple[str, dict[str, str]]]
    parameters: dict[str, float | None]
    names: dict[str, str]
    quantities: dict[str, tuple[str, str]]


def read_sbml(path: str | Path) -> Model:
    """A model from an SBML file of level 2 or 3.

    Its constant parameters are parameters that start from the values in the file; compartments and initial values are
    as they are there. `Model.text` has the equations in our language.

    Raises:
        InputError: the file cannot be read, or says what cannot be said in our language, which is named.
    """
    path = Path(path)
    system = translated(loaded(path), path.name, free=None)
    told = [text for text in system.definitions.values() if words([text])]  # constants that nobody uses are left out
    used = needed(system.definitions, [*told, *sentences(system, {})])
    lines = sentences(system, {n: text for n, text in system.definitions.items() if n in used or text in told})
    met = words(lines)
    lines += [f"start {name} = {number(value)}" for name, value in system.parameters.items()
              if value is not None and name in met]  # fmt: skip
    return Model.from_text("\n".join([f"# read from {path.name}", *lines, ""]), path.stem)


def loaded(path: Path) -> Any:
    """The model in a file, once nothing in it is found that we cannot trust or read."""
    lib = libsbml()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read '{path}': {error.strerror}") from None
    if len(content) > _MOST_BYTES or b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise InputError(f"{path.name}: files with DOCTYPE or ENTITY or beyond 50 MB are not read")
    document = lib.readSBMLFromString(content.decode("utf-8", "replace"))
    for i in range(document.getNumErrors()):
        found = document.getError(i)
        if found.getSeverity() >= lib.LIBSBML_SEV_ERROR:
            raise InputError(f"{path.name}: line {found.getLine()}: {' '.join(found.getShortMessage().split())[:200]}")
    model = document.getModel()
    if model is None:
        raise InputError(f"{path.name} is no SBML file with a model")
    for i in range(document.getNumPlugins()):
        package = document.getPlugin(i).getPackageName()
        if package in _PACKAGES and f"<{document.getPlugin(i).getPrefix()}:".encode() in content:
            raise InputError(f"{path.name}: the package '{package}' of SBML cannot be read; only its core can")
    return document


def words(texts: Iterable[str]) -> set[str]:
    """The names in some texts."""
    return {word for text in texts for word in _WORD.findall(text)}


def needed(definitions: Mapping[str, str], texts: Iterable[str]) -> dict[str, str]:
    """The definitions that some texts use, by way of each other."""
    found: set[str] = set()
    new = words(texts) & {*definitions}
    while new:
        found |= new
        new = words(definitions[name] for name in new) & {*definitions} - found
    return {name: text for name, text in definitions.items() if name in found}


def sentences(system: System, definitions: Mapping[str, str], begin: str = "0") -> list[str]:
    """The statements of a system."""
    lines = [f"{name}' = {text}" for name, text in system.states.items()]
    lines += [f"{name} = {text}" for name, text in definitions.items()]
    lines += [f"{name}({begin}) = {text}" for name, text in system.initial.items()]
    for time, changes in system.events.items():
        lines.append(f"before {number(time)}: {_written(changes)}")
    return [*lines, *(f"when {condition}: {_written(changes)}" for condition, changes in system.triggers)]


def _written(changes: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {text}" for name, text in changes.items())


def translated(
    document: Any,
    where: str,
    free: Collection[str] | None,
    given: Mapping[str, str] | None = None,
    moved: Collection[str] = (),
    begin: str = "0",
    others: Collection[str] = (),
) -> System:
    """The model of a document in our language.

    Args:
        where: its name, for messages.
        free: the identifiers that stay parameters; None for all constant parameters.
        given: identifier → text of a value, or of the initial value of a state, instead of that in the file.
        moved: identifiers whose values change at some time, by what stands elsewhere.
        begin: the time of initial values.
        others: identifiers from elsewhere that need names, too.
    """
    return _Translation(document.getModel(), where, free, given or {}, moved, begin, others).system()


class _Translation:
    """The model in work: what its identifiers are, and how they are written."""

    def __init__(
        self,
        model: Any,
        where: str,
        free: Collection[str] | None,
        given: Mapping[str, str],
        moved: Collection[str],
        begin: str,
        others: Collection[str],
    ) -> None:
        self.model, self.where, self.given, self.begin = model, where, given, begin
        self._refuse()
        self.species = {s.getId(): s for s in _listed(model.getListOfSpecies())}
        self.compartments = {c.getId(): c for c in _listed(model.getListOfCompartments())}
        self.constants = {p.getId(): p for p in _listed(model.getListOfParameters())}
        self.reactions = {r.getId(): r for r in _listed(model.getListOfReactions())}
        self.rates: dict[str, Any] = {}
        self.assigned: dict[str, Any] = {}
        for rule in _listed(model.getListOfRules()):
            (self.rates if rule.isRate() else self.assigned)[rule.getVariable()] = rule.getMath()
        self.starts = {a.getSymbol(): a.getMath() for a in _listed(model.getListOfInitialAssignments())}
        self.functions = {f.getId(): f.getMath() for f in _listed(model.getListOfFunctionDefinitions())}
        self.references = {
            ref.getId(): ref for r in self.reactions.values() for ref in _references(r)[0] if ref.isSetId()
        }
        everything = [*self.species, *self.compartments, *self.constants, *self.reactions, *self.references, *others]
        self.names = named(dict.fromkeys(everything))
        self.free = {*self.constants} if free is None else {*free}
        if free is None:
            self.free -= {*self.rates, *self.assigned, *self.starts, *given}
        self.jumping = {a.getVariable() for e in self._events() for a in _listed(e.getListOfEventAssignments())}
        self.jumping |= {*moved}
        self.varying = {c for c in self.compartments if c in self.rates or c in self.assigned or c in self.jumping}
        self.local: dict[str, str] = {}
        self.write = Writer(self._symbol, where, self.functions)
        self.at_start = Writer(self._at_start, where, self.functions, begin)
        self.moving = self._states()

    def _refuse(self) -> None:
        for rule in _listed(self.model.getListOfRules()):
            if rule.isAlgebraic():
                raise InputError(f"{self.where}: algebraic rules cannot be read; solve for a variable")
        for reaction in _listed(self.model.getListOfReactions()):
            if reaction.isSetFast() and reaction.getFast():
                raise InputError(f"{self.where}: '{reaction.getId()}' is a fast reaction, which cannot be read")

    def _events(self) -> list[Any]:
        return _listed(self.model.getListOfEvents())

    def _states(self) -> dict[str, None]:
        """The identifiers of what has an equation."""
        reacting = {ref.getSpecies() for r in self.reactions.values() for ref in _references(r)[0]}
        found = [s for s, own in self.species.items() if s in reacting and not own.getBoundaryCondition()
                 and not own.getConstant() and s not in self.assigned]  # fmt: skip
        found += [name for name in self.rates if name not in found]
        found += sorted(name for name in self.jumping if name not in found and name not in self.assigned)
        return dict.fromkeys(found)

    def _amount(self, name: str) -> bool:
        """Whether a species is an amount here and a concentration in formulas."""
        own = self.species.get(name)
        return (
            own is not None and name in self.moving and name not in self.rates and self._concentration(name)
            and own.getCompartment() in self.varying
        )  # fmt: skip

    def _concentration(self, name: str) -> bool:
        own = self.species[name]
        return not own.getHasOnlySubstanceUnits() and self._size_of(own.getCompartment()) is not None

    def _size_of(self, compartment: str) -> Any:
        """A compartment that has a volume."""
        own = self.compartments.get(compartment)
        return own if own is not None and own.getSpatialDimensions() > 0 else None

    def _unit(self, compartment: str) -> bool:
        """Whether the size of a compartment is 1 and stays so."""
        own = self.compartments[compartment]
        changed = compartment in self.varying or compartment in self.given or compartment in self.free
        return not changed and compartment not in self.starts and (not own.isSetSize() or own.getSize() == 1.0)

    def _state_name(self, name: str) -> str:
        return f"{self.names[name]}_amount" if self._amount(name) else self.names[name]

    def _symbol(self, name: str) -> str:
        if name in self.local:
            return self.local[name]
        if name not in self.names:
            raise InputError(f"{self.where}: '{name}' is used but not defined")
        return self.names[name]

    def _at_start(self, name: str) -> str:
        """What an identifier is at the beginning."""
        if name in self.local:
            return self.local[name]
        if name in self.moving:
            own = f"{self._state_name(name)}({self.begin})"
            return f"({own}/{self._at_start(self.species[name].getCompartment())})" if self._amount(name) else own
        if name in self.assigned:
            return f"({self.at_start(self.assigned[name])})"
        if name in self.reactions:
            return f"({self._law(self.reactions[name], self.at_start)})"
        return self._symbol(name)

    def _law(self, reaction: Any, write: Writer) -> str:
        """The rate of a reaction; parameters of its own are numbers."""
        law = reaction.getKineticLaw()
        if law is None or law.getMath() is None:
            raise InputError(f"{self.where}: the reaction '{reaction.getId()}' has no kinetic law")
        own = [*_listed(law.getListOfParameters()), *_listed(law.getListOfLocalParameters())]
        outer, self.local = self.local, {p.getId(): number(p.getValue()) for p in own}
        try:
            return write(law.getMath())
        finally:
            self.local = outer

    def _value(self, name: str) -> str | None:
        """The text of a constant, or of the initial value of what moves, in the unit of its identifier."""
        if name in self.given:
            return self.given[name]
        if name in self.starts:
            return self.at_start(self.starts[name])
        if name in self.species:
            return self._of_species(self.species[name])
        if name in self.compartments:
            own = self.compartments[name]
            return number(own.getSize()) if own.isSetSize() else "1"
        if name in self.constants:
            own = self.constants[name]
            return number(own.getValue()) if own.isSetValue() and own.getValue() == own.getValue() else None
        own = self.references[name]
        return number(own.getStoichiometry())

    def _of_species(self, own: Any) -> str | None:
        size = "" if self._unit(own.getCompartment()) else self._at_start(own.getCompartment())
        if own.isSetInitialConcentration():
            value = number(own.getInitialConcentration())
            return f"{value}*{size}" if size and not self._concentration(own.getId()) else value
        if own.isSetInitialAmount():
            value = number(own.getInitialAmount())
            return f"{value}/{size}" if size and self._concentration(own.getId()) else value
        return None

    def system(self) -> System:
        """All of it."""
        states = {self._state_name(name): self._equation(name) for name in self.moving}
        definitions = {self.names[r]: self._law(own, self.write) for r, own in self.reactions.items()}
        definitions |= {self.names[name]: self.write(tree) for name, tree in self.assigned.items()}
        initial = {}
        for name in self.moving:
            value = self._value(name)
            if value is None:
                raise InputError(f"{self.where}: '{name}' has no initial value; give one")
            if self._amount(name):
                size = self.species[name].getCompartment()
                definitions[self.names[name]] = f"{self._state_name(name)}/{self.names[size]}"
                value = f"({value})*{self._at_start(size)}"
            initial[self._state_name(name)] = value
        parameters: dict[str, float | None] = {}
        for name in (*self.species, *self.compartments, *self.constants, *self.references):
            if name in self.moving or name in self.assigned:
                continue
            if name in self.free:
                own = self.constants.get(name)
                known = own is not None and own.isSetValue() and own.getValue() == own.getValue()
                parameters[self.names[name]] = own.getValue() if own is not None and known else None
            elif (value := self._value(name)) is not None and value != self.names[name]:
                definitions[self.names[name]] = value
        quantities = {}
        for name in self.moving:
            size = self.names[self.species[name].getCompartment()] if self._amount(name) else ""
            quantities[name] = (self._state_name(name), f"*{size}" if size else "")
        events, triggers = self._happening()
        return System(states, initial, definitions, events, triggers, parameters, self.names, quantities)

    def _equation(self, name: str) -> str:
        if name in self.rates:
            return self.write(self.rates[name])
        terms = []
        for reaction_id, reaction in self.reactions.items():
            every, signs = _references(reaction)
            for ref, sign in zip(every, signs, strict=True):
                if ref.getSpecies() == name:
                    terms.append((sign, self._stoichiometry(ref), self.names[reaction_id]))
        own = self.species.get(name)
        if not terms or own is None or own.getBoundaryCondition():
            return "0"
        total = ""
        for sign, factor, rate in terms:
            term = rate if factor == "1" else f"{factor}*{rate}"
            total += f" {sign} {term}" if total else (term if sign == "+" else f"-{term}")
        factor = own.getConversionFactor() or self.model.getConversionFactor()
        if factor:
            total = f"{self.names[factor]}*({total})"
        if not self._concentration(name) or self._amount(name) or self._unit(own.getCompartment()):
            return total
        return f"({total})/{self.names[own.getCompartment()]}"

    def _stoichiometry(self, ref: Any) -> str:
        if ref.isSetId() and (ref.getId() in self.starts or ref.getId() in self.assigned or ref.getId() in self.given):
            return self.names[ref.getId()]
        if ref.isSetStoichiometryMath():
            return f"({self.write(ref.getStoichiometryMath().getMath())})"
        value = ref.getStoichiometry()
        if value != value:
            raise InputError(f"{self.where}: a stoichiometry of '{ref.getSpecies()}' has no value")
        return number(value) if value >= 0 else f"({number(value)})"

    def _happening(self) -> tuple[dict[float, dict[str, str]], list[tuple[str, dict[str, str]]]]:
        """Events at constant times, and those that conditions make happen."""
        events: dict[float, dict[str, str]] = {}
        triggers: list[tuple[str, dict[str, str]]] = []
        for event in self._events():
            if (time := self._time(event)) is None:
                triggers.append((self._condition(event), self._changes(event)))
            elif self._comes(event, time):
                own, changes = events.setdefault(time, {}), self._changes(event)
                if twice := {*own} & {*changes}:
                    told = f"{event.getId() or 'an event'} changes '{min(twice)}' at {time:g}"
                    raise InputError(f"{self.where}: {told}, as another event does")
                own |= changes
        return dict(sorted(events.items())), triggers

    def _changes(self, event: Any) -> dict[str, str]:
        found = {}
        for assignment in _listed(event.getListOfEventAssignments()):
            name = assignment.getVariable()
            text = self.write(assignment.getMath())
            if self._amount(name):
                text = f"({text})*{self.names[self.species[name].getCompartment()]}"
            found[self._state_name(name)] = text
        return found

    def _named(self, event: Any) -> str:
        return f"{self.where}: the event '{event.getId() or event.getName()}'"

    def _time(self, event: Any) -> float | None:
        """When an event happens whose trigger is that time has come to a constant; None for others."""
        lib, tree = libsbml(), event.getTrigger() and event.getTrigger().getMath()
        if not tree:
            raise InputError(f"{self._named(event)} has no trigger; give it one or leave it out")
        late, early = (lib.AST_RELATIONAL_GEQ, lib.AST_RELATIONAL_GT), (lib.AST_RELATIONAL_LEQ, lib.AST_RELATIONAL_LT)
        sides = [tree.getChild(i) for i in range(tree.getNumChildren())]
        if tree.getType() in early:
            sides.reverse()
        known = tree.getType() in (*late, *early) and len(sides) == 2
        time = self._constant(sides[1]) if known and sides[0].getType() == lib.AST_NAME_TIME else None
        if time is None or (delay := self._delay(event)) == 0.0:
            return time
        if event.getUseValuesFromTriggerTime():
            raise InputError(f"{self._named(event)} is delayed with values of its trigger time, which cannot be read")
        return time + delay

    def _delay(self, event: Any) -> float:
        delay = self._constant(event.getDelay().getMath()) if event.isSetDelay() else 0.0
        if delay is None:
            raise InputError(f"{self._named(event)} has a delay that is no constant, which cannot be read")
        return delay

    def _comes(self, event: Any, time: float) -> bool:
        """Whether an event at a time happens at all."""
        if time < 0 or (time == 0 and _true_at_first(event)):
            return False
        if time == 0:
            raise InputError(f"{self._named(event)} happens at time 0; give initial values instead")
        return True

    def _condition(self, event: Any) -> str:
        """What makes an event happen by becoming true."""
        what, tree = self._named(event), event.getTrigger().getMath()
        if not _compares(tree):
            raise InputError(f"{what} is triggered by more than comparisons with <, <=, > or >=, which cannot be read")
        if self._delay(event) != 0.0:
            raise InputError(f"{what} is delayed after a trigger that is no constant time, which cannot be read")
        # These matter where several events happen at one time, of which one undoes what another is made of.
        given = event.getTrigger()
        told = {
            "a priority": event.isSetPriority(),
            "a trigger that does not persist": given.isSetPersistent() and not given.getPersistent(),
            "values of the time at which it is executed": not event.getUseValuesFromTriggerTime(),
        }
        if len(self._events()) > 1 and (odd := next((words for words, there in told.items() if there), "")):
            raise InputError(f"{what} has {odd}, which cannot be read beside other events")
        condition = self.write(tree)
        # Taken as false before the beginning, it becomes true just after it.
        return condition if _true_at_first(event) else f"t > {self.begin} and ({condition})"

    def _constant(self, tree: Any) -> float | None:
        """The value of an expression of numbers and constants; None for others."""

        def symbol(name: str) -> str:
            text = None if name in (self.free | {*self.moving, *self.assigned}) else self._value(name)
            return "t" if text is None or words([text]) else f"({text})"  # anything that is no constant

        text = Writer(symbol, self.where, self.functions)(tree)
        return None if words([text]) & {"t"} else constant(text, 1)


def _true_at_first(event: Any) -> bool:
    """Whether a trigger is taken to be true before the beginning, so that it must become false first."""
    trigger = event.getTrigger()
    return bool(trigger.getInitialValue()) if trigger.isSetInitialValue() else True


def _compares(tree: Any) -> bool:
    """Whether a trigger is made of inequalities."""
    lib = libsbml()
    if tree.getType() in (lib.AST_LOGICAL_AND, lib.AST_LOGICAL_OR, lib.AST_LOGICAL_NOT, lib.AST_LOGICAL_XOR):
        return all(_compares(tree.getChild(i)) for i in range(tree.getNumChildren()))
    order = (lib.AST_RELATIONAL_LT, lib.AST_RELATIONAL_LEQ, lib.AST_RELATIONAL_GT, lib.AST_RELATIONAL_GEQ)
    return tree.getType() in order


def _listed(items: Any) -> list[Any]:
    return [items.get(i) for i in range(items.size())] if items is not None else []


def _references(reaction: Any) -> tuple[list[Any], list[str]]:
    """The species of a reaction and their signs."""
    reactants, products = _listed(reaction.getListOfReactants()), _listed(reaction.getListOfProducts())
    return [*reactants, *products], ["-"] * len(reactants) + ["+"] * len(products)
