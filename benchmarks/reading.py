"""How long reading takes and how much memory, against sizes and against `pandas.read_csv` of the same file.

    python benchmarks/reading.py

Each file is read in a process of its own: CPU seconds of reading, without imports, and by how much the peak of memory
grows (from /proc, so on Linux).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

READ = """
import json, sys, time, warnings
import numpy, odinfer, pandas
how, path = sys.argv[1:]
def peak(): return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) / 1024
pandas.read_csv(path, nrows=5)  # what is imported on first use
warnings.simplefilter("ignore")
before, start = peak(), time.process_time()
try:
    found = pandas.read_csv(path).columns if how == "pandas" else odinfer.read_csv(path).states
    outcome = f"{len(found)} states"
except odinfer.InputError as error:
    outcome = str(error).partition(": ")[2][:40]
print(json.dumps([time.process_time() - start, peak() - before, outcome]))
"""


def wide(path: Path, rows: int, columns: int) -> None:
    values = np.random.default_rng(0).normal(size=(rows, columns)).tolist()
    lines = (f"{i},{','.join(map(repr, row))}" for i, row in enumerate(values))
    path.write_text("\n".join([",".join(["time", *(f"x{i}" for i in range(columns))]), *lines]))


def measured_in_part(path: Path, rows: int, columns: int) -> None:
    """Errors by row, every tenth value below a limit, and a dose every hundred rows."""
    values = np.abs(np.random.default_rng(0).normal(size=(rows, columns))).tolist()
    cells = ([f"{v!r},0.1" if (i + k) % 10 else "<0.05,0.1" for k, v in enumerate(row)] for i, row in enumerate(values))
    lines = (f"{i},{'' if i % 100 else 5},{','.join(row)}" for i, row in enumerate(cells))
    path.write_text("\n".join([",".join(["time", "amt", *(f"x{i},x{i}_sd" for i in range(columns))]), *lines]))


def long(path: Path, rows: int, observables: int) -> None:
    lines = (f"{i // observables},o{i % observables},{i * 0.1!r}" for i in range(rows))
    path.write_text("\n".join(["time,observable,value", *lines]))


CASES = {
    "wide, 100,000 × 2": (wide, 100_000, 2),
    "wide, 1,000,000 × 2": (wide, 1_000_000, 2),
    "errors, limits, doses, 100,000 × 2": (measured_in_part, 100_000, 2),
    "errors, limits, doses, 1,000,000 × 2": (measured_in_part, 1_000_000, 2),
    "wide, 200 × 1,000": (wide, 200, 1_000),
    "wide, 200 × 5,000": (wide, 200, 5_000),
    "long, 100,000 rows of 5": (long, 100_000, 5),
    "long, 1,000,000 rows of 5": (long, 1_000_000, 5),
    "long, 6,000 observables once": (long, 6_000, 6_000),
    "long, 12,000 observables once": (long, 12_000, 12_000),
    "long, 5,000 observables 40 times": (long, 200_000, 5_000),
}


def measured(how: str, path: Path) -> tuple[float, float, str]:
    run = subprocess.run([sys.executable, "-c", READ, how, path], capture_output=True, text=True, check=True)
    seconds, megabytes, outcome = json.loads(run.stdout)
    return seconds, megabytes, outcome


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    print("| file | MB | odinfer | pandas | s per s | outcome |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        for name, (write, *shape) in CASES.items():
            write(path, *shape)
            own, yardstick = measured("odinfer", path), measured("pandas", path)
            shown = [f"{seconds:.2f} s, {megabytes:.0f} MB" for seconds, megabytes, _ in (own, yardstick)]
            ratio = own[0] / yardstick[0]
            print(
                f"| {name} | {path.stat().st_size / 1e6:.1f} | {' | '.join(shown)} | {ratio:.0f} | {own[2]} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
