"""Plots of a result with matplotlib, as a base class of FitResult: each draws on given axes or on a new figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from odinfer.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.result.fit import FitResult
    from odinfer.style.picture import PanelFigure


class Plots:
    """Plots of a fit. `plot` returns a figure; the others return the axes: one, or an array of several."""

    def plot(
        self, path: str | Path | None = None, ax: Axes | Sequence[Axes] | None = None, width: float | None = None
    ) -> Figure:
        """Plot data and estimated states with bands.

        Args:
            path: of a picture file to write: .pdf and .svg are vector graphics.
            ax: matplotlib axes to draw on: a panel on each of several, all states on a single one.
            width: of the figure in inches, such as 3.5 for a column of a journal.

        Returns:
            The matplotlib figure.
        """
        from odinfer.result.figures.states import draw_states, states_figure

        fit = cast("FitResult", self)
        figure = states_figure(fit, width) if ax is None else draw_states(fit, ax)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def plot_residuals(self, ax: Axes | Sequence[Axes] | None = None) -> Any:
        """Plot residuals over time with ± 2 σ, a panel per column; return the axes."""
        from odinfer.result.figures.residuals import residuals_picture

        return _axes(residuals_picture(cast("FitResult", self), histogram=ax is None), ax)

    def plot_predicted(self, ax: Axes | Sequence[Axes] | None = None) -> Any:
        """Plot observed against predicted values, a panel per column; return the axes."""
        from odinfer.result.figures.residuals import predicted_picture

        return _axes(predicted_picture(cast("FitResult", self)), ax)

    def plot_quantiles(self, ax: Axes | Sequence[Axes] | None = None) -> Any:
        """Plot quantiles of the residuals against those of a normal distribution; return the axes."""
        from odinfer.result.figures.residuals import quantiles_picture

        return _axes(quantiles_picture(cast("FitResult", self)), ax)

    def plot_phase(self, ax: Axes | Sequence[Axes] | None = None) -> Any:
        """Plot states against each other; return the axes."""
        from odinfer.result.figures.phase import phase_picture

        return _axes(phase_picture(cast("FitResult", self)), ax)

    def plot_traces(self, ax: Axes | Sequence[Axes] | None = None) -> Any:
        """Plot posterior draws by chain, a panel per parameter; return the axes."""
        from odinfer.result.figures.samples import traces_picture

        return _axes(traces_picture(cast("FitResult", self)), ax)


def _axes(picture: PanelFigure | None, ax: Any) -> Any:
    """Draw a picture on given axes, or on those of a new figure."""
    from odinfer.style.picture import combined_figure, draw_panels

    if picture is None:
        raise InputError("this fit has nothing to show in such a plot")
    axes = combined_figure(picture).axes[: len(picture.plots)] if ax is None else draw_panels(picture, ax)
    return axes[0] if len(axes) == 1 else np.array(axes, dtype=object)
