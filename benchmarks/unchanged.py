"""Compare the results of two states of the code, case by case.

    python benchmarks/unchanged.py before.json                         # on one state of the code: record
    python benchmarks/unchanged.py after.json before.json              # on the other: record, then compare
    python benchmarks/unchanged.py after.json before.json --loose      # the same, with statistical tolerances

The default comparison is for changes that must not alter any result: differences are relative to the largest value of
an array, and texts must be equal. The loose comparison is for changes of algorithms. It prints a row per case: the
change of the log-likelihood, of the estimates and of the confidence interval limits in units of the interval width,
changed verdicts and statuses, and CPU seconds.

Cases are in benchmarks/regression_cases.py and use the public API and the command only. A case that raises is recorded
with its error. Results are written after every case; a case that the file has already is not computed again, unless
`--fresh` is given. Record both states on one otherwise idle core, since CPU seconds are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import odinfer as od
from regression_cases import Case, cases, estimate, is_fit, read_fit
from regression_problems import LV

LOGLIK_LOSS = 0.05  # nats that a log-likelihood may fall in the loose mode
SHARE_OF_WIDTH = 0.02  # of a confidence interval, by which estimates and limits may move in the loose mode
EXACT = 1e-6  # relative difference of simulations and log-likelihoods at fixed values in the loose mode
SLOWER = 1.5  # ratio of CPU seconds from which a case is marked in the loose mode, if it takes a second or more
_SECONDS = re.compile(r"[\d.e+-]+ s\b")
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
_FOLDER = re.compile(r"(/[\w.-]+)*/tmp\w+")

Record = dict[str, Any]


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Split a value into texts and arrays as large as possible, with names; leave out seconds and versions."""
    if name.rpartition("/")[2] in ("seconds", "version"):
        return
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        for key, part in value.items():
            yield from flat(part, f"{name}/{key}")
    elif isinstance(value, (list, tuple)):
        try:
            yield name, np.array(value, float).tolist() if value else []
        except (TypeError, ValueError):
            for i, part in enumerate(value):
                yield from flat(part, f"{name}/{i}")
    elif isinstance(value, str):
        yield name, _FOLDER.sub("FOLDER", _SECONDS.sub("SECONDS", value))
    elif value is None or isinstance(value, (bool, int, float, np.number)):
        yield name, float("nan") if value is None else float(value)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def record(case: Case) -> Record:
    """Run a case; keep the parts that it yields before an error.

    Returns:
        fits: part → what `read_fit` reads; values: name → array or text; warnings: number of Python warnings; seconds:
        of CPU; error: its type and text, if the case raised one.
    """
    found: Record = {"fits": {}, "values": {}}
    start = cpu_seconds()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for name, value in case():
                if is_fit(value):
                    found["fits"][name] = read_fit(value)
                else:
                    found["values"] |= flat(value, name)
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"
            traceback.print_exc(limit=-3)
    warned = sum(issubclass(w.category, od.InputWarning) for w in caught)
    return {**found, "warnings": warned, "seconds": round(cpu_seconds() - start, 3)}


def difference(a: Any, b: Any) -> float:
    """Return the largest difference relative to the largest value; infinite where shapes or texts differ."""
    if isinstance(a, str) or isinstance(b, str):
        if a == b:
            return 0.0
        if not (isinstance(a, str) and isinstance(b, str)) or _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
            return np.inf
        return difference([float(v) for v in _NUMBER.findall(a)], [float(v) for v in _NUMBER.findall(b)])
    x, y = np.asarray(a, float), np.asarray(b, float)
    if x.shape != y.shape or not (np.isfinite(x) == np.isfinite(y)).all():
        return np.inf
    with np.errstate(invalid="ignore"):
        gap = np.abs(np.where(np.isfinite(x), x - y, 0.0))
    return float(gap.max(initial=0.0) / max(np.abs(y[np.isfinite(y)]).max(initial=0.0), 1e-300)) if gap.any() else 0.0


