"""Parse a text of equations and declarations to a vector field.

The statements are read by `statements.py`, the expressions in them by `expression.py`; nothing is run. A statement
stands on one line, `;` separates several:

    prey' = a*prey - b*prey*predator    # an equation, also: dprey/dt = ...
    x'' = -k*x - c*x'                   # of second order: states x and x_dot, its slope
    uptake = k*x/(K + x)                # a definition, usable anywhere, in any order
    input u, v                          # known functions of time; `step u` if constant between their values
    fixed d = 1                         # a value that is not estimated
    start a = 1.5                       # where the search starts
    real c                              # of any sign; other parameters are positive and estimated on a log scale
    log a, b                            # estimated on a log scale, whatever its bounds
    ka > CL/V                           # an inequality between expressions of parameters
    0 < b < 100                         # bounds of a parameter or a state; > and >= mean the same
    a ~ normal(2, 0.5)                  # a prior; or lognormal(median, sd of the log), uniform(low, high)
    cases ~ poisson(rho*uptake)         # what is no parameter: a column of the data and its distribution
    x(0) = N - y(0)                     # an initial value, at time 0; x(t0): at the first time
    local k                             # one value per experiment; `shared x(0)` is the opposite
    at 0, 12: gut = gut + dose          # an event, after what is observed then; several changes: by commas
    before 24: gut = 0                  # an event that an observation at 24 sees
    when V > 1: V = 0                   # an event that happens each time the condition becomes true
    when V > 1 {delay 2}: V = 0         # with options: see `TriggerOptions`
    k ~ lognormal(k_pop, omega) by subject  # a random effect; see random_effects.py
    correlated k, V                     # random effects that are correlated; `correlated all`
    y' = -k*x + ?(x); ?(x) >= 0         # an unknown function; see unknown_functions.py
"""

import ast
import warnings
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from odinfer.errors import InputError, InputWarning, nearest
from odinfer.model.declarations import bounds
from odinfer.model.distributions import (
    Arguments,
    Column,
    arguments_of,
    check_predictions,
    column,
    left_out,
    prior,
    scattering,
    split,
)
from odinfer.model.events import Event, InputBreak, Trigger, breaks, event, input_breaks, into_states, trigger
from odinfer.model.expression import RESERVED, SHORT, Source, checked_name, names_met, state_of
from odinfer.model.initial_values import beginnings, check_mentions, initial_values
from odinfer.model.jax_program import values
from odinfer.model.program import Program, depending
from odinfer.model.random_effects import RandomEffects, names_in_effects, random_effects
from odinfer.model.statements import EXTENT, Distribution, Inequality, Statements, read_statements, sources
from odinfer.model.unknown_functions import UnknownFunction, expand

ABOUT_PARAMETERS = ("fixed", "start", "scale", "prior")
OF_THE_RANGE = ("lower bound", "fixed")  # whoever says one of them knows the sign
Code = tuple[tuple[str, tuple[Any, ...]], ...]


class InequalityCode(NamedTuple):
    """An inequality as written, and the instructions of its smaller and larger side."""

    text: str
    smaller: int
    larger: int


