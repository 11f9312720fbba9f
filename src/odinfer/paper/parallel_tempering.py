"""Parallel tempering for AGM: compiled moves and swaps of a population of chains."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odinfer.sampling import density as ds

Array = NDArray[np.float64]
Factors = Callable[..., tuple[Any, Any, Any]]  # (data, z, φ, log γ) ↦ logs of the factors

_TARGET_ACCEPTANCE = 0.25  # acceptance of moves, in the middle of the authors' 20–30 %
_TARGET_SWAP_RATE = 0.5  # and of swaps, in the middle of their 45–55 %


class Population(NamedTuple):
    """All chains of all populations, axes (populations, chains, ...).

    Attributes:
        z, phi, log_gamma: (..., K, M), (..., F), (..., K).
        data, experts, prior: logs of p(y|x), of the tempered factors and of p(θ) p(γ), at these.
    """

    z: Any
    phi: Any
    log_gamma: Any
    data: Any
    experts: Any
    prior: Any


def _log_factors(
    form: ds.DensityCode, sampled: bool, target: ds.DensityData, z: Any, phi: Any, log_gamma: Any
) -> tuple[Any, Any, Any]:
    """Logs of p(y|x), of the tempered factors and of p(θ) p(γ)."""
    from odinfer._jax import jnp

    gamma = jnp.exp(log_gamma)
    f = ds.vector_field(form, target, z, phi)
    experts = ds.log_gp(target, z) + ds.log_gradient(target, z, f, gamma)
    prior = ds.log_prior(form, target.parameters, phi)
    inside = ((phi >= target.parameters.low) & (phi <= target.parameters.high)).all()
    inside &= ((z >= target.z_low[:, None]) & (z <= target.z_high[:, None])).all()
    if sampled:
        prior += (log_gamma - gamma).sum()  # Exp(1) on the scale of log γ
    return ds.log_data(target, z), experts, jnp.where(inside, prior, -jnp.inf)


def _hessians(factors: Factors, F: int, target: ds.DensityData, v: Any) -> Any:
    """Of log p(y|x), of the experts and of the prior (3, V, V) at v = (z, φ, log γ if it is sampled)."""
    from odinfer._jax import jax, jnp

    K, M = target.y.shape

    def of(v: Any) -> Any:
        return jnp.stack(factors(target, v[: K * M].reshape(K, M), v[K * M : K * M + F], v[K * M + F :]))

    return jax.hessian(of)(v)


def _swap(
    factors: Factors, sampled: bool, target: ds.DensityData, s: Population, beta: Any, odd: Any, log_v: Any
) -> Any:
    """Exchange chains 0–1, 2–3, … or 1–2, 3–4, … of one population, γ staying where it is tied."""
    from odinfer._jax import jax, jnp

    J = beta.shape[0]
    index = jnp.arange(J)
    partner = jnp.where((index + odd) % 2 == 0, index + 1, index - 1)
    partner = jnp.where((partner < 0) | (partner >= J), index, partner)
    other = jax.tree.map(lambda a: a[partner], s)
    if not sampled:
        parts = jax.vmap(factors, (None, 0, 0, 0))(target, other.z, other.phi, s.log_gamma)
        other = Population(other.z, other.phi, s.log_gamma, *parts)
    # Data and prior factors are the same before and after an exchange.
    gain = beta * (other.experts - s.experts)
    accept = (log_v[jnp.minimum(index, partner)] < gain + gain[partner]) & (partner != index)
    swapped = jax.tree.map(lambda a, b: jnp.where(accept.reshape(-1, *[1] * (a.ndim - 1)), a, b), other, s)
    lower = partner > index
    return swapped, jnp.where(lower, accept, False), lower


@functools.lru_cache(maxsize=16)
def compiled_rounds(
    form: ds.DensityCode, sampled: bool
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Compiled: the logs of all factors at a state, their Hessians, and rounds of moves and swaps.

    There are as many rounds as there is noise for.
    """
    from odinfer._jax import jax, jnp

    factors = functools.partial(_log_factors, form, sampled)
    swap = functools.partial(_swap, factors, sampled)
    hessians = functools.partial(_hessians, factors, len(form.free))

    def move(
        target: ds.DensityData, root: Any, shares: Any, s: Population, beta: Any, whole: Any, widths: Any, noise: Any
    ) -> Any:
        """One Metropolis move of one chain: of γ_k, of x_k as a whole, of everything, or of θ_j."""
        what, which, log_v, normals = noise
        (K, M), F = s.z.shape, s.phi.shape[0]
        of_gamma = what < shares[0] if sampled else jnp.zeros((), bool)
        of_x = (what < shares[0] + shares[1]) & ~of_gamma
        of_all = (what < shares[0] + shares[1] + shares[2]) & ~of_x & ~of_gamma
        of_x = of_x if F else ~of_gamma & ~of_all
        k, j = (which * K).astype(int), (which * max(F, 1)).astype(int)
        coordinate = jnp.where(of_gamma, K + F + k, jnp.where(of_x, k, jnp.where(of_all, 2 * K + F, K + j)))
        step = widths[coordinate]
        here = jnp.arange(K) == k
        single = jnp.where(of_all, 0.0, step * normals[0])
        along = jnp.where(of_all, step, 0.0) * (whole @ normals)
        z = s.z + jnp.where(here & of_x, step, 0.0)[:, None] * (root[k] @ normals[:M]) + along[: K * M].reshape(K, M)
        phi = s.phi + jnp.where((jnp.arange(F) == j) & ~of_x & ~of_gamma, single, 0.0) + along[K * M : K * M + F]
        log_gamma = s.log_gamma + jnp.where(here & of_gamma, single, 0.0)
        if sampled:
            log_gamma += along[K * M + F :]
        new = Population(z, phi, log_gamma, *factors(target, z, phi, log_gamma))
        rise = new.data - s.data + beta * (new.experts - s.experts) + new.prior - s.prior
        accept = log_v < rise  # False where f is not finite
        kept = jax.tree.map(lambda a, b: jnp.where(accept, a, b), new, s)
        return kept, coordinate, accept

    def run(
        target: ds.DensityData, roots: Any, shares: Any, s: Population, beta: Any, tuning: Any, noise: Any, gain: Any
    ) -> Any:
        root, whole = roots
        each = jax.vmap(jax.vmap(move, (*[None] * 3, *[0] * 5)), (*[None] * 3, 0, *[None] * 3, 0))

        def one(carry: Any, noise: Any) -> Any:
            s, widths, n, sums = carry
            s, coordinate, accept = each(target, root, shares, s, beta, whole, widths, noise[:4])
            rows = jnp.broadcast_to(jnp.arange(beta.shape[0]), coordinate.shape)
            tried = jnp.zeros_like(widths).at[rows, coordinate].add(1.0)
            taken = jnp.zeros_like(widths).at[rows, coordinate].add(accept.astype(float))
            n = n + tried
            # Robbins–Monro on log widths, by how often the coordinate was tried; no gain once the draws count.
            widths = widths * jnp.exp(gain * (taken - _TARGET_ACCEPTANCE * tried) / jnp.maximum(n, 1.0) ** 0.6)
            odd, log_v = noise[4:]
            s, swapped, lower = jax.vmap(swap, (None, 0, None, None, 0))(target, s, beta, odd, log_v)
            top = jax.tree.map(lambda a: a[:, -1], s)
            more = (top.z.sum(0), (top.z**2).sum(0), jnp.exp(top.log_gamma).sum(0), swapped.sum(0), lower.sum(0))
            everything = [s.z.reshape(*s.z.shape[:2], -1), s.phi, s.log_gamma][: 3 if sampled else 2]
            sums = jax.tree.map(jnp.add, sums, (*more, tried, taken, jnp.concatenate(everything, -1).sum(0)))
            return (s, widths, n, sums), top.phi

        none, zero, zeros = jnp.zeros_like(tuning[0]), jnp.zeros_like(s.z[0, 0]), jnp.zeros(beta.shape, int)
        sums = (zero, zero, jnp.zeros_like(s.log_gamma[0, 0]), zeros, zeros, none, none, jnp.zeros(whole.shape[:2]))
        (s, *tuning, sums), trace = jax.lax.scan(one, (s, *tuning, sums), noise)
        return s, tuple(tuning), sums, trace

    everywhere = jax.jit(jax.vmap(jax.vmap(factors, (None, 0, 0, 0)), (None, 0, 0, 0)))
    return everywhere, jax.jit(jax.vmap(hessians, (None, 0))), jax.jit(run)


def respace_temperatures(beta: Array, swapped: Array, proposed: Array) -> Array:
    """Temperatures (J,) with gaps narrowed where fewer than half of the swaps succeed and widened where more do."""
    if len(beta) < 2:
        return beta
    rate = swapped[:-1] / np.maximum(proposed[:-1], 1)
    gaps = -np.diff(np.log(beta)) * np.exp(np.clip(rate - _TARGET_SWAP_RATE, -0.3, 0.3))
    return np.asarray(np.exp(np.r_[np.cumsum(gaps[::-1])[::-1], 0.0]))


def proposal_roots(hessians: Array, beta: Array) -> Array:
    """Roots (J, V, V) of about the covariance of the tempered posteriors, from Hessians (J, 3, V, V) of the factors."""
    H = -np.nan_to_num(hessians[:, 0] + beta[:, None, None] * hessians[:, 1] + hessians[:, 2])
    w, V = np.linalg.eigh(0.5 * (H + np.swapaxes(H, 1, 2)))
    w = np.abs(w)
    return np.asarray(V / np.sqrt(np.maximum(w, 1e-8 * w.max(1, keepdims=True) + 1e-12))[:, None, :])
