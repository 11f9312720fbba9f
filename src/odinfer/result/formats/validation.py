"""Validate a result from a file: names, shapes, types and the order of times.

A damaged file may still be valid JSON of a fit; it is refused here, before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from odinfer.checks import is_integer
from odinfer.noise import FAMILIES
from odinfer.result.fit import FitResult
from odinfer.uncertainty.results import Bootstrap, Posterior, Profile, Uncertainty


def validate(fit: FitResult) -> FitResult:
    """The fit itself.

    Raises:
        ValueError: saying what is wrong.
    """
    _require(is_integer(fit.seed), "the seed is no whole number")
    _require(isinstance(fit.converged, bool), "'converged' is neither true nor false")
    _require(isinstance(fit.options, dict) and isinstance(fit.details, dict), "options and details are no tables")
    for names in (fit.state_names, fit.parameter_names, fit.columns):
        _require(len(set(names)) == len(names), "a name is there twice")
    for values in (fit.theta, *(s.theta for s in fit.stages.values())):
        _require(set(values) == set(fit.parameter_names), "the values of the parameters are not those of their names")
    by_state: list[Mapping[str, Any]] = [fit.gamma, fit.gamma_user, fit.verdicts]
    for known in by_state + [s.gamma for s in fit.stages.values()]:
        _require(set(known) <= set(fit.state_names), "there are values of unknown states")
    for sigma in (fit.sigma, *(s.sigma for s in fit.stages.values())):
        _require(set(sigma) <= set(fit.columns), "there is noise of unknown columns")
    _require(
        bool(fit.state_names and fit.columns and fit.experiments), "there are no states, no columns or no experiments"
    )
    _check_columns(fit)
    for e in fit.experiments.values():
        _require(_is_sorted(e.t) and _is_sorted(e.curve.t, strictly=True), "times do not increase")
        _require(e.best is None or _is_sorted(e.best.t, strictly=True), "times do not increase")
        _require(e.gradients is None or _is_sorted(e.gradients.t), "times do not increase")
        _require(not len(e.t) or len(e.curve.t) > 0, "there are observations but no curve")
    _check_details(fit.details)
    if fit.samples:
        _check_draws(fit.samples, fit.parameter_names)
    if fit.uncertainty is not None:
        _check_uncertainty(fit.uncertainty, fit)
    if fit.bootstrapped is not None:
        _check_bootstrap(fit.bootstrapped, fit)
    if fit.sampled is not None:
        _check_posterior(fit.sampled, fit)
    for profile in fit.profiles.values():
        _check_profile(profile, fit)
    return fit


def _check_columns(fit: FitResult) -> None:
    """Where columns are not the states, all that is drawn of them is there."""
    _require(not fit.noise or set(fit.noise) == set(fit.columns), "the distributions are not those of the columns")
    _require(set(fit.noise.values()) <= set(FAMILIES), "there is a distribution of an unknown name")
    _require(
        bool(fit.noise) or fit.columns == fit.state_names, "the columns are not the states and have no distributions"
    )
    for e in fit.experiments.values():
        for values in (e.fitted, e.scores, e.expected, e.expected_sd):
            _require((values is not None) == bool(fit.noise), "predicted values of the columns are missing or too many")
        _require(e.limit is None or bool(np.isin(e.limit, (-1, 0, 1)).all()), "a limit is not -1, 0 or 1")


def _require(valid: bool, words: str) -> None:
    if not valid:
        raise ValueError(words)


def _is_sorted(t: Any, strictly: bool = False) -> bool:
    steps = np.diff(t)
    return bool(np.isfinite(t).all() and ((steps > 0).all() if strictly else (steps >= 0).all()))


def _is_pair(value: Any) -> bool:
    """Whether something is a lower and an upper bound, either of which may be missing."""
    return isinstance(value, list) and len(value) == 2 and all(v is None or _is_number(v) for v in value)


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and not (isinstance(value, int) and abs(value) > 1e300)
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(isinstance(v, str) for v in value)


def _check_details(details: Mapping[str, Any]) -> None:
    """Those that are put into words; the others may be anything."""
    for name in ("seconds", "starts", "starts_agreeing", "starts_at_alternatives"):
        _require(_is_number(details.get(name, 0)), f"'{name}' is no number")
    for name in ("stage_used", "version"):
        _require(isinstance(details.get(name, ""), str), f"'{name}' is no text")
    observed = details.get("observations", {})
    _require(isinstance(observed, dict) and all(map(_is_number, observed.values())), "'observations' are no numbers")
    for name in ("unknowns", "loglik"):
        _require(_is_number(details.get(name, 0)), f"'{name}' is no number")
    test = details.get("model_test", {})
    _require(isinstance(test, dict) and _is_number(test.get("p", 0.0)), "'model_test' is damaged")
    _require(_is_number(test.get("loudest", 0.0)), "'model_test' is damaged")
    bounds = details.get("state_bounds", {})
    _require(isinstance(bounds, dict) and all(map(_is_pair, bounds.values())), "'state_bounds' are no bounds")
    for name in ("fixed", "given", "by_row"):
        _require(details.get(name) is None or _are_texts(details[name]), f"'{name}' are no names")
    for name in ("start_objectives", "start_mismatches"):
        ends = details.get(name, [])
        _require(isinstance(ends, list) and all(map(_is_number, ends)), f"'{name}' are no numbers")


def _check_array(what: str, value: Any, *shape: int | None) -> None:
    fits = isinstance(value, np.ndarray) and value.ndim == len(shape)
    _require(
        fits and all(n is None or n == m for n, m in zip(shape, value.shape, strict=True)),
        f"'{what}' is no array of the right shape",
    )


def _check_names(names: Any, log: Any, known: Iterable[str]) -> None:
    _require(_are_texts(names) and len({*names}) == len(names), "'names' are no names")
    _require({*names} <= {*known}, "there are intervals of unknown parameters")
    _require(_are_texts(log) and {*log} <= {*names}, "'log' are no names of parameters")


def _check_uncertainty(u: Uncertainty, fit: FitResult) -> None:
    _check_names(u.names, u.log, fit.parameter_names)
    F = len(u.names)
    _check_array("covariance", u.covariance, F, F)
    for what in ("freedom", "low", "high"):
        _check_array(what, getattr(u, what), F)
    _require(_is_number(u.level) and 0 < u.level < 1, "'level' is not between 0 and 1")
    _require(_are_texts(u.notes), "'notes' are no texts")


def _check_profile(p: Profile, fit: FitResult) -> None:
    initial = {f"{s}(0){label}" for s in fit.state_names for label in ("", *(f"[{e}]" for e in fit.experiments))}
    _require(p.name in {*fit.parameter_names, *initial}, "there is a profile of an unknown parameter")
    _check_array("values", p.values, None)
    _check_array("likelihoods", p.likelihoods, len(p.values))
    _require(len(p.values) > 0 and _is_sorted(p.values), "the values of a profile do not increase")
    _require(isinstance(p.limits, tuple | list) and len(p.limits) == 2, "'limits' are no pair")
    for number in (p.estimate, *p.limits, p.freedom, p.count):
        _require(_is_number(number), "a profile has something else than numbers")
    _require(p.freedom > 0 and p.count > 0, "a profile has no degrees of freedom")


def _check_bootstrap(b: Bootstrap, fit: FitResult) -> None:
    _check_names(b.names, b.log, fit.parameter_names)
    _check_array("draws", b.draws, None, len(b.names))
    _require(is_integer(b.failed), "'failed' is no whole number")
    _check_states(b.t, b.x, fit, len(b.draws))


def _check_posterior(p: Posterior, fit: FitResult) -> None:
    for what in ("target", "status"):
        _require(isinstance(getattr(p, what), str), f"'{what}' of the posterior is no text")
    _require(isinstance(p.converged, bool) and isinstance(p.details, dict), "the posterior is damaged")
    _require(is_integer(p.divergences) and _is_number(p.seconds), "the posterior is damaged")
    for summary in (p.r_hat, p.ess):
        _require(isinstance(summary, dict) and all(map(_is_number, summary.values())), "the posterior is damaged")
    _check_draws(p.theta, fit.parameter_names)
    shape = next(iter(p.theta.values())).shape
    for more in (p.x0, p.sigma, p.stats):
        _require(isinstance(more, dict), "the posterior is damaged")
        for what, draws in more.items():
            _check_array(what, draws, *shape)
    _check_states(p.t, p.x, fit, None)


def _check_draws(draws: Any, known: Iterable[str]) -> None:
    _require(
        isinstance(draws, dict) and len(draws) > 0 and {*draws} <= {*known}, "there are draws of unknown parameters"
    )
    shape = np.shape(next(iter(draws.values())))
    _require(len(shape) == 2 and 0 not in shape, "draws are not (chain, draw)")
    for name, values in draws.items():
        _check_array(name, values, *shape)


def _check_states(t: Any, x: Any, fit: FitResult, count: int | None) -> None:
    """Times and states per experiment, or none at all."""
    _require(isinstance(t, tuple | list) and isinstance(x, tuple | list), "states of draws are damaged")
    _require(len(t) == len(x) and len(t) in (0, len(fit.experiments)), "states of draws are damaged")
    for times, states in zip(t, x, strict=True):
        _check_array("t", times, None)
        _check_array("x", states, count, len(times), len(fit.state_names))
