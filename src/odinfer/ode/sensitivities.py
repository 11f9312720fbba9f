"""Forward sensitivities of trajectories along known steps.

They solve the linear equations S' = ∂f/∂x S + ∂f/∂θ, here by Radau IIA of order 3 on the steps of the trajectory
(kernels/sensitivities.c). Within a step they are read off the polynomial through its start and both stages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.integrate_batch import BatchTrajectories, Jumped, Read, Steps, read
from odinfer.ode.kernels.library import call
from odinfer.ode.right_hand_side import Field

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def sensitivities(f: Field, trajectories: BatchTrajectories, e: Index, theta: Array, S0: Array, wanted: Index) -> Array:
    """Derivatives (b, n, K, W) at the stops, before what jumps there, of the trajectories `wanted` (b,) of a march.

    Args:
        e, theta: experiments (B,) and parameters (B, P) of all trajectories of the march.
        S0: of the initial values (b, K, W); the last columns belong to the wanted parameters of the field.
    """
    place = np.full(len(e), -1)
    place[wanted] = np.arange(len(wanted))
    S, of_theta = S0.copy(), slice(S0.shape[-1] - len(f.wanted), None)
    found = np.full((len(wanted), *trajectories.x.shape[1:], S.shape[-1]), np.nan)
    found[:, 0] = S0
    numbers = f.numbers(e, theta)
    for event in trajectories.events:
        if isinstance(event, Steps):
            at, work = read(f.table, e, event), _Work.of(f, S.shape[1], S.shape[2])
            call("follow", f.packed_by_all, e, numbers, place, event, at, S, found, work)
            continue
        own = place[event.who] >= 0
        who = place[event.who[own]]
        S[who] = event.by_x[own] @ S[who]
        S[who, :, of_theta] += event.by_theta[own][..., f.wanted]
        seen = event.seen[own] >= 0
        found[who[seen], event.seen[own][seen]] = S[who[seen]]
    return found


class _Work(NamedTuple):
    """Room to work in: registers, states and f (K,), at both stages ∂f/∂x (2, K, K) and the derivatives by Q parameters
    (2, K, Q), which are the last columns of S; the equations of both stages, their order, and their right sides."""

    r: Array
    x: Array
    f: Array
    fx: Array
    ft: Array
    matrix: Array
    order: Index
    Z: Array

    @staticmethod
    def of(f: Field, K: int, W: int) -> _Work:
        x, value = np.empty((2, K))
        fx, ft, matrix = np.empty((2, K, K)), np.empty((2, K, len(f.wanted))), np.empty((2 * K, 2 * K))
        return _Work(
            f.by_all.registers.copy(), x, value, fx, ft, matrix, np.empty(2 * K, np.int64), np.empty((2 * K, W))
        )


def stage_sensitivities(
    f: Field, trajectories: BatchTrajectories, theta: Array, S0: Array, shares: Array
) -> tuple[Array, Array]:
    """Derivatives along every step of a single trajectory.

    Args:
        theta: its parameters (P,).
        S0: of the initial values (K, W); the last columns belong to the wanted parameters of the field.
        shares: of a step (s,), at which they are wanted.

    Returns:
        At the beginning of the n steps (n, K, W), after any jump, and at shares of them (n, s, K, W).
    """
    S, of_theta, one = S0[None].copy(), slice(S0.shape[-1] - len(f.wanted), None), np.zeros(1, np.int64)
    numbers = f.numbers(one, theta[None])
    starts, stages, work = [], [], _Work.of(f, *S0.shape)
    for event in trajectories.events:
        if isinstance(event, Jumped):
            S = event.by_x @ S
            S[..., of_theta] += event.by_theta[..., f.wanted]
            continue
        n, s = len(event.who), len(shares)
        at = Read(np.repeat(np.arange(n), s), np.arange(n * s), np.tile(shares, n))
        found, first = np.empty((1, n * s, *S.shape[1:])), S[0].copy()
        call("follow", f.packed_by_all, one, numbers, one, event, at, S, found, work)
        own = found.reshape(n, s, *S.shape[1:])
        stages.append(own)
        starts.append(np.concatenate([first[None], own[:-1, -1]]))
    return np.concatenate(starts), np.concatenate(stages)
