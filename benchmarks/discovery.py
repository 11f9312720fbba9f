"""How often is the missing term found, how often are equations found from data alone, and do bands of ? hold?

    python benchmarks/discovery.py missing --systems 3,27 --draws 3
    python benchmarks/discovery.py equations --systems even --peer /tmp/sindy/bin/python --keep rows.jsonl
    python benchmarks/discovery.py bands

ODEBench (strogatz_extended.json), 60 times over 10 time units, noise relative to each state's standard deviation.
A missing term can be identified if, on noise-free data with the noise level known, no other candidate comes within 6
units of BIC of it, and the model without it is 16 units worse. Other cases are counted as well, in a column of their
own. A run that takes longer than --seconds of CPU time is stopped and counted as wrong. The peer is a Python with
PySINDy, whose part is in discovery_pysindy.py. Rows that --keep holds already are not computed again.
"""

import argparse
import contextlib
import functools
import itertools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import sympy

import odinfer as od
from odinfer.discovery.refit import bic_of
from odinfer.discovery.terms import Term, library

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
        """Terms that the library has, in equations with others."""
        forms = library(self.names, (), self.names)
        return [
            (k, j)
            for k, own in enumerate(self.terms)
            for j, term in enumerate(own)
            if len(own) > 1 and any(same_form(known, term, self.names) for known in forms)
        ]


def parsed(form: str, names: list[str]):
    return sympy.sympify(form.replace("^", "**"), locals={n: sympy.Symbol(n, real=True) for n in (*names, "K")})


def same_form(candidate: Term, true, names: list[str]) -> bool:
    """Whether a candidate is a constant times an expression, for some value of its inner parameter K."""
    symbols = [sympy.Symbol(n, real=True) for n in (*names, "K")]
    x = np.random.default_rng(0).uniform(0.2, 1.2, (len(names), 9))
    given, own = sympy.lambdify(symbols, parsed(candidate.form, names)), sympy.lambdify(symbols, true)
    numbers = [abs(float(v)) for v in true.atoms(sympy.Number)]
    for K in {1.0, *numbers, *(v**0.5 for v in numbers)} - {0.0} if candidate.inner else [1.0]:
        ratio = given(*x, K) / np.broadcast_to(own(*x, K), x[0].shape)
        if np.ptp(ratio) < 1e-9 * abs(ratio[0]):
            return True
    return False


def right(addition, state: str, true, names: list[str]) -> bool:
    """Whether a term is the dropped one of the equation of a state."""
    return addition.state == state and same_form(addition.term, true, names)


@contextlib.contextmanager
def limited(seconds: float):
    """Raise TimeoutError after so many seconds of CPU time."""

    def stop(*_) -> None:
        raise TimeoutError(f"stopped after {seconds:g} CPU s")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def missing(system: System, noise: float, draw: int, seconds: float, identify: bool = True) -> dict | None:
    """Drop one term and look for it; if asked, find out first whether it can be identified."""
    places = system.droppable()
    if not places:
        return None
    k, j = places[np.random.default_rng([draw, system.id, 9]).integers(len(places))]
    state, true = system.names[k], system.terms[k][j].as_coeff_Mul()[1]
    base = od.Model.from_text(system.text((k, j)))
    can = identifiable(system, base, state, true, noise, draw, seconds) if identify else None
    row = {"term": f"{state}: {true}", "identifiable": can}
    clock = time.process_time()
    try:
        with limited(seconds):
            found = od.discover(base, system.data(noise, draw), draws=39)
    except (od.InputError, TimeoutError) as error:
        return {**row, "first": False, "among": False, "error": str(error), "seconds": time.process_time() - clock}
    hits = [right(p.addition, state, true, system.names) for p in found.tied]
    ranks = [i for i, p in enumerate(found.proposals) if right(p.addition, state, true, system.names)]
    return {
        **row, "first": bool(hits and hits[0]), "among": any(hits), "verdict": found.verdict, "rank": ranks[:1],
        "found": [f"{p.addition.state}: {p.addition.text}" for p in found.tied], "seconds": time.process_time() - clock,
    }  # fmt: skip


