"""The posterior of trajectories in JAX, integrated by Runge–Kutta steps.

A problem is split into code (`TrajectoryCode`), for which compiled programs are kept, and numbers (`TrajectoryData`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.model.jax_program import values
from odinfer.noise import FAMILIES, censored
from odinfer.problem.inequalities import jax_penalty
from odinfer.problem.parameter_vector import Layout
from odinfer.problem.problem import Problem
from odinfer.sampling import density as ds

Array = NDArray[np.float64]
Instructions = tuple[int, ...]


class Column(NamedTuple):
    """One observed column: its family's name, the instructions of its arguments, and whether σ is one of v's."""

    words: str
    arguments: Instructions
    profiled: bool
    limited: bool


@dataclass(frozen=True)
class TrajectoryCode:
    """What is code.

    Attributes:
        form: the equations and the priors.
        layout: of v.
        of_experiment: per experiment, the places of its parameters among all, where some are local.
        initial: the states whose initial values are given, and the instructions that give them.
        changes: per event of the text, the states it changes and the instructions of their new values.
        columns: what is observed.
    """

    form: ds.DensityCode
    layout: Layout
    of_experiment: tuple[tuple[int, ...], ...]
    initial: tuple[tuple[int, ...], Instructions]
    changes: tuple[tuple[tuple[int, ...], Instructions], ...]
    columns: tuple[Column, ...]

    @staticmethod
    def of(problem: Problem, form: ds.DensityCode, layout: Layout) -> TrajectoryCode:
        m, experiments = problem.model, problem.data.experiments
        local = [tuple(problem.split.of(e).tolist()) for e in range(len(experiments))] if problem.split.any else ()
        given = () if m.given_initial is None else tuple(m.given_initial.states.tolist())
        return TrajectoryCode(
            form, layout, tuple(local), (given, tuple(m.declarations.initial.values())),
            tuple((tuple(m.states.index(n) for n, _ in e.changes), tuple(i for _, i in e.changes))
                  for e in m.declarations.events),
            tuple(Column(c.words, c.arguments, c.profiled,
                         any(e.limit is not None and bool(e.limit[:, k].any()) for e in experiments))
                  for k, c in enumerate(problem.observed)),
        )  # fmt: skip

    def at(self, instructions: Instructions, t: Any, x: Any, theta: Any, u: Any) -> Any:
        """Values of instructions of the model's text."""
        from odinfer._jax import jnp

        m = self.form.model
        known = {"t": t, **dict(zip(m.states, x, strict=True)), **dict(zip(m.parameters, theta, strict=True))}
        return jnp.stack(values(m.code, instructions, known | dict(zip(m.inputs, u, strict=True))))

    def theta(self, full: Any, e: int) -> Any:
        """The model's parameters (P,) in an experiment, from all."""
        return full[np.array(self.of_experiment[e])] if self.of_experiment else full

    def x0(self, v: Any, e: int, path: StepSequence, theta: Any) -> Any:
        """Initial values (K,): those of v, and those that are given."""
        from odinfer._jax import jnp

        free = self.layout.x0(v, e)
        given, instructions = self.initial
        if not given:
            return free
        x = jnp.zeros(len(self.form.model.states)).at[np.array(self.layout.initial, int)].set(free)
        return x.at[np.array(given)].set(self.at(instructions, path.t[0, 0], x, theta, path.u0))


class StepSequence(NamedTuple):
    """The numbers of one experiment.

    Attributes:
        t, u: times (n, 3) and inputs (n, 3, U) at the starts, middles and ends of n steps.
        h: their lengths (n,); those at jumps and behind the end are 0.
        rate: what is infused (n, K).
        event: which event of the text happens at a step (n,), counted from 1; 0 is none.
        amount: what is given at once there (n, K).
        u0: inputs at the start (U,).
        at: which nodes are observed (N,), with times `seen_t` (N,) and inputs `seen_u` (N, U).
        y, seen: observations (N, M), and whether they are there.
        limit: −1, 0 or 1 (N, M); sd: standard deviations by row (N, M), NaN where there is none.
    """

    t: Any
    u: Any
    h: Any
    rate: Any
    event: Any
    amount: Any
    u0: Any
    at: Any
    seen_t: Any
    seen_u: Any
    y: Any
    seen: Any
    limit: Any
    sd: Any


class TrajectoryData(NamedTuple):
    """The numbers of the posterior.

    Attributes:
        parameters: of odinfer.sampling.density, for the prior.
        paths: the experiments.
        low, high: bounds (P,) of the unknowns, noise included.
        log_known: log of the noise levels that are not in v.
    """

    parameters: ds.ParameterData
    paths: tuple[StepSequence, ...]
    low: Any
    high: Any
    log_known: Any


