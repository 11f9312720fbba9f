"""Findings of a grid: sentences, computed from the records, on agreement with the paper.

Reasons are given only where they do not agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from odinfer.paper.bench.compute import from_json
from odinfer.paper.bench.report.results import Results, is_failed, outcome_entry, outcome_values, quartiles, summarise
from odinfer.paper.bench.report.tables import (
    EquationVerdicts,
    chosen_parameters,
    equation_verdicts,
    limit_table,
    marginals,
    scalings,
)
from odinfer.style.text import format_number

AGREES, PARTLY, DIFFERS = "agrees", "agrees in part", "differs"
SO_FAR = "agrees as far as it was run"
_RIVALS = ("agm", "fgpgm", "rkg3")
_CLOSE = 0.25  # relative distance from a printed or true value that we call close
_GAUSSIAN = 0.5  # |skewness| and |excess kurtosis| up to here look Gaussian
_LEAST_SECONDS = 1e-9  # seconds that a run takes at least
_FEWEST_DRAWS = 4  # draws, below which nothing is concluded from them
_RIGHT = 0.95  # share of right verdicts that is asked for


@dataclass(frozen=True)
class Finding:
    """A claim of the paper held against the records."""

    claim: str
    verdict: str
    evidence: str
    why: str = ""


def findings(results: Results) -> list[Finding]:
    """All claims for which there are records; none for a grid that is not compared with the paper."""
    if "paper" not in results.grid.report:
        return []
    claims: tuple[Callable[[Results], Finding | None], ...] = (
        _states, _accuracy, _authors, _identifiability, _marginals, _gamma, _verdicts, _faster, _seconds,
        _scaling_finding, _agm,
    )  # fmt: skip
    return [finding for claim in claims if (finding := claim(results)) is not None]


def too_few(draws: int) -> str:
    """The verdict where draws are too few for one."""
    return f"not judged: {draws} draw{'s' * (draws != 1)} only"


def beyond_paper(results: Results) -> list[str]:
    """Sentences on what the paper does not have: the default fit against the statistical limit."""
    table = limit_table(results)
    if not table.rows:
        return []
    ratio, worse, draws = (table.columns[n] for n in ("ratio", "worse_likelihood", "draws"))
    sentence = (
        "The default fit continues from ODIN to maximum likelihood. Its median trajectory error is "
        f"{min(ratio):.3f} to {max(ratio):.3f} times that of maximum likelihood started at the truth, "
        f"and it ended at a lower likelihood in {sum(worse)} of {sum(draws)} draws."
    )
    return [sentence]


def _median(results: Results, setting: str, method: str, key: str) -> float:
    return summarise(results.at(setting, method), outcome_entry(key)).median


def _verdict(good: int, of: int, draws: float, missing: Sequence[str] = ()) -> str:
    """How good of so many comparisons agree, the least of which has so many draws.

    Nothing is said about methods of the claim that were not run, nor from too few draws.
    """
    if draws < _FEWEST_DRAWS:
        return too_few(int(draws))
    return (SO_FAR if missing else AGREES) if good == of else DIFFERS if good == 0 else PARTLY


def _missing_rivals(results: Results) -> list[str]:
    """The rivals of which there is no run."""
    return [m.upper() for m in _RIVALS if not any(results.at(s, m) for s in results.settings())]


def _not_run_sentence(missing: Sequence[str]) -> str:
    return f" Not run: {', '.join(missing)}." if missing else ""


def _odin(results: Results) -> str:
    return str(results.grid.report["paper"])


def _states(results: Results) -> Finding | None:
    parts, good, least = [], 0, math.inf
    for setting in results.settings():
        odin, gpr, draws = _paired_medians(results, setting, "gpr", "state_rmse")
        if math.isnan(gpr + odin):
            continue
        least = min(least, draws)
        expected = not setting.startswith("LV, σ = 0.5")
        good += (odin < gpr) == expected
        parts.append(f"{setting}: {format_number(odin, 2)} against {format_number(gpr, 2)}")
    if not parts:
        return None
    return Finding(
        "ODIN's states are more accurate than those of GP regression in all settings but Lotka–Volterra at high noise.",
        _verdict(good, len(parts), least),
        f"Median state RMSE over the same draws, ODIN against GPR: {'; '.join(parts)}.",
        "With γ at its floor the equations hold almost exactly on a few points. Where the smoother alone is already "
        "near the noise limit, as for smooth trajectories, the medians differ by little and either may win.",
    )


def _paired_medians(results: Results, setting: str, method: str, key: str) -> tuple[float, float, int]:
    """Medians of ODIN and of another method over the draws that both have, and how many these are."""
    theirs = {r["run"]["seed"]: r for r in results.at(setting, method)}
    ours = [r for r in results.at(setting, _odin(results)) if r["run"]["seed"] in theirs]
    both = (ours, [theirs[r["run"]["seed"]] for r in ours])
    odin, other = (quartiles(outcome_values(records, outcome_entry(key)))[1] for records in both)
    return odin, other, len(ours)


def _accuracy(results: Results) -> Finding | None:
    parts, good, total, least = [], 0, 0, math.inf
    for setting in results.settings():
        listed = []
        for method in _RIVALS:
            odin, other, draws = _paired_medians(results, setting, method, "trmse_paper")
            if draws and not math.isnan(odin + other):
                total += 1
                least = min(least, draws)
                good += odin < other
                better = "" if odin < other else ", lower"
                listed.append(
                    f"{format_number(odin, 2)} against {method.upper()} {format_number(other, 2)} "
                    f"({draws} draws{better})"
                )
        if listed:
            parts.append(f"{setting}: {', '.join(listed)}")
    if not parts:
        return None
    return Finding(
        "ODIN is more accurate than AGM, FGPGM and RKG3.",
        _verdict(good, total, least, _missing_rivals(results)),
        f"Median trmse_paper of ODIN against each over the same draws: {'; '.join(parts)}."
        f"{_not_run_sentence(_missing_rivals(results))}",
        "The paper itself shows a good RKG3 on Lotka–Volterra at high noise. Ours are new implementations: RKG3 on "
        "standardised data, AGM with its determinant corrected, FGPGM's posterior sampled to convergence by NUTS "
        "instead of one random walk. A posterior mean shrinks, which helps where noise is high.",
    )


def _authors(results: Results) -> Finding | None:
    parts, good, least = [], 0, math.inf
    printed = results.grid.report.get("authors", {}).get("trmse_paper", {})
    for setting in results.settings():
        ours, theirs = _median(results, setting, _odin(results), "trmse_paper"), printed.get(setting, math.nan)
        if math.isnan(ours + theirs):
            continue
        least = min(least, len(results.at(setting, _odin(results))))
        good += abs(ours / theirs - 1) < _CLOSE
        parts.append(f"{setting}: {format_number(ours, 2)} against {format_number(theirs, 2)}")
    if not parts:
        return None
    return Finding(
        "The paper shows trajectory errors only as figures; the authors' program gives these medians on other draws.",
        _verdict(good, len(parts), least),
        f"Median trmse_paper of ODIN with the paper's settings against their program: {'; '.join(parts)}.",
        "The settings are theirs, but the draws and the number of points are not (20 here as in the paper, 21 there). "
        "On their own draws our risk is not above theirs, so what is left is their optimiser: it stops at a limit of "
        "evaluations, hops between optima on FitzHugh–Nagumo, and from random θ does not always reach the minimum on "
        "protein transduction.",
    )


def _identifiability(results: Results) -> Finding | None:
    parts, good, total, least = [], 0, 0, math.inf
    for setting, name, truth in chosen_parameters(results):
        medians = {}
        for method, label in results.methods("compared").items():
            m = summarise(results.at(setting, method), outcome_entry("theta", name)).median
            if not math.isnan(m) and method != "limit":
                medians[label] = m / truth
            if method == _odin(results) and not math.isnan(m):
                total += 1
                least = min(least, len(results.at(setting, method)))
                good += abs(m / truth - 1) < _CLOSE
        if medians:
            parts.append(f"{setting}, {name}: " + ", ".join(f"{k} {format_number(v, 2)}" for k, v in medians.items()))
    if not parts:
        return None
    return Finding(
        "θ5 and θ6 of protein transduction are identifiable: ODIN and RKG3 find them, while FGPGM and AGM do not.",
        _verdict(good, total, least, _missing_rivals(results)),
        f"Median estimate divided by the truth (the verdict asks ODIN for {_CLOSE:.0%}): {'; '.join(parts)}."
        f"{_not_run_sentence(_missing_rivals(results))}",
        "With the sigmoid kernel ODIN is biased on every draw: the same bias appears when it starts at the truth, so "
        "it is the risk's own minimum. The default, which continues to maximum likelihood, does not have it.",
    )


def _marginals(results: Results) -> Finding | None:
    chosen = [m for m in marginals(results) if m.method == "FGPGM"]
    if not chosen:
        return None
    good, parts = 0, []
    for m in chosen:
        gaussian = max(abs(m.moments["skewness"]), abs(m.moments["kurtosis"])) < _GAUSSIAN
        good += gaussian == m.setting.startswith("LV")
        skewness, kurtosis = (format_number(m.moments[n], 2) for n in ("skewness", "kurtosis"))
        shape = f"skewness {skewness}, excess kurtosis {kurtosis}"
        parts.append(f"{m.parameter} at {m.setting}: {shape}")
    return Finding(
        "At fixed γ the marginal of θ4 of Lotka–Volterra is Gaussian, and that of θ6 of protein transduction is wild.",
        _verdict(good, len(chosen), math.inf),  # the claim is about one rollout, as the paper's figure
        f"Moments of FGPGM's draws (zero for a Gaussian; the line is drawn at {_GAUSSIAN}): {'; '.join(parts)}.",
        "How wild the marginal is depends on the draw and on the bounds of θ; one rollout is shown.",
    )


def _gamma(results: Results) -> Finding | None:
    mine = [j for j in equation_verdicts(results) if "paper" in j.method]
    if not mine:
        return None
    good = sum(j.median > 1 if j.wrong else j.median < 1e-5 for j in mine)
    near = [abs(j.median / j.printed[0] - 1) < _CLOSE for j in mine if j.wrong and j.printed[0] > 0]
    parts = [f"{j.candidate} {j.state} {format_number(j.median, 3)} ({format_number(j.printed[0], 3)})" for j in mine]
    return Finding(
        "γ stays at its floor for right equations and exceeds 1 for wrong ones (Table 2).",
        _verdict(good, len(mine), min(j.draws for j in mine)),
        f"Median γ, in brackets the paper's: {'; '.join(parts)}. {sum(near)} of {len(near)} medians of wrong equations "
        f"are within {_CLOSE:.0%} of the printed ones.",
        "The noise level of the paper's model selection is not printed; 0.1 is taken here.",
    )


def _verdicts(results: Results) -> Finding | None:
    groups: dict[str, list[EquationVerdicts]] = {}
    for j in equation_verdicts(results):
        groups.setdefault(j.label, []).append(j)
    if not groups:
        return None
    parts, good, total = [], 0, 0
    for label, mine in groups.items():
        worst = min(mine, key=lambda j: j.right / j.draws)
        good += sum(j.right >= _RIGHT * j.draws for j in mine)
        total += len(mine)
        parts.append(f"{label}: worst for {worst.candidate} {worst.state}, {worst.right} of {worst.draws}")
    return Finding(
        "γ is an efficient tool for identifying true parametric forms, also equation by equation.",
        _verdict(good, total, min(j.draws for mine in groups.values() for j in mine)),
        f"Right verdicts over draws (asked: {_RIGHT:.0%} for every equation). {'; '.join(parts)}.",
        "In a few draws the authors' settings leave a γ above the threshold for a right equation: their Table 2 has a "
        "standard deviation of 0.04 there, too. The default also asks whether a trajectory follows the data.",
    )


def _faster(results: Results) -> Finding | None:
    parts, good, total, least = [], 0, 0, math.inf
    for setting in results.settings():
        odin = _seconds_of(results, setting, _odin(results))
        ratios = {m.upper(): _seconds_of(results, setting, m) / odin for m in _RIVALS}
        ratios = {m: r for m, r in ratios.items() if not math.isnan(r)}
        good += sum(r > (10 if m != "RKG3" else 1) for m, r in ratios.items())
        total += len(ratios)
        least = min([least, *(len(results.at(setting, m.lower())) for m in ratios)])
        if ratios:
            parts.append(f"{setting}: " + ", ".join(f"{m} {format_number(r, 3)}" for m, r in ratios.items()))
    if not parts:
        return None
    return Finding(
        "ODIN is the fastest; the samplers take orders of magnitude longer, RKG3 roughly one.",
        _verdict(good, total, least, _missing_rivals(results)),
        f"Median seconds divided by ODIN's (asked: samplers above 10, RKG3 above 1): {'; '.join(parts)}."
        f"{_not_run_sentence(_missing_rivals(results))}",
        "Our samplers are compiled and RKG3's cross-validation is done side by side for all folds and weights, so both "
        "are far faster than the originals; ODIN with the paper's settings spends most of its time on hops on "
        "FitzHugh–Nagumo and protein transduction.",
    )


def _seconds_of(results: Results, setting: str, method: str) -> float:
    found = [
        max(from_json(r["timing"]["seconds"]), _LEAST_SECONDS) for r in results.at(setting, method) if not is_failed(r)
    ]
    return quartiles(np.array(found))[1]


def _seconds(results: Results) -> Finding | None:
    parts = []
    for method, printed in results.grid.report.get("seconds", {}).items():
        ratios = [theirs[0] / _seconds_of(results, s, method) for s, theirs in printed.items()]
        ratios = [r for r in ratios if not math.isnan(r)]
        if ratios:
            parts.append(f"{method} {min(ratios):.3g} to {max(ratios):.3g}")
    if not parts:
        return None
    return Finding(
        "Table 1 prints seconds per fit, on the authors' machine.",
        DIFFERS,
        f"Their seconds divided by ours: {'; '.join(parts)}.",
        "Another machine and other programs. ODIN's risk is minimised by Gauss–Newton with γ eliminated instead of "
        "L-BFGS-B, and hyperparameters are searched on shared eigendecompositions; the samplers are compiled.",
    )


def _scaling_finding(results: Results) -> Finding | None:
    fit = scalings(results).get(_odin(results))
    if fit is None or math.isnan(fit.exponent):
        return None
    return Finding(
        "Run time grows linearly with the number of states.",
        AGREES if fit.exponent <= 1.1 else DIFFERS,
        f"From K = {fit.K[0]:g} ({format_number(fit.mean[0], 2)} s) to K = {fit.K[-1]:g} "
        f"({format_number(fit.mean[-1], 2)} s) the mean time grows as K to the power {fit.exponent:.2f}.",
        "A power above 1 means that algebra across states dominates.",
    )


def _agm(results: Results) -> Finding | None:
    cells = [found for c, found in results.cells() if c.method.name == "agm" and c.case.label == "FHN" and found]
    if not cells:
        return None
    records = [r for found in cells for r in found]
    lost = sum(map(is_failed, records))
    loose = sum(not r["outcome"]["converged"] for r in records) - lost
    errors = outcome_values(records, outcome_entry("trmse"))
    return Finding(
        "AGM was unstable on FitzHugh–Nagumo, and the paper has no results for it.",
        _verdict(lost + loose > len(records) / 2, 1, min(map(len, cells))),
        f"Of {len(records)} runs {lost} failed and {loose} did not converge; the median trmse is "
        f"{format_number(quartiles(errors)[1], 2)}.",
        "With the determinant corrected and hyperparameters held at their evidence maximum, AGM is more stable.",
    )
