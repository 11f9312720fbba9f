"""`Fits`, the result of `od.fit_each`: a fit or a failure per experiment, and one table of estimates."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from odinfer.apps.each.outliers import find_outliers
from odinfer.apps.each.row import Estimate, Row
from odinfer.problem.problem import Problem
from odinfer.result.fit import Fit
from odinfer.result.formats.load import loads
from odinfer.style.text import format_number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Failure:
    """Stands for a fit that there is not: `status` says why."""

    status: str
    converged: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Fits(Mapping[str, "Fit | Failure"]):
    """A fit by experiment, as a mapping; of a series that could not be fitted a `Failure` with its `status`.

    Attributes:
        model, method: their names.
        problems: experiment → what was fitted; not of those that could not even be posed.
        rows: experiment → what tables and pictures show of it, in the order of the data.
        documents: experiment → its fit as the text of a JSON file.
    """

    model: str
    method: str
    problems: dict[str, Problem]
    rows: dict[str, Row]
    documents: dict[str, str]

    def __getitem__(self, experiment: str) -> Fit | Failure:
        if experiment not in self.rows:
            raise KeyError(experiment)
        if experiment not in self.documents:
            return Failure(self.rows[experiment].status)
        found = loads(self.documents[experiment], f"the fit of '{experiment}'")
        return found.attach(self.problems[experiment])

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return self.summary()

    @functools.cached_property
    def failed(self) -> dict[str, str]:
        """Experiment → status, of those whose fit failed or did not converge."""
        return {name: row.status for name, row in self.rows.items() if not row.converged}

    @functools.cached_property
    def contradicted(self) -> dict[str, tuple[str, ...]]:
        """Experiment → states whose equations its data contradict, or the model as a whole."""
        return {name: row.rejected for name, row in self.rows.items() if row.rejected and row.converged}

    @functools.cached_property
    def outliers(self) -> dict[str, tuple[str, ...]]:
        """Experiment → parameters, or noise levels as sigma_x, that are far from those of the rest; farthest first."""
        alike: dict[str, dict[str, Estimate]] = {}
        for name, row in self.rows.items():
            noise = {f"sigma_{c}": (s, np.nan, np.nan) for c, s in row.sigma.items()}
            for quantity, value in {**row.theta, **noise}.items() if row.converged else ():
                alike.setdefault(quantity, {})[name] = value
        return find_outliers(alike)

    def estimates(self) -> dict[str, dict[str, Estimate]]:
        """Parameter or initial value → experiment → estimate with the ends of its 95 % interval."""
        starts = {row.start for row in self.rows.values() if row.initial}
        begin = format_number(starts.pop()) if len(starts) == 1 else "start"
        found: dict[str, dict[str, Estimate]] = {}
        for quantity, label in (("theta", "{}"), ("initial", f"{{}}({begin})")):
            for name, row in self.rows.items():
                for own, value in getattr(row, quantity).items():
                    found.setdefault(label.format(own), {})[name] = value
        return found

    def table(self) -> pd.DataFrame:
        """A row per experiment.

        Columns are status, converged, contradicted, outlier (both lists in words), and for every estimate a the columns
        a, a_low and a_high, the ends of its 95 % interval; the noise levels come last, as sigma_x.
        """
        import pandas as pd

        columns: dict[str, list[object]] = {
            "status": [row.status for row in self.rows.values()],
            "converged": [row.converged for row in self.rows.values()],
            "contradicted": [", ".join(row.rejected) for row in self.rows.values()],
            "outlier": [", ".join(self.outliers.get(name, ())) for name in self.rows],
        }

        def add(name: str, values: list[object]) -> None:
            while name in columns:  # a parameter a beside one that is called a_low
                name += "_"
            columns[name] = values

        nothing = (np.nan,) * 3
        for quantity, found in self.estimates().items():
            for i, end in enumerate(("", "_low", "_high")):
                add(quantity + end, [found.get(name, nothing)[i] for name in self.rows])
        for column in dict.fromkeys(c for row in self.rows.values() for c in row.sigma):
            add(f"sigma_{column}", [row.sigma.get(column, np.nan) for row in self.rows.values()])
        return pd.DataFrame(columns, index=pd.Index(list(self.rows), name="experiment"))

    def summary(self) -> str:
        """All of it as text: every estimate of a few series, medians and spread of many, and which need a look."""
        from odinfer.apps.each.summary import summary

        return summary(self)

    def save(self, path: str | Path) -> None:
        """Write the table to a `.csv` file, the page to a `.html` file, or both and all states to a folder."""
        from odinfer.apps.each.page import save

        save(self, Path(path))
