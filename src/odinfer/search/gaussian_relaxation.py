"""The Gaussian relaxation of a problem: all states as observed columns, so that ODIN can provide a start point.

Initial values that are parameters, noise that is one, and other names for columns, as other programs' files have them,
keep nobody from smoothing the states. The problem without all this gives the first start of the whole one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data
from odinfer.errors import InputError
from odinfer.likelihood.variable_projection import moving
from odinfer.problem.problem import Problem
from odinfer.search.startpoints import starts

Array = NDArray[np.float64]


def gaussian_relaxation(problem: Problem) -> Problem | None:
    """The same equations with nothing but Gaussian noise about every state; None where a state is no column."""
    m, p = problem.model, problem
    if m.text is None or callable(p.prior) or p.split.any or m.declarations.events:
        return None
    if any(e.limit is not None or e.doses for e in p.data.experiments):
        return None
    place = columns_of_states(p)
    if place is None:
        return None
    columns = [p.columns[i] for i in place]
    bare = replace(m, statements=replace(m.declarations, columns=(), initial={}, definitions={}),
                   bounds={}, fixed={}, start={}, scale={}, prior={})  # fmt: skip
    needed = moving(bare) | set(m.states)
    fixed = dict.fromkeys((name for name in m.parameters if name not in needed), 1.0)
    fixed |= {name: value for name, value in p.fixed.items() if name in needed}
    options: dict[str, Any] = {
        option: {name: value for name, value in getattr(p, option).items() if name in needed}
        for option in ("bounds", "prior", "start", "scale")
    }
    # Under the names of the states, and without what is known of their noise.
    experiments = [replace(e, sd=None) for e in p.data.select(columns).experiments]
    try:
        return Problem(bare, Data.from_experiments(m.states, experiments), fixed=fixed, positive=p.positive, **options)
    except InputError:  # a state is seen too rarely
        return None


def columns_of_states(problem: Problem) -> list[int] | None:
    """The places, among the columns, of those that are states with Gaussian noise; None where a state has none."""
    place = {c.arguments[0]: i for i, c in enumerate(problem.observed) if c.words == "normal"}
    found = [place.get(problem.model.instruction(name)) for name in problem.model.states]
    return None if None in found else [i for i in found if i is not None]


def lift_to_problem(
    problem: Problem, plain: Problem, own_phi: Array, first: Sequence[Array], seed: int
) -> tuple[list[Array], Array]:
    """Initial values (K,) of every experiment and φ (F,) of a problem, from those of the plain one within it.

    What this does not have is at its natural size.
    """
    m = problem.model
    _, phi = next(starts(problem, 1, np.random.default_rng([seed, 3])))
    theta, known = problem.theta(phi), dict(zip(plain.parameters, plain.theta(own_phi), strict=True))
    known = {name: known[name] for name in plain.free}
    for state, i in m.declarations.initial.items():
        op, args = m.code[i]
        if op == "name" and args[0] not in plain.free:
            known[str(args[0])] = first[0][m.states.index(state)]
    for j, name in zip(problem.free_index, problem.free, strict=True):
        theta[j] = known.get(name, theta[j])
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = problem.phi(theta)
    phi = np.clip(np.where(np.isfinite(moved), moved, phi), *problem.phi_bounds)
    x0 = []
    for e in range(len(problem.data.experiments)):
        own = first[min(e, len(first) - 1)]
        x0.append(problem.condition(e).initial(problem.theta_of(e, phi)[None], own[None, m.free_initial])[0])
    return x0, phi
