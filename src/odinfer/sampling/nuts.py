"""The no-U-turn sampler of blackjax on a whitened density."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.progress import Progress

Array = NDArray[np.float64]

_CHUNK = 100  # draws between two reports of progress
# Acceptance that steps are made for: 0.8 is a little faster on round densities and loses its way on curved ones. Where
# more than this share of the draws diverges, places are left out: once more, with smaller steps.
_TARGET_ACCEPTANCE, _MOST_DIVERGENT = (0.9, 0.98), 0.002


def import_blackjax() -> Any:
    """The package of that name, or an error that says how to get it."""
    try:
        import blackjax  # type: ignore[import-untyped]
    except ImportError:
        raise InputError("sampler='nuts' needs blackjax: pip install 'odinfer[sample]'") from None
    return blackjax


@dataclass(frozen=True)
class Chains:
    """Positions (C, N, P) and statistics (C, N) by name."""

    positions: Array
    stats: dict[str, Array]


@functools.lru_cache(maxsize=16)
def _compiled_draws(log_density: Callable[[Any, Any], Any], count: int) -> Callable[..., Any]:
    """Compiled: `count` draws of all chains; adaptation is the same program with a gain."""
    from odinfer._jax import jax, jnp

    nuts = import_blackjax().nuts

    def draw(data: Any, centre: Any, R: Any, state: Any, mass: Any, keys: Any, gain: Any, wanted: Any) -> Any:
        def density(eta: Any) -> Any:
            value = log_density(data, centre + R @ eta)
            return jnp.where(jnp.isfinite(value), value, -jnp.inf)

        kernel = nuts.build_kernel()

        def chain(eta: Any, log_step: Any, n: Any, key: Any) -> Any:
            def one(carry: Any, key: Any) -> Any:
                state, log_step, n = carry
                state, info = kernel(key, state, density, jnp.exp(log_step), mass)
                log_step = log_step + gain * (n + 1.0) ** -0.6 * (info.acceptance_rate - wanted)
                kept = (state.position, state.logdensity, info.acceptance_rate, info.is_divergent,
                        info.num_integration_steps)  # fmt: skip
                return (state, log_step, n + 1.0), kept

            start = (nuts.init(eta, density), log_step, n)
            (state, log_step, n), found = jax.lax.scan(one, start, jax.random.split(key, count))
            return (state.position, log_step, n), found

        return jax.vmap(chain)(*state, keys)

    return jax.jit(draw)  # type: ignore[no-any-return]


def sample(
    log_density: Callable[[Any, Any], Any], data: Any, start: Array, centre: Array, R: Array, draws: int,
    warm_up: int, seed: int, progress: Progress,
) -> Chains:  # fmt: skip
    """Draws of r (P,) from a density given up to a constant.

    Args:
        log_density: (data, r) ↦ log p; a function that is kept, since compiled programs are kept for it.
        start: where the chains start (C, P).
        centre, R: r = centre + R η, so that η has about unit covariance.
        draws, warm_up: kept, and before them, per chain.
    """
    what = (log_density, data, start, centre, R, draws, warm_up, seed, progress)
    found = _run_chains(*what, _TARGET_ACCEPTANCE[0], _MOST_DIVERGENT * len(start) * draws) or _run_chains(
        *what, _TARGET_ACCEPTANCE[1], np.inf
    )
    assert found is not None
    return found


def _run_chains(
    log_density: Callable[[Any, Any], Any], data: Any, start: Array, centre: Array, R: Array, draws: int,
    warm_up: int, seed: int, progress: Progress, wanted: float, most: float,
) -> Chains | None:  # fmt: skip
    """The draws, with steps for an acceptance; None as soon as more than `most` of them have diverged."""
    from odinfer._jax import jax

    C, P = start.shape
    size = min(_CHUNK, draws)
    program, key, mass = _compiled_draws(log_density, size), jax.random.key(seed), np.ones(P)
    state = (np.linalg.solve(R, (start - centre).T).T, np.full(C, np.log(0.5)), np.zeros(C))
    before, after = -(-warm_up // size), -(-draws // size)
    pieces = []
    for c in range(before + after):
        doing = "sampling" if c >= before else "finding step widths"
        progress(doing if wanted == _TARGET_ACCEPTANCE[0] else f"{doing}, smaller ones", c / (before + after))
        keys = jax.random.split(jax.random.fold_in(key, c), C)
        state, found = program(data, centre, R, state, mass, keys, 1.0 if c < before else 0.0, wanted)
        if c >= before:
            pieces.append([np.asarray(v) for v in found])
            if sum(piece[3].sum() for piece in pieces) > most:
                return None
        elif c == before - 2:  # once the chains have settled: what the first idea of the covariance left
            eta = np.asarray(found[0]).reshape(-1, P)
            if 0.05 * len(eta) >= P:
                w, V = np.linalg.eigh(np.atleast_2d(np.cov(eta.T)))
                W = V * np.sqrt(np.maximum(w, 1e-6 * w[-1]))
                R, state = R @ W, (np.linalg.solve(W, np.asarray(state[0]).T).T, *state[1:])
            else:
                mass = eta.var(0) + 1e-6
            state = (state[0], np.full(C, np.log(0.5)), np.zeros(C))
        if c == before - 1:  # one step width for all: chains that adapted to different places would never agree
            state = (state[0], np.full(C, np.asarray(state[1]).mean()), np.zeros(C))
    eta, lp, rate, divergent, steps = (np.concatenate(v, 1)[:, -draws:] for v in zip(*pieces, strict=True))
    stats = {"lp": lp, "acceptance_rate": rate, "diverging": divergent.astype(float), "n_steps": steps.astype(float)}
    return Chains(centre + eta @ R.T, stats)
