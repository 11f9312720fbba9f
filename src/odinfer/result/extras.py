"""Add further intervals or the model test to a fit, by name."""

from __future__ import annotations

from odinfer.progress import Progress
from odinfer.result.fit import Fit


def with_extras(fit: Fit, uncertainty: str | None, test: bool, seed: int = 0, progress: Progress | None = None) -> Fit:
    """Add intervals of a kind and a model test to a fit, if requested and if the fit is at a maximum.

    Args:
        fit: of `odinfer.fit`.
        uncertainty: "profile" (of all parameters), "bootstrap", "sample" or None.
        test: the model as a whole.
        seed: of draws.
        progress: called with (what, share done).
    """
    if fit.uncertainty is None:
        return fit
    if uncertainty == "profile":
        names = fit.uncertainty.names
        for i, name in enumerate(names):
            if progress:
                progress(f"profile of {name}", i / len(names))
            fit = fit.including(fit.profile(name))
    elif uncertainty == "bootstrap":
        fit = fit.including(fit.bootstrap(seed=seed, progress=progress))
    elif uncertainty == "sample":
        fit = fit.including(fit.sample(seed=seed, progress=progress))
    if test and "model_test" not in fit.details:
        fit = fit.including(fit.test(progress=progress))
    return fit