def step_sequence(problem: Problem, e: int, mesh: Array, parts: int) -> tuple[StepSequence, NDArray[np.int64]]:
    """Every step of a mesh (n+1,) divided into `parts`; also the node of every point of the mesh, before any jump.

    A jump is a step of its own, of length zero. More of them at the end make their number one of a few, so that data of
    the same times seldom need a new compilation.
    """
    m, condition, own = problem.model, problem.condition(e), problem.data.experiments[e]
    kinds = [([m.states.index(n) for n, _ in e.changes], m.program(tuple(i for _, i in e.changes)))
             for e in m.declarations.events]  # fmt: skip
    jumps: dict[int, list[tuple[int, Array]]] = {}
    for i, jump in condition.jumps_on(mesh):
        number = kinds.index((jump.states.tolist(), jump.program)) + 1 if jump.program is not None else 0
        jumps.setdefault(i, []).append((number, jump.amounts))
    K, nodes, count = len(m.states), list[int](), 0
    begin: list[Array] = []
    end: list[Array] = []
    event: list[list[int]] = []
    amount: list[list[Array]] = []
    for i in range(len(mesh)):
        nodes.append(count)
        if i == len(mesh) - 1:
            break
        for number, given in jumps.get(i, ()):
            begin.append(mesh[[i]])
            end.append(mesh[[i]])
            event.append([number])
            amount.append([given])
            count += 1
        grid = np.append(np.linspace(mesh[i], mesh[i + 1], parts, endpoint=False), mesh[i + 1])
        begin.append(grid[:-1])
        end.append(grid[1:])
        event.append([0] * parts)
        amount.append([np.zeros(K)] * parts)
        count += parts
    size = 16.0
    while round(size) <= count:
        size *= 1.25
    rest = round(size) - 1 - count
    a, b = (np.concatenate([*v, np.full(rest, mesh[-1])]) for v in (begin, end))
    t = np.stack([condition.inside(a, b, at) for at in (a, 0.5 * (a + b), b)], -1)
    rate = np.zeros((len(a), K))
    for infusion in condition.infusions:
        rate[:, infusion.k] += np.where((t[:, 1] >= infusion.begin) & (t[:, 1] < infusion.end), infusion.rate, 0.0)
    place = np.array(nodes)
    found = StepSequence(
        t, np.stack([condition.inputs_at(at) for at in t.T], 1), b - a, rate,
        np.concatenate([*event, np.zeros(rest)]).astype(int), np.concatenate([*amount, np.zeros((rest, K))]),
        condition.inputs_at(np.array([condition.start]))[0], place[np.searchsorted(mesh, own.moments)],
        own.t, condition.inputs_at(own.t), np.where(np.isnan(own.y), 1.0, own.y), np.isfinite(own.y),
        np.zeros(own.y.shape) if own.limit is None else own.limit.astype(float),
        np.full(own.y.shape, np.nan) if own.sd is None else own.sd,
    )  # fmt: skip
    return found, place


def runge_kutta(told: TrajectoryCode, path: StepSequence, x0: Any, theta: Any) -> Any:
    """States at all nodes (n+1, K), before any jump there, by the classical Runge–Kutta method."""
    from odinfer._jax import jax, jnp

    f = told.form.model.f

    def step(x: Any, now: Any) -> Any:
        t, u, h, rate, event, amount = now
        for number, (states, instructions) in enumerate(told.changes, 1):
            new = x.at[np.array(states)].set(told.at(instructions, t[0], x, theta, u[0]))
            x = jnp.where(event == number, new, x)
        x = x + amount
        k1 = f(t[0], x, theta, u[0]) + rate
        k2 = f(t[1], x + 0.5 * h * k1, theta, u[1]) + rate
        k3 = f(t[1], x + 0.5 * h * k2, theta, u[1]) + rate
        k4 = f(t[2], x + h * k3, theta, u[2]) + rate
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return x, x

    _, states = jax.lax.scan(step, x0, (path.t, path.u, path.h, path.rate, path.event, path.amount))
    return jnp.concatenate([x0[None], states])


def log_likelihood(told: TrajectoryCode, path: StepSequence, x: Any, theta: Any, sigma: Any) -> Any:
    """log p of an experiment's observations at states x (N, K), with σ (M,) of columns that have one for all."""
    from odinfer._jax import jax, jnp

    every = tuple(i for c in told.columns for i in c.arguments)
    arguments = jax.vmap(lambda t, own, u: told.at(every, t, own, theta, u))(path.seen_t, x, path.seen_u)
    total, first = 0.0, 0
    for m, column in enumerate(told.columns):
        own = [arguments[:, first + i] for i in range(len(column.arguments))]
        first += len(own)
        if column.profiled:
            own.append(jnp.where(jnp.isnan(path.sd[:, m]), sigma[m], path.sd[:, m]))
        y, family = path.y[:, m], FAMILIES[column.words]
        if column.limited:
            each = censored.log_density(family, y, own, path.limit[:, m], jnp)
        else:
            each = family.log_density(y, own, jnp)
        total = total + jnp.where(path.seen[:, m], each, 0.0).sum()
    return total


@functools.lru_cache(maxsize=16)
def compiled_functions(told: TrajectoryCode) -> tuple[Callable[..., Any], ...]:
    """The log density of r, v without its bounds; and compiled: states at all nodes of draws v (S, P), a list."""
    from odinfer._jax import jax, jnp

    form, u = told.form, told.layout

    def log_density(facts: TrajectoryData, r: Any) -> Any:
        v, jacobian = ds.constrain(r, facts.low, facts.high)
        phi, sigma = u.phi(v), jnp.exp(u.log_sigma(v, facts.log_known, jnp))
        full = ds.theta(form, facts.parameters, phi)
        value = jacobian + ds.log_prior(form, facts.parameters, phi)
        for e, path in enumerate(facts.paths):
            theta = told.theta(full, e)
            value = value - jax_penalty(form.model, theta)
            x = runge_kutta(told, path, told.x0(v, e, path, theta), theta)[path.at]
            value = value + log_likelihood(told, path, x, theta, sigma)
        return value

    def states(facts: TrajectoryData, v: Any) -> Any:
        full = ds.theta(form, facts.parameters, u.phi(v))
        thetas = [told.theta(full, e) for e in range(len(facts.paths))]
        return [runge_kutta(told, p, told.x0(v, e, p, thetas[e]), thetas[e]) for e, p in enumerate(facts.paths)]

    return ds.forward_mode_gradient(log_density), jax.jit(jax.vmap(states, (None, 0)))