def identifiable(system: System, base: od.Model, state: str, true, noise: float, draw: int, seconds: float) -> bool:
    """Whether noise-free data tell the dropped term from all others, at the given noise level."""
    clean, level = system.data(0.0, draw), noise * system.solutions[0][1].std(0)
    try:
        known = od.Problem(base, clean, sigma=dict(zip(system.names, level.tolist(), strict=True)))
        with limited(2 * seconds):
            ideal = od.discover(known, draws=19)
    except (od.InputError, TimeoutError):
        return False
    best = float(-np.log(level * np.sqrt(2 * np.pi)).sum() * TIMES)
    # Of the right model: nothing is left of the data.
    unknowns = min(t.unknowns for t in library(system.names, (), system.names) if same_form(t, true, system.names))
    own = -2 * best + np.log(TIMES * len(level)) * (len(known.free) + unknowns + len(level))
    rivals = [p.bic for p in ideal.proposals if not right(p.addition, state, true, system.names)]
    worse = np.inf if ideal.base is None else bic_of(known, ideal.base.loglik) - own
    return bool(worse > NOTICED and min(rivals, default=np.inf) > own + CLEAR)


def nothing(system: System, noise: float, draw: int, seconds: float) -> dict:
    """The full model: is anything said to be missing?"""
    clock = time.process_time()
    try:
        with limited(seconds):
            found = od.discover(od.Model.from_text(system.text()), system.data(noise, draw), draws=39)
    except (od.InputError, TimeoutError) as error:
        return {"error": str(error), "seconds": time.process_time() - clock}
    terms = [f"{p.addition.state}: {p.addition.text}" for p in found.tied]
    return {"verdict": found.verdict, "found": terms, "seconds": time.process_time() - clock}


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


def equations(system: System, noise: float, draw: int, seconds: float) -> dict:
    """Equations from data alone."""
    clock = time.process_time()
    try:
        with limited(seconds):
            found = od.discover(None, system.data(noise, draw), draws=19)
    except (od.InputError, TimeoutError) as error:
        return {"exact": False, "r2": -np.inf, "error": str(error), "seconds": time.process_time() - clock}
    spent = time.process_time() - clock
    terms = [[text.partition("*")[2] or "1" for s, text, *_ in found.terms if s == name] for name in system.names]

    def simulate(x0, t):
        try:
            return np.asarray(od.simulate(found.best, found.theta, x0, t)) if found.theta else None
        except od.InputError:
            return None

    exact = supports(
        system, [[t for t in own if "K" not in t] + ["nan_"] * any("K" in t for t in own) for own in terms]
    )
    return {"exact": exact, "seconds": spent, "r2": generalises(system, simulate), "text": found.best.text}


def peer(python: str, system: System, noise: float, draw: int, seconds: float) -> dict:
    """The same by PySINDy in its own environment."""
    data = system.data(noise, draw)
    other = system.solutions[1]
    asked = {"t": data.t.tolist(), "y": data.y.tolist(), "names": system.names, "seconds": seconds,
             "other": [other[0].tolist(), other[1].tolist()]}  # fmt: skip
    script = Path(__file__).with_name("discovery_pysindy.py")
    done = subprocess.run([python, str(script)], input=json.dumps(asked), capture_output=True, text=True)
    if done.returncode:
        return {"exact": False, "r2": -np.inf, "seconds": np.nan, "error": done.stderr[-200:]}
    answer = json.loads(done.stdout.splitlines()[-1])
    x = np.array(answer["x"]) if answer["x"] else None
    return {"exact": supports(system, answer["terms"]),
            "r2": generalises(system, lambda *_: x), "seconds": answer["seconds"]}  # fmt: skip


