"""`Design`: the chosen samples, expected standard errors, and efficiencies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import InputError
from odinfer.files import write_file
from odinfer.optimal_design.criteria import UNDETERMINED
from odinfer.optimal_design.information import Sample
from odinfer.style.text import TextTable, format_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

_HOPELESS = 100.0  # times as many equally spaced samples: a number that says no more than that these do not do


@dataclass(frozen=True)
class Plan:
    """A way to give doses, and how good its best samples are."""

    doses: str
    efficiency: float


@dataclass(frozen=True, eq=False)
class Predictions:
    """What the picture of a design shows.

    Attributes:
        experiments, columns, names: their names.
        t: times (T,).
        predicted: values (E, T, M) of the columns; of the second model too in a discrimination (E, T, M), else None.
        sensitivity: by experiment, size (E, T, P) of the change of predictions, in standard deviations of the noise,
            for a relative change of one of each unknown.
    """

    experiments: tuple[str, ...]
    columns: tuple[str, ...]
    names: tuple[str, ...]
    t: Array
    predicted: Array
    sensitivity: Array
    rival: Array | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """Which samples to take, and what is known after they were taken.

    Attributes:
        model: its name; two names in a discrimination.
        criterion: in words.
        samples: what to measure, in the order of time.
        names, values: the unknowns, then forecasts that were asked for, and their values (P,) in the user's units.
        before, after: relative standard errors (P,) without and with the samples; infinite where nothing is known.
        efficiency: samples of this design that equally spaced ones of the same number are worth, relative to its own;
            1.5 means that equally spaced samples would need 1.5 times as many.
        curve: designs of 1, 2, … samples: number, mean relative standard error, efficiency relative to the last one.
        predictions: states, observables and sensitivities over time.
        plans: the doses that were compared; empty if they are given.
        difference: expected difference of the log-likelihoods of two models, in a discrimination; otherwise None.
        confirmation: expected and simulated relative standard errors, if simulated; otherwise None.
        notes: sentences that the user should read.

    Example:
        >>> import odinfer as od
        >>> model = od.Model.from_text("x' = -k*x; x(0) = 5; x ~ normal(x, 0.1)")
        >>> design = od.design(model, theta={"k": 0.5}, times=(0, 10), add=1)
        >>> float(design.times[0])
        2.0
    """

    model: str
    criterion: str
    samples: tuple[Sample, ...]
    names: tuple[str, ...]
    values: Array
    before: Array
    after: Array
    efficiency: float
    curve: pd.DataFrame
    predictions: Predictions
    plans: tuple[Plan, ...] = ()
    difference: float | None = None
    confirmation: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    @property
    def times(self) -> Array:
        """When to measure (n,)."""
        return np.array([s.time for s in self.samples])

    def schedule(self) -> pd.DataFrame:
        """Return the samples, a row each: experiment, time and what is observed."""
        import pandas as pd

        rows = [(s.experiment, s.time, ", ".join(s.columns)) for s in self.samples]
        return pd.DataFrame(rows, columns=["experiment", "time", "observe"])

    def table(self) -> pd.DataFrame:
        """Return the unknowns, a row each: value, relative standard errors before and after (NaN: not determined)."""
        import pandas as pd

        before, after = (np.where(v > UNDETERMINED, np.nan, v) for v in (self.before, self.after))
        columns = {"value": self.values, "rse_before": before, "rse_after": after}
        return pd.DataFrame(columns, index=pd.Index(self.names, name="parameter"))

    def summary(self) -> str:
        """Return what `odinfer design` prints."""
        return summary(self)

    def __repr__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path | None = None, ax: Sequence[Axes] | None = None) -> Figure:
        """Draw predictions and sensitivities over time with the samples, and the gain by their number.

        Args:
            path: a file to write, such as design.png, .pdf or .svg.
            ax: three axes to draw on instead of a new figure.
        """
        from odinfer.optimal_design.figures import design_figure

        return design_figure(self, path, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "model": self.model,
            "criterion": self.criterion,
            "samples": self.schedule().to_dict("records"),
            "parameters": [
                {"name": n, "value": float(v), "rse_before": _finite(a), "rse_after": _finite(b)}
                for n, v, a, b in zip(self.names, self.values, self.before, self.after, strict=True)
            ],
            "efficiency_of_equal_spacing": 1.0 / self.efficiency if self.efficiency else None,
            "curve": self.curve.to_dict("records"),
            "plans": [{"doses": p.doses, "efficiency": p.efficiency} for p in self.plans],
            "expected_difference": self.difference,
            "confirmation": None if self.confirmation is None else self.confirmation.reset_index().to_dict("records"),
            "notes": list(self.notes),
        }

    def save(self, path: str | Path) -> None:
        """Write everything as JSON (.json) or the samples as CSV (.csv)."""
        path = Path(path)
        if path.suffix == ".json":
            write_file(path, json.dumps(self.to_dict(), indent=1) + "\n")
        elif path.suffix == ".csv":
            write_file(path, self.schedule().to_csv(index=False))
        else:
            raise InputError(f"a design is written as .json or .csv, not '{path.name}'")


def _finite(rse: float) -> float | None:
    return float(rse) if rse <= UNDETERMINED else None


def percent(rse: float) -> str:
    """A relative standard error for people."""
    return "not determined" if not rse <= UNDETERMINED else f"{100 * rse:.1f} %" if rse < 0.1 else f"{100 * rse:.0f} %"


def summary(design: Design) -> str:
    """The samples, what they promise, and how they compare, as text."""
    several = len({s.experiment for s in design.samples}) > 1
    apart = len({s.columns for s in design.samples}) > 1
    header = ["time", *(["experiment"] if several else []), *(["observe"] if apart else [])]
    rows = [
        (format_number(s.time, 4), *([s.experiment] if several else []), *([", ".join(s.columns)] if apart else []))
        for s in design.samples
    ]
    lines = [f"{design.model}: the {len(rows)} best samples ({design.criterion})", ""]
    if len(header) == 1:
        lines[1:] = ["times: " + ", ".join(r[0] for r in rows), ""]
    else:
        lines += [*TextTable(tuple(header), tuple(rows)).lines(), ""]
    if design.difference is None:
        lines += [*_error_table(design).lines(), ""]
    else:
        lines.append(f"Expected difference of the log-likelihoods of the two models: {design.difference:.3g} nats.")
    if design.efficiency > _HOPELESS:
        lines.append("As many equally spaced samples tell next to nothing.")
    elif design.efficiency > 0:
        lines.append(f"Equally spaced samples: {design.efficiency:.2f} times as many are needed for the same.")
    for plan in design.plans:
        lines.append(f"Doses {plan.doses}: efficiency {plan.efficiency:.0%}")
    if design.confirmation is not None:
        rows = [
            (str(name), percent(row.expected), percent(row.simulated)) for name, row in design.confirmation.iterrows()
        ]
        lines += ["", *TextTable(("parameter", "expected std. error", "simulated"), tuple(rows)).lines()]
    lines += [f"Note: {note}" for note in design.notes]
    return "\n".join(lines).rstrip()


def _error_table(design: Design) -> TextTable:
    """Relative standard errors of the unknowns; those before only if something is known before."""
    known = bool((design.before <= UNDETERMINED).any())
    rows = [
        (n, format_number(v, 4), *([percent(a)] if known else []), percent(b))
        for n, v, a, b in zip(design.names, design.values, design.before, design.after, strict=True)
    ]
    heads = ("std. error now", "with the samples") if known else ("expected std. error",)
    return TextTable(("parameter", "value", *heads), tuple(rows))


def curve_frame(sizes: Sequence[int], errors: Sequence[float], efficiencies: Sequence[float]) -> pd.DataFrame:
    """The gain by the number of samples."""
    import pandas as pd

    columns: Mapping[str, Any] = {"samples": sizes, "mean_rse": errors, "efficiency": efficiencies}
    return pd.DataFrame(columns)