def compare_exactly(after: dict[str, Record], before: dict[str, Record], tolerance: float) -> int:
    """Print the cases whose results differ, and return how many they are."""
    different = 0
    for name, new in after.items():
        if name not in before:
            print(f"  only after    {name}")
            continue
        a, b = (dict(flat({p: v for p, v in r.items() if p != "seconds"})) for r in (new, before[name]))
        gaps = {part: difference(a[part], b[part]) if part in a and part in b else np.inf for part in {**a, **b}}
        part, gap = max(gaps.items(), key=lambda item: item[1])
        if gap > tolerance:
            different += 1
            many = sum(g > tolerance for g in gaps.values())
            print(f"  {gap:8.1e}  {name:40s} {part} ({many} of {len(gaps)} parts)")
    print(f"{len(after) - different} of {len(after)} cases are the same to {tolerance:g}")
    return different


def width(low: np.ndarray, high: np.ndarray, middle: Any = None) -> np.ndarray:
    """Return interval widths; with one infinite limit twice the distance of the other one from the estimate."""
    finite = np.isfinite(high) & np.isfinite(low)
    with np.errstate(invalid="ignore"):
        whole = high - low
        if middle is None:
            other = np.where(np.isfinite(low), np.abs(low), np.where(np.isfinite(high), np.abs(high), np.nan))
        else:
            half = np.where(np.isfinite(low), middle - low, np.where(np.isfinite(high), high - middle, np.nan))
            other = 2 * half
    return np.where(finite, whole, other)


