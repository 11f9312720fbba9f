"""How often is the missing term found, how often are equations found from data alone, and do bands of ? hold?

    python benchmarks/discovery.py missing --systems 3,27 --draws 3
    python benchmarks/discovery.py equations --peer /tmp/sindy/bin/python
    python benchmarks/discovery.py bands

ODEBench (strogatz_extended.json), 60 times over 10 time units, noise relative to each state's standard deviation.
A missing term counts where it can be identified: on noise-free data with the noise level known, no other candidate
comes within 6 units of BIC of it, and the model without it is 16 units worse. The peer is a Python with PySINDy, whose
part is in discovery_pysindy.py. Without options everything is run: hours on one core.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import sympy

import odinfer as od
from odinfer.discovery.refit import bic_of

TIMES, POINTS = 60, 512
DATA = Path(__file__).parents[2] / "shared/data/odebench/strogatz_extended.json"
CLEAR, NOTICED = 6.0, 16.0  # units of BIC: over rivals, and over the model without the term


class System:
    """One system of ODEBench, with equations as sums of terms."""

    def __init__(self, entry: dict) -> None:
        self.id, self.names = entry["id"], [f"x_{k}" for k in range(entry["dim"])]
        self.solutions = [(np.array(s["t"]), np.array(s["y"]).T) for s in entry["solutions"][0]]
        symbols = {name: sympy.Symbol(name, real=True) for name in self.names}
        constants = {f"c_{j}": v for j, v in enumerate(entry["consts"][0])}
        self.equations = [
            sympy.expand(sympy.sympify(text.replace("^", "**"), locals=symbols).subs(constants))
            for text in entry["eq"].split("|")
        ]
        self.terms = [[*sympy.Add.make_args(own)] if own != 0 else [] for own in self.equations]

    def data(self, noise: float, draw: int, which: int = 0) -> od.Data:
        t, y = self.solutions[which]
        some = np.linspace(0, POINTS - 1, TIMES).round().astype(int)
        rng = np.random.default_rng([draw, self.id])
        return od.Data(t[some], y[some] + noise * y.std(0) * rng.normal(size=(TIMES, len(y.T))), states=self.names)

    def text(self, without: tuple[int, int] | None = None) -> str:
        """The equations with a real parameter in front of every term."""
        lines, count = [], 0
        for k, terms in enumerate(self.terms):
            parts = []
            for j, term in enumerate(terms):
                if (k, j) != without:
                    form = term.as_coeff_Mul()[1]
                    parts.append(f"p{count}" if form == 1 else f"p{count}*({form})")
                    count += 1
            lines.append(f"{self.names[k]}' = {' + '.join(parts) or '0'}")
        return "\n".join([*lines, *([f"real {', '.join(f'p{i}' for i in range(count))}"] if count else [])])

    def droppable(self) -> list[tuple[int, int]]:
        """Terms of the library's forms, in equations with others."""
        library = [*map(polynomial, [t.as_coeff_Mul()[1] for own in self.terms for t in own])]
        every = [(k, j) for k, own in enumerate(self.terms) for j in range(len(own))]
        return [place for place, fits in zip(every, library, strict=True) if fits and len(self.terms[place[0]]) > 1]


def polynomial(form) -> bool:
    """Whether a form is in the library without inner parameters: a monomial to degree 3, a sine or a cosine."""
    if form.func in (sympy.sin, sympy.cos):
        return form.args[0].is_Symbol
    try:
        return sympy.Poly(form, *(form.free_symbols or {sympy.Symbol("x_0")})).total_degree() <= 3
    except sympy.PolynomialError:
        return False


def parsed(form: str, names: list[str]):
    return sympy.sympify(form.replace("^", "**"), locals={n: sympy.Symbol(n, real=True) for n in names})


