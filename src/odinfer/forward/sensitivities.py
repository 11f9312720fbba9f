"""Derivatives of trajectories by initial values and parameters, along steps that are already known.

They solve the linear equations S' = ∂f/∂x S + ∂f/∂θ, here by Radau IIA of order 3 on the steps of the trajectory. Every
step is a linear map S ↦ A S + C, and the maps of all steps of all trajectories are computed at once; only their
composition goes step by step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.forward.field import Field
from odinfer.forward.march import Arrived, Jumped, Marched, Steps
from odinfer.forward.rodas import inside

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STAGE = 1.0 / 3.0  # of a step; the other stage is its end
_RADAU = np.array([[5.0, -1.0], [9.0, 3.0]]) / 12.0
_ROOM = 2_000_000  # numbers in matrices that are solved at once


def sensitivities(f: Field, marched: Marched, e: Index, theta: Array, S0: Array, wanted: Index) -> Array:
    """Derivatives (b, n, K, W) at the stops, before what jumps there, of the trajectories `wanted` (b,) of a march.

    Args:
        e, theta: experiments (B,) and parameters (B, P) of all trajectories of the march.
        S0: of the initial values (b, K, W); the last columns belong to the wanted parameters of the field.
    """
    place = np.full(len(e), -1)
    place[wanted] = np.arange(len(wanted))
    events = [_taken(event, place) for event in marched.events]
    steps = [event for event in events if isinstance(event, Steps)]
    A, C = _maps(f, steps, e[wanted], theta[wanted])
    S = S0.copy()
    found = np.full((len(wanted), *marched.x.shape[1:], S.shape[-1]), np.nan)
    Q, first = len(f.wanted), 0
    of_theta = slice(S.shape[-1] - Q, None)
    for event in events:
        if isinstance(event, Steps):
            own = slice(first, first := first + len(event.who))
            moved = A[own] @ S[event.who]
            moved[..., of_theta] += C[own]
            S[event.who] = moved
        elif isinstance(event, Jumped):
            moved = event.by_x @ S[event.who]
            moved[..., of_theta] += event.by_theta[..., f.wanted]
            S[event.who] = moved
        else:
            found[event.who, event.stop] = S[event.who]
    return found


def _taken(event: Steps | Jumped | Arrived, place: Index) -> Steps | Jumped | Arrived:
    """What happened to some trajectories only, by their new places (B,); −1 is left out."""
    own = place[event.who] >= 0
    if isinstance(event, Steps):
        return Steps(
            place[event.who[own]], event.t[own], event.h[own], event.x[own], event.end[own], event.bend[:, own]
        )
    if isinstance(event, Jumped):
        return Jumped(place[event.who[own]], event.by_x[own], event.by_theta[own])
    return Arrived(place[event.who[own]], event.stop[own])


def _maps(f: Field, steps: list[Steps], e: Index, theta: Array) -> tuple[Array, Array]:
    """A (M, K, K) and C (M, K, Q) of all steps, one after the other."""
    K, Q = len(f.model.states), len(f.wanted)
    if not steps:
        return np.empty((0, K, K)), np.empty((0, K, Q))
    who, t, h, x, end = (np.concatenate([s[i] for s in steps]) for i in range(5))
    bend = np.concatenate([s.bend for s in steps], 1)
    numbers = f.numbers(e, theta)
    A, C = np.empty((len(t), K, K)), np.empty((len(t), K, Q))
    size = max(1, _ROOM // (4 * K * K))
    with np.errstate(all="ignore"):
        for i in range(0, len(t), size):
            own = slice(i, i + size)
            parts = e[who[own]], t[own], h[own], x[own], end[own], bend[:, own], numbers.T[:, who[own]].T
            A[own], C[own] = _map(f, *parts)
    return A, C


def _map(
    f: Field, e: Index, t: Array, h: Array, x: Array, end: Array, bend: Array, numbers: Array
) -> tuple[Array, Array]:
    M, K = x.shape
    # Both stages at once. Times at the ends of a step are moved inside it, where the field may jump at them.
    share = np.array([_STAGE, 1.0 - 1e-9])
    times = (t + share[:, None] * h).ravel()
    states = np.concatenate([inside(_STAGE, x, end, bend), end])
    fx, ft = f.by_all(np.tile(e, 2), times, states, np.concatenate([numbers.T, numbers.T], 1).T)
    fx, ft = fx.reshape(2, M, K, K), ft.reshape(2, M, K, -1)
    # Z_i = S + h Σ_j a_ij (J_j Z_j + F_j), and only Z_2 is wanted: the last rows of the inverse of the matrix.
    matrix = np.empty((M, 2, K, 2, K))  # transposed: [., j, l, i, k] multiplies Z_j[l] in equation i, k
    for i in range(2):
        for j in range(2):
            matrix[:, j, :, i] = (-_RADAU[i, j] * h)[:, None, None] * np.swapaxes(fx[j], 1, 2)
    matrix[:, [0, 1], :, [0, 1]] += np.eye(K)
    right = np.zeros((2, K, K))
    right[1] = np.eye(K)
    try:
        Y = np.linalg.solve(matrix.reshape(M, 2 * K, 2 * K), right.reshape(2 * K, K))
    except np.linalg.LinAlgError:
        return np.full((M, K, K), np.nan), np.full((M, K, ft.shape[-1]), np.nan)
    Y = Y.reshape(M, 2, K, K)
    A = np.swapaxes(Y[:, 0] + Y[:, 1], 1, 2)
    weights = [np.swapaxes(_RADAU[0, j] * Y[:, 0] + _RADAU[1, j] * Y[:, 1], 1, 2) for j in range(2)]
    return A, h[:, None, None] * (weights[0] @ ft[0] + weights[1] @ ft[1])