def limit_shift(new: Any, old: Any, middle: Any = None) -> float:
    """Return the largest shift of limits (..., 2) in units of the old interval width; infinite if a limit vanished."""
    a, b = np.asarray(new, float), np.asarray(old, float)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if a.shape != b.shape or (np.isfinite(a) != np.isfinite(b)).any() or (~np.isfinite(a) & ~same).any():
        return np.inf
    unit = np.maximum(width(b[..., 0], b[..., 1], middle), 1e-12 * np.abs(np.where(np.isfinite(b), b, 0)).max(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.nanmax(np.where(same, 0.0, np.abs(a - b) / unit[..., None]), initial=0.0))


def estimate_shift(new: Record, old: Record) -> float:
    """Return the largest shift of an estimate in units of its interval width, or of its value without an interval."""
    worst = 0.0
    for name, value in old["theta"].items():
        if name not in new["theta"]:
            return np.inf
        gap = abs(new["theta"][name] - value)
        unit = abs(value)
        if name in old["interval"]:
            low, high = old["interval"][name]
            unit = float(width(np.array(low), np.array(high), value))
        if gap > 0 and np.isfinite(unit):  # an estimate without any limit is arbitrary
            worst = max(worst, gap / max(unit, 1e-12 * abs(value), 1e-300))
    return worst


def loose_row(new: Record, old: Record) -> tuple[dict[str, float], list[str]]:
    """Compare a case with statistical tolerances.

    Returns:
        The largest differences of log-likelihood (negative: worse), estimates, limits and exact values; what to flag.
    """
    gap = {"loglik": np.inf, "estimate": 0.0, "limits": 0.0, "exact": 0.0}
    flags = []
    if new.get("error") != old.get("error"):
        flags.append(f"ERROR {new.get('error', 'none')} (before: {old.get('error', 'none')})")
    for part, b in old["fits"].items():
        a = new["fits"].get(part)
        if a is None:
            flags.append(f"no fit {part}")
            continue
        if np.isfinite(b["loglik"]):
            change = a["loglik"] - b["loglik"]
            gap["loglik"] = min(gap["loglik"], change if np.isfinite(change) else -np.inf)
        gap["estimate"] = max(gap["estimate"], estimate_shift(a, b))
        for name, own in b["interval"].items():
            shift = limit_shift(a["interval"].get(name, (np.nan, np.nan)), own, b["theta"].get(name))
            gap["limits"] = max(gap["limits"], shift)
        wrong = [f"{k}: {v} -> {a['verdicts'].get(k)}" for k, v in b["verdicts"].items() if a["verdicts"].get(k) != v]
        flags += [f"VERDICT {part} {text}" for text in wrong]
        if a["status"] != b["status"]:
            flags.append(f"STATUS {part} {b['status']} -> {a['status']}")
        if a["warnings"] != b["warnings"]:
            flags.append(f"{b['warnings']} -> {a['warnings']} warnings of {part}")
    for name, own in old["values"].items():
        other = new["values"].get(name)
        if name.startswith("exact/"):
            gap["exact"] = max(gap["exact"], np.inf if other is None else difference(other, own))
        elif name.startswith("interval/"):
            gap["limits"] = max(gap["limits"], np.inf if other is None else limit_shift(other, own))
    for key, bad in (("estimate", SHARE_OF_WIDTH), ("limits", SHARE_OF_WIDTH), ("exact", EXACT)):
        if gap[key] > bad:
            flags.append(key.upper())
    if gap["loglik"] < -LOGLIK_LOSS:
        flags.append("LOGLIK")
    if new["seconds"] > max(SLOWER * old["seconds"], old["seconds"] + 1.0):
        flags.append("slower")
    return gap, flags


def compare_loosely(after: dict[str, Record], before: dict[str, Record]) -> int:
    """Print a row per case, and return the number of cases with a flag in capitals."""
    print(f"{'case':40s} {'loglik':>9s} {'estimate':>8s} {'limits':>8s} {'exact':>8s} {'CPU s before -> after':>22s}")
    bad, total = 0, [0.0, 0.0]
    for name, new in after.items():
        if name not in before:
            print(f"{name:40s} only after; {new['seconds']:.2f} CPU s {new.get('error', '')}")
            continue
        gap, flags = loose_row(new, before[name])
        seconds = (before[name]["seconds"], new["seconds"])
        total = [t + s for t, s in zip(total, seconds, strict=True)]
        bad += any(flag.split()[0].isupper() for flag in flags)
        loglik = f"{gap['loglik']:+9.4f}" if gap["loglik"] != np.inf else f"{'-':>9s}"
        shifts = " ".join(f"{100 * gap[key]:7.2f}%" for key in ("estimate", "limits"))
        times = f"{seconds[0]:9.2f} -> {seconds[1]:8.2f}"
        print(f"{name:40s} {loglik} {shifts} {gap['exact']:8.1e} {times:>22s}  {'; '.join(flags)}")
    missing = [name for name in before if name not in after]
    print(f"{'total':40s} {'':9s} {'':8s} {'':8s} {'':8s} {total[0]:9.2f} -> {total[1]:8.2f}")
    print(f"{len(after) - bad} of {len(after)} cases without a flag; {len(missing)} cases of before were not run")
    return bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="file to write")
    parser.add_argument("before", type=Path, nargs="?", help="file to compare with")
    parser.add_argument("--only", default="", help="run and compare the cases whose names contain this")
    parser.add_argument("--loose", action="store_true", help="compare with statistical tolerances")
    parser.add_argument("--tolerance", type=float, default=1e-9, help="relative, of the default comparison")
    parser.add_argument("--petab", type=Path, help="folder with problems of the PEtab benchmark collection")
    parser.add_argument("--fresh", action="store_true", help="compute cases that the file has already, too")
    parser.add_argument("--list", action="store_true", help="print the names of the cases only")
    options = parser.parse_args()
    selected = {name: case for name, case in cases(options.petab).items() if options.only in name}
    if options.list:
        print("\n".join(selected))
        return
    if options.petab is None:
        print("cases of PEtab are skipped: give --petab FOLDER", file=sys.stderr)
    print(f"code: {Path(od.__file__).parent}", file=sys.stderr)
    found: dict[str, Record] = json.loads(options.out.read_text()) if options.out.exists() else {}
    if missing := [name for name in selected if options.fresh or name not in found]:
        estimate(od.Problem(LV.model, LV.sample(0.1, 1)))  # imports and compilation are not part of any case
        for name in missing:
            found[name] = record(selected[name])
            part = options.out.with_name(options.out.name + ".part")
            part.write_text(json.dumps(found))
            part.replace(options.out)
            print(
                f"{found[name]['seconds']:8.2f} s  {name}  {found[name].get('error', '')}", file=sys.stderr, flush=True
            )
    after = {name: found[name] for name in selected}
    print(f"{len(after)} cases, {sum(r['seconds'] for r in after.values()):.0f} CPU seconds", file=sys.stderr)
    if options.before is not None:
        before = {k: v for k, v in json.loads(options.before.read_text()).items() if options.only in k}
        bad = compare_loosely(after, before) if options.loose else compare_exactly(after, before, options.tolerance)
        sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
