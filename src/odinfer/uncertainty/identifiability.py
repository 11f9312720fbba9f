"""Find parameters and combinations that are not identifiable, and describe them in words."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from odinfer.errors import listed
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.uncertainty.information import Information
from odinfer.uncertainty.small_sample import CONFIDENCE, quantile

Array = NDArray[np.float64]

# A parameter is poorly determined if its interval is open, or wider on one side than so many times its value.
_POOR = 1.0
_UNKNOWN = 100.0  # per cent: a combination with a larger error is no better known than its parts
# A combination is determined, in contrast, if it is so many times better known than its parameters.
_CONTRAST = 5.0
# Two parameters go together if both change by this factor on a log scale on the way to an open end.
_ALONG = float(np.log(10.0))
# They go equally far if the ratio of these changes differs from one by less than this factor, in e-folds.
_EQUALLY_FAR = float(np.log(1.5))
# By this factor a parameter must change for it to be said.
_COUNTS = float(np.log(1.5))


def notes(u: ParameterVector, v: Array, info: Information, low: Array, high: Array, there: Array) -> tuple[str, ...]:
    """Sentences on the free parameters that are not, or poorly, determined; and on what is determined instead.

    Args:
        v: estimate (P,) of all unknowns.
        low, high: ends (F,) of their likelihood intervals in their units: an open end is what the profile says,
            not only the curvature at the estimate.
        there: φ (2F, F) at the lower and then the upper ends, or where the way to them was given up.
    """
    problem, phi = u.problem, u.phi(v)
    theta = problem.theta(phi)[problem.free_index]
    with np.errstate(invalid="ignore"):
        wide = np.maximum(high - theta, theta - low) > _POOR * np.abs(theta)
    limits = np.array([problem.limits(name) for name in problem.free]).reshape(-1, 2)
    # An end at a bound counts as open: there the bound, and not the data, sets the limit.
    open_ = np.isinf(low) | np.isinf(high) | ((low <= limits[:, 0]) & (high >= limits[:, 1]))
    poor = [j for j in range(len(theta)) if (open_[j] or wide[j]) and theta[j] != 0]
    with np.errstate(divide="ignore", invalid="ignore"):  # logs by which parameters change up to each end
        grown = np.log(np.array([problem.theta(end)[problem.free_index] for end in there]) / theta)
    grown = np.where(np.isfinite(grown), grown, 0.0)
    sentences, told = _flat(u, v, info)
    for i, j in combinations([j for j in poor if j not in told], 2):
        found = _combination(u, phi, info, i, j)
        if found is None:
            continue
        a, b = problem.free[i], problem.free[j]
        name, error = found
        if error > _UNKNOWN:
            continue
        if open_[i] or open_[j]:
            sentences.append(f"{a} and {b} are not individually identifiable; {name} is (within {error:.2g} %)")
        else:
            sentences.append(
                f"{a} and {b} are poorly determined by these data, but {name} is known within {error:.2g} %"
            )
        told |= {i, j}
    for group in _groups([j for j in range(len(theta)) if open_[j] and j not in told], grown):
        names = [problem.free[j] for j in group]
        both = _common_combination(names, grown, *group) if len(group) == 2 else None
        if both is not None:
            sentences.append(f"{names[0]} and {names[1]} are not individually identifiable; {both} is")
        elif len(group) > 1:
            sentences.append(f"{listed(names)} are not identifiable: they can change together by any amount")
        else:
            j = group[0]
            along = [problem.free[i] for i in np.flatnonzero(_changing_alongside(grown, j))]
            rest = f", together with other values of {listed(along)}" if along else ""
            fits = _limits(low[j], high[j], *limits[j])
            sentences.append(f"{names[0]} is not identifiable: {fits}{rest}")
        told |= set(group)
    sentences += _bound_sentences(
        [(problem.free[j], low[j], high[j], *limits[j]) for j in range(len(theta)) if j not in told]
    )
    return tuple(sentences)


def _groups(places: list[int], grown: Array) -> list[list[int]]:
    """Parameters with open ends, those together that go along with each other."""
    groups: list[list[int]] = []
    for j in places:
        along = _changing_along(grown, j)
        joined = [g for g in groups if any(along[i] or _changing_along(grown, i)[j] for i in g)]
        groups = [g for g in groups if g not in joined] + [sorted([j, *(i for g in joined for i in g)])]
    return sorted(groups)


def _changing_along(grown: Array, j: int) -> NDArray[np.bool_]:
    """Which parameters (F,) change by more than a factor on the way to the ends of parameter j."""
    return np.asarray((np.abs(grown[[j, j + grown.shape[1]]]) > _ALONG).any(0))


def _changing_alongside(grown: Array, j: int) -> NDArray[np.bool_]:
    """Which other parameters (F,) change by a factor that counts, and half as much as parameter j, on its way."""
    ends = np.abs(grown[[j, j + grown.shape[1]]])
    found = (ends > np.maximum(_COUNTS, 0.5 * ends[:, [j]])).any(0)
    return np.asarray(found & (np.arange(grown.shape[1]) != j))


def _bound_sentences(ends: list[tuple[str, float, float, float, float]]) -> list[str]:
    """A sentence on parameters that end at a bound on one side: names, ends of the intervals, and bounds.

    Zero as a bound only says that there are no negative values.
    """
    found = []
    for name, low, high, lowest, highest in ends:
        below, above = (
            end == bound and np.isfinite(bound) and bound != 0 for end, bound in ((low, lowest), (high, highest))
        )
        if below != above:
            end = high if below else low
            found.append(f"{name} (every value {'below' if below else 'above'} {end:.3g} up to the bound fits)")
    return [f"the data set no limit on one side for {listed(found)}"] if found else []


def _flat(u: ParameterVector, v: Array, info: Information) -> tuple[list[str], set[int]]:
    """Sentences on directions in which nothing changes at all, and the free parameters that they speak of.

    What is determined is what does not change along any of them: products of powers if directions are taken on a log
    scale, sums on the plain one. It has a name where whole numbers will do as exponents or factors. Initial values take
    part: of a hidden state without a scale of its own only x(0)·k may be determined.
    """
    problem, phi, flat = u.problem, u.phi(v), info.flat
    values, slopes = v.copy(), np.ones(len(v))
    values[u.of_phi], slopes[u.of_phi] = problem.theta(phi)[problem.free_index], problem.slope(phi)
    moving = np.flatnonzero(np.abs(flat).max(1, initial=0.0) > 1e-6)
    if len(moving):
        # Without those that may move all alone: they are in no combination.
        Q = np.linalg.svd(flat[moving], full_matrices=False)[0]
        moving = moving[(Q**2).sum(1) < 1.0 - 1e-6]
    if not len(moving) or (values[moving] == 0).any():
        return [], set()
    names, values, slope = [u.names[j] for j in moving], values[moving], slopes[moving]
    for rate, named in ((slope / values, _product), (slope, _sum)):
        powers = _invariants(flat[moving] * rate[:, None])
        if powers is None or not len(powers):
            continue
        gradient = (powers * rate) @ u.unit(moving)
        sd, freedom = info.spread(gradient)
        size = 1.0 if named is _product else np.abs(powers @ values)
        errors = 100.0 * quantile(freedom, CONFIDENCE) * sd / size
        if not (errors <= _UNKNOWN).all():
            continue
        told = [f"{named(row, names)} (within {e:.2g} %)" for row, e in zip(powers, errors, strict=True)]
        verb = "is" if len(told) == 1 else "are"
        sentences = f"{listed(names)} are not individually identifiable; {listed(told)} {verb}"
        return [sentences], {int(j) - u.of_phi.start for j in moving if j in u.phi_index}
    return [], set()


def _invariants(along: Array) -> Array | None:
    """Whole numbers (·, S), reduced, whose combinations do not change along directions (S, m); None if none do."""
    # What does not change along any direction spans the null space of their transpose. Gauss–Jordan elimination turns a
    # basis of it into rows with a one at their pivots; if some small factor makes these whole, they are the exponents.
    from scipy.linalg import null_space

    rows = null_space(along.T, rcond=1e-6).T
    for i in range(len(rows)):
        pivot = int(np.argmax(np.abs(rows[i]) > 0.1 * np.abs(rows[i]).max()))
        rows[i] /= rows[i, pivot]
        others = np.arange(len(rows)) != i
        rows[others] -= np.outer(rows[others, pivot], rows[i])
    for factor in (1.0, 2.0, 3.0):
        whole = np.round(factor * rows)
        if np.allclose(whole, factor * rows, atol=1e-3) and np.abs(whole).max(initial=0.0) <= 4:
            return whole if (whole != 0).any(0).all() else None
    return None


def _product(powers: Array, names: list[str]) -> str:
    """a^2·b/c from exponents."""
    above, below = (
        [n if q == 1 else f"{n}^{q:g}" for n, q in zip(names, sign * powers, strict=True) if q > 0]
        for sign in (1.0, -1.0)
    )
    if not above:
        above, below = below, above
    under = "·".join(below)
    return "·".join(above) + (f"/({under})" if len(below) > 1 else f"/{under}" if below else "")


def _sum(factors: Array, names: list[str]) -> str:
    """a + 2·b − c from factors."""
    terms = [(q, n if abs(q) == 1 else f"{abs(q):g}·{n}") for q, n in zip(factors, names, strict=True) if q]
    first = ("−" if terms[0][0] < 0 else "") + terms[0][1]
    return first + "".join(f" {'+' if q > 0 else '−'} {term}" for q, term in terms[1:])


def _combination(u: ParameterVector, phi: Array, info: Information, i: int, j: int) -> tuple[str, float] | None:
    """The ratio or product of two parameters if it is known much better than they are, with its error in percent."""
    problem = u.problem
    theta = problem.theta(phi)[problem.free_index]
    # d log|θ| by the unknowns
    with np.errstate(divide="ignore"):  # parameters at zero are in no combination
        rate = problem.slope(phi) / theta
    best: tuple[str, float] | None = None
    for sign, symbol in ((-1.0, "/"), (1.0, "·")):
        each = rate[[i, j], None] * u.unit(u.phi_index[[i, j]])
        a = np.stack([*each, each[0] + sign * each[1]])
        sd, freedom = info.spread(a)
        if not np.isfinite(sd[2]):
            continue
        if min(sd[0], sd[1]) > _CONTRAST * sd[2]:
            error = 100.0 * float(quantile(freedom[2], CONFIDENCE) * sd[2])
            if error < 50.0 and (best is None or error < best[1]):
                best = f"{problem.free[i]}{symbol}{problem.free[j]}", error
    return best


def _common_combination(names: list[str], grown: Array, i: int, j: int) -> str | None:
    """The ratio or product that stays where following open ends of two parameters takes both along, and equally far."""
    F = grown.shape[1]
    ends = grown[[i, i + F, j, j + F]][:, [i, j]]
    ends = ends[np.isfinite(ends).all(1) & (np.abs(ends) > _ALONG).all(1)]
    if not len(ends):
        return None
    ratio = ends[:, 0] / ends[:, 1]
    one = (np.sign(ratio) == np.sign(ratio[0])).all() and (np.abs(np.log(np.abs(ratio))) < _EQUALLY_FAR).all()
    return f"{names[0]}{'/' if ratio[0] > 0 else '·'}{names[1]}" if one else None


def _limits(low: float, high: float, lowest: float, highest: float) -> str:
    below = np.isinf(low) or low <= lowest
    above = np.isinf(high) or high >= highest
    if below and above:
        return "every value within its bounds fits" if np.isfinite(highest - lowest) else "every value fits"
    return f"every value {'below' if below else 'above'} {high if below else low:.3g} fits"
