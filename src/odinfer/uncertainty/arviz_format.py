"""Convert posterior draws to ArviZ (InferenceData of 0.x, DataTree of 1.x)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odinfer.errors import InputError

if TYPE_CHECKING:
    from odinfer.uncertainty.results import Posterior


def to_arviz(posterior: Posterior) -> Any:
    """Convert draws and statistics of the sampler.

    Raises:
        InputError: ArviZ is not installed.
    """
    try:
        import arviz
    except ImportError:
        raise InputError("this needs the package arviz: pip install arviz") from None
    draws = {
        **posterior.theta,
        **{f"x0_{name}": values for name, values in posterior.x0.items()},
        **{f"sigma_{name}": values for name, values in posterior.sigma.items()},
    }
    groups = {"posterior": draws, "sample_stats": posterior.stats}
    groups = {name: values for name, values in groups.items() if values}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups)
    return arviz.from_dict(**groups)