def missing(system: System, noise: float, draw: int) -> dict | None:
    """Drop one term and look for it."""
    places = system.droppable()
    if not places:
        return None
    k, j = places[np.random.default_rng([draw, system.id, 9]).integers(len(places))]
    true = system.terms[k][j].as_coeff_Mul()[1]
    try:
        base = od.Model.from_text(system.text((k, j)))
        clean, level = system.data(0.0, draw), noise * system.solutions[0][1].std(0)
        known = od.Problem(base, clean, sigma=dict(zip(system.names, level.tolist(), strict=True)))
        ideal = od.discover(known, draws=19)
        best = float(-np.log(level * np.sqrt(2 * np.pi)).sum() * TIMES)
        # Of the right model: nothing is left of the data.
        own_bic = -2 * best + np.log(TIMES * len(level)) * (len(known.free) + 1 + len(level))
        rivals = [p.bic for p in ideal.proposals if not right(p.addition, system.names[k], true, system.names)]
        worse = np.inf if ideal.base is None else bic_of(known, ideal.base.loglik) - own_bic
        identifiable = worse > NOTICED and min(rivals, default=np.inf) > own_bic + CLEAR
        clock = time.process_time()
        found = od.discover(base, system.data(noise, draw), draws=39)
    except od.InputError as error:
        return {"system": system.id, "noise": noise, "draw": draw, "error": str(error)}
    first = bool(found.tied) and right(found.tied[0].addition, system.names[k], true, system.names)
    among = any(right(p.addition, system.names[k], true, system.names) for p in found.tied)
    return {
        "system": system.id, "noise": noise, "draw": draw, "term": f"{system.names[k]}: {true}",
        "identifiable": bool(identifiable), "first": first, "among": among, "verdict": found.verdict,
        "found": [f"{p.addition.state}: {p.addition.text}" for p in found.tied], "seconds": time.process_time() - clock,
    }  # fmt: skip


def right(addition, state: str, form, names: list[str]) -> bool:
    return (
        addition.state == state and not addition.inner and sympy.simplify(parsed(addition.term.form, names) - form) == 0
    )


def nothing(system: System, noise: float, draw: int) -> dict | None:
    """The full model: is anything said to be missing?"""
    clock = time.process_time()
    try:
        found = od.discover(od.Model.from_text(system.text()), system.data(noise, draw), draws=39)
    except od.InputError as error:
        return {"system": system.id, "noise": noise, "draw": draw, "error": str(error)}
    terms = [f"{p.addition.state}: {p.addition.text}" for p in found.tied]
    return {"system": system.id, "noise": noise, "draw": draw, "verdict": found.verdict, "found": terms,
            "seconds": time.process_time() - clock}  # fmt: skip


def supports(system: System, found: list[list[str]]) -> bool:
    """Whether equations have exactly the right terms, constants in them aside."""
    for own, terms in zip(system.terms, found, strict=True):
        true = {t.as_coeff_Mul()[1] for t in own}
        given = {sympy.expand(parsed(text, system.names)).as_coeff_Mul()[1] for text in terms}
        if true != given:
            return False
    return True


def generalises(system: System, simulate) -> float:
    """R² of trajectories from the other initial values."""
    t, y = system.solutions[1]
    x = simulate(y[0], t)
    if x is None or x.shape != y.shape or not np.isfinite(x).all():
        return float("-inf")
    return float(min(1 - ((x - y) ** 2).sum(0) / np.maximum(((y - y.mean(0)) ** 2).sum(0), 1e-12)))


def equations(system: System, noise: float, draw: int) -> dict:
    """Equations from data alone."""
    clock = time.process_time()
    found = od.discover(None, system.data(noise, draw), draws=19)
    seconds = time.process_time() - clock
    terms = [[text.partition("*")[2] or "1" for s, text, *_ in found.terms if s == name] for name in system.names]

    def simulate(x0, t):
        return np.asarray(od.simulate(found.best, found.theta, x0, t)) if found.theta else None

    exact = supports(
        system, [[t for t in own if "K" not in t] + ["nan_"] * any("K" in t for t in own) for own in terms]
    )
    return {"system": system.id, "noise": noise, "draw": draw, "exact": exact, "seconds": seconds,
            "r2": generalises(system, simulate), "text": found.best.text}  # fmt: skip


