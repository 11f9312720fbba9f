"""Pictures of profile likelihoods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from odinfer.errors import InputError
from odinfer.style.drawing import BAD, GOOD, STYLE, WIDTH, add_axes, blank, label, short
from odinfer.style.text import number
from odinfer.uncertainty.small_sample import CONFIDENCE, threshold

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from odinfer.uncertainty.results import Profile


def profiles_figure(profiles: Mapping[str, Profile]) -> Figure:
    """The fall of the likelihood over each parameter with the 95 % limit, a panel per parameter."""
    if not profiles:
        raise InputError("there are no profiles to draw")
    columns = min(len(profiles), 3)
    rows = -(-len(profiles) // columns)
    figure = blank(2.5 * rows + 0.1)
    each = WIDTH / columns
    for i, p in enumerate(profiles.values()):
        ax = add_axes(figure, i % columns * each + 0.66, 2.5 * (rows - 1 - i // columns) + 0.5, each - 0.86, 1.8)
        fall = -2.0 * p.likelihoods
        wanted = float(threshold(p.freedom, p.count, CONFIDENCE))
        ax.plot(p.values, fall, color=GOOD, lw=1.6, marker="o", ms=2.8)
        ax.axhline(wanted, color=BAD, lw=1.1, ls=(0, (4, 2)))
        for end in p.interval():
            if np.isfinite(end):
                ax.axvline(end, color=STYLE["faint"], lw=0.9, ls=(0, (2, 2)))
        ax.set_ylim(-0.05 * wanted, 2.4 * wanted)
        low, high = (number(v, 3) for v in p.interval())
        label(ax.set_title, f"95 %: {low} to {high}", STYLE["faint"], loc="left")
        label(ax.set_xlabel, short(p.name))
        if i % columns == 0:
            label(ax.set_ylabel, "2 × fall of log L")
    return figure
