"""What happens with problems nobody here made: stiff, chaotic, badly scaled, and just different systems; real data.

    .venv/bin/python benchmarks/hard.py [--group named|fresh|later|scaled|units|real] [--only NAME …] [--seeds 5]
        [--workers 2] [--keep FILE]

`named` are systems that once failed, and were mended; `fresh` and `later` were chosen before anything was known of
them; `scaled` are those of `fresh` whose equations stay what they are in other units, in such units that parameters
lie between 1e-9 and 1e9; `units` are all of `fresh` in any units of states, time and parameters, which makes numbers
in the text others; `real` are data sets as published. Every fit is compared with the best likelihood known: its own,
or that of the best trajectory from the truth in the first units (for real data, of all seeds). Columns: fits that
reached it to 0.1 nats; that missed it and said "converged"; that said that they failed or kept ODIN's estimate; right
equations accused; exceptions; CPU seconds (median, largest). With `--keep`, every fit is a line of a file, and those
that are there already are not made again.
"""

from __future__ import annotations

import argparse
import os
import re
import time
import traceback
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import kept
from hard_systems import FRESH, LATER, NAMED
from real import REAL

SYSTEMS = {"named": NAMED, "fresh": FRESH, "later": LATER, "scaled": FRESH, "units": FRESH}


def posed(group: str, name: str, seed: int) -> tuple[Any, Any]:
    """The problem with the data of one seed, and its truth: θ (P,), times (N,) and states (N, K) without noise."""
    import odinfer as od

    text, theta, x0, t, noise = SYSTEMS[group][name]
    model = od.Model.from_text(text, name)
    values = np.array([theta[p] if p in theta else model.fixed[p] for p in model.parameters])
    x = od.simulate(model, values, x0, t, rtol=1e-9, atol=1e-13)
    if not np.isfinite(x).all():
        raise RuntimeError(f"{name}: no solution")
    rng = np.random.default_rng([seed, len(name)])
    y = x + noise * x.std(0) * rng.normal(size=x.shape)
    low = np.array([model.bounds.get(s, (-np.inf, np.inf))[0] for s in model.states])
    y = np.maximum(y, np.where(np.isfinite(low), low + 0.1 * noise * x.std(0), low))
    return od.Problem(model, od.Data(t, y, states=model.states)), (values, t, x)


def in_other_units(group: str, problem: Any, truth: Any, seed: int) -> tuple[Any, float]:
    """The same problem in other units, and what that adds to log-likelihoods; None if no units leave it as it is."""
    import odinfer as od

    model, rng = problem.model, np.random.default_rng([seed, 5, len(problem.model.name)])
    K, P = len(model.states), len(model.parameters)
    free = np.array([p not in model.fixed for p in model.parameters])
    decades = np.where(free, np.log10(np.maximum(np.abs(truth[0]), 1e-300)), 0.0)
    if group == "scaled":
        change = unit_changes(model)
        if not len(change):
            return None, 0.0
        change = rng.normal(size=len(change)) @ change  # of states, time and parameters, as far as sizes allow
        steps = np.linspace(0.0, 60.0, 601)[1:, None] * change
        allowed = (np.abs(steps[:, K + 1 :] + decades)[:, free].max(1) <= 9) & (np.abs(steps[:, : K + 1]).max(1) <= 9)
        units = 10.0 ** (steps[allowed][-1] if allowed.any() else 0.0 * change)
    else:
        units = 10.0 ** np.concatenate([rng.uniform(-5, 5, K + 1), rng.uniform(-9, 9, P) - decades])
        units[K + 1 :][~free] = 1.0
        model = od.Model.from_text(written(model, FRESH[model.name][0], units), model.name)
    e = problem.data.experiments[0]
    return od.Problem(model, od.Data(e.t * units[K], e.y * units[:K], states=model.states)), -len(e.t) * float(
        np.log(units[:K]).sum()
    )


