"""Trace and rank plots of Markov chains."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odinfer.style.drawing import PALETTE, STYLE, shorten
from odinfer.style.picture import LegendEntry, PanelFigure, Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.result.fit import FitResult

Array = NDArray[np.float64]

MOST_CHAINS_SHOWN = 12  # parameters
_POINTS, _BINS = 250, 20  # draws of a chain in its trace; of its ranks


def traces_picture(fit: FitResult) -> PanelFigure | None:
    """Draws in their order, a panel per parameter and a colour per chain: no drift, no chain by itself."""

    def draw(chains: Array, ax: Axes) -> None:
        step = max(1, chains.shape[1] // _POINTS)
        at = np.arange(0, chains.shape[1], step)
        for i, chain in enumerate(chains):
            ax.plot(at, chain[::step], color=PALETTE[i % len(PALETTE)], lw=0.6, alpha=0.8)
        ax.set_xlim(0, chains.shape[1])

    return _by_parameter(fit, draw, "draw", "draws in their order")


def ranks_picture(fit: FitResult) -> PanelFigure | None:
    """How the ranks of each chain's draws among all draws are spread: evenly, if the chains agree."""

    def draw(chains: Array, ax: Axes) -> None:
        ranks = chains.ravel().argsort().argsort().reshape(chains.shape)
        for i, own in enumerate(ranks):
            count, edges = np.histogram(own, _BINS, (0, ranks.size))
            ax.stairs(count, edges, color=PALETTE[i % len(PALETTE)], lw=1.2)
        even = chains.shape[1] / _BINS
        ax.axhline(even, color=STYLE["faint"], lw=0.9, ls=(0, (4, 2)))
        ax.set(xlim=(0, ranks.size), ylim=(0, max(2.2 * even, ax.get_ylim()[1])))

    even = (LegendEntry("evenly spread", "--", STYLE["faint"]),)
    return _by_parameter(fit, draw, "rank among all draws", "ranks of the draws by chain", even)


def _by_parameter(
    fit: FitResult, draw: Callable[[Array, Axes], None], x: str, what: str, keys: tuple[LegendEntry, ...] = ()
) -> PanelFigure | None:
    known = fit.sampled.r_hat if fit.sampled is not None else fit.details.get("r_hat", {})
    plots = []
    for name, draws in list(fit.draws.items())[:MOST_CHAINS_SHOWN]:
        if not np.isfinite(draws).all() or draws.shape[1] < 2:
            continue
        agree = f", R-hat {known[name]:.3f}" if name in known else ""
        alt = f"{name}: {what} of {draws.shape[0]} chains{agree}"
        plots.append(
            Plot(name, alt, partial(draw, draws), x=x, y=shorten(name), title=agree.strip(", "), colour=STYLE["faint"])
        )
    chains = next(iter(fit.draws.values())).shape[0] if fit.draws else 0
    groups = tuple((f"chain {i + 1}", PALETTE[i % len(PALETTE)]) for i in range(min(chains, 6)))
    return PanelFigure(tuple(plots), keys, groups, height=1.8) if plots else None
