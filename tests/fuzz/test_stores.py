"""A store with something odd in it, checksums right or wrong, gives a report of what is in order, or one line."""

import random
import warnings
from dataclasses import asdict
from pathlib import Path

import pytest

from fuzz.attacks import LENGTHS, SEEDS, attack, check_line, spoilt
from fuzz.test_grids import CONTENT
from odinfer.errors import InputError
from odinfer.paper.bench import grid as grids
from odinfer.paper.bench.compute import QUANTILES, drawn_times, plain, system_of
from odinfer.paper.bench.report.page import ITEMS, _page, write
from odinfer.paper.bench.report.results import Results
from odinfer.parallel.store import LOG, Store, _line, canonical


@pytest.fixture(scope="module")
def entries() -> list[dict]:
    """The lines of a store with a record of every cell."""
    grid = grids.of_content(CONTENT)
    found: list[dict] = [{"kind": "grid", "content": dict(grid.content)}]
    for cell in grid.cells:
        system = system_of(canonical(cell.case.spec))
        states, run = system.model.states, cell.run(grid.first_seed)
        times = drawn_times(system)
        outcome = {
            "status": "converged", "converged": True, "theta": system.theta, "state_rmse": 0.1, "objective": 1.0,
            "trmse": 0.1, "trmse_paper": 0.1, "trmses_paper": dict.fromkeys(states, 0.1),
            "gamma": dict.fromkeys(states, 1e-6), "verdicts": dict.fromkeys(states, "consistent"),
            "trajectory": dict.fromkeys(states, [1.0] * len(times)),
            "stages": {"odin": {"trmse": 0.1, "objective": 1.0}, "refined": {"objective": 1.0}},
            "quantiles": dict.fromkeys(system.theta, QUANTILES.tolist()),
            "moments": {p: {"mean": 0.5, "sd": 0.3, "skewness": 0.0, "kurtosis": -1.2} for p in system.theta},
        }  # fmt: skip
        timing = {"seconds": 0.1, "cpu": 0.1, "first": False}
        found.append(
            {"kind": "record", "key": run.key, "run": asdict(run), "outcome": plain(outcome), "timing": timing}
        )
    return found


def use(folder: Path, fully: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as the command does
        _use(folder, fully)


def _use(folder: Path, fully: bool) -> None:
    try:
        results = Results.of([folder])
        results.status()
        if any(records for _, records in results.found):
            made = [table(results) for item in ITEMS for table in item.tables]
            _page(results, [(ITEMS[0], made, {})])
        if fully:
            write(results, folder / "out")
        with Store(folder) as store:
            store.claim(["a"])
    except InputError as error:
        check_line(str(error))


def test_the_store_itself_is_in_order(entries, tmp_path: Path):
    (tmp_path / LOG).write_bytes(b"".join(map(_line, entries)))
    results = Results.of([tmp_path])
    assert (results.damaged, sum(len(records) for _, records in results.found)) == (0, 10)
    use(tmp_path, fully=True)
    assert (tmp_path / "out" / "index.html").exists()


@LENGTHS
def test_with_values_replaced(times: int, entries, tmp_path: Path):
    def check(seed: int) -> None:
        rng = random.Random(seed)
        lines = []
        chosen = rng.randrange(len(entries))
        for i, entry in enumerate(entries):
            entry = spoilt(entry, seed) if i == chosen else entry
            try:
                lines.append(_line(entry))
            except (ValueError, UnicodeError):  # what no JSON can hold
                return
        (tmp_path / LOG).write_bytes(b"".join(lines))
        use(tmp_path, fully=seed % 50 == 0 and times > 1)

    attack(check, times, 60, seed=SEEDS)


@LENGTHS
def test_with_bytes_flipped_or_cut_off(times: int, entries, tmp_path: Path):
    whole = b"".join(map(_line, entries))

    def check(seed: int) -> None:
        rng = random.Random(seed)
        content = bytearray(whole)
        for _ in range(rng.choice((1, 1, 30))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        if rng.random() < 0.2:
            del content[rng.randrange(len(content)) :]
        (tmp_path / LOG).write_bytes(content)
        use(tmp_path, fully=False)

    attack(check, times, 25, seed=SEEDS)
