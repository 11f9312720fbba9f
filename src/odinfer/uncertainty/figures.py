"""Plot profile likelihoods."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from odinfer.errors import InputError
from odinfer.style.drawing import BAD, GOOD, STYLE, shorten
from odinfer.style.picture import LegendEntry, PanelFigure, Plot, combined_figure
from odinfer.style.text import format_number
from odinfer.uncertainty.small_sample import CONFIDENCE, threshold

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from odinfer.uncertainty.results import Profile


def profiles_figure(profiles: Mapping[str, Profile]) -> Figure:
    """The fall of the likelihood over each parameter with the 95 % limit, a panel per parameter."""
    if not profiles:
        raise InputError("there are no profiles to draw")
    return combined_figure(profiles_picture(profiles))


def profiles_picture(profiles: Mapping[str, Profile]) -> PanelFigure:
    """The same panel by panel."""
    plots = []
    for p in profiles.values():
        low, high = (format_number(v, 3) for v in p.interval())
        words = f"95 %: {low} to {high}"
        plots.append(
            Plot(p.name, f"profile likelihood of {p.name}, {words}", partial(_draw, p), x=shorten(p.name),
                 y="2 × fall of log L", title=words, colour=STYLE["faint"])
        )  # fmt: skip
    return PanelFigure(
        tuple(plots), (LegendEntry("profile likelihood", "-", GOOD), LegendEntry("95 % limit", "--", BAD)), height=2.3
    )


def _draw(p: Profile, ax: Axes) -> None:
    wanted = float(threshold(p.freedom, p.count, CONFIDENCE))
    ax.plot(p.values, -2.0 * p.likelihoods, color=GOOD, lw=1.6, marker="o", ms=2.8)
    ax.axhline(wanted, color=BAD, lw=1.1, ls=(0, (4, 2)))
    for end in p.interval():
        if np.isfinite(end):
            ax.axvline(end, color=STYLE["faint"], lw=0.9, ls=(0, (2, 2)))
    ax.set_ylim(-0.05 * wanted, 2.4 * wanted)