@dataclass(frozen=True)
class Equations:
    """A system of ODEs read from text, with what the text declares about its parameters, its beginning and its data.

    Numbers of instructions are places in `code`.
    """

    states: tuple[str, ...]  # in the order of their equations
    parameters: tuple[str, ...]  # as first met: in equations, initial values, events, columns, other definitions
    inputs: tuple[str, ...]  # those declared in the text, then the others given to `parse`
    bounds: dict[str, tuple[float, float]]  # with what log scales, lognormal and uniform priors imply
    fixed: dict[str, float]
    start: dict[str, float]
    scale: dict[str, str]  # "log" or "linear", where declared
    prior: dict[str, tuple[str, float, float]]  # such as ("normal", 2.0, 0.5)
    text: str
    code: Code = field(repr=False, compare=False)
    outputs: tuple[int, ...] = field(repr=False, compare=False)  # the instructions that give the derivatives
    columns: tuple[Column, ...] = ()  # of the data, where their distributions are given
    definitions: dict[str, int] = field(default_factory=dict)  # name → instruction
    initial: dict[str, int] = field(default_factory=dict)  # state → instruction of its initial value
    begins: str = "first"  # where initial values hold: "zero", "t0", a number; "first" where nothing is said of them
    local: tuple[str, ...] = ()  # the parameters with one value per experiment
    events: tuple[Event, ...] = ()  # at constant times
    triggers: tuple[Trigger, ...] = ()  # events that happen when a condition becomes true
    steps: tuple[str, ...] = ()  # the inputs that are constant between their values
    breaks: tuple[float, ...] = ()  # where expressions of t jump or have a kink
    effects: RandomEffects = field(default_factory=RandomEffects)  # which parameters vary between experiments, and how
    input_breaks: tuple[InputBreak, ...] = ()  # the same where t is compared with inputs
    unknown: tuple[UnknownFunction, ...] = ()  # functions that are estimated
    inequalities: tuple[InequalityCode, ...] = ()  # between expressions of parameters

    def field(self, t: Any, x: Any, theta: Any, u: Any) -> list[Any]:
        """The K time derivatives at time t, by JAX; x is (K,), theta (P,) with fixed values, u (len(inputs),)."""
        return self.at(self.outputs, t, x, theta, u)

    def at(self, instructions: Sequence[int], t: Any, x: Any, theta: Any, u: Any) -> list[Any]:
        """The values of any instructions, as `field` gives those of the equations."""
        from odinfer._jax import jnp  # here, so that reading equations does not need JAX

        known = {"t": jnp.asarray(t)}
        for names, given in ((self.states, x), (self.parameters, theta), (self.inputs, u)):
            known |= zip(names, jnp.asarray(given), strict=True)
        return values(self.code, tuple(instructions), known)


def _example(definitions: Collection[str]) -> str:
    """How an equation is written, for a text that has none: dX = ... is how some programs write X'."""
    name = next((name for name in definitions if len(name) > 1 and name.startswith("d")), "")
    return f"{name[1:]}' = ... for {name}" if name else "x' = -k*x"


