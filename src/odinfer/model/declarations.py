"""Check the declarations of a text: bounds, scales, values, priors, local parameters."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from odinfer.errors import InputError, nearest
from odinfer.model.expression import initial_name
from odinfer.model.statements import EXTENT, Statements

# Priors of positive parameters.
_POSITIVE = ("lognormal", "near", "loglaplace", "nearlaplace", "gamma", "halfnormal", "beta")
_SILENT = (
    "equation",
    "definition",
    "initial",
    "distribution",
    "effect",
    "occasion effect",
    "correlated",
)  # checked where they are read


def bounds(
    statements: Statements, states: Collection[str], parameters: Collection[str], used: Collection[str], spare: bool
) -> dict[str, tuple[float, float]]:
    """The ranges of states and parameters, once all that is declared is found to be about something.

    Args:
        statements: the statements, priors among them.
        states, parameters: the names.
        used: all names that are met; inputs must be among them.
        spare: what is about nothing is left out, instead of refused.
    """
    found = {}
    free = [*states, *parameters]
    fitting: dict[str, tuple[Collection[str], str]] = {"input": (used, "used"), "step": (used, "used")}
    fitting |= dict.fromkeys(("lower bound", "upper bound"), (free, "a name"))
    members = {role: frozenset(names) for names, role in [*fitting.values(), (parameters, "a parameter")]}
    for (kind, name), line in statements.lines.items():
        if kind in _SILENT:
            continue
        names, role = fitting.get(kind, (parameters, "a parameter"))
        if name not in members[role]:
            if not spare:
                raise InputError(f"line {line}: {_about_nothing(statements, kind, name, role, names, states)}")
            continue
        about = {
            k: values[name] for k, values in statements.given.items() if k not in ("input", "step") and name in values
        }
        last = max((statements.lines.get((k, name), 0) for k in about), default=line)
        if (pair := _range(about, f"line {last}: '{name}'")) != (-math.inf, math.inf):
            found[name] = pair
    return found


def _about_nothing(
    statements: Statements, kind: str, name: str, role: str, names: Collection[str], states: Collection[str]
) -> str:
    kind = statements.given[kind][name] if kind == EXTENT else kind
    if (line := statements.lines.get(("initial", name))) is not None:
        return f"{kind} of '{name}', whose value is given on line {line}; keep one of the two"
    if not name.isidentifier():
        return f"{kind} of '{name}', which is not estimated as such; give it a name where it stands, as in normal(x, s)"
    if name in states:
        return f"{kind} of '{name}', which is not a parameter but a state; for its beginning write {initial_name(name)}"
    return f"{kind} of '{name}', which is not {role} in the equations{nearest(name, names) or '; remove it'}"


def _range(limits: Mapping[str, Any], start: str) -> tuple[float, float]:
    """The range of a state or parameter, checked against all that is said about it."""
    low, high = limits.get("lower bound", -math.inf), limits.get("upper bound", math.inf)
    family, *numbers = limits.get("prior", ("none",))
    if family in ("uniform", "loguniform"):
        low, high = max(low, numbers[0]), min(high, numbers[1])
    if family == "beta":
        high = min(high, 1.0)
    if family == "rayleigh":
        low = max(low, numbers[0])
    positive = limits.get("scale") == "log" or family in _POSITIVE
    if low >= high or (positive and (-math.inf < low < 0 or high <= 0)):
        wanted = "positive upper and no negative lower" if positive else "lower bound below the upper"
        raise InputError(f"{start} cannot lie between {low:g} and {high:g}; give it a {wanted} bound")
    low = max(low, 0.0) if positive else low
    value = limits.get("fixed", limits.get("start"))
    if value is not None and (not low <= value <= high or (positive and value == 0)):
        raise InputError(f"{start} has the value {value:g}, outside {low:g} to {high:g}; correct one of them")
    return low, high
