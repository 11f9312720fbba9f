"""Sample the posterior of a population's parameters and of all individual parameters.

Parameters are drawn by adaptive importance sampling (Cappé et al. 2004) on the marginal likelihood: Student's t about
the maximum, then twice about the weighted draws. Random effects are integrated out of it, so that few dimensions are
left. Subjects' latent values are then drawn from normal distributions with their means and covariances given the data
and the drawn parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.files import replaced_file
from odinfer.model.priors import Prior
from odinfer.population.estimate import Estimate
from odinfer.population.intervals import small_nodes
from odinfer.population.quadrature import student
from odinfer.population.structure import Structure, natural
from odinfer.result.formats.netcdf_format import Group

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Array = NDArray[np.float64]

_POINTS = 2048  # of a round of importance sampling, a power of two as Sobol's sequence needs
_ROUNDS = 3
FEWEST = 100.0  # effective draws from which quantiles are worth printing


@dataclass(frozen=True, eq=False, repr=False)
class PopulationPosterior:
    """Draws from a posterior.

    Attributes:
        theta: draws of the population's parameters, a column each.
        individual: draws of the individual parameters: name → (draws, subjects).
        subjects: their names.
        ess: effective number of independent draws behind these.
    """

    theta: pd.DataFrame
    individual: Mapping[str, Array]
    subjects: tuple[str, ...]
    ess: float

    @property
    def converged(self) -> bool:
        """Whether there are enough effective draws."""
        return self.ess >= FEWEST

    def interval(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        """Credible intervals by name, from quantiles."""
        tail = 0.5 * (1.0 - level)
        low, high = self.theta.quantile(tail), self.theta.quantile(1.0 - tail)
        return {name: (float(low[name]), float(high[name])) for name in self.theta}

    @property
    def table(self) -> pd.DataFrame:
        """Means, standard deviations and 95 % credible intervals of the population's parameters, a row each."""
        quantiles = self.theta.quantile([0.025, 0.5, 0.975]).T.set_axis(["low", "median", "high"], axis=1)
        return quantiles.assign(mean=self.theta.mean(), sd=self.theta.std())

    def __repr__(self) -> str:
        draws = f"{len(self.theta)} draws, {self.ess:.0f} effective, {len(self.subjects)} subjects"
        return f"<PopulationPosterior: {draws}>\n{self.table.round(4).to_string()}"

    def _group(self) -> Group:
        variables = {name: (("chain", "draw"), self.theta[name].to_numpy()[None]) for name in self.theta}
        own = {name: (("chain", "draw", "subject"), values[None]) for name, values in self.individual.items()}
        coords = {"chain": ("chain", np.arange(1)), "draw": ("draw", np.arange(len(self.theta)))}
        subjects = ("subject", np.array(self.subjects, object))
        return Group({**variables, **own}, {**coords, "subject": subjects}, {"ess": self.ess})

    def to_xarray(self) -> xr.Dataset:
        """The draws as ArviZ has them, with dimensions chain (one), draw and subject."""
        return self._group().dataset()

    def save(self, path: str | Path) -> None:
        """Write a netCDF file with a group `posterior`, which `arviz.from_netcdf` reads."""
        import h5netcdf

        with replaced_file(path) as place, h5netcdf.File(place, "w") as file:
            self._group().write(file.create_group("posterior"))


def log_prior(structure: Structure, prior: Prior, given: frozenset[str], v: Array) -> float:
    """Logarithm of the prior density of the unconstrained parameters v.

    Where no prior is given: uniform in standard deviations of random effects (Gelman 2006), in the logarithm of other
    positive parameters, in correlation matrices (Lewandowski et al. 2009), and in all other parameters as they stand.
    """
    values, total = structure.values(v), 0.0
    for i, p in enumerate(structure.parameters):
        if p.role == "correlation":
            pair = p.name[5:-1].split(",")
            group = next(g for g in structure.groups if set(pair) <= set(g))
            power = 1.0 + 0.5 * (len(group) - 2 - group.index(pair[0]))
            total += power * float(np.log1p(-(np.tanh(v[i]) ** 2)))
        elif p.name in given or p.role == "omega" or np.isfinite(p.high) or np.isinf(p.low):
            total += float(np.log(p.slope(v[i])))
    if given:
        total -= prior.derivatives(np.array([values[name] for name in structure.names]))[0]
    return total


def sample(found: Estimate, prior: Mapping[str, Any], draws: int, seed: int) -> PopulationPosterior:
    """Draw from the posterior."""
    import pandas as pd

    s, nodes, rng = found.structure, small_nodes(found), np.random.default_rng([seed, 14])
    term, given = Prior.of(prior, s.names), frozenset(prior)
    centre, C = found.v, found.covariance
    for i in range(_ROUNDS):
        w, V = np.linalg.eigh(C)
        z, log_weight = student(_POINTS, len(centre), seed + i)
        v = centre + z @ (V * np.sqrt(np.clip(w, 1e-12, 4.0))).T
        log = log_weight + [nodes.value(own) + log_prior(s, term, given, own) for own in v]
        share = np.exp(np.where(np.isfinite(log), log, -np.inf) - np.max(log[np.isfinite(log)]))
        share /= share.sum()
        centre = share @ v
        C = (v - centre).T @ ((v - centre) * share[:, None])
    chosen = v[rng.choice(len(v), draws, p=share)]
    theta = pd.DataFrame([s.values(own) for own in chosen])
    x = np.empty((draws, len(s.subjects), len(s.effects)))
    for k, own in enumerate(chosen):
        mean, cov, _ = nodes.moments(own)
        x[k] = s.means(own)[0]
        root = np.linalg.cholesky(cov + 1e-12 * np.eye(cov.shape[-1]))
        x[k][:, s.active] = mean + np.einsum("eij,ej->ei", root, rng.normal(size=mean.shape))
    individual = {e.name: natural(e.family, x[..., i]) for i, e in enumerate(s.effects)}
    return PopulationPosterior(theta, individual, s.subjects, float(1.0 / (share**2).sum()))
