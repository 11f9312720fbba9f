"""What small inputs cost: CPU seconds to read texts of less than 10 kB and files of some hundred.

    .venv/bin/python benchmarks/costs.py

Random texts are made of pieces of the language, so that many of them are models. Reading counts as done with a model
that was linearised once, with data, or with one clear line. More than two seconds for 10 kB would be a way to keep a
machine busy.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import odinfer as od
from odinfer.model.optional_terms import candidates

TERMS = ("x", "k", "2", "exp(x)", "sin(k*x)", "where(x > k, x, 1)", "min(x, k)", "(x - k)", "1e9", "q")
SIGNS = (" + ", " - ", "*", "/", "^", " ")


def cost(read: Callable[[], object]) -> tuple[float, str]:
    clock, end = time.process_time(), "read"
    try:
        read()
    except od.InputError:
        end = "refused"
    return time.process_time() - clock, end


def model(text: str) -> None:
    m = od.Model.from_text(text)
    ones = [np.ones((3, len(n))) for n in (m.states, m.parameters, m.inputs)]
    m.linearise(np.ones(3), *ones)


def table(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        path.write_text(text)
        od.read_csv(path)


def main() -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    nested = "x' = k*" + "where(x > 1, " * 12 + "x" + ", -x)" * 12
    sums = "x' = " + " + ".join(f"k{i}*x" for i in range(900))
    for name, text in {"twelve nested where": nested, "900 terms": sums}.items():
        print(f"{name:32s} {len(text):8,d} B  {cost(lambda text=text: model(text))[0]:6.3f} s")
    optional = "x' = " + "[+a]" * 20_000
    print(f"{'20,000 optional terms':32s} {80_000:8,d} B  {cost(lambda: list(candidates(optional)))[0]:6.3f} s")
    seconds = []
    for _ in range(1000):
        size, signs = int(rng.integers(1, 1500)), SIGNS[: int(rng.choice([3, 5, 6]))]
        text = "x' = " + "".join(rng.choice(TERMS) + rng.choice(signs) for _ in range(size)) + "x"
        seconds.append(cost(lambda text=text[:10_000]: model(text)))
    worst = max(s for s, _ in seconds)
    models = sum(end == "read" for _, end in seconds)
    print(f"{'1,000 random texts, the worst':32s} {10_000:8,d} B  {worst:6.3f} s ({models} were models)")
    long = "time,observable,value\n" + "".join(f"{i},o{i},1\n" for i in range(12_000))
    print(f"{'12,000 observables, long form':32s} {len(long):8,d} B  {cost(lambda: table(long))[0]:6.3f} s")


if __name__ == "__main__":
    main()