def parse(
    text: str,
    inputs: Sequence[str] = (),
    spare: bool = False,
    of: tuple[Sequence[str], Sequence[str]] | None = None,
) -> Equations:
    """Read a system of equations; the format is shown at the top of this module.

    Args:
        text: The statements.
        inputs: Names to treat as inputs besides those that the text declares.
        spare: What is declared or defined but not used is left out instead of being an error.
        of: States and parameters of a model whose equations are elsewhere: the text says more about it.

    Raises:
        InputError: The text cannot be used; the message names the line and the piece.
    """
    expanded, unknown = expand(text)
    statements = read_statements(expanded)
    equations, definitions = statements.given["equation"], statements.given["definition"]
    states, brought = _states_and_parameters(statements, of)
    declared = [name for kind, name in statements.lines if kind in ("input", "step")]
    extra = _names_of_inputs(inputs, statements)
    given, mentioned = initial_values(statements, states, spare)
    compared = names_met([side for q in statements.inequalities for side in sources(q)], {**definitions, **given})
    mentioned += [name for name in compared if state_of(name) in states and name not in given]
    doses = into_states(statements.events, states, spare)
    written_out = {**definitions, **given}
    taken = {*RESERVED, *states, *written_out, *declared, *extra}
    in_equations = names_met(equations.values(), written_out)
    met = in_equations | names_met(given.values(), written_out) | dict.fromkeys(mentioned)
    changed = [source for dose in doses for source in sources(dose)]
    met |= names_met(changed, written_out)
    anywhere = met if spare else met | names_met(definitions.values(), written_out)
    tildes, priors = split(
        statements, {*brought, *anywhere, *names_in_effects(statements)} - taken, written_out, taken, spare
    )
    arguments = {name: _arguments(name, tilde, taken, {*declared, *extra}) for name, tilde in tildes.items()}
    expressions = [value for own in arguments.values() for value in own.values() if isinstance(value, Source)]
    met |= names_met(expressions, written_out)
    met |= dict.fromkeys(word for name, own in arguments.items() for word in left_out(name, own))
    kept = _used_definitions(definitions, {*met, *RESERVED, *states}) if spare else definitions
    met |= names_met(kept.values(), written_out)
    parameters = dict.fromkeys([*brought, *(name for name in met if name not in taken)])
    check_mentions(met, states, brought, statements)
    if "e" in parameters and not any("e" in names for names in statements.given.values()):
        _warn_of_e([*equations.values(), *given.values(), *changed, *expressions, *kept.values()])
    program = Program(written_out)
    for name in definitions:
        if name in in_equations:
            program.definition(name)
    outputs = tuple(program.whole(source) for source in equations.values())
    initial = beginnings(program, states, given, parameters)
    events = tuple(event(dose, program) for dose in doses if dose.when is None)
    moving = ("t", *states, *declared, *extra)
    triggers = tuple(trigger(dose, program, moving) for dose in doses if dose.when is not None)
    columns = tuple(column(name, tilde, arguments[name], program) for name, tilde in tildes.items())
    check_predictions(columns, statements, program, states, parameters)
    inequalities = tuple(
        _inequality(q, program, {*parameters, *definitions, *given}, moving) for q in statements.inequalities
    )
    found = {name: program.definition(name) for name in kept}
    _check_readable(written_out, [name for name in definitions if name not in kept])
    effects = random_effects(statements, parameters, taken)
    declarable = dict.fromkeys([*parameters, *effects.names])
    for name, tilde in priors.items():
        statements.add("prior", name, prior(name, tilde), tilde.line)
    _put_noise_on_log_scale(statements, arguments, {name: tilde.line for name, tilde in tildes.items()}, parameters)
    limits = bounds(statements, states, declarable, met, spare)
    inputs = tuple(dict.fromkeys(name for name in (*declared, *extra) if name in met or not spare))
    extent = {name: "local" for name in parameters if state_of(name) is not None} | statements.given[EXTENT]
    about = {kind: {n: v for n, v in statements.given[kind].items() if n in declarable} for kind in ABOUT_PARAMETERS}
    return Equations(
        *(states, tuple(parameters), inputs, limits, about["fixed"], about["start"], about["scale"], about["prior"]),
        *(text, tuple(program.code), outputs),
        columns=columns, definitions=found, initial=initial, begins=statements.begins if initial else "first",
        local=tuple(name for name in parameters if extent.get(name) == "local"), events=events, triggers=triggers,
        steps=tuple(name for name in inputs if name in statements.given["step"]), breaks=breaks(program.code),
        effects=effects, input_breaks=input_breaks(program.code, inputs), unknown=unknown, inequalities=inequalities,
    )  # fmt: skip


def _inequality(
    inequality: Inequality, program: Program, known: Collection[str], moving: Collection[str]
) -> InequalityCode:
    """The instructions of an inequality, which is about parameters alone."""
    for source in sources(inequality):
        for name in source.names():
            if name not in known and name not in RESERVED and name not in moving:
                close = nearest(name, sorted(known)) or "; compare parameters with each other or with numbers"
                raise InputError(
                    f"line {inequality.line}: '{name}' in {SHORT.repr(inequality.text)} is no parameter{close}"
                )
    code = InequalityCode(inequality.text, *(program.whole(source) for source in sources(inequality)))
    moves = depending(program.code, moving)
    if moves[code.smaller] or moves[code.larger]:
        problem = "compares what changes in time; compare parameters with each other or with numbers"
        raise InputError(f"line {inequality.line}: {SHORT.repr(inequality.text)} {problem}")
    return code


