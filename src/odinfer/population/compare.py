"""Compare population models of the same data: information criteria, and likelihood-ratio tests of nested pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odinfer.errors import InputError
from odinfer.files import make_folder, write_file
from odinfer.population.result import PopulationFit, as_json
from odinfer.style.text import TextTable

if TYPE_CHECKING:
    import pandas as pd


FORMAT = "odinfer-population-comparison/1"


@dataclass(frozen=True, eq=False)
class PopulationComparison:
    """Fits of several models to the same subjects.

    Attributes:
        fits: model name → its fit.
    """

    fits: Mapping[str, PopulationFit]

    @property
    def table(self) -> pd.DataFrame:
        """One row per model, the lowest BIC first; `weight` is the weight of the model by BIC."""
        import pandas as pd

        rows = {
            name: {
                "loglik": f.loglik,
                "error": f.loglik_error,
                "parameters": len(f.structure.names),
                "aic": f.aic,
                "bic": f.bic,
            }
            for name, f in self.fits.items()
        }
        table = pd.DataFrame.from_dict(rows, orient="index").sort_values("bic")
        weight = np.exp(-0.5 * (table["bic"] - table["bic"].min()))
        return table.assign(weight=weight / weight.sum())

    @property
    def best(self) -> str:
        """The model with the lowest BIC."""
        return str(self.table.index[0])

    def test(self, smaller: str, larger: str) -> float:
        """p-value of the likelihood-ratio test of two nested models.

        Each standard deviation that is zero in the smaller model lies on the boundary. With one of them, the statistic
        is an equal mixture of χ² distributions with k − 1 and k degrees of freedom, where k counts the parameters that
        the larger model has more (Self and Liang 1987); with several, the mixture has binomial weights, which is exact
        for effects whose estimates are independent.

        Raises:
            InputError: there are no such models, or the larger one has no more parameters.
        """
        for name in (smaller, larger):
            if name not in self.fits:
                raise InputError(f"there is no model '{name}'; choose from {', '.join(self.fits)}")
        one, two = self.fits[smaller], self.fits[larger]
        more = _count(two) - _count(one)
        if more < 1:
            raise InputError(f"'{larger}' has no more parameters than '{smaller}'; give the smaller model first")
        boundary = max(0, _count(two, "omega") - _count(one, "omega"))
        return likelihood_ratio(2.0 * (two.loglik - one.loglik), more, min(boundary, more))

    def summary(self) -> str:
        """The preferred model, the table, and what to note about each fit."""
        table = self.table
        columns = {"loglik": ".3f", "parameters": ".0f", "aic": ".2f", "bic": ".2f", "weight": ".2g"}
        rows = tuple((name, *(f"{table.loc[name, c]:{form}}" for c, form in columns.items())) for name in table.index)
        shown = TextTable(("model", "log-likelihood", "parameters", "AIC", "BIC", "weight"), rows)
        gain = float(table["bic"].iloc[1] - table["bic"].iloc[0]) if len(table) > 1 else 0.0
        first = (
            f"{self.best} has the lowest BIC, by {gain:.2f}." if len(table) > 1 else f"{self.best} is the only model."
        )
        notes = [f"- {name}: {warning}" for name, fit in self.fits.items() for warning in fit.warnings]
        return "\n\n".join([first, "\n".join(shown.lines()), *(["\n".join(notes)] if notes else [])]) + "\n"

    def document(self) -> dict[str, Any]:
        """The comparison as plain values."""
        table = self.table.to_dict("index")
        return {
            "format": FORMAT,
            "best": self.best,
            "table": table,
            "fits": {n: f.document() for n, f in self.fits.items()},
        }

    def write_outputs(self, folder: str | Path) -> list[Path]:
        """Write comparison.json, and the report of the best model."""
        folder = Path(folder)
        make_folder(folder)
        paths = [folder / "report.html", folder / "comparison.json"]
        self.fits[self.best].save(paths[0])
        write_file(paths[1], as_json(self.document()))
        return paths

    def __str__(self) -> str:
        return self.summary()


def _count(fit: PopulationFit, role: str | None = None) -> int:
    """Parameters that are estimated, those that went to zero included."""
    found = sum(role is None or p.role == role for p in fit.structure.parameters)
    return found + (len(fit.fixed_at_zero) if role in (None, "omega") else 0)


def likelihood_ratio(statistic: float, more: int, boundary: int = 0) -> float:
    """p-value of a likelihood ratio with `more` parameters, of which `boundary` lie at a bound in the smaller model."""
    from scipy.special import chdtrc, comb

    if statistic <= 0:
        return 1.0
    p = 0.0
    for k in range(boundary + 1):
        degrees = more - boundary + k
        tail = float(chdtrc(degrees, statistic)) if degrees else 0.0
        p += float(comb(boundary, k)) / 2.0**boundary * tail
    return p
