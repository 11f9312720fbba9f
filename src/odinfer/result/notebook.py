"""The HTML of a fit in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odinfer.result.estimates import parameter_table
from odinfer.result.figures.states import states_picture
from odinfer.result.summary import headline, state_table, tone
from odinfer.style.html import notebook_image, render_page

if TYPE_CHECKING:
    from odinfer.result.fit import FitResult


def notebook(fit: FitResult) -> str:
    """A piece of a page that needs no other file."""
    return render_page(
        "notebook.html",
        title=fit.model,
        status=f"fitted by {fit.method}: {fit.status}",
        headline=headline(fit),
        good=tone(fit) == "good",
        tables=[parameter_table(fit), state_table(fit)],
        warnings=fit.warnings,
        **notebook_image(states_picture(fit)),
    )
