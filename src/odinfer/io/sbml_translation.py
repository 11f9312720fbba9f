"""Translate the reactions, rules and initial values of an SBML model to equations of the model language.

Species are concentrations, as in the formulas of the model, or amounts if they have substance units only. Those in a
compartment whose size changes are amounts as states, and their concentrations are definitions. Elements without
`<math>` (allowed from level 3, version 2 on) have no effect.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from odinfer.errors import InputError
from odinfer.io.formula import Writer, named, number
from odinfer.io.sbml_algebraic import solve_algebraic_rules
from odinfer.io.sbml_document import listed
from odinfer.io.sbml_events import events_of
from odinfer.io.sbml_system import System, names_in, needed_definitions

_MOST_INLINE = 200  # characters of an initial value that are written out wherever it is used


def translate(
    document: Any,
    where: str,
    free: Collection[str] | None,
    given: Mapping[str, str] | None = None,
    moved: Collection[str] = (),
    begin: str = "0",
    others: Collection[str] = (),
) -> System:
    """Translate the model of a document.

    Args:
        where: its name, for messages.
        free: the identifiers that stay parameters; None for all constant parameters.
        given: identifier → text of a value, or of the initial value of a state, instead of that in the file.
        moved: identifiers whose values change at some time, by what stands elsewhere.
        begin: the time of initial values.
        others: identifiers from elsewhere that need names, too.
    """
    return Translation(document.getModel(), where, free, given or {}, moved, begin, others).system()


class Translation:
    """An SBML model: what its identifiers are, and how they are written."""

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
        self.species = {s.getId(): s for s in listed(model.getListOfSpecies())}
        self.compartments = {c.getId(): c for c in listed(model.getListOfCompartments())}
        self.constants = {p.getId(): p for p in listed(model.getListOfParameters())}
        self.reactions = {r.getId(): r for r in listed(model.getListOfReactions())}
        rules = [rule for rule in listed(model.getListOfRules()) if rule.getMath() is not None]
        self.rates = {rule.getVariable(): rule.getMath() for rule in rules if rule.isRate()}
        self.assigned = {rule.getVariable(): rule.getMath() for rule in rules if rule.isAssignment()}
        starts = listed(model.getListOfInitialAssignments())
        self.starts = {a.getSymbol(): a.getMath() for a in starts if a.getMath() is not None}
        self.functions = {f.getId(): f.getMath() for f in listed(model.getListOfFunctionDefinitions())}
        self.terms: dict[str, list[tuple[str, Any, str]]] = {}  # species → reactions, references and signs
        self.references: dict[str, Any] = {}
        for name, reaction in self.reactions.items():
            for ref, sign in _references(reaction):
                if ref.getSpecies() not in self.species:
                    told = f"'{ref.getSpecies()[:60]}' in the reaction '{name[:60]}'"
                    raise InputError(f"{where}: {told} is no species of the model")
                self.terms.setdefault(ref.getSpecies(), []).append((name, ref, sign))
                if ref.isSetId():
                    self.references[ref.getId()] = ref
        everything = [*self.species, *self.compartments, *self.constants, *self.reactions, *self.references, *others]
        self.names = named(dict.fromkeys(everything))
        changes = [a for e in listed(model.getListOfEvents()) for a in listed(e.getListOfEventAssignments())]
        self.jumping = {a.getVariable() for a in changes if a.getMath() is not None} | {*moved}
        algebraic = [rule.getMath() for rule in rules if rule.isAlgebraic()]
        if algebraic:
            self.assigned |= solve_algebraic_rules(
                algebraic, self._undetermined(free), self.assigned, self.functions, where
            )
        self.free = {*self.constants} if free is None else {*free}
        if free is None:
            self.free -= {*self.rates, *self.assigned, *self.starts, *given}
        self.varying = {c for c in self.compartments if c in self.rates or c in self.assigned or c in self.jumping}
        self.local: dict[str, str] = {}
        self.extra: dict[str, str] = {}  # definitions that have no identifier in the file
        self.started: dict[str, str] = {}  # what identifiers are at the beginning
        self.write = Writer(self._symbol, where, self.functions, rate_of=self._rate_of)
        self.at_start = Writer(self._at_start, where, self.functions, begin, rate_of=self._rate_at_start)
        self.moving = self._states()
        known = {*everything}
        for name in (*self.rates, *self.assigned, *self.starts, *self.jumping):
            if name not in known:
                raise InputError(f"{where}: '{name[:60]}' has a rule, an assignment or an event but is not defined")

    def _refuse(self) -> None:
        for reaction in listed(self.model.getListOfReactions()):
            if reaction.isSetFast() and reaction.getFast():
                raise InputError(f"{self.where}: '{reaction.getId()}' is a fast reaction, which cannot be read")

    def _undetermined(self, free: Collection[str] | None) -> list[str]:
        """What algebraic rules may determine: all that varies and has neither equation nor rule.

        First come those that no event changes, those without initial values, and those that are no boundary species.
        """
        everything = {**self.species, **self.compartments, **self.constants, **self.references}
        fixed, found = {*self.given, *(free or ())}, []
        for name, own in everything.items():
            boundary = name in self.species and own.getBoundaryCondition()
            moves = (name in self.terms and not boundary) or name in self.rates or name in self.assigned
            if not (own.getConstant() or moves or name in fixed):
                found.append((name in self.jumping, self._has_value(name), boundary, name))
        return [name for *_, name in sorted(found, key=lambda own: own[:3])]

    def _has_value(self, name: str) -> bool:
        """Whether the file gives a value or an initial value."""
        if name in self.starts:
            return True
        if name in self.species:
            return bool(self.species[name].isSetInitialAmount() or self.species[name].isSetInitialConcentration())
        if name in self.compartments:
            return bool(self.compartments[name].isSetSize())
        return name in self.constants and bool(self.constants[name].isSetValue())

    def _states(self) -> dict[str, None]:
        """The identifiers of what has an equation."""
        found = [s for s, own in self.species.items() if s in self.terms and not own.getBoundaryCondition()
                 and not own.getConstant() and s not in self.assigned]  # fmt: skip
        found += [name for name in self.rates if name not in found]
        found += sorted(name for name in self.jumping if name not in found and name not in self.assigned)
        # The amount of these stays, so that their concentration changes with the compartment.
        found += [s for s, own in self.species.items() if s not in found and s not in self.assigned
                  and self.is_concentration(s) and own.getCompartment() in self.varying]  # fmt: skip
        return dict.fromkeys(found)

    def is_amount(self, name: str) -> bool:
        """Whether a species is an amount as a state and a concentration in formulas."""
        own = self.species.get(name)
        return (
            own is not None and name in self.moving and name not in self.rates and self.is_concentration(name)
            and own.getCompartment() in self.varying
        )  # fmt: skip

    def is_concentration(self, name: str) -> bool:
        """Whether a species is a concentration in formulas."""
        own = self.species[name]
        size = self.compartments.get(own.getCompartment())
        has_size = size is not None and size.getSpatialDimensionsAsDouble() > 0
        return has_size and not own.getHasOnlySubstanceUnits()

    def _is_unit(self, compartment: str) -> bool:
        """Whether the size of a compartment is 1 and stays so."""
        own = self.compartments[compartment]
        changed = compartment in self.varying or compartment in self.given or compartment in self.free
        return not changed and compartment not in self.starts and (not own.isSetSize() or own.getSize() == 1.0)

    def state_name(self, name: str) -> str:
        return f"{self.names[name]}_amount" if self.is_amount(name) else self.names[name]

    def number(self, value: float, name: str) -> str:
        """A finite value of the file."""
        if not math.isfinite(value):
            raise InputError(f"{self.where}: '{name}' has the value {value}, which cannot be read; give a finite one")
        return number(value)

    def _symbol(self, name: str) -> str:
        if name in self.local:
            return self.local[name]
        if name not in self.names:
            raise InputError(f"{self.where}: '{name[:60]}' is used but not defined")
        return self.names[name]

    def _at_start(self, name: str) -> str:
        """What an identifier is at the beginning."""
        if name in self.local:
            return self.local[name]
        if name in self.started:
            if not self.started[name]:
                raise InputError(f"{self.where}: the initial value of '{name}' needs itself; break the circle")
            return self.started[name]
        self.started[name] = ""  # in work
        text = self._written_at_start(name)
        if len(text) > _MOST_INLINE:
            own = self.fresh(f"{self._symbol(name)}_start")
            self.extra[own], text = text, own
        self.started[name] = text
        return text

    def _written_at_start(self, name: str) -> str:
        if name in self.moving:
            own = f"{self.state_name(name)}({self.begin})"
            size = self._at_start(self.species[name].getCompartment()) if self.is_amount(name) else ""
            return f"({own}/{size})" if size else own
        if name in self.assigned:
            return f"({self._outside_laws(self.at_start, self.assigned[name])})"
        if name in self.reactions:
            return f"({self._law(self.reactions[name], self.at_start)})"
        return self._symbol(name)

    def _outside_laws(self, write: Writer, tree: Any) -> str:
        """An expression that does not see the local parameters of a kinetic law."""
        outer, self.local = self.local, {}
        try:
            return write(tree)
        finally:
            self.local = outer

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        while name in self.names.values() or name in self.extra:
            name += "_"
        return name

    def _rate_of(self, name: str) -> str:
        """The time derivative of an identifier, as a definition of its own."""
        if name in self.local or name not in self.moving:
            if name in self.assigned:
                raise InputError(f"{self.where}: the rate of '{name}', which has an assignment rule, cannot be read")
            return "0"
        own = f"{self.names[name]}_rate"
        if own not in self.extra:
            self.extra[own] = "0"  # in work
            outer, self.local = self.local, {}
            self.extra[own] = self._slope(name, self.write)
            self.local = outer
        return own

    def _rate_at_start(self, name: str) -> str:
        if name in self.local or name not in self.moving:
            return "0"
        outer, self.local = self.local, {}
        text = self._slope(name, self.at_start)
        self.local = outer
        return f"({text})"

    def _slope(self, name: str, write: Writer) -> str:
        """The time derivative of a quantity that has a state, in the unit of its identifier."""
        text = self._equation(name, write)
        if not self.is_amount(name):
            return text
        size = self.species[name].getCompartment()
        change = write.rate_of(size) if write.rate_of is not None else "0"
        return f"({text} - {write.symbol(name)}*{change})/{write.symbol(size)}"

    def _law(self, reaction: Any, write: Writer) -> str:
        """The rate of a reaction; parameters of its own are numbers."""
        law = reaction.getKineticLaw()
        if law is None or law.getMath() is None:
            if self.model.getLevel() < 3:
                raise InputError(f"{self.where}: the reaction '{reaction.getId()}' has no kinetic law")
            return "0"
        own = [*listed(law.getListOfParameters()), *listed(law.getListOfLocalParameters())]
        outer, self.local = self.local, {p.getId(): f"({self.number(p.getValue(), p.getId())})" for p in own}
        self.local = {name: text if text[1] == "-" else text[1:-1] for name, text in self.local.items()}
        try:
            return write(law.getMath())
        finally:
            self.local = outer

    def value(self, name: str) -> str | None:
        """The text of a constant, or of the initial value of what moves, in the unit of its identifier."""
        if name in self.given:
            return self.given[name]
        if name in self.starts:
            return self.at_start(self.starts[name])
        if name in self.species:
            return self._of_species(self.species[name])
        if name in self.compartments:
            own = self.compartments[name]
            return self.number(own.getSize(), name) if own.isSetSize() else "1"
        if name in self.constants:
            own = self.constants[name]
            missing = not own.isSetValue() or math.isnan(own.getValue())
            return None if missing else self.number(own.getValue(), name)
        stoichiometry = self.references[name].getStoichiometry()
        return None if math.isnan(stoichiometry) else self.number(stoichiometry, name)

    def _of_species(self, own: Any) -> str | None:
        compartment, name = own.getCompartment(), own.getId()
        if compartment not in self.compartments:
            raise InputError(f"{self.where}: the species '{name}' is in no compartment")
        size = "" if self._is_unit(compartment) else self._at_start(compartment)
        if own.isSetInitialConcentration():
            value = self.number(own.getInitialConcentration(), name)
            return f"{value}*{size}" if size and not self.is_concentration(name) else value
        if own.isSetInitialAmount():
            value = self.number(own.getInitialAmount(), name)
            return f"{value}/{size}" if size and self.is_concentration(name) else value
        return None

    def system(self) -> System:
        """All of it."""
        states = {self.state_name(name): self._equation(name) for name in self.moving}
        definitions = {self.names[r]: self._law(own, self.write) for r, own in self.reactions.items()}
        definitions |= {self.names[name]: self.write(tree) for name, tree in self.assigned.items()}
        initial = {}
        for name in self.moving:
            value = self.value(name)
            if value is None:
                if name not in self.species:
                    raise InputError(f"{self.where}: '{name}' has no initial value; give one")
                raise InputError(f"{self.where}: the species '{name}' has no initial value; give one")
            if self.is_amount(name):
                size = self.species[name].getCompartment()
                definitions[self.names[name]] = f"{self.state_name(name)}/{self.names[size]}"
                value = f"({value})*{self._at_start(size)}"
            initial[self.state_name(name)] = value
        parameters: dict[str, float | None] = {}
        for name in (*self.species, *self.compartments, *self.constants, *self.references):
            if name in self.moving or name in self.assigned:
                continue
            if name in self.free:
                own = self.constants.get(name)
                known = own is not None and own.isSetValue() and not math.isnan(own.getValue())
                if own is not None and known:
                    self.number(own.getValue(), name)
                parameters[self.names[name]] = own.getValue() if own is not None and known else None
            elif (value := self.value(name)) is not None and value != self.names[name]:
                definitions[self.names[name]] = value
        quantities = {}
        for name in self.moving:
            size = self.names[self.species[name].getCompartment()] if self.is_amount(name) else ""
            quantities[name] = (self.state_name(name), f"*{size}" if size else "")
        before, after, triggers = events_of(self)
        definitions |= self.extra
        triggers = [own for own in triggers if _can_happen(own[0], definitions, {"t", *states})]
        return System(states, initial, definitions, parameters, self.names, quantities, before, after, triggers)

    def _equation(self, name: str, write: Writer | None = None) -> str:
        """The time derivative of a state, or with the other writer its value at the beginning."""
        write = self.write if write is None else write
        if name in self.rates:
            return write(self.rates[name])
        own = self.species.get(name)
        if own is None or own.getBoundaryCondition() or own.getConstant():
            return "0"
        total = ""
        for reaction, ref, sign in self.terms.get(name, ()):
            factor, rate = self._stoichiometry(ref, write), write.symbol(reaction)
            term = rate if factor == "1" else f"{factor}*{rate}"
            total += f" {sign} {term}" if total else (term if sign == "+" else f"-{term}")
        if not total:
            return "0"
        conversion = own.getConversionFactor() or self.model.getConversionFactor()
        if conversion:
            total = f"{write.symbol(conversion)}*({total})"
        if not self.is_concentration(name) or self.is_amount(name) or self._is_unit(own.getCompartment()):
            return total
        return f"({total})/{write.symbol(own.getCompartment())}"

    def _stoichiometry(self, ref: Any, write: Writer) -> str:
        if ref.isSetStoichiometryMath() and ref.getStoichiometryMath().getMath() is not None:
            return f"({write(ref.getStoichiometryMath().getMath())})"
        own = ref.getId()
        if ref.isSetId() and any(own in group for group in (self.starts, self.assigned, self.given, self.moving)):
            return write.symbol(own)
        value = ref.getStoichiometry()
        if math.isnan(value):
            raise InputError(f"{self.where}: a stoichiometry of '{ref.getSpecies()}' has no value")
        text = self.number(value, ref.getSpecies())
        return text if value >= 0 else f"({text})"


def _can_happen(condition: str, definitions: Mapping[str, str], moving: Collection[str]) -> bool:
    """Whether a condition can become true: something in it changes, or it counts as false before the beginning."""
    condition, _, options = condition.partition("{")
    names = names_in([condition, *needed_definitions(definitions, [condition]).values()])
    return "initially false" in options or bool(names & {*moving})


def _references(reaction: Any) -> list[tuple[Any, str]]:
    """The species of a reaction and their signs."""
    reactants, products = listed(reaction.getListOfReactants()), listed(reaction.getListOfProducts())
    return [*((ref, "-") for ref in reactants), *((ref, "+") for ref in products)]