def peer(python: str, system: System, noise: float, draw: int) -> dict:
    """The same by PySINDy in its own environment."""
    data = system.data(noise, draw)
    other = system.solutions[1]
    asked = {"t": data.t.tolist(), "y": data.y.tolist(), "names": system.names,
             "other": [other[0].tolist(), other[1].tolist()]}  # fmt: skip
    script = Path(__file__).with_name("discovery_pysindy.py")
    done = subprocess.run([python, str(script)], input=json.dumps(asked), capture_output=True, text=True, timeout=600)
    if done.returncode:
        return {"system": system.id, "noise": noise, "draw": draw, "exact": False, "r2": -np.inf, "seconds": np.nan}
    answer = json.loads(done.stdout.splitlines()[-1])
    x = np.array(answer["x"]) if answer["x"] else None
    return {"system": system.id, "noise": noise, "draw": draw, "exact": supports(system, answer["terms"]),
            "r2": generalises(system, lambda *_: x), "seconds": answer["seconds"]}  # fmt: skip


def bands(system: System, noise: float, draw: int) -> dict | None:
    """The first equation as a whole unknown, of one state: how much of the truth its 95 % band holds."""
    if len(system.names) > 1:
        return None
    clock = time.process_time()
    fit = od.fit(od.Model.from_text("x_0' = ?(x_0)"), system.data(noise, draw))
    truth = sympy.lambdify(sympy.Symbol("x_0", real=True), system.equations[0], "numpy")
    seen = np.sort(system.solutions[0][1][:, 0])
    at = np.linspace(seen[10], seen[-10], 41)
    band = fit.unknown["?"].at(at)
    value = np.broadcast_to(truth(at), at.shape)
    held = ((band["low"] <= value) & (value <= band["high"])).mean()
    return {
        "system": system.id,
        "noise": noise,
        "draw": draw,
        "held": float(held),
        "seconds": time.process_time() - clock,
    }


TASKS = {"missing": missing, "nothing": nothing, "equations": equations, "bands": bands}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=[*TASKS, "all"], default="all", nargs="?")
    parser.add_argument("--systems", default="")
    parser.add_argument("--noise", default="0.02,0.1")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--peer", default="")
    parser.add_argument("--keep", default="")
    given = parser.parse_args()
    np.seterr(all="ignore")
    chosen = {int(v) for v in given.systems.split(",") if v}
    for task in TASKS if given.task == "all" else [given.task]:
        for entry in json.loads(DATA.read_text()):
            if chosen and entry["id"] not in chosen:
                continue
            system = System(entry)
            for noise in map(float, given.noise.split(",")):
                for draw in range(given.draws):
                    row = TASKS[task](system, noise, draw)
                    rows = [(task, row)] if row is not None else []
                    if task == "equations" and given.peer:
                        rows.append(("pysindy", peer(given.peer, system, noise, draw)))
                    for name, own in rows:
                        line = json.dumps({"task": name, **own})
                        print(line, flush=True)
                        if given.keep:
                            with open(given.keep, "a") as file:
                                file.write(line + "\n")
    summarise(given.keep)


def summarise(path: str) -> None:
    """The tables of docs/benchmarks/discovery.md, of all kept rows."""
    if not path:
        return
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    for task, noise, odd in sorted({(r["task"], r["noise"], r["system"] % 2) for r in rows}):
        own = [r for r in rows if (r["task"], r["noise"], r["system"] % 2) == (task, noise, odd) and "error" not in r]
        if not own:
            continue
        head = f"{task}, noise {noise:g}, {'odd' if odd else 'even'} systems, {len(own)} runs"
        seconds = f"{np.nanmedian([r['seconds'] for r in own]):.1f} CPU s"
        if task == "missing":
            there = [r for r in own if r["identifiable"]]
            first, among = (np.mean([r[n] for r in there] or [np.nan]) for n in ("first", "among"))
            print(f"{head}: {len(there)} identifiable, right first {first:.0%}, among the tied {among:.0%}, {seconds}")
        elif task == "nothing":
            print(f"{head}: nothing missing {np.mean([not r['found'] for r in own]):.0%}, {seconds}")
        elif task == "bands":
            print(f"{head}: held {np.mean([r['held'] for r in own]):.0%}, {seconds}")
        else:
            exact, good = np.mean([r["exact"] for r in own]), np.mean([r["r2"] > 0.9 for r in own])
            print(f"{head}: exact terms {exact:.0%}, R² > 0.9 on new initial values {good:.0%}, {seconds}")


if __name__ == "__main__":
    sys.exit(main())