def unit_changes(model: Any) -> Any:
    """A basis (n, K+1+P) of changes of the decades of states, time and parameters that leave the equations as they are.

    f must go over into f times the unit of the state over that of time, at every point: linear equations.
    """
    rng, n, K, P = np.random.default_rng(0), 400, len(model.states), len(model.parameters)
    t, x, theta = rng.uniform(0.5, 2.0, n), rng.uniform(0.2, 0.8, (n, K)), rng.uniform(0.5, 2.0, (n, P))
    f, fx, ft = model.linearise(t, x, theta, np.zeros((n, 0)))
    later = model.linearise(t * (1.0 + 1e-7), x, theta, np.zeros((n, 0)))[0]
    D = np.zeros((n, K, K + 1 + P))
    D[..., :K] = fx * x[:, None] - f[..., None] * np.eye(K)
    D[..., K] = f + (later - f) / 1e-7
    D[..., K + 1 :] = ft * theta[:, None]
    D = D.reshape(n * K, -1)
    held = np.eye(K + 1 + P)[[K + 1 + i for i, p in enumerate(model.parameters) if p in model.fixed]]
    every = np.concatenate([D / np.maximum(np.abs(D).max(1, keepdims=True), 1e-300), held])
    _, s, V = np.linalg.svd(every)
    exact = V[(s > 1e-3 * s[0]).sum() :]
    return exact[np.abs(every @ exact.T).max(0) < 1e-5]


def written(model: Any, text: str, units: Any) -> str:
    """The text for states, time and parameters in other units, which are numbers in it."""
    names = dict(zip((*model.states, "t", *model.parameters), units.tolist(), strict=True))
    lines = []
    for line in map(str.strip, text.split(";")):
        if "'" in line:
            state, right = line.split("'", 1)
            own = re.sub(r"[A-Za-z_]\w*(?!\s*\()", lambda m: f"({m[0]}/{names[m[0]]!r})" if m[0] in names else m[0],
                         right.split("=", 1)[1])  # fmt: skip
            line = f"{state}' = {names[state] / names['t']!r}*({own})"
        elif "<" in line or ">" in line:
            unit = next(names[w] for w in line.split() if w in names)
            line = " ".join(repr(float(w) * unit) if w[0].isdigit() else w for w in line.split())
        lines.append(line)
    return "; ".join(lines)


def from_truth(problem: Any, truth: Any) -> float:
    """The best log-likelihood of trajectories that start near the truth, by SciPy alone."""
    from scipy.optimize import least_squares

    import odinfer as od

    theta, t, x = truth
    free = list(problem.free_index)
    y = problem.data.experiments[0].y
    at = np.concatenate([x[0], theta[free]])
    size = np.concatenate([x.std(0), np.maximum(np.abs(theta[free]), 1e-300)])
    low = np.array([problem.limits(s)[0] for s in (*problem.model.states, *problem.free)])
    high = np.array([problem.limits(s)[1] for s in (*problem.model.states, *problem.free)])

    def states(v: Any) -> Any:
        full = theta.copy()
        full[free] = v[y.shape[1] :]
        return od.simulate(problem.model, full, v[: y.shape[1]], t, rtol=1e-8, atol=1e-12)

    def worth(v: Any) -> float:
        s2 = np.mean((y - states(v)) ** 2, 0)
        return float(-0.5 * len(t) * (np.log(2 * np.pi * s2) + 1).sum())

    best, sd = worth(at), np.sqrt(np.mean((y - x) ** 2, 0))
    for _ in range(4):

        def left(v: Any, sd: Any = sd) -> Any:
            return np.nan_to_num(((y - states(v * size)) / sd).ravel(), nan=1e3, posinf=1e3, neginf=-1e3)

        start = np.clip(at, low + 1e-12 * size, high - 1e-12 * size)
        found = least_squares(
            left, start / size, bounds=(low / size, high / size), diff_step=1e-5, max_nfev=25, x_scale="jac"
        )
        v = found.x * size
        value = worth(v)
        if not value > best + 1e-4:
            break
        best, at, sd = value, v, np.sqrt(np.mean((y - states(v)) ** 2, 0))
    return best


