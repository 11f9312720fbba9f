"""A fit as notebooks show it: tables with the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odinfer.result.estimates import parameter_table
from odinfer.result.figures.states import states_picture
from odinfer.result.summary import headline, state_table, tone
from odinfer.style.drawing import png
from odinfer.style.html import NOTEBOOK, inlined, page
from odinfer.style.picture import sheet

if TYPE_CHECKING:
    from odinfer.result.fit import Fit


def notebook(fit: Fit) -> str:
    """A piece of a page that needs no other file."""
    picture = states_picture(fit)
    return page(
        "notebook.html",
        title=fit.model,
        status=f"fitted by {fit.method}: {fit.status}",
        headline=headline(fit),
        good=tone(fit) == "good",
        tables=[parameter_table(fit), state_table(fit)],
        image=inlined({"states": png(sheet(picture), NOTEBOOK)})["states"],
        alt="; ".join(plot.alt for plot in picture.plots),
        warnings=fit.warnings,
    )
