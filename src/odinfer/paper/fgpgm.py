"""FGPGM (Wenk et al. 2018): sampling p(x, θ | y) ∝ N(x|0,C) N(y|x,σ²I) N(f(x,θ)|Dx, A+γI) at a fixed γ."""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_choice, checked_integer
from odinfer.errors import InputError
from odinfer.methods import preset
from odinfer.model.priors import FLAT
from odinfer.paper.sampler_options import SamplerOptions
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.result.fit import Fit
from odinfer.result.from_draws import Draws, to_fit
from odinfer.sampling import density as ds
from odinfer.sampling import nuts

Array = NDArray[np.float64]

SAMPLERS = ("auto", "metropolis", "nuts")
# Draws and burn-in per chain: of the random walk in sweeps over all coordinates, of which Lotka–Volterra at the default
# γ needs about 300 for an independent draw of θ.
_LENGTHS = {"metropolis": (40_000, 2000), "nuts": (1000, 500)}
_CHUNK = 250  # sweeps between two reports of progress
_TARGET_ACCEPTANCE = 0.44  # acceptance at which a walk over one coordinate is most efficient


@dataclass(frozen=True, kw_only=True)
class Fgpgm(SamplerOptions):
    """FGPGM with its options; those of all samplers are in `odinfer.paper.sampler_options.SamplerOptions`.

    The paper runs one chain of 300,000 sweeps from random starts (see `paper`). The default needs far fewer draws,
    because its chains start around ODIN's solution and find their step widths themselves; the status says if they
    were too few. The options in the Fit are those that "auto" and None came to.

    Args:
        sampler: "metropolis", the authors' random walk over one coordinate at a time with Gaussian steps truncated
            to the bounds; "nuts", which needs blackjax and far fewer draws; or "auto": NUTS where blackjax is there.
        gamma: variance of the mismatch between f and the GP's derivative, in standardised units.
        chains: how many, side by side.
        draws: kept per chain: draws of NUTS, 1,000 if None, or sweeps over all coordinates, 40,000 if None.
        burn_in: draws or sweeps before them, in which the step widths adapt; 500 or 2,000 if None.
        adapt: let the step widths of the random walk adapt; otherwise they stay as given.
        step_x, step_theta: step widths of the random walk for standardised states and for θ, at first.
    """

    sampler: str = "auto"
    gamma: float = 1e-2
    chains: int = 4
    draws: int | None = None
    burn_in: int | None = None
    adapt: bool = True
    step_x: float = 0.075
    step_theta: float = 0.1

    name = "fgpgm"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_choice("sampler", self.sampler, SAMPLERS)
        for option in ("gamma", "step_x", "step_theta"):
            if not 0 < getattr(self, option) < np.inf:
                raise InputError(f"{option} must be positive, not {getattr(self, option)}")
        for option, least in (("chains", 1), ("draws", 4), ("burn_in", 0)):
            value = getattr(self, option)
            if value is not None or option == "chains":
                checked_integer(option, value, least)

    @staticmethod
    def paper(system: Any, **changes: Any) -> Fgpgm:
        """The authors' settings for one of their systems, given as a System or by name.

        Their bounds on θ and states come with it, as theta_range and state_range.
        """
        presets: dict[str, dict[str, Any]] = {
            "lotka_volterra": {
                "kernel": "rbf", "shared": True, "gamma": 0.3, "step_theta": 0.09, "theta_range": (0.0, 100.0),
            },
            "fitzhugh_nagumo": {
                "kernel": "matern52", "gamma": 1e-3, "step_theta": 0.12, "theta_range": (1e-4, 10.0),
            },
            "protein_transduction": {
                "kernel": "sigmoid", "gamma": 1e-4, "step_x": 0.001, "step_theta": 0.15, "theta_range": (0.0, 4.0),
                "scale_time": False, "state_range": 5.0,
            },
        }  # fmt: skip
        common: dict[str, Any] = {
            "start": "paper", "sampler": "metropolis", "chains": 1, "draws": 300_000, "burn_in": 1000, "adapt": False,
            "step_x": 0.075, "state_range": 3.0, "hyper_bounds": (1e-6, 100.0), "thorough": True, "weak_prior": False,
        }  # fmt: skip
        return Fgpgm(**common | preset(system, presets) | changes)

    @staticmethod
    def quick(**changes: Any) -> Fgpgm:
        """A cheap configuration, to see that everything works."""
        cheap: dict[str, Any] = {"sampler": "metropolis", "chains": 2, "draws": 500, "burn_in": 250}
        return Fgpgm(**cheap | changes)

    def decided(self) -> Fgpgm:
        """The same with nothing left open: which sampler, and how long it runs."""
        sampler = self.sampler
        if sampler == "auto":
            sampler = "nuts" if importlib.util.find_spec("blackjax") else "metropolis"
        draws, burn_in = replace(self, sampler=sampler).lengths
        return replace(self, sampler=sampler, draws=draws, burn_in=burn_in)

    @property
    def lengths(self) -> tuple[int, int]:
        """Draws and burn-in of each chain."""
        draws, burn_in = _LENGTHS[self.sampler]
        return draws if self.draws is None else self.draws, burn_in if self.burn_in is None else self.burn_in

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Posterior means of θ and states, with draws; see `odinfer.fit`."""
        progress = progress or no_progress
        m = self.decided()
        if m.sampler == "nuts":
            nuts.import_blackjax()
        progress("checking the equations", 0.0)
        problem.check_field()
        progress("smoothing the data", 0.02)
        risk, form, target, z, phi = self.begin(problem, self.gamma, self.chains, seed, (FLAT, 0.0, 1.0))
        draws = (_nuts if m.sampler == "nuts" else _metropolis)(m, form, target, z, phi, seed, progress)
        progress("done", 1.0)
        return to_fit(m, seed, risk, draws)


@functools.lru_cache(maxsize=16)
def _sweeps(form: ds.DensityCode) -> Callable[..., Any]:
    """Compiled: sweeps of all chains, as many as there is noise for.

    A move of z_ki changes f at point i alone. With the gradient g of the quadratic form at hand its change costs O(K),
    and following g after an accepted move takes one column of B per state, O(KM) instead of O(KM²).
    """
    from odinfer._jax import jax, jnp

    def sweep(target: ds.DensityData, q: ds.QuadraticForm, widths: Any, z: Any, phi: Any, u: Any, log_v: Any) -> Any:
        (K, M), F = z.shape, phi.shape[0]
        full = ds.theta(form, target.parameters, phi)
        f = ds.vector_field(form, target, z, phi)
        # Anew in every sweep, so that rounding errors cannot pile up.
        g = ds.batched_matvec(q.B, jnp.concatenate([z, f], 1)).at[:, :M].add(-q.b)
        diagonal = jnp.einsum("kaa->ka", q.B)
        cross = jnp.einsum("kaa->ka", q.B[:, :M, M:])

        def move_x(carry: Any, site: Any) -> Any:
            z, f, g = carry
            k, i, r, log_r, width = site
            old = z[k, i]
            if form.bounded:
                new, correction = ds.truncated_normal_step(r, old, width, target.z_low[k], target.z_high[k])
            else:
                new, correction = old + width * r, 0.0
            here = jnp.arange(K) == k
            dx = new - old
            df = ds.vector_field_at(form, target, i, jnp.where(here, new, z[:, i]), full) - f[:, i]
            rise = dx * (g[k, i] + 0.5 * dx * diagonal[k, i] + df[k] * cross[k, i])
            rise += (df * (g[:, M + i] + 0.5 * df * diagonal[:, M + i])).sum()
            accept = log_r < correction - rise  # False where f is not finite
            dx, df = jnp.where(accept, dx, 0.0), jnp.where(accept, df, 0.0)
            g = g + q.B[:, i] * jnp.where(here, dx, 0.0)[:, None] + q.B[:, M + i] * df[:, None]
            return (z.at[k, i].add(dx), f.at[:, i].add(df), g), accept

        k, i, n = np.repeat(np.arange(K), M), np.tile(np.arange(M), K), K * M
        (z, f, _), accepted = jax.lax.scan(move_x, (z, f, g), (k, i, u[:n], log_v[:n], widths[:n]))
        linear = ds.batched_matvec(q.B[:, M:, :M], z)

        def level(phi: Any) -> Any:
            f = ds.vector_field(form, target, z, phi)
            match = (f * (linear + 0.5 * ds.batched_matvec(q.B[:, M:, M:], f))).sum()
            return ds.log_prior(form, target.parameters, phi) - match

        def move_theta(carry: Any, site: Any) -> Any:
            phi, value = carry
            j, r, log_r, width = site
            new, correction = ds.truncated_normal_step(
                r, phi[j], width, target.parameters.low[j], target.parameters.high[j]
            )
            trial = phi.at[j].set(new)
            trial_value = level(trial)
            accept = log_r < trial_value - value + correction
            return (jnp.where(accept, trial, phi), jnp.where(accept, trial_value, value)), accept

        if F:
            sites = (np.arange(F), u[n:], log_v[n:], widths[n:])
            (phi, _), more = jax.lax.scan(move_theta, (phi, level(phi)), sites)
            accepted = jnp.concatenate([accepted, more])
        return z, phi, accepted

    def run(target: ds.DensityData, q: ds.QuadraticForm, state: Any, noise: Any, gain: Any) -> Any:
        def one(carry: Any, noise: Any) -> Any:
            z, phi, widths, n, sums = carry
            z, phi, accepted = jax.vmap(sweep, (None, None, None, 0, 0, 0, 0))(target, q, widths, z, phi, *noise)
            rate = accepted.mean(0)
            # Robbins–Monro on the log widths; the gain is zero once the draws count.
            widths = widths * jnp.exp(gain * (n + 1.0) ** -0.6 * (rate - _TARGET_ACCEPTANCE))
            sums = (sums[0] + z.sum(0), sums[1] + (z**2).sum(0), sums[2] + rate)
            return (z, phi, widths, n + 1.0, sums), phi

        zero = jnp.zeros_like(state[0][0])
        sums = (zero, zero, jnp.zeros_like(state[2]))
        (*state, sums), trace = jax.lax.scan(one, (*state, sums), noise)
        return tuple(state), sums, trace

    return jax.jit(run)  # type: ignore[no-any-return]


def _metropolis(
    m: Fgpgm, form: ds.DensityCode, target: ds.DensityData, z: Array, phi: Array, seed: int, progress: Progress
) -> Draws:
    """The authors' sampler."""
    clock = time.perf_counter()
    length, burn_in = m.lengths
    _, K, M = z.shape
    q = ds.quadratic_form(target, np.full(K, m.gamma))
    widths = np.r_[np.full(K * M, m.step_x), np.full(phi.shape[1], m.step_theta)]
    size = min(_CHUNK, length)
    before, after = -(-burn_in // size), -(-length // size)
    run, rng = _sweeps(form), np.random.default_rng([seed, 1])
    state = (z, phi, widths, 0.0)
    traces, sums = [], [np.zeros((K, M)), np.zeros((K, M)), np.zeros_like(widths)]
    for c in range(before + after):
        progress("sampling" if c >= before else "finding step widths", 0.1 + 0.9 * c / (before + after))
        gain = 2.0 if m.adapt and c < before else 0.0
        # Random numbers from outside: they cost little here, and their code would take long to compile.
        noise = rng.random((2, size, m.chains, len(widths)))
        noise[1] = np.log(np.maximum(noise[1], 1e-300))
        if not form.bounded:
            noise[0, ..., : K * M] = rng.standard_normal((size, m.chains, K * M))
        state, part, trace = run(target, q, state, tuple(noise), gain)
        if c >= before:
            traces.append(np.asarray(trace))
            sums = [s + np.asarray(p) for s, p in zip(sums, part, strict=True)]
    count = after * size
    mean = sums[0] / (count * m.chains)
    sd = np.sqrt(np.maximum(sums[1] / (count * m.chains) - mean**2, 0.0))
    kept = np.swapaxes(np.concatenate(traces)[-length:], 0, 1)
    names = [form.model.parameters[j] for j in form.free]
    rates = sums[2] / count
    acceptance = {"states": float(rates[: K * M].mean())} | dict(zip(names, rates[K * M :].tolist(), strict=True))
    return Draws(kept, mean.T, sd.T, np.full(K, m.gamma), acceptance, time.perf_counter() - clock)


def _nuts(
    m: Fgpgm, form: ds.DensityCode, target: ds.DensityData, z: Array, phi: Array, seed: int, progress: Progress
) -> Draws:
    """The no-U-turn sampler on the same density, θ and bounded states transformed to the real line."""
    clock = time.perf_counter()
    length, burn_in = m.lengths
    C, K, M = z.shape
    data = (target, np.full(K, m.gamma), ds.stacked_bounds(target))
    r = ds.unconstrain(np.concatenate([z.reshape(C, -1), phi], 1), *data[2])
    centre = r.mean(0)
    log_density, R = ds.unconstrained_density(form)[0], ds.whitening_matrix(form, data, centre)
    found = nuts.sample(
        log_density, data, r, centre, R, length, burn_in, seed, lambda what, share: progress(what, 0.1 + 0.9 * share)
    )
    v = np.asarray(ds.constrain(found.positions, *data[2])[0])
    zs = v[..., : K * M].reshape(C, -1, K, M)
    rate, divergent, steps = (found.stats[n] for n in ("acceptance_rate", "diverging", "n_steps"))
    return Draws(
        v[..., K * M :], zs.mean((0, 1)).T, zs.std((0, 1)).T, data[1], {"all": float(rate.mean())},
        time.perf_counter() - clock, int(divergent.sum()), {"leapfrog_steps": float(steps.mean())},
    )  # fmt: skip