def _states_and_parameters(
    statements: Statements, of: tuple[Sequence[str], Sequence[str]] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The states, and the parameters of a model whose equations are elsewhere.

    Raises:
        InputError: there are no equations, there are some in both places, or a name is declared twice.
    """
    equations = statements.given["equation"]
    if of is None:
        if not equations:
            example = _example(statements.given["definition"])
            raise InputError(f"line 1: there is no equation; write at least one, such as {example}")
        return tuple(equations), ()
    for name, source in equations.items():
        raise InputError(f"line {source.line}: '{name}' has an equation, but equations are given elsewhere; remove it")
    states, brought = tuple(of[0]), tuple(of[1])
    for (kind, name), line in statements.lines.items():
        if kind in ("definition", "input", "step") and name in (*states, *brought):
            raise InputError(f"line {line}: '{name}' is a state or a parameter of the model already; rename one")
    return states, brought


def _check_readable(definitions: dict[str, Source], names: Sequence[str]) -> None:
    """Refuse definitions that cannot be read although nothing uses them."""
    program = Program(definitions)
    for name in names:
        program.definition(name)


def _put_noise_on_log_scale(
    statements: Statements,
    arguments: Mapping[str, dict[str, Any]],
    lines: Mapping[str, int],
    parameters: Mapping[str, Any],
) -> None:
    """Estimate what only says how columns scatter on a log scale, unless the text says otherwise."""
    for name, own in arguments.items():
        free = [word for word in scattering(own) if not any(word in statements.given[kind] for kind in OF_THE_RANGE)]
        for word in dict.fromkeys([*left_out(name, own), *free]):
            if word in parameters and word not in statements.given["scale"]:
                statements.add("scale", word, "log", lines[name])


def _used_definitions(definitions: Mapping[str, Source], known: set[str]) -> dict[str, Source]:
    """Definitions of known names alone: those that nobody uses make no parameters."""
    users = defaultdict(list)
    unknown = []
    for name, source in definitions.items():
        for word in source.names():
            users[word].append(name)
            unknown += [name] if word not in known and word not in definitions else []
    lost = set()
    while unknown:
        if (name := unknown.pop()) not in lost:
            lost.add(name)
            unknown += users[name]
    return {name: source for name, source in definitions.items() if name not in lost}


def _names_of_inputs(inputs: Sequence[str], statements: Statements) -> list[str]:
    names = [checked_name(str(name), "inputs") for name in ([inputs] if isinstance(inputs, str) else inputs)]
    if clash := {*names} & {*statements.given["equation"], *statements.given["definition"]}:
        raise InputError(f"inputs: '{min(clash)}' has an equation or a definition in the text; rename one")
    return names


def _arguments(name: str, tilde: Distribution, taken: set[str], inputs: set[str]) -> Arguments:
    """What the family of a column is given, if there can be such a column."""
    if name == "time" or name in inputs:
        raise InputError(f"line {tilde.line}: '{name}' is known, as an input or the time; give the column another name")
    own = {word for _, source in tilde.arguments for word in source.names()}
    if name in own and name not in taken:
        problem = f"predicts '{name}' by itself, which is no state, definition or input"
        close = nearest(name, sorted(taken - RESERVED))
        raise InputError(f"line {tilde.line}: {SHORT.repr(tilde.text)} {problem}{close}")
    return arguments_of(name, tilde)


def _warn_of_e(sources: Sequence[Source]) -> None:
    """Say that e is a parameter, if it is raised to a power as if it were the base of the exponential."""
    for source in sources:
        for node in ast.walk(source.tree):
            match node:
                case ast.BinOp(left=ast.Name(id="e"), op=ast.Pow()):
                    message = f"line {source.line}: 'e' is taken as a parameter; for the exponential write exp(...)"
                    return warnings.warn(message, InputWarning, stacklevel=3)
