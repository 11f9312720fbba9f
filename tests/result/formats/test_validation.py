"""A fit from a file is used like one that was computed, or it is refused with what is wrong."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fits import ODD, hidden, make_fit, uncertain
from odinfer.result.fit import Fit
from odinfer.result.formats.validation import sound


@pytest.mark.parametrize("name", ODD)
def test_every_fit_that_a_method_could_return_is_sound(name: str):
    assert sound(ODD[name]) is ODD[name]


def of_part(part: str, **changes: Any) -> Fit:
    fit = uncertain()
    return replace(fit, **{part: replace(getattr(fit, part), **changes)})


def of_curve(**changes: Any) -> Fit:
    fit = make_fit()
    e = fit.experiments["1"]
    return replace(fit, experiments={"1": replace(e, curve=replace(e.curve, **changes))})


def of_hidden(**changes: Any) -> Fit:
    fit = hidden()
    return replace(fit, experiments={name: replace(e, **changes) for name, e in fit.experiments.items()})


T = make_fit().experiments["1"].curve.t
BAD: dict[str, tuple[Fit, str]] = {
    "seed": (make_fit(seed=1.5), "seed"),
    "converged": (make_fit(converged="yes"), "true nor false"),
    "options": (make_fit(options=[]), "no tables"),
    "names": (replace(make_fit(), state_names=("prey", "prey")), "twice"),
    "theta": (make_fit(theta={"a": 1.0}), "parameters"),
    "sigma": (make_fit(sigma={"wolf": 1.0}), "unknown columns"),
    "gamma": (make_fit(gamma_user={"wolf": 1.0}), "unknown states"),
    "distributions": (hidden(noise={"I": "normal"}), "not those of the columns"),
    "distribution": (hidden(noise={"I": "normal", "cases": "magic", "load": "normal"}), "unknown name"),
    "columns": (replace(make_fit(), columns=("prey", "x"), sigma={}, stages={}), "no distributions"),
    "predicted values": (of_hidden(scores=None), "missing or too many"),
    "limits": (of_hidden(limit=np.full((20, 3), 7, np.int8)), "limit"),
    "starts": (hidden(details={"start_objectives": ["a"]}), "start_objectives"),
    "experiments": (replace(make_fit(), experiments={}), "no experiments"),
    "times": (of_curve(t=T[::-1]), "increase"),
    "times twice": (of_curve(t=np.concatenate([T[:1], T[:-1]])), "increase"),
    "times that are none": (of_curve(t=T * np.nan), "increase"),
    "seconds": (make_fit(details={"seconds": "long"}), "no number"),
    "fixed": (make_fit(details={"fixed": 3}), "no names"),
    "samples": (make_fit(samples={"z": np.zeros((2, 3))}), "unknown parameters"),
    "samples without chains": (make_fit(samples={"a": np.zeros(3)}), "chain"),
    "covariance": (of_part("uncertainty", covariance=np.eye(2)), "covariance"),
    "interval": (of_part("uncertainty", low=[1.0, 2.0, 3.0]), "low"),
    "level": (of_part("uncertainty", level=2.0), "level"),
    "names of intervals": (of_part("uncertainty", names=("a", "b", "z")), "unknown parameters"),
    "refits": (of_part("bootstrapped", draws=np.zeros((5, 3))), "shape"),
    "posterior": (of_part("posterior", theta={}), "draws"),
    "states of draws": (of_part("posterior", x=()), "states of draws"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_could_not_be_used_is_named(what: str):
    fit, words = BAD[what]
    with pytest.raises(ValueError, match=words):
        sound(fit)