def bands(system: System, noise: float, draw: int, seconds: float) -> dict | None:
    """The equation of one state as a whole unknown: how much of the truth its 95 % band holds."""
    if len(system.names) > 1:
        return None
    clock = time.process_time()
    try:
        with limited(seconds):
            fit = od.fit(od.Model.from_text("x_0' = ?(x_0)"), system.data(noise, draw))
    except (od.InputError, TimeoutError) as error:
        return {"held": 0.0, "error": str(error), "seconds": time.process_time() - clock}
    truth = sympy.lambdify(sympy.Symbol("x_0", real=True), system.equations[0], "numpy")
    seen = np.sort(system.solutions[0][1][:, 0])
    at = np.linspace(seen[10], seen[-10], 41)
    band = fit.unknown["?"].at(at)
    value = np.broadcast_to(truth(at), at.shape)
    held = ((band["low"] <= value) & (value <= band["high"])).mean()
    return {"held": float(held), "freedom": fit.unknown["?"].freedom, "seconds": time.process_time() - clock}


TASKS = {"missing": missing, "nothing": nothing, "equations": equations, "bands": bands}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=[*TASKS, "all"], default="all", nargs="?")
    parser.add_argument("--systems", default="all", help="all, odd, even, or numbers such as 3,27")
    parser.add_argument("--noise", default="0.02,0.1")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds of one run at most")
    parser.add_argument("--peer", default="", help="a Python with PySINDy")
    parser.add_argument("--keep", default="", help="file of rows, to which new ones are added")
    parser.add_argument("--quick", action="store_true", help="do not find out which cases can be identified")
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    np.seterr(all="ignore")
    tasks = dict(TASKS if given.task == "all" else {given.task: TASKS[given.task]})
    if given.quick and "missing" in tasks:
        tasks["missing"] = functools.partial(missing, identify=False)
    if given.peer and "equations" in tasks:
        tasks["pysindy"] = functools.partial(peer, given.peer)
    systems = [System(entry) for entry in json.loads(given.data.read_text()) if chosen(entry["id"], given.systems)]
    rows = kept(given.keep)
    done = {key(row) for row in rows}
    for draw, noise, (name, task), system in itertools.product(
        range(given.draws), map(float, given.noise.split(",")), tasks.items(), systems
    ):
        where = {"task": name, "noise": noise, "draw": draw, "system": system.id}
        if key(where) in done or (found := task(system, noise, draw, given.seconds)) is None:
            continue
        rows.append(where | found)
        print(json.dumps(rows[-1]), flush=True)
        if given.keep:
            with open(given.keep, "a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    summarise(rows)


def chosen(system: int, which: str) -> bool:
    return which == "all" or which == ("odd" if system % 2 else "even") or str(system) in which.split(",")


def kept(path: str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if path and Path(path).exists() else []


def key(row: dict) -> tuple:
    return row["task"], row["noise"], row["draw"], row["system"]


def summarise(rows: list[dict]) -> None:
    """Print the tables of docs/benchmarks/discovery.md."""
    for task, noise, odd in sorted({(r["task"], r["noise"], r["system"] % 2) for r in rows}):
        own = [r for r in rows if (r["task"], r["noise"], r["system"] % 2) == (task, noise, odd)]
        stopped = sum("error" in r for r in own)
        head = f"{task}, noise {noise:g}, {'odd' if odd else 'even'} systems, {len(own)} runs ({stopped} stopped)"
        seconds = f"{np.nanmedian([r['seconds'] for r in own]):.1f} CPU s"
        if task == "missing":
            parts = []
            for words, some in (("all", own), ("identifiable", [r for r in own if r["identifiable"]])):
                first, among = (np.mean([r[n] for r in some] or [np.nan]) for n in ("first", "among"))
                parts.append(f"{len(some)} {words}: right first {first:.0%}, among the tied {among:.0%}")
            print(f"{head}: {'; '.join(parts)}; {seconds}")
        elif task == "nothing":
            print(f"{head}: nothing missing {np.mean([r.get('found') == [] for r in own]):.0%}, {seconds}")
        elif task == "bands":
            print(f"{head}: held {np.mean([r['held'] for r in own]):.1%}, {seconds}")
        else:
            exact, good = np.mean([r["exact"] for r in own]), np.mean([r["r2"] > 0.9 for r in own])
            print(f"{head}: exact terms {exact:.0%}, R² > 0.9 on new initial values {good:.0%}, {seconds}")


if __name__ == "__main__":
    sys.exit(main())
