"""What a comparison says, for people: sentences, a table, one HTML page with pictures, and files of numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odinfer.errors import InputError, listed
from odinfer.files import make_folder, write_whole
from odinfer.judgement.verdicts import NOT_JUDGED
from odinfer.problem.tables.csv_file import harmless
from odinfer.selection import figures as pictures
from odinfer.selection.missing_terms import gaps
from odinfer.style.drawing import png
from odinfer.style.html import inlined, page
from odinfer.style.text import number
from odinfer.version import __version__

if TYPE_CHECKING:
    from odinfer.judgement.equation_test import Judgement
    from odinfer.selection.compare import Candidate, Comparison

_NO_DIFFERENCE = 0.01  # of BIC: rounding
# Differences of BIC and how strong they are usually called.
_STRENGTH = ((10.0, "very strong"), (6.0, "strong"), (2.0, "positive"), (0.0, "hardly any"))


def headline(comparison: Comparison) -> str:
    """The ranking in a sentence a person can act on."""
    table, best = comparison.table, comparison.best
    if not math.isfinite(table["bic"].iloc[0]):
        return "No candidate has a trajectory that could be followed, so they cannot be ranked."
    if len(table) == 1:
        return sentence(best, comparison.candidates[best], comparison.level)
    second = table.index[1]
    difference = float(table["bic"].iloc[1] - table["bic"].iloc[0])
    if difference < _NO_DIFFERENCE:
        ranking = f"{best} and {second} are equally good by BIC"
    elif math.isfinite(difference):
        words = next(words for least, words in _STRENGTH if difference >= least)
        ranking = f"{best} is preferred over {second} by {number(difference, 3)} units of BIC ({words} evidence)"
    else:
        ranking = f"{best} is preferred: no other candidate has a trajectory that could be followed"
    wrong = [j.state for j in comparison.candidates[best].judgements if j.contradicts]
    if wrong:
        return f"{ranking}, but no candidate is right: even its equation for {listed(wrong)} contradicts the data."
    if comparison.candidates[best].whole.contradicts(comparison.level):
        return f"{ranking}, but even it contradicts the data as a whole: its best trajectory leaves a pattern behind."
    if not comparison.candidates[best].judgements:
        return f"{ranking}, and as a whole it does not contradict the data."
    return f"{ranking}, and none of its equations contradicts the data."


def good(comparison: Comparison) -> bool:
    """Whether nothing speaks against the preferred candidate."""
    best = comparison.candidates[comparison.best]
    accused = any(j.contradicts for j in best.judgements) or best.whole.contradicts(comparison.level)
    return math.isfinite(best.bic) and not accused


def sentence(name: str, candidate: Candidate, level: float) -> str:
    """What the data say about one candidate: its equations one by one, and all together."""
    judged = [j for j in candidate.judgements if math.isfinite(j.gamma)]
    if not judged and not candidate.fit.gamma and math.isfinite(candidate.whole.p):
        return f"{name}: {_as_a_whole(candidate, level)}"
    if not judged:
        return f"{name}: not judged, because the fit {candidate.fit.status}."
    wrong = [j for j in judged if j.contradicts]
    right = [j.state for j in judged if not j.contradicts]
    if not wrong and candidate.whole.contradicts(level):
        w = candidate.whole
        return (
            f"{name}: no equation by itself contradicts the data, but all together do: the best trajectory leaves a "
            f"pattern in the residuals (p = {number(w.p, 2)} from {w.draws} simulations). A term or a delay may be "
            "missing where parameters can hide it, or two equations disagree about a parameter they share."
        )
    if not wrong:
        return f"{name}: no equation contradicts the data."
    parts = [f"the equation for {j.state} contradicts the data ({evidence(j)})" for j in wrong]
    others = f"; {listed(right)}'s {'does' if len(right) == 1 else 'do'} not" if right else ""
    return f"{name}: {'; '.join(parts)}{others}."


def _as_a_whole(candidate: Candidate, level: float) -> str:
    """What is said of a model whose equations have no γ."""
    hidden = [s for s in candidate.fit.state_names if s not in candidate.fit.columns]
    why = f"{listed(hidden)} {'is' if len(hidden) == 1 else 'are'} hidden" if hidden else "more than states is observed"
    w = candidate.whole
    said = "contradicts the data" if w.contradicts(level) else "does not contradict the data"
    return (
        f"the model as a whole {said} (p = {number(w.p, 2)} from {w.draws} simulations); its equations are not judged "
        f"one by one, since {why}."
    )


def evidence(j: Judgement) -> str:
    """The numbers behind a verdict, in words."""
    words = f"γ = {number(j.gamma, 2)}, at most {number(j.expected, 2)} expected"
    if math.isinf(j.signal):
        words += "; no solution of it follows its data"
    elif j.signal > 0:
        words += f"; its own solution leaves a signal of {number(j.signal, 2)} nats in the residuals"
    return f"{words}; p = {number(j.p, 2)} from {j.draws} simulations" if j.draws else words


def failures(name: str, candidate: Candidate) -> list[str]:
    """Where in time the accused equations fail, and what their gaps look like."""
    lines = []
    for j in candidate.judgements:
        if not j.contradicts:
            continue
        for g in gaps(candidate.fit, j.state):
            where = listed([f"{number(a, 3)} to {number(b, 3)}" for a, b in g.stretches][:4])
            which = f" in experiment {g.experiment}" if len(candidate.fit.experiments) > 1 else ""
            if where:
                lines.append(f"{name}: the equation for {j.state} fails at times {where}{which}.")
        hints = [f"{h.term} ({h.correlation:+.2f})" for h in candidate.hints.get(j.state, ())[:3]]
        if hints:
            lines.append(f"{name}: a hint only: what the equation for {j.state} lacks looks like {', '.join(hints)}.")
    return lines


def summary(comparison: Comparison) -> str:
    """The comparison as plain text."""
    lines = [headline(comparison), ""] if len(comparison.candidates) > 1 else []
    for name, candidate in comparison.candidates.items():
        lines += [sentence(name, candidate, comparison.level), *failures(name, candidate)]
    table = comparison.table.drop(columns="status").map(lambda v: number(v, 4))
    lines += ["", table.to_string(), "", _footnote(comparison)]
    bad = [f"{name}: {c.fit.status}" for name, c in comparison.candidates.items() if not c.fit.converged]
    return "\n".join([*lines, *bad]) + "\n"


def _footnote(comparison: Comparison) -> str:
    return (
        "parameters counts all that is estimated: theta, initial values and noise; p is the chance that a right model "
        "leaves as much of a pattern in the residuals. The chance that any equation of a right model is accused is at "
        f"most about {100 * comparison.level:g} %, and so is the chance that a right model is rejected as a whole."
    )


def dumps(comparison: Comparison) -> str:
    """The comparison as JSON: table, verdicts with their evidence, hints."""
    content: dict[str, Any] = {"version": __version__, "best": comparison.best, "level": comparison.level}
    table = comparison.table
    content["models"] = {
        name: {
            **{c: _plain(table.loc[name, c]) for c in table.columns},
            "theta": {k: _plain(v) for k, v in c.fit.theta.items()},
            "equations": {
                **{state: {"verdict": verdict} for state, verdict in comparison.verdicts[name].items()},
                **{
                    j.state: {
                        "verdict": comparison.verdicts[name][j.state],
                        **{a: _plain(getattr(j, a)) for a in ("gamma", "expected", "signal", "p", "draws")},
                        "hints": [[h.term, h.correlation] for h in c.hints.get(j.state, ())],
                    }
                    for j in c.judgements
                },
            },
        }
        for name, c in comparison.candidates.items()
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def html(comparison: Comparison) -> str:
    """One self-contained page."""
    drawn = _pictures(comparison)
    table = comparison.table.drop(columns="status")
    rows = [[name, *(number(v, 4) if not isinstance(v, str) else v for v in table.loc[name])] for name in table.index]
    return page(
        "comparison.html",
        headline=headline(comparison),
        good=good(comparison),
        sentences=[sentence(name, c, comparison.level) for name, c in comparison.candidates.items()],
        failures=[line for name, c in comparison.candidates.items() for line in failures(name, c)],
        header=["model", *table.columns],
        rows=rows,
        ended={name: c.fit.status for name, c in comparison.candidates.items()},
        judged=[
            *((name, j.state, "contradicts" if j.contradicts else "consistent", number(j.gamma, 3),
               number(j.expected, 2), number(j.signal, 2), number(j.p, 2), j.draws)
              for name, c in comparison.candidates.items() for j in c.judgements),
            *((name, state, verdict, "-", "-", "-", "-", 0)
              for name, own in comparison.verdicts.items() for state, verdict in own.items() if verdict == NOT_JUDGED),
        ],
        equations={name: c.fit.equations for name, c in comparison.candidates.items() if c.fit.equations},
        footnote=_footnote(comparison),
        pictures=inlined(drawn),
        version=__version__,
    )  # fmt: skip


def save(comparison: Comparison, path: Path) -> None:
    """To a .json file, a .html page, or a folder with everything."""
    if path.suffix in (".json", ".html"):
        content = dumps(comparison) if path.suffix == ".json" else html(comparison)
        write_whole(path, content)
    elif path.suffix:
        raise InputError(f"a comparison is saved as .json, as .html or to a folder, not as '{path.suffix}'")
    else:
        write_outputs(comparison, path)


def write_outputs(comparison: Comparison, folder: Path) -> list[Path]:
    """comparison.html, comparison.json, comparison.csv, gamma.csv and the pictures; the page first."""
    make_folder(folder)
    contents: dict[str, str | bytes] = {
        "comparison.html": html(comparison),
        "comparison.json": dumps(comparison),
        "comparison.csv": _csv(comparison.table),
        "gamma.csv": _csv(comparison.gamma.rename_axis("model")),
        **{f"{name}.png": image for name, image in _pictures(comparison).items()},
    }
    for name, content in contents.items():
        write_whole(folder / name, content)
    return [folder / name for name in contents]


def _pictures(comparison: Comparison) -> dict[str, bytes]:
    drawn = {
        "gamma": pictures.gamma_figure(comparison),
        "fits": pictures.fits_figure(comparison),
        "gaps": pictures.gaps_figure(comparison),
    }
    return {name: png(figure) for name, figure in drawn.items() if figure is not None}


def _csv(table: Any) -> bytes:
    return str(table.rename(index=harmless).to_csv()).encode()


def _plain(value: Any) -> Any:
    """A number or text as JSON knows it."""
    if isinstance(value, str):
        return value
    return None if not math.isfinite(value) else int(value) if float(value).is_integer() else float(value)
