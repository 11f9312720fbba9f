"""A fit with more kinds of intervals than it has by itself."""

from __future__ import annotations

from odinfer.progress import Progress
from odinfer.result.fit import Fit


def with_uncertainty(fit: Fit, kind: str, seed: int, progress: Progress | None = None) -> Fit:
    """The fit with a profile of every parameter, a bootstrap or posterior draws.

    Args:
        fit: at a maximum of the likelihood; others say why not in `without_intervals`.
        kind: "profile", "bootstrap" or "sample".
        seed: of everything random.
        progress: called with (what, share done).
    """
    if kind == "profile":
        names = fit.uncertainty.names if fit.uncertainty is not None else ()
        for i, name in enumerate(names):
            if progress:
                progress(f"profile of {name}", i / len(names))
            fit = fit.including(fit.profile(name))
        return fit
    if kind == "bootstrap":
        return fit.including(fit.bootstrap(seed=seed, progress=progress))
    return fit.including(fit.sample(seed=seed, progress=progress))
