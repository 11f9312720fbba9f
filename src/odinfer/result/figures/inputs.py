"""Plot known inputs, doses and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from odinfer.result.figures.marks import axis_label, colours, groups, set_time_axis, span
from odinfer.result.stages import attached_problem
from odinfer.style.drawing import shorten
from odinfer.style.picture import PanelFigure, Plot
from odinfer.style.text import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from odinfer.problem.problem import Problem
    from odinfer.result.fit import FitResult


def inputs_picture(fit: FitResult) -> PanelFigure | None:
    """The inputs that change over time and when states jump, as far as the fit still has its problem."""
    problem, plots = attached_problem(fit), []
    if problem is None:
        return None
    series = [e.u for e in problem.data.experiments]
    for name in (n for n in problem.model.inputs if any(len(own[n][0]) > 1 for own in series)):

        def draw(ax: Axes, name: str = name) -> None:
            set_time_axis(fit, ax)
            for colour, own in zip(colours(fit), series, strict=True):
                t, u = own[name]
                kind = "steps-post" if name in problem.model.declarations.steps else "default"
                ax.plot(t, u, color=colour, lw=1.4, marker="o" if len(t) <= 60 else "", ms=2.5, drawstyle=kind)

        low, high = span(*(own[name][1] for own in series))
        alt = f"{name}: a known input between {format_number(low, 3)} and {format_number(high, 3)}"
        plots.append(Plot(name, alt, draw, y=shorten(name), time=axis_label(fit, "time")))
    conditions = [problem.condition(e) for e in range(len(series))]
    times = {j.time for c in conditions for j in c.jumps} | {i.begin for c in conditions for i in c.infusions}
    if times:
        plots.append(_jumps(fit, problem, sorted(times)))
    return PanelFigure(tuple(plots), (), groups(fit), height=1.7) if plots else None


def _jumps(fit: FitResult, problem: Problem, times: list[float]) -> Plot:
    """When doses and events change states, a row per experiment."""

    def draw(ax: Axes) -> None:
        set_time_axis(fit, ax)
        names = list(fit.experiments)
        for e, colour in enumerate(colours(fit)):
            condition = problem.condition(e)
            ax.plot([j.time for j in condition.jumps], np.full(len(condition.jumps), -e), "v", color=colour, ms=5)
            for i in condition.infusions:
                ax.plot([i.begin, i.end], [-e, -e], color=colour, lw=4, solid_capstyle="butt")
        few = range(0, len(names), max(1, len(names) // 8))
        ax.set_yticks(
            [-e for e in few], [shorten(names[e], 9) for e in few] if len(names) > 1 else [""], parse_math=False
        )
        ax.set_ylim(0.6 - len(names), 0.6)

    at = ", ".join(format_number(t, 3) for t in times[:6]) + (f" and {len(times) - 6} more" if len(times) > 6 else "")
    return Plot("doses and events", f"doses and events at times {at}", draw, y="doses, events")
