"""AGM (Dondelinger et al. 2013): adaptive gradient matching, a product of experts sampled by a tempered population."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odinfer.checks import checked_choice, checked_integer
from odinfer.errors import InputError
from odinfer.methods import preset
from odinfer.model.priors import FLAT, GAMMA
from odinfer.paper.parallel_tempering import Population, compiled_rounds, proposal_roots, respace_temperatures
from odinfer.paper.sampler_options import SamplerOptions
from odinfer.problem.problem import Problem
from odinfer.progress import Progress, no_progress
from odinfer.result.fit import Fit
from odinfer.result.from_draws import Draws, to_fit
from odinfer.sampling import density as ds

Array = NDArray[np.float64]

GAMMAS = ("sampled", "2^-j", "10^-j")
PRIORS = ("uniform", "gamma")
_CHUNK = 250  # rounds between two reports of progress


@dataclass(frozen=True, kw_only=True)
class Agm(SamplerOptions):
    """AGM with its options; those of all samplers are in `odinfer.paper.sampler_options.SamplerOptions`.

    Chain j of a population has the density p(y|x) [N(x|0,C) N(f − Dx|0, A+γI)]^β p(θ) p(γ) with β = (j/J)⁵ at first:
    tempering never touches the data. All chains move once per round, which counts as J iterations of the paper; then
    neighbours propose to swap. Estimates are from the chains at β = 1. Kernel hyperparameters and noise stay at the
    maximum of their evidence; the authors sample them too, which is not built here.

    Args:
        iterations: moves per population, over all its chains; burn-in included.
        burn_in: share of them before the draws count; step widths and temperatures adapt in it.
        chains: in the ladder of temperatures.
        populations: independent ladders, which R-hat compares.
        gamma: "sampled" per state with prior Exp(1); or tied to the chain, "2^-j" or "10^-j".
        prior: of parameters for which the problem has none: "uniform" within their bounds, or "gamma", Γ(4, rate 2).
        shares: of all moves that are of one γ_k, of one x_k, and of everything at once in the shape that the posterior
            has around its mean; the rest are of one θ_j. The authors' are 0.01, 0.15 and 0.
        respace: move the temperatures until about half of all swaps are accepted.
        step_x, step_theta, step_gamma, step_all: step widths at first, of x in GP posterior standard deviations, of θ
            (or log θ), of log γ, and of everything in posterior standard deviations.
    """

    iterations: int = 1_000_000
    burn_in: float = 0.25
    chains: int = 20
    populations: int = 2
    gamma: str = "sampled"
    prior: str = "uniform"
    respace: bool = True
    shares: tuple[float, float, float] = (0.15, 0.05, 0.75)
    step_x: float = 0.3
    step_theta: float = 0.1
    step_gamma: float = 1.0
    step_all: float = 0.3

    name = "agm"

    def __post_init__(self) -> None:
        super().__post_init__()
        for option, choices in (("gamma", GAMMAS), ("prior", PRIORS)):
            checked_choice(option, getattr(self, option), choices)
        for option in ("chains", "populations", "iterations"):
            checked_integer(option, getattr(self, option), 1)
        if self.iterations < 16 * self.chains:
            raise InputError(f"iterations must be at least 16 per chain, not {self.iterations} for {self.chains}")
        if not 0 < self.burn_in < 1:
            raise InputError(f"burn_in must be a share between 0 and 1, not {self.burn_in}")
        if len(self.shares) != 3 or min(self.shares[:2]) <= 0 or self.shares[2] < 0 or sum(self.shares) >= 1:
            raise InputError(
                "shares must be three numbers with a sum below 1, positive but for the last, which may be 0, "
                f"not {self.shares}"
            )
        for option in ("step_x", "step_theta", "step_gamma", "step_all"):
            if not 0 < getattr(self, option) < np.inf:
                raise InputError(f"{option} must be positive, not {getattr(self, option)}")

    @staticmethod
    def paper(system: Any, **changes: Any) -> Agm:
        """The authors' settings: one population of 20 chains, 300,000 iterations, an RBF kernel, Gamma prior.

        For protein transduction the kernel is the sigmoid one.
        """
        presets: dict[str, dict[str, Any]] = {
            "lotka_volterra": {"kernel": "rbf"},
            "fitzhugh_nagumo": {"kernel": "rbf"},
            "protein_transduction": {"kernel": "sigmoid", "scale_time": False},
        }
        common: dict[str, Any] = {
            "start": "paper", "iterations": 300_000, "populations": 1, "shares": (0.01, 0.15, 0.0),
            "prior": "gamma", "thorough": True, "hyper_bounds": (1e-6, 100.0), "weak_prior": False,
        }  # fmt: skip
        return Agm(**common | preset(system, presets) | changes)

    @staticmethod
    def quick(**changes: Any) -> Agm:
        """A cheap configuration, to see that everything works."""
        return Agm(**{"iterations": 16_000, "chains": 8, "populations": 2} | changes)

    def fit(self, problem: Problem, seed: int = 0, progress: Progress | None = None) -> Fit:
        """Posterior means of θ, γ and states, with draws; see `odinfer.fit`."""
        progress = progress or no_progress
        progress("checking the equations", 0.0)
        problem.check_field()
        progress("smoothing the data", 0.02)
        prior = (GAMMA, 4.0, 2.0) if self.prior == "gamma" else (FLAT, 0.0, 1.0)
        every = self.populations * self.chains
        risk, form, target, z, phi = self.begin(problem, "learn", every, seed, prior)
        draws = _sample(self, form, target, z, phi, seed, progress)
        progress("done", 1.0)
        return to_fit(self, seed, risk, draws)


def temperature_ladder(method: Agm, K: int) -> tuple[Array, Array]:
    """Temperatures β (J,) and starting or tied log γ (J, K)."""
    j = np.arange(1, method.chains + 1)
    base = {"sampled": 1.0, "2^-j": 2.0, "10^-j": 10.0}[method.gamma]
    tied = np.log(0.1) if base == 1.0 else -j * np.log(base)
    return (j / method.chains) ** 5.0, np.broadcast_to(np.broadcast_to(tied, j.shape)[:, None], (len(j), K)).copy()


def _sample(
    m: Agm, form: ds.DensityCode, target: ds.DensityData, z: Array, phi: Array, seed: int, progress: Progress
) -> Draws:
    """All rounds in chunks, between which the temperatures adapt during burn-in."""
    clock = time.perf_counter()
    P, J, (K, M), F = m.populations, m.chains, target.y.shape, phi.shape[1]
    rng = np.random.default_rng([seed, 2])
    factors, hessians, run = compiled_rounds(form, m.gamma == "sampled")
    beta, log_gamma = temperature_ladder(m, K)
    z, phi = z.reshape(P, J, K, M), phi.reshape(P, J, F)
    log_gamma = np.broadcast_to(log_gamma, (P, J, K))
    state = Population(z, phi, log_gamma, *factors(target, z, phi, log_gamma))
    # Steps of x_k have the shape of the GP's posterior covariance: rough ones would never be accepted.
    root = np.linalg.cholesky(np.linalg.inv(target.C_inv + target.weight[:, :, None] * np.eye(M)))
    widths = np.r_[np.full(K, m.step_x), np.full(F, m.step_theta), np.full(K, m.step_gamma), m.step_all]
    v = np.concatenate([z.reshape(P, J, -1), phi, log_gamma][: 3 if m.gamma == "sampled" else 2], -1).mean((0, 1))
    whole = proposal_roots(np.asarray(hessians(target, np.tile(v, (J, 1)))), beta)
    tuning = (np.tile(widths, (J, 1)), np.zeros((J, len(widths))))
    rounds = -(-m.iterations // J)
    size = min(_CHUNK, max(rounds // 8, 1))
    total = -(-rounds // size)
    before = max(1, round(m.burn_in * total))
    traces, sums = [], []
    shares = np.array([m.shares[0] if m.gamma == "sampled" else 0.0, *m.shares[1:]])
    for c in range(total):
        progress("sampling" if c >= before else "adapting", 0.1 + 0.9 * c / total)
        log_v = np.log(np.maximum(rng.random((2, size, P, J)), 1e-300))
        noise = (
            rng.random((size, P, J)), rng.random((size, P, J)), log_v[0], rng.standard_normal((size, P, J, len(v))),
            rng.integers(0, 2, size), log_v[1],
        )  # fmt: skip
        gain = 2.0 if c < before else 0.0
        state, tuning, part, trace = run(target, (root, whole), shares, state, beta, tuning, noise, gain)
        if c >= before:
            traces.append(np.asarray(trace))
            sums.append([np.asarray(v) for v in part])
            continue
        if m.respace and m.gamma == "sampled":
            beta = respace_temperatures(beta, np.asarray(part[3]), np.asarray(part[4]))
        if m.shares[2] and c < before // 2:
            whole = proposal_roots(np.asarray(hessians(target, np.asarray(part[7]) / (P * size))), beta)
    z_sum, z_square, gamma, swapped, proposed, tried, taken, _ = (np.sum(v, 0) for v in zip(*sums, strict=True))
    count = P * len(sums) * size
    mean = z_sum / count
    names = ["states"] * K + [form.model.parameters[j] for j in form.free] + ["gamma"] * K + ["all"]
    acceptance = {
        name: float(taken[-1, at].sum() / max(tried[-1, at].sum(), 1.0))
        for name in dict.fromkeys(names)
        if (at := [i for i, n in enumerate(names) if n == name]) and tried[-1, at].any()
    }
    return Draws(
        np.swapaxes(np.concatenate(traces), 0, 1), mean.T,
        np.sqrt(np.maximum(z_square / count - mean**2, 0.0)).T, gamma / count, acceptance,
        time.perf_counter() - clock,
        details={
            "temperatures": beta.tolist(),
            "swaps": (swapped[:-1] / np.maximum(proposed[:-1], 1)).tolist(),
            "iterations": total * size * J,
        },
    )  # fmt: skip
