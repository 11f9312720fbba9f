"""Sentences, tables, page and files of a comparison."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from odinfer.data.csv_file import spreadsheet_safe
from odinfer.diagnostics.verdicts import NOT_JUDGED
from odinfer.errors import InputError, listed
from odinfer.files import make_folder, write_file
from odinfer.result.estimates import preferred_intervals
from odinfer.result.summary import wrapped
from odinfer.selection.figures import fits_picture, gamma_picture, gaps_picture, letters
from odinfer.selection.missing_terms import gaps
from odinfer.style.drawing import png
from odinfer.style.html import notebook_image, page_figure, render_page
from odinfer.style.picture import PanelFigure, SingleFigure, combined_figure
from odinfer.style.tables import rich_table
from odinfer.style.text import TextTable, format_number, format_with_error, printable
from odinfer.version import __version__

if TYPE_CHECKING:
    from rich.console import RenderableType

    from odinfer.diagnostics.equation_test import Judgement
    from odinfer.selection.compare import Candidate, Comparison

_HEADERS = {"loglik": "log L", "parameters": "unknowns", "aicc": "AICc", "bic": "BIC",
            "weight": "BIC weight", "weight_aicc": "AICc weight"}  # fmt: skip
_NO_DIFFERENCE = 0.01  # of BIC: rounding
_SAME_CURVE = 1e-4  # of the largest prediction: what two searches leave of a difference
_MOST_ESTIMATES = 40  # rows of a table of estimates on a page
# Differences of BIC and how strong they are usually called.
_STRENGTH = ((10.0, "very strong"), (6.0, "strong"), (2.0, "positive"), (0.0, "hardly any"))


def headline(comparison: Comparison) -> str:
    """The ranking in a sentence a person can act on."""
    table, best = comparison.table, comparison.best
    if not math.isfinite(table["bic"].iloc[0]):
        return "No candidate could be fitted by trajectories, so they cannot be ranked."
    if len(table) == 1:
        return sentence(best, comparison.candidates[best], comparison.level)
    alike = [n for n, c in comparison.candidates.items() if n == best or _equal(comparison.candidates[best], c)]
    if len(alike) > 1:
        rest = {name: c for name, c in comparison.candidates.items() if name not in alike[1:]}
        same = f"{listed(alike)} are one model for these data: their curves and likelihoods are equal."
        if len(rest) == 1:
            return f"{same} The data {'do not reject' if is_supported(comparison) else 'reject'} it."
        return f"{same} {headline(replace(comparison, candidates=rest))}"
    second = table.index[1]
    difference = float(table["bic"].iloc[1] - table["bic"].iloc[0])
    if difference < _NO_DIFFERENCE:
        ranking = f"{best} and {second} are equally good by BIC"
    elif math.isfinite(difference):
        words = next(words for least, words in _STRENGTH if difference >= least)
        ranking = f"{best} is preferred over {second} by {format_number(difference, 3)} units of BIC ({words} evidence)"
    else:
        ranking = f"{best} is preferred: no other candidate could be fitted"
    wrong = [j.state for j in comparison.candidates[best].judgements if j.contradicts]
    if wrong:
        return f"{ranking}, but no candidate describes the data: even its equation for {listed(wrong)} is rejected."
    if comparison.candidates[best].whole.contradicts(comparison.level):
        return f"{ranking}, but the data reject it too: its best trajectory leaves a pattern in the residuals."
    if not comparison.candidates[best].judgements:
        return f"{ranking}, and the data do not reject it."
    return f"{ranking}, and none of its equations contradicts the data."


def _equal(one: Candidate, other: Candidate) -> bool:
    """Whether two fits cannot be told apart by any data at these times: equal likelihoods, sizes and predictions."""
    if one.parameters != other.parameters or not abs(one.loglik - other.loglik) < _NO_DIFFERENCE:
        return False
    pairs = [(e.predictions()[0], other.fit.experiments[name].predictions()[0])
             for name, e in one.fit.experiments.items()]  # fmt: skip
    return all(
        np.allclose(a, b, rtol=0.0, atol=_SAME_CURVE * max(float(np.nanmax(np.abs(a), initial=0.0)), 1e-300))
        for a, b in pairs
    )


def is_supported(comparison: Comparison) -> bool:
    """Whether nothing speaks against the preferred candidate."""
    best = comparison.candidates[comparison.best]
    return math.isfinite(best.bic) and _not_rejected(best, comparison.level)


def _not_rejected(candidate: Candidate, level: float) -> bool:
    return not any(j.contradicts for j in candidate.judgements) and not candidate.whole.contradicts(level)


def sentence(name: str, candidate: Candidate, level: float) -> str:
    """What the data say about one candidate: its equations one by one, and all together."""
    judged = [j for j in candidate.judgements if math.isfinite(j.gamma)]
    if not judged and not candidate.fit.gamma and math.isfinite(candidate.whole.p):
        return f"{name}: {_model_verdict(candidate, level)}"
    if not judged:
        return f"{name}: not tested, because the fit {candidate.fit.status}."
    wrong = [j for j in judged if j.contradicts]
    right = [j.state for j in judged if not j.contradicts]
    if not wrong and candidate.whole.contradicts(level):
        w = candidate.whole
        return (
            f"{name}: the model is rejected, but no single equation could be identified: the best trajectory leaves a "
            f"pattern in the residuals (p = {format_number(w.p, 2)} from {w.draws} simulations). A term or a delay may "
            "be missing where parameters can hide it, or two equations disagree about a parameter they share."
        )
    if not wrong:
        return f"{name}: no equation contradicts the data."
    parts = [f"the equation for {j.state} contradicts the data ({evidence(j)})" for j in wrong]
    others = f"; {listed(right)}'s {'does' if len(right) == 1 else 'do'} not" if right else ""
    return f"{name}: {'; '.join(parts)}{others}."


def _model_verdict(candidate: Candidate, level: float) -> str:
    """What is said of a model whose equations have no γ."""
    hidden = [s for s in candidate.fit.state_names if s not in candidate.fit.columns]
    why = "the data are not states with Gaussian noise"
    if hidden:
        why = f"{listed(hidden)} {'is' if len(hidden) == 1 else 'are'} hidden"
    w = candidate.whole
    conclusion = "contradicts the data" if w.contradicts(level) else "does not contradict the data"
    return (
        f"the model {conclusion} (p = {format_number(w.p, 2)} from {w.draws} simulations); its equations are not "
        f"tested one by one, since {why}."
    )


def evidence(j: Judgement) -> str:
    """The numbers behind a verdict, in words."""
    words = []
    if j.gamma > j.expected or not j.contradicts:  # a γ that agrees with the equation is no evidence against it
        words.append(f"γ = {format_number(j.gamma, 2)}, at most {format_number(j.expected, 2)} expected")
    if math.isinf(j.signal):
        words.append("no solution of it follows its data")
    elif j.signal > 0:
        words.append(f"a log-evidence of {format_number(j.signal, 2)} for a pattern in its residuals")
    if j.draws:
        words.append(f"p = {format_number(j.p, 2)} from {j.draws} simulations")
    return "; ".join(words)


def failures(name: str, candidate: Candidate) -> list[str]:
    """State at which times rejected equations fail, and which terms resemble the gaps."""
    lines = []
    for j in candidate.judgements:
        if not j.contradicts:
            continue
        for g in gaps(candidate.fit, j.state):
            where = listed([f"{format_number(a, 3)} to {format_number(b, 3)}" for a, b in g.stretches][:4])
            which = f" in experiment {g.experiment}" if len(candidate.fit.experiments) > 1 else ""
            if where:
                lines.append(f"{name}: the equation for {j.state} fails at times {where}{which}.")
        hints = [
            f"{'a constant' if h.term == '1' else h.term} (gains {format_number(h.gain, 3)})"
            for h in candidate.hints.get(j.state, ())[:3]
        ]
        if hints:
            lines.append(
                f"{name}: a hint only: the equation for {j.state} may lack {', '.join(hints)}; discover tests terms."
            )
    return lines


def ranking_table(comparison: Comparison) -> TextTable:
    """A row per candidate, the best first, with its letter."""
    called, table = letters(comparison), comparison.table.drop(columns=["status", "risk"])
    header = ("", "model", *(_HEADERS.get(column, column) for column in table.columns))
    rows = [(called[name], name, *(_cell(column, table.loc[name, column]) for column in table.columns))
            for name in called]  # fmt: skip
    return TextTable(header, tuple(rows))


def estimates_table(comparison: Comparison) -> TextTable:
    """A row per parameter, a column per candidate: estimates with 95 % intervals."""
    called = letters(comparison)
    fits = {name: comparison.candidates[name].fit for name in called}
    ends = {name: preferred_intervals(fit)[1] for name, fit in fits.items()}
    rows = []
    for parameter in [*dict.fromkeys(p for fit in fits.values() for p in fit.theta)][:_MOST_ESTIMATES]:
        cells = []
        for name, fit in fits.items():
            value, (low, high) = fit.theta.get(parameter), ends[name].get(parameter, (math.nan, math.nan))
            if value is None:
                cells.append("-")
            elif math.isnan(low + high):
                cells.append(format_number(value, 4))
            else:
                reach = min(abs(value - end) for end in (low, high))  # the other may be infinite
                shown = format_with_error([value, low, high], 0.5 * (reach or high - low))
                cells.append(f"{shown[0]} ({shown[1]} to {shown[2]})")
        rows.append((parameter, *cells))
    return TextTable(("parameter", *(f"{letter} {name}" for name, letter in called.items())), tuple(rows))


def _cell(column: str, value: float) -> str:
    if column.startswith("weight"):
        return "<0.001" if 0 < value < 1e-3 else format_number(value, 3)
    return format_number(value, 2 if column == "p" else 4)


def _sentences(comparison: Comparison) -> list[str]:
    """All sentences about a comparison, before its table."""
    lines = [headline(comparison), ""] if len(comparison.candidates) > 1 else []
    told: dict[str, str] = {}  # what was said → of which candidate it was said first
    for name, candidate in comparison.candidates.items():
        verdict = sentence(name, candidate, comparison.level)
        first = told.setdefault(verdict.removeprefix(name), name)
        if first != name and _equal(comparison.candidates[first], candidate):
            lines.append(f"{name}: the same as {first}.")
        else:
            lines += [verdict, *failures(name, candidate)]
    return lines


def _footnotes(comparison: Comparison) -> list[str]:
    """And what has to be said after it."""
    bad = [f"{name}: {c.fit.status}" for name, c in comparison.candidates.items() if not c.fit.converged]
    return [_footnote(comparison), *bad]


def summary(comparison: Comparison) -> str:
    """The comparison as plain text of at most about 100 columns."""
    lines = [
        *map(printable, _sentences(comparison)),
        "",
        *ranking_table(comparison).lines(),
        "",
        *map(printable, _footnotes(comparison)),
    ]
    return wrapped(lines)


def summary_rich(comparison: Comparison) -> RenderableType:
    """The same for a terminal with colours, to be printed by a rich Console, which wraps it."""
    from rich.console import Group
    from rich.text import Text

    first, *others = _sentences(comparison)
    parts: list[RenderableType] = [Text(printable(first), "bold green" if is_supported(comparison) else "bold red")]
    rejected = {name for name, c in comparison.candidates.items() if not _not_rejected(c, comparison.level)}
    for line in others:
        parts.append(Text(printable(line), "red" if line.partition(":")[0] in rejected else ""))
    parts.append(rich_table(ranking_table(comparison)))
    return Group(*parts, *(Text(printable(line), "dim") for line in _footnotes(comparison)))


def _footnote(comparison: Comparison) -> str:
    return (
        "Unknowns: parameters, initial values and noise. Weights are the shares of the evidence among these "
        "candidates. p is the chance that a correct model leaves as much of a pattern in the residuals. "
        "The chance that any equation of a correct model is rejected is at "
        f"most about {100 * comparison.level:g} %, and so is the chance that a correct model is rejected."
    )


def dumps(comparison: Comparison) -> str:
    """The comparison as JSON: table, verdicts with their evidence, hints."""
    content: dict[str, Any] = {"version": __version__, "best": comparison.best, "level": comparison.level}
    table = comparison.table
    content["models"] = {
        name: {
            **{c: _json_value(table.loc[name, c]) for c in table.columns},
            "theta": {k: _json_value(v) for k, v in c.fit.theta.items()},
            "equations": {
                **{state: {"verdict": verdict} for state, verdict in comparison.verdicts[name].items()},
                **{
                    j.state: {
                        "verdict": comparison.verdicts[name][j.state],
                        **{a: _json_value(getattr(j, a)) for a in ("gamma", "expected", "signal", "p", "draws")},
                        "hints": [[h.term, h.gain] for h in c.hints.get(j.state, ())],
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
    called = letters(comparison)
    judged = [
        *((f"{called[name]}: {j.state}", "contradicts" if j.contradicts else "consistent", format_number(j.gamma, 3),
           format_number(j.expected, 2), format_number(j.signal, 2), format_number(j.p, 2), str(j.draws))
          for name in called for j in comparison.candidates[name].judgements),
        *((f"{called[name]}: {state}", verdict, *["-"] * 4, "0") for name, own in comparison.verdicts.items()
          for state, verdict in own.items() if verdict == NOT_JUDGED),
    ]  # fmt: skip
    header = ("equation for", "verdict", "γ", "γ expected below", "signal (nats)", "p", "simulations")
    return render_page(
        "comparison.html",
        live=True,
        headline=headline(comparison),
        good=is_supported(comparison),
        sentences=[sentence(name, comparison.candidates[name], comparison.level) for name in called],
        failures=[line for name in called for line in failures(name, comparison.candidates[name])],
        ranking=ranking_table(comparison),
        estimates=estimates_table(comparison),
        letters=called,
        ended={f"{letter} {name}": comparison.candidates[name].fit.status for name, letter in called.items()},
        judged=TextTable(header, tuple(judged)),
        equations={f"{letter} {name}": text for name, letter in called.items()
                   if (text := comparison.candidates[name].fit.equations)},
        footnote=_footnote(comparison),
        pictures={name: page_figure(picture) for name, picture in _pictures(comparison).items()},
        version=__version__,
    )  # fmt: skip


def notebook(comparison: Comparison) -> str:
    """The table with the picture, for notebooks: a piece of a page that needs no other file."""
    return render_page(
        "notebook.html",
        title="Comparison of models",
        status="",
        headline=headline(comparison),
        good=is_supported(comparison),
        tables=[ranking_table(comparison)],
        **notebook_image(fits_picture(comparison)),
        warnings=[f"{name}: {c.fit.status}" for name, c in comparison.candidates.items() if not c.fit.converged],
    )


def save(comparison: Comparison, path: Path) -> None:
    """To a .json file, a .html page, or a folder with everything."""
    if path.suffix in (".json", ".html"):
        content = dumps(comparison) if path.suffix == ".json" else html(comparison)
        write_file(path, content)
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
        **{f"{name}.png": _png(picture) for name, picture in _pictures(comparison).items()},
    }
    for name, content in contents.items():
        write_file(folder / name, content)
    return [folder / name for name in contents]


def _pictures(comparison: Comparison) -> dict[str, PanelFigure | SingleFigure]:
    found = {"gamma": gamma_picture(comparison), "fits": fits_picture(comparison), "gaps": gaps_picture(comparison)}
    return {name: picture for name, picture in found.items() if picture is not None}


def _png(picture: PanelFigure | SingleFigure) -> bytes:
    return png(picture.figure if isinstance(picture, SingleFigure) else combined_figure(picture))


def _csv(table: Any) -> bytes:
    return str(table.rename(index=spreadsheet_safe).to_csv()).encode()


def _json_value(value: Any) -> Any:
    """A number or text as JSON knows it."""
    if isinstance(value, str):
        return value
    return None if not math.isfinite(value) else int(value) if float(value).is_integer() else float(value)
