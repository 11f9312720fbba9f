"""`odinfer forecast`, `odinfer profile` and `odinfer plot`, for a new fit or a saved one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odinfer.apps.command.flags import read_times
from odinfer.apps.command.terminal import progress, show
from odinfer.data.csv_file import write_csv
from odinfer.errors import InputError, nearest
from odinfer.files import replaced_file

if TYPE_CHECKING:
    from odinfer.problem.problem import Problem
    from odinfer.result.fit import Fit

_PICTURES = (".pdf", ".svg", ".png", ".eps")
_WIDTHS = {"column": 3.5, "page": 7.2}  # inches: a column and the text of a journal page


def fit_of(problem: Problem, fitted: Path | None, seed: int, quiet: bool) -> Fit:
    """The fit of a problem: loaded from fit.json if given, else computed.

    Raises:
        InputError: the file is no fit, or of another problem; or the fit failed.
    """
    from odinfer.methods import fit
    from odinfer.result.formats.load import load

    if problem.model.declarations.effects:
        raise InputError("`odinfer profile` has no random effects; intervals of `odinfer fit` are profiles already")
    if fitted is not None:
        return load(fitted).attach(problem)
    with progress(quiet) as tell:
        found = fit(problem, seed=seed, progress=tell)
    if not found.converged:
        raise InputError(f"the fit {found.status}; look at `odinfer fit` first")
    return found


def run_forecast(fit: Fit, times: str, level: float, observed: bool, out: Path) -> None:
    """Write states with their bands at the given times, one experiment below the other."""
    import numpy as np

    t = read_times(times)
    tables = {name: fit.forecast(t, name, level, observed) for name in fit.experiments}
    first = next(iter(tables.values()))
    columns: dict[str, Any] = {}
    if len(tables) > 1:
        columns["experiment"] = np.concatenate([[name] * len(table) for name, table in tables.items()])
    columns["time"] = np.concatenate([table.index.to_numpy() for table in tables.values()])
    for name in first.columns:
        columns[name] = np.concatenate([table[name].to_numpy() for table in tables.values()])
    with replaced_file(out) as temporary:
        write_csv(temporary, columns)
    show(f"Wrote {out}: {', '.join(first.columns[::3])} with {100 * level:g} % bands at {len(t)} times.")


def run_profile(fit: Fit, names: Sequence[str], out: Path) -> None:
    """Print the profile-likelihood intervals of parameters, and draw their profiles."""
    from odinfer.uncertainty.figures import profiles_figure

    free = [name for name in fit.parameter_names if name not in (fit.details.get("fixed") or ())]
    for name in names:
        if name not in free and "(" not in name:
            raise InputError(f"there is no estimated parameter '{name}'{nearest(name, free)}")
    profiles = {name: fit.profile(name) for name in names or free}
    for name, profile in profiles.items():
        low, high = profile.interval()
        show(f"{name} = {profile.estimate:.5g}, 95 % {low:.5g} to {high:.5g}")
    _check_picture(out)
    profiles_figure(profiles).savefig(out)
    show(f"Wrote {out}.")


def run_plot(path: Path, kind: str, width: str | None, out: Path) -> None:
    """Draw a picture of a saved fit."""
    from odinfer.result.formats.load import load
    from odinfer.result.report import PICTURES
    from odinfer.style.picture import SingleFigure, combined_figure

    if kind not in PICTURES:
        raise InputError(f"--kind: there is no picture '{kind}'{nearest(kind, PICTURES)}")
    _check_picture(out)
    picture = PICTURES[kind](load(path))
    if picture is None:
        raise InputError(f"this fit has no picture '{kind}'; choose another kind, such as states or residuals")
    if isinstance(picture, SingleFigure):
        figure = picture.figure
    else:
        figure = combined_figure(picture, read_width(width)) if width else combined_figure(picture)
    figure.savefig(out, dpi=300)
    show(f"Wrote {out}.")


def read_width(text: str) -> float:
    """The width of a figure in inches, from a number or the name of a preset.

    Raises:
        InputError: it is neither.
    """
    try:
        width = _WIDTHS[text] if text in _WIDTHS else float(text)
    except ValueError:
        width = 0.0
    if not 2.0 <= width <= 40.0:
        raise InputError(f"--width is column (3.5 inches), page (7.2 inches) or inches from 2 to 40, not '{text[:40]}'")
    return width


def _check_picture(out: Path) -> None:
    if out.suffix.lower() not in _PICTURES:
        raise InputError(f"-o: '{out.name}' must end in {', '.join(_PICTURES[:-1])} or {_PICTURES[-1]}")