def one(task: tuple[str, str, int, str]) -> dict[str, Any]:
    import warnings

    import odinfer as od
    from odinfer.likelihood.refinement import refine_from

    group, name, seed, folder = task
    row: dict[str, Any] = {"group": group, "name": name, "seed": seed}
    truth, more = None, 0.0
    if group == "real":
        model = od.Model.from_text(REAL[name], name)
        problem = od.Problem(model, od.read_csv(Path(folder) / f"{name}.csv", model.states))
    else:
        problem, truth = posed(group, name, seed)
        first = problem
        if group in ("scaled", "units"):
            problem, more = in_other_units(group, problem, truth, seed)
            if problem is None:
                return row | {"skipped": True}
    clock = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            fit = od.fit(problem, seed=seed)
    except Exception:
        return row | {"crash": traceback.format_exc(limit=-3), "best": -np.inf, "seconds": time.process_time() - clock}
    seconds = time.process_time() - clock
    refined = fit.stages.get("refined")
    known = [-np.inf if refined is None else refined.loglik]
    if truth is not None:
        close = refine_from(first, truth[0], [(truth[1], truth[2])])
        known.append(close.loglik + more if close is not None and np.isfinite(close.loglik) else -np.inf)
        known.append(from_truth(first, truth) + more)
    return row | {
        "loglik": -np.inf if refined is None else refined.loglik, "kept": fit.details["stage_used"] == "odin",
        "status": fit.status,
        "converged": fit.converged, "accused": [s for s, v in fit.verdicts.items() if v == "contradicts the data"],
        "best": float(np.nanmax(known)), "seconds": seconds, "theta": fit.theta,
        "open": [] if fit.uncertainty is None else [p for p, v in fit.interval().items() if not np.isfinite(v).all()],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", choices=[*SYSTEMS, "real"], action="append")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", default="../shared/data/real", help="folder with the real data")
    parser.add_argument("--keep", type=Path, help="file in which every fit is kept as it comes")
    parser.add_argument("--verbose", action="store_true", help="a line for every fit")
    options = parser.parse_args()
    tables = {**SYSTEMS, "real": REAL}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [
        (group, name, seed, options.data)
        for group in options.group or ["named", "fresh", "later", "real"]
        for name in tables[group]
        if not options.only or name in options.only
        for seed in seeds
        if group != "real" or (Path(options.data) / f"{name}.csv").exists()
    ]
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    print(
        f"{'group':8}{'system':32}{'fits':>5}{'reached':>9}{'missed':>8}{'said so':>9}{'accused':>9}{'crash':>7}"
        f"{'median s':>10}{'most s':>8}"
    )
    for row in kept.rows(one, tasks, ("group", "name", "seed"), options.workers, options.keep):
        if options.verbose:
            short = {k: (float(f"{v:.5g}") if isinstance(v, float) else v) for k, v in row.items()}
            print("   ", short, flush=True)
        own = rows.setdefault((row["group"], row["name"]), [])
        own.append(row)
        if len(own) == len(seeds):
            tell(own)
    tell([r for own in rows.values() for r in own], "all")


def tell(rows: list[dict[str, Any]], name: str = "") -> None:
    rows = [r for r in rows if "skipped" not in r]
    if not rows:
        return
    if rows[0]["group"] == "real" and not name:  # the best of all seeds
        best = max(r["best"] for r in rows)
        for r in rows:
            r["best"] = best
    fine = [r for r in rows if "crash" not in r]
    reached = [r for r in fine if not r["kept"] and r["loglik"] >= r["best"] - 0.1]
    said = [r for r in fine if r not in reached and (r["kept"] or not r["converged"])]
    seconds = [r["seconds"] for r in rows]
    print(
        f"{rows[0]['group'] if not name else '':8}{name or rows[0]['name']:32}{len(rows):5d}{len(reached):9d}"
        f"{len(fine) - len(reached) - len(said):8d}{len(said):9d}{sum(bool(r['accused']) for r in fine):9d}"
        f"{len(rows) - len(fine):7d}{np.median(seconds):10.2f}{max(seconds):8.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
