"""Derivatives of trajectories by initial values and parameters, along steps that are already known.

They solve the linear equations S' = ∂f/∂x S + ∂f/∂θ, here by Radau IIA of order 3 on the steps of the trajectory. Every
step is a linear map S ↦ A S + C, and the maps of all steps of all trajectories are computed at once; only their
composition goes step by step. Within a step they are read off the polynomial through its start and both stages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.forward.field import Field
from odinfer.forward.march import Jumped, Marched, Steps, read
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
    S, Q = S0.copy(), len(f.wanted)
    found = np.full((len(wanted), *marched.x.shape[1:], S.shape[-1]), np.nan)
    found[:, 0] = S0
    if not steps:
        return found
    A, C = _maps(f, steps, e[wanted], theta[wanted])
    before, first = np.empty((A.shape[1], *S.shape[1:])), 0  # every step
    of_theta = slice(S.shape[-1] - Q, None)
    for event in events:
        if isinstance(event, Steps):
            own = slice(first, first := first + len(event.who))
            before[own] = S[event.who]
            S[event.who] = _mapped(A[1, own], C[1, own], before[own], of_theta)
        else:
            S[event.who] = _mapped(event.by_x, event.by_theta[..., f.wanted], S[event.who], of_theta)
    at = read(f.table, e[wanted], steps)
    who = np.concatenate([s.who for s in steps])[at.step]
    # Lagrange's polynomials at 0, 1/3 and 1: a matrix and a vector for every stop.
    s = at.share[:, None, None]
    start, stage, end = (s - 1.0) * (3.0 * s - 1.0), 4.5 * s * (1.0 - s), 0.5 * s * (3.0 * s - 1.0)
    inner = start * np.eye(A.shape[-1]) + stage * A[0, at.step] + end * A[1, at.step]
    found[who, at.stop] = _mapped(inner, stage * C[0, at.step] + end * C[1, at.step], before[at.step], of_theta)
    return found


def _mapped(A: Array, C: Array, S: Array, of_theta: slice) -> Array:
    moved = A @ S
    moved[..., of_theta] += C
    return np.asarray(moved)


def _taken(event: Steps | Jumped, place: Index) -> Steps | Jumped:
    """What happened to some trajectories only, by their new places (B,); −1 is left out."""
    own = place[event.who] >= 0
    if isinstance(event, Steps):
        return Steps(
            place[event.who[own]], event.t[own], event.until[own], event.x[own], event.end[own], event.bend[:, own]
        )
    return Jumped(place[event.who[own]], event.by_x[own], event.by_theta[own])


def _maps(f: Field, steps: list[Steps], e: Index, theta: Array) -> tuple[Array, Array]:
    """A (2, M, K, K) and C (2, M, K, Q) of all steps, one after the other, to their inner stage and to their end."""
    K, Q = len(f.model.states), len(f.wanted)
    who, t, until, x, end = (np.concatenate([s[i] for s in steps]) for i in range(5))
    h = until - t
    bend = np.concatenate([s.bend for s in steps], 1)
    numbers = f.numbers(e, theta)
    A, C = np.empty((2, len(t), K, K)), np.empty((2, len(t), K, Q))
    size = max(1, _ROOM // (4 * K * K))
    with np.errstate(all="ignore"):
        for i in range(0, len(t), size):
            own = slice(i, i + size)
            parts = e[who[own]], t[own], h[own], x[own], end[own], bend[:, own], numbers.T[:, who[own]].T
            A[:, own], C[:, own] = _map(f, *parts)
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
    # Z_i = S + h Σ_j a_ij (J_j Z_j + F_j): rows of the inverse of the matrix.
    matrix = np.empty((M, 2, K, 2, K))  # transposed: [., j, l, i, k] multiplies Z_j[l] in equation i, k
    for i in range(2):
        for j in range(2):
            matrix[:, j, :, i] = (-_RADAU[i, j] * h)[:, None, None] * np.swapaxes(fx[j], 1, 2)
    matrix[:, [0, 1], :, [0, 1]] += np.eye(K)
    try:
        Y = np.linalg.inv(matrix.reshape(M, 2 * K, 2 * K))
    except np.linalg.LinAlgError:
        return np.full((2, M, K, K), np.nan), np.full((2, M, K, ft.shape[-1]), np.nan)
    Y = Y.reshape(M, 2, K, 2, K).transpose(3, 1, 0, 4, 2)  # of stage i by what stands right of equation j
    A = Y[:, 0] + Y[:, 1]
    C = sum((_RADAU[0, j] * Y[:, 0] + _RADAU[1, j] * Y[:, 1]) @ ft[j] for j in range(2))
    return A, h[:, None, None] * C
