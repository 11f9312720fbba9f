"""How often intervals hold the truth: nominal 95 %, over fresh draws.

    .venv/bin/python benchmarks/covered.py [--kinds likelihood] [--draws 200] [--settings ...] [--out rows.jsonl]

Every draw is fitted by `od.fit` with its defaults, or (--start truth) by trajectory matching from the truth, which
reaches the same maximum of the likelihood (README) in a fraction of the time. Columns: coverage of the parameters (mean
over parameters and draws, and the lowest of any one parameter), of the states at the observation times, and of the
states at five times up to a quarter of the data's span beyond them. Profiles have no bands of their own. The kinds
sample and odin are posteriors, of trajectories and of ODIN's states at its γ; the latter needs --start odin and knows
nothing beyond the data. Draws are taken in turn over all settings, so that an interrupted run (see --minutes) still
says something about each. Seeds from 700000 and 710000 were looked at while the corrections were chosen; judge on
others.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

PAPER = {"lv": "lotka_volterra", "fhn": "fitzhugh_nagumo", "pt": "protein_transduction"}
OTHERS = {"mm": "michaelis-menten", "sir": "sir"}
SETTINGS = ("lv-low", "lv-high", "fhn-low", "fhn-high", "pt-low", "pt-high", "mm-high", "sir-high")
KINDS = ("likelihood", "profile", "bootstrap", "sample", "odin")
_KNOWN: dict[str, tuple] = {}


def setting(name: str) -> tuple:
    """Model, true θ (P,), true x0 (K,), times, times beyond, noise (K,); of the other systems noise is 2 % or 10 %."""
    import odinfer as od

    if name not in _KNOWN:
        short, level = name.split("-")
        if short in PAPER:
            s = getattr(od.systems, PAPER[short])
            model, truth, x0, t, sigma = s.model, s.theta, s.x0, s.t, s.sigma(s.levels[level == "high"])
        else:
            place = Path(__file__).with_name("other_systems.py")
            spec = importlib.util.spec_from_file_location("other_systems", place)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            text, truth, x0, last, points = module.SYSTEMS[OTHERS[short]]
            model, t = od.Model.from_text(text, OTHERS[short]), np.linspace(0.0, last, points)
            sigma = od.simulate(model, truth, x0, t).std(0) * {"low": 0.02, "high": 0.1}[level]
        beyond = t[-1] + (t[-1] - t[0]) * np.linspace(0.05, 0.25, 5)
        x = od.simulate(model, truth, x0, np.append(t, beyond))
        _KNOWN[name] = model, truth, x[: len(t)], t, beyond, x[len(t) :], sigma
    return _KNOWN[name]


def inside(low, high, truth, slack=0.0) -> np.ndarray:
    return (np.asarray(low) <= truth + slack) & (truth - slack <= np.asarray(high))


def one(name: str, seed: int, kinds: tuple[str, ...] = ("likelihood",), start: str = "odin") -> list[dict]:
    """A row per kind: which parameters are covered, and the share of states inside and beyond the data that are."""
    import odinfer as od

    model, truth, x, t, beyond, ahead, sigma = setting(name)
    y = x + sigma * np.random.default_rng(seed).normal(size=x.shape)
    problem, method = od.Problem(model, od.Data(t, y, states=model.states), start=truth), None
    if start == "truth":
        method = od.Trajectory(start="given", x0=dict(zip(model.states, x[0], strict=True)))
    else:
        problem = od.Problem(model, problem.data)
    fit = od.fit(problem, method=method, seed=seed)
    rows, tiny = [], 1e-6 * x.std(0)  # to which trajectories are computed
    for kind in kinds:
        clock = time.perf_counter()
        row = {"setting": name, "seed": seed, "kind": kind, "stage": fit.details["stage_used"]}
        if fit.uncertainty is None:
            rows.append(row)
            continue
        bands: list = []
        if kind == "likelihood":
            found = fit.interval()
            for table, right in ((fit.predict(t), x), (fit.forecast(beyond), ahead)):
                ends = (table[[f"{s}{end}" for s in model.states]].to_numpy() for end in ("_low", "_high"))
                bands.append(inside(*ends, right))
        elif kind == "profile":
            found = {p: fit.profile(p).interval() for p in fit.uncertainty.names}
        elif kind == "bootstrap":
            made = fit.bootstrap(200, seed=seed, until=float(beyond[-1]))
            found, (low, high) = made.interval(), made.band()
            at = len(t) + np.searchsorted(made.t[0][len(t) :], beyond - 1e-9)
            bands = [inside(low[: len(t)], high[: len(t)], x, tiny), inside(low[at], high[at], ahead, tiny)]
        else:
            end = {"until": float(beyond[-1])} if kind == "sample" else {"target": "odin"}
            made = fit.sample(seed=seed, chains=2, draws=500, **end)
            found, (low, high) = made.interval(), made.band()
            # Forecast times need not be points of the mesh: compare with the truth where it is one.
            right = od.simulate(model, truth, x[0], made.t[0])
            covered, late = inside(low, high, right, tiny), made.t[0] > t[-1]
            bands = [covered[np.searchsorted(made.t[0], t)], covered[late]][: 1 if kind == "odin" else 2]
            row["converged"] = made.converged
        row["theta"] = {p: bool(inside(*found[p], truth[p])) for p in found}
        row["open"] = sum(not np.isfinite(v) for pair in found.values() for v in pair)
        row |= {key: float(np.mean(v)) for key, v in zip(("states", "beyond"), bands, strict=False)}
        rows.append(row | {"seconds": time.perf_counter() - clock})
    return rows


def table(rows: list[dict]) -> str:
    """Coverage in percent by setting and kind."""
    lines = [
        "| setting | kind | draws | parameters | lowest | states | beyond | open ends |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(r["setting"] for r in rows):
        for kind in dict.fromkeys(r["kind"] for r in rows):
            mine = [r for r in rows if r["setting"] == name and r["kind"] == kind and "theta" in r]
            if not mine:
                continue
            each = {p: np.mean([r["theta"][p] for r in mine]) for p in mine[0]["theta"]}
            cells = [np.mean(list(each.values())), min(each.values())]
            cells += [np.mean([r[key] for r in mine]) if key in mine[0] else np.nan for key in ("states", "beyond")]
            words = ["–" if np.isnan(c) else f"{100 * c:.1f}" for c in cells]
            many = sum(r["open"] > 0 for r in mine)
            lines.append(f"| {name} | {kind} | {len(mine)} | {' | '.join(words)} | {many} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=800_000)
    parser.add_argument("--kinds", default="likelihood")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--start", choices=("odin", "truth"), default="odin")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--out", type=Path, help="rows as JSON lines, added as they come")
    options = parser.parse_args()
    if wrong := set(options.kinds.split(",")) - set(KINDS):
        parser.error(f"unknown kind {wrong.pop()}; known are {', '.join(KINDS)}")
    rows: list[dict] = []
    end = time.perf_counter() + 60.0 * options.minutes
    for i in range(options.draws):
        for name in options.settings.split(","):
            if time.perf_counter() > end:
                break
            rows += (found := one(name, options.first_seed + i, tuple(options.kinds.split(",")), options.start))
            if options.out:
                with options.out.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in found)
    sys.stdout.write(table(rows) + "\n")


if __name__ == "__main__":
    main()
