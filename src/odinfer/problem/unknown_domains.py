"""Ranges of the arguments of unknown functions, and numbers of basis functions, from the data or the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from odinfer.data.data import Data
from odinfer.errors import InputError
from odinfer.model.model import Model

if TYPE_CHECKING:
    from odinfer.problem.problem import Problem

_FEWEST, _MOST = 12, 20  # basis functions of one argument: half as many as observations, since more interpolate them
_MARGIN = 0.05  # of the range of a column: states go a little beyond what was observed of them


def domain_statements(model: Model, data: Data) -> str:
    """Statements such as "?(x) from 0 to 12" and "?(x) basis 20" for the functions of which these are not given.

    What is neither t, a column nor an input is taken to vary between 0 and the largest observed value; fits widen that.

    Raises:
        InputError: a function is one of a parameter.
    """
    lines = []
    for own in model.declarations.unknown:
        known = ("t", *model.states, *model.inputs, *model.declarations.definitions)
        for name in own.arguments:
            if name not in known:
                choices = ", ".join(known[:8])
                problem = f"is a function of '{name}', which is no state, input or definition"
                raise InputError(f"line {own.line}: {own.label} {problem}; choose from {choices}")
        if not own.domain and own.period is None:
            ends = [_range(model, data, name) for name in own.arguments]
            low, high = (", ".join(repr(float(pair[side])) for pair in ends) for side in (0, 1))
            lines.append(f"{own.label} from {low} to {high}")
        if own.basis is None and own.period is None and len(own.arguments) == 1 and not own.monotone:
            observed = sum(int(np.isfinite(e.y).sum()) for e in data.experiments)
            lines.append(f"{own.label} basis {max(_FEWEST, min(observed // 2, _MOST))}")
    return "\n".join(lines)


def _range(model: Model, data: Data, name: str) -> tuple[float, float]:
    if name == "t":
        begins = model.declarations.begins
        given = [] if begins in ("first", "t0") else [0.0 if begins == "zero" else float(begins)]
        doses = [dose.time for e in data.experiments for dose in e.doses]
        return min([*given, *doses, *(e.t[0] for e in data.experiments)]), max(e.t[-1] for e in data.experiments)
    if name in model.inputs:
        values = np.concatenate([e.u[name][1] for e in data.experiments if name in e.u] or [np.zeros(1)])
    elif name in data.states:
        values = np.concatenate([e.y[:, data.states.index(name)] for e in data.experiments])
    else:
        values = np.append(np.abs(np.concatenate([e.y.ravel() for e in data.experiments])), 0.0)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = _MARGIN * ((high - low) or abs(high) or 1.0)
    return (low, high + margin) if low == 0.0 else (low - margin, high + margin)


def with_statements(problem: Problem, lines: Sequence[str]) -> Problem:
    """The problem with statements about unknown functions in place of those of the same kind at the end of its text."""
    if not lines:
        return problem
    kinds = [re.escape(line.rpartition("~" if "~" in line else "from")[0].strip()) for line in lines]
    words = ["~ gp" if "~" in line else "from" for line in lines]
    text = problem.model.text or ""
    for label, word in zip(kinds, words, strict=True):
        text = re.sub(rf"^{label} {word}[^\n]*\n?", "", text, flags=re.MULTILINE)
    return with_text(problem, "\n".join([text.rstrip("\n"), *lines]))


def with_text(problem: Problem, text: str) -> Problem:
    """The problem with another text of its model, in which unknown functions have other ranges and scales."""
    model = Model.from_text(text, problem.model.name, problem.model.inputs)
    names = {p for own in model.declarations.unknown for p in own.parameters}
    prior = problem.prior
    if not callable(prior):
        prior = {name: given for name, given in prior.items() if name.partition("[")[0] not in names}
    return replace(problem, model=model, prior=prior)
