"""Derivatives of trajectories by initial values and parameters, along steps that are already known.

They solve the linear equations S' = ∂f/∂x S + ∂f/∂θ, here by Radau IIA of order 3 on the steps of the trajectory.
Within a step they are read off the polynomial through its start and both stages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odinfer.ode.bytecode import Tape
from odinfer.ode.compilation import compiled
from odinfer.ode.forcing import Drive
from odinfer.ode.integrate_batch import Marched, Read, Steps, read
from odinfer.ode.interpreter import ask, factor, slopes, solve_all
from odinfer.ode.right_hand_side import Field

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STAGE, _END = 1.0 / 3.0, 1.0 - 1e-9  # of a step; its end is moved inside it, where the field may jump there
_RADAU = np.array([[5.0, -1.0], [9.0, 3.0]]) / 12.0


def sensitivities(f: Field, marched: Marched, e: Index, theta: Array, S0: Array, wanted: Index) -> Array:
    """Derivatives (b, n, K, W) at the stops, before what jumps there, of the trajectories `wanted` (b,) of a march.

    Args:
        e, theta: experiments (B,) and parameters (B, P) of all trajectories of the march.
        S0: of the initial values (b, K, W); the last columns belong to the wanted parameters of the field.
    """
    place = np.full(len(e), -1)
    place[wanted] = np.arange(len(wanted))
    S, of_theta = S0.copy(), slice(S0.shape[-1] - len(f.wanted), None)
    found = np.full((len(wanted), *marched.x.shape[1:], S.shape[-1]), np.nan)
    found[:, 0] = S0
    numbers = f.numbers(e, theta)
    for event in marched.events:
        if isinstance(event, Steps):
            _follow(f.by_all, f.drive, e, numbers, place, event, read(f.table, e, event), S, len(f.wanted), found)
            continue
        own = place[event.who] >= 0
        who = place[event.who[own]]
        S[who] = event.by_x[own] @ S[who]
        S[who, :, of_theta] += event.by_theta[own][..., f.wanted]
    return found


@compiled
def _follow(
    tape: Tape, drive: Drive, e: Index, numbers: Array, place: Index, steps: Steps, at: Read, S: Array, Q: int,
    found: Array,
) -> None:  # fmt: skip
    """Carry S (b, K, W) along the steps, and read off what is found (b, n, K, W) at the stops within them.

    Args:
        place: of all trajectories (B,) among those that are wanted; −1 if they are not.
        Q: how many of the last columns of S are derivatives by parameters.
    """
    (_, K, W), N = S.shape, numbers.shape[1]
    r, x, f = tape.registers.copy(), np.empty(K), np.empty(K)
    fx, ft = np.empty((2, K, K)), np.empty((2, K, Q))
    matrix, order, Z = np.empty((2 * K, 2 * K)), np.empty(2 * K, np.int64), np.empty((2 * K, W))
    last, reading = -1, 0
    for i in range(len(steps.who)):
        who = steps.who[i]
        own = place[who]
        while reading < len(at.step) and at.step[reading] < i:
            reading += 1
        if own < 0:
            continue
        if who != last:
            r[1 + K : 1 + K + N] = numbers[who]
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
        # Z_i = S + h Σ_j a_ij (J_j Z_j + F_j)
        for a in range(2):
            for k in range(K):
                for b in range(2):
                    for m in range(K):
                        matrix[a * K + k, b * K + m] = -h * _RADAU[a, b] * fx[b, k, m]
                matrix[a * K + k, a * K + k] += 1.0
                for w in range(W):
                    Z[a * K + k, w] = now[k, w]
        first = W - Q
        for a in range(2):
            for k in range(K):
                for q in range(Q):
                    Z[a * K + k, first + q] += h * (_RADAU[a, 0] * ft[0, k, q] + _RADAU[a, 1] * ft[1, k, q])
        factor(matrix, order)
        solve_all(matrix, order, Z)
        while reading < len(at.step) and at.step[reading] == i:
            # Lagrange's polynomials at 0, 1/3 and 1.
            s = at.share[reading]
            start, stage, end = (s - 1.0) * (3.0 * s - 1.0), 4.5 * s * (1.0 - s), 0.5 * s * (3.0 * s - 1.0)
            for k in range(K):
                for w in range(W):
                    found[own, at.stop[reading], k, w] = start * now[k, w] + stage * Z[k, w] + end * Z[K + k, w]
            reading += 1
        for k in range(K):
            for w in range(W):
                now[k, w] = Z[K + k, w]
