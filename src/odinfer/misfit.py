"""How much smooth signal residuals still hold: what a right equation does not leave behind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from odinfer.gp import Hyperparameters
from odinfer.kernels import kernel

Array = NDArray[np.float64]

# Signal-to-noise ratios of variances that are tried, from hardly visible to hardly any noise.
_RATIOS = 10.0 ** np.arange(-2.0, 4.1, 0.25)


def signal(t: Sequence[Array], residuals: Sequence[Array], hyper: Hyperparameters) -> tuple[float, float]:
    """Evidence in nats for a smooth signal in residuals, against white noise (0 where there is none); and the noise.

    The signal is a Gaussian process with the smoother's kernel and lengthscale, the noise level is profiled out on both
    sides, so the value does not depend on units.

    Args:
        t: times of each experiment in the smoother's units.
        residuals: observed minus estimated, NaN where nothing was observed.
        hyper: of the smoother of this state.

    Returns:
        The evidence, and the standard deviation of the noise beside the signal, if there is one.
    """
    eigenvalues, rotated = [], []
    for times, r in zip(t, residuals, strict=True):
        seen = np.isfinite(r)
        C = kernel(hyper.kernel).gram(times[seen], times[seen], np.array(hyper.shape)).C
        w, V = np.linalg.eigh(C)
        eigenvalues.append(np.maximum(w, 0.0))
        rotated.append(V.T @ r[seen])
    w, q = np.concatenate(eigenvalues), np.concatenate(rotated)
    total = 1.0 + _RATIOS[:, None] * w
    variance = np.maximum((q**2 / total).mean(1), 1e-300)
    white = max(float((q**2).mean()), 1e-300)
    gain = -0.5 * len(q) * np.log(variance / white) - 0.5 * np.log(total).sum(1)
    best = int(gain.argmax())
    return (float(gain[best]), float(np.sqrt(variance[best]))) if gain[best] > 0 else (0.0, float(np.sqrt(white)))
