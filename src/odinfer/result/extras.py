"""More than a fit gives by default, by name: intervals of another kind, and the test of the model as a whole."""

from __future__ import annotations

from odinfer.progress import Progress
from odinfer.result.fit import Fit


def with_more(fit: Fit, uncertainty: str | None, test: bool, seed: int = 0, progress: Progress | None = None) -> Fit:
    """The fit with intervals of a kind and a test, as far as asked for; as it is, where it can have neither.

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
