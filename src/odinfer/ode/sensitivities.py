"""Forward sensitivities of trajectories along known steps.

They solve the linear equations S' = ∂f/∂x S + ∂f/∂θ, here by Radau IIA of order 3 on the steps of the trajectory.
Within a step they are read off the polynomial through its start and both stages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.bytecode import Tape
from odinfer.ode.compilation import compiled
from odinfer.ode.forcing import Drive
from odinfer.ode.integrate_batch import BatchTrajectories, Jumped, Read, Steps, read
from odinfer.ode.interpreter import ask, factor, slopes, solve_all
from odinfer.ode.right_hand_side import Field

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STAGE, _END = 1.0 / 3.0, 1.0 - 1e-9  # of a step; its end is moved inside it, where the field may jump there
_RADAU = np.array([[5.0, -1.0], [9.0, 3.0]]) / 12.0


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
            _follow(f.by_all, f.drive, e, numbers, place, event, at, S, found, work)
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
        _follow(f.by_all, f.drive, one, numbers, one, event, at, S, found, work)
        own = found.reshape(n, s, *S.shape[1:])
        stages.append(own)
        starts.append(np.concatenate([first[None], own[:-1, -1]]))
    return np.concatenate(starts), np.concatenate(stages)


@compiled
def _follow(
    tape: Tape, drive: Drive, e: Index, numbers: Array, place: Index, steps: Steps, at: Read, S: Array,
    found: Array, work: _Work,
) -> None:  # fmt: skip
    """Carry S (b, K, W) along the steps, and read off what is found (b, n, K, W) at the stops within them.

    Args:
        place: of all trajectories (B,) among those that are wanted; −1 if they are not.
        work: registers, which hold the constants, and arrays to work on.
    """
    K, W, N, Q = S.shape[1], S.shape[2], numbers.shape[1], work.ft.shape[2]
    r, x, f, fx, ft, matrix, order, Z = work
    last, reading = -1, 0
    for i in range(len(steps.who)):
        who = steps.who[i]
        own = place[who]
        while reading < len(at.step) and at.step[reading] < i:
            reading += 1
        if own < 0:
            continue
        if who != last:
            for j in range(N):
                r[1 + K + j] = numbers[who, j]
            last = who
        t, h, now = steps.t[i], steps.until[i] - steps.t[i], S[own]
        for j in range(2):
            share = _END if j else _STAGE
            for k in range(K):
                x[k] = steps.end[i, k]
                if not j:
                    bend = steps.bend[i, 0, k] + _STAGE * steps.bend[i, 1, k]
                    x[k] = (1.0 - _STAGE) * steps.x[i, k] + _STAGE * (steps.end[i, k] + (1.0 - _STAGE) * bend)
            ask(tape, drive, e[who], t + share * h, x, r, f)
            slopes(tape, r, fx[j], ft[j])
        # Z_i = S + h Σ_j a_ij (J_j Z_j + F_j); both stages of a state are neighbours, so that chains have few factors.
        for a in range(2):
            for k in range(K):
                for b in range(2):
                    for m in range(K):
                        matrix[2 * k + a, 2 * m + b] = -h * _RADAU[a, b] * fx[b, k, m]
                matrix[2 * k + a, 2 * k + a] += 1.0
                for w in range(W):
                    Z[2 * k + a, w] = now[k, w]
        first = W - Q
        for a in range(2):
            for k in range(K):
                for q in range(Q):
                    Z[2 * k + a, first + q] += h * (_RADAU[a, 0] * ft[0, k, q] + _RADAU[a, 1] * ft[1, k, q])
        factor(matrix, order)
        solve_all(matrix, order, Z)
        while reading < len(at.step) and at.step[reading] == i:
            # Lagrange's polynomials at 0, 1/3 and 1.
            s = at.share[reading]
            start, stage, end = (s - 1.0) * (3.0 * s - 1.0), 4.5 * s * (1.0 - s), 0.5 * s * (3.0 * s - 1.0)
            for k in range(K):
                for w in range(W):
                    found[own, at.stop[reading], k, w] = start * now[k, w] + stage * Z[2 * k, w] + end * Z[2 * k + 1, w]
            reading += 1
        for k in range(K):
            for w in range(W):
                now[k, w] = Z[2 * k + 1, w]
