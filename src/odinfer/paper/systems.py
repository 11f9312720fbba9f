"""The paper's systems: equations, true parameters, initial values and times, and noisy samples of them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odinfer.data.data import Data
from odinfer.errors import InputError
from odinfer.model.model import Model
from odinfer.ode.simulate import simulate
from odinfer.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class System:
    """A model with a known truth.

    Attributes:
        model: the equations.
        theta: true parameters by name.
        x0: initial values (K,).
        t: the paper's observation times (N,).
        snr: noise is given as a signal-to-noise ratio of variances instead of a standard deviation.
        levels: the paper's two noise levels, low first.
        bounds: the authors' bounds, of every parameter and of every state.
    """

    model: Model
    theta: dict[str, float]
    x0: Array
    t: Array
    snr: bool = False
    levels: tuple[float, float] = (0.1, 0.5)
    bounds: tuple[tuple[float | None, float | None], tuple[float | None, float | None]] = ((None, None), (None, None))

    def problem(self, data: Data) -> Problem:
        """The problem as the authors pose it, with their bounds."""
        of_theta, of_states = self.bounds
        return Problem(
            self.model, data, bounds=dict.fromkeys(self.theta, of_theta) | dict.fromkeys(self.model.states, of_states)
        )

    @functools.cached_property
    def x(self) -> Array:
        """The true states (N, K) at the paper's times."""
        return self.states(self.t)

    def states(self, t: Array) -> Array:
        """The true states (N, K) at times t; the first is the initial time."""
        return self.x if t is self.t and "x" in self.__dict__ else simulate(self.model, self.theta, self.x0, t)

    def sigma(self, noise: float, t: Array | None = None) -> Array:
        """Noise standard deviations (K,) at a level: a standard deviation, or an SNR where `snr`."""
        K = len(self.model.states)
        x = self.x if t is None else self.states(t)
        return x.std(0) / np.sqrt(noise) if self.snr else np.full(K, float(noise))

    def sample(self, noise: float, seed: int, t: Array | None = None) -> Data:
        """Noisy observations of all states.

        Args:
            noise: standard deviation; for FitzHugh–Nagumo the signal-to-noise ratio of variances.
            seed: of the noise.
            t: observation times instead of the paper's.
        """
        if not noise > 0:
            raise InputError(f"noise must be positive, not {noise}")
        times = self.t if t is None else np.asarray(t, float)
        x = self.x if t is None else self.states(times)
        y = x + self.sigma(noise, t) * np.random.default_rng(seed).normal(size=x.shape)
        return Data(times, y, states=self.model.states)


lotka_volterra = System(
    Model.from_text(
        "prey' = a*prey - b*prey*predator\npredator' = -c*predator + d*prey*predator", name="lotka_volterra"
    ),
    {"a": 2.0, "b": 1.0, "c": 4.0, "d": 1.0},
    np.array([5.0, 3.0]),
    np.linspace(0.0, 2.0, 20),
    bounds=((0.0, 100.0), (0.0, 10.0)),
)

fitzhugh_nagumo = System(
    Model.from_text("V' = c*(V - V^3/3 + R)\nR' = -(V - a + b*R)/c", name="fitzhugh_nagumo"),
    {"c": 3.0, "a": 0.2, "b": 0.2},
    np.array([-1.0, 1.0]),
    np.linspace(0.0, 10.0, 20),
    snr=True,
    levels=(100.0, 10.0),
    bounds=((0.0, 100.0), (None, None)),
)

protein_transduction = System(
    Model.from_text(
        """S' = -k1*S - k2*S*R + k3*RS
dS' = k1*S
R' = -k2*S*R + k3*RS + k5*Rpp/(k6 + Rpp)
RS' = k2*S*R - k3*RS - k4*RS
Rpp' = k4*RS - k5*Rpp/(k6 + Rpp)""",
        name="protein_transduction",
    ),
    {"k1": 0.07, "k2": 0.6, "k3": 0.05, "k4": 0.3, "k5": 0.017, "k6": 0.3},
    np.array([1.0, 0.0, 1.0, 0.0, 0.0]),
    np.array([0.0, 1, 2, 4, 5, 7, 10, 15, 20, 30, 40, 50, 60, 80, 100]),
    levels=(0.001, 0.01),
    bounds=((1e-8, 10.0), (0.0, 2.0)),
)


@functools.cache
def lorenz96(K: int) -> System:
    """Lorenz '96 with K ≥ 4 states; the initial values are 1 plus a small fixed perturbation."""
    if K < 4:
        raise InputError(f"Lorenz '96 needs at least 4 states, not {K}")

    def field(t, x, theta):  # type: ignore[no-untyped-def]
        from odinfer._jax import jnp

        return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + theta[0]

    model = Model(field, tuple(f"x{k}" for k in range(1, K + 1)), ("F",), name=f"lorenz96_{K}")
    x0 = 1.0 + 0.01 * np.random.default_rng(0).normal(size=K)
    return System(model, {"F": 8.0}, x0, np.linspace(0.0, 5.0, 50), levels=(1.0, 2.0))


SYSTEMS = {s.model.name: s for s in (lotka_volterra, fitzhugh_nagumo, protein_transduction)}


@functools.lru_cache(maxsize=64)
def system_of(spec: str) -> System:
    """Return the system that canonical JSON describes: a name of `SYSTEMS`, or equations with their true values.

    It is cached, because compiling its model takes longer than a fit.
    """
    given = json.loads(spec)
    name = given["name"]
    if "equations" not in given:
        family, _, size = name.rpartition("_")
        return lorenz96(int(size)) if family == "lorenz96" else SYSTEMS[name]
    model = Model.from_text(given["equations"], name)
    x0 = np.array([given["x0"][state] for state in model.states], float)
    return System(model, given["theta"], x0, np.array(given["times"], float), bool(given["snr"]))
