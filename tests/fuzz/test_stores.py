"""A store with something odd in it, checksums right or wrong, gives a report of what is in order, or one line."""

import random
import warnings
from dataclasses import asdict
from pathlib import Path

import pytest

from fuzz.attacks import LENGTHS, SECONDS, SEEDS, attack, check_line, spoilt
from fuzz.test_grids import CONTENT
from odinfer.errors import InputError
from odinfer.paper.bench import grid as grids
from odinfer.paper.bench.compute import QUANTILES, plot_times, to_json
from odinfer.paper.bench.report.page import ITEMS, _page, write
from odinfer.paper.bench.report.results import Results
from odinfer.paper.systems import system_of
from odinfer.parallel.store import DATABASE, Store, canonical, digest
from stores import execute


@pytest.fixture(scope="module")
def entries() -> list[dict]:
    """The grid of a store, and a record of every cell."""
    grid = grids.of_content(CONTENT)
    found: list[dict] = [dict(grid.content)]
    for cell in grid.cells:
        system = system_of(canonical(cell.case.spec))
        states, run = system.model.states, cell.run(grid.first_seed)
        times = plot_times(system)
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
        found.append({"key": run.key, "run": asdict(run), "outcome": to_json(outcome), "timing": timing})
    return found


def write_store(folder: Path, entries: list[dict]) -> None:
    """A store with right checksums, whatever stands in its entries."""
    texts = [canonical(entry) for entry in entries]
    (folder / DATABASE).unlink(missing_ok=True)
    Store(folder, create=True)
    execute(folder, "INSERT INTO grid (content) VALUES (?)", texts[0])
    for entry, text in zip(entries[1:], texts[1:], strict=True):
        key = entry.get("key") if isinstance(entry, dict) else None
        values = (key if isinstance(key, str) else None, digest(text), text)
        execute(folder, "INSERT OR REPLACE INTO record (key, digest, content) VALUES (?, ?, ?)", *values)


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
    write_store(tmp_path, entries)
    results = Results.of([tmp_path])
    assert (results.damaged, sum(len(records) for _, records in results.found)) == (0, 10)
    use(tmp_path, fully=True)
    assert (tmp_path / "out" / "index.html").exists()


@LENGTHS
def test_with_values_replaced(times: int, entries, tmp_path: Path):
    def check(seed: int) -> None:
        rng = random.Random(seed)
        chosen = rng.randrange(len(entries))
        changed = [spoilt(entry, seed) if i == chosen else entry for i, entry in enumerate(entries)]
        try:
            write_store(tmp_path, changed)
        except (ValueError, UnicodeError):  # what no JSON can hold
            return
        use(tmp_path, fully=seed % 50 == 0 and times > 1)

    size = sum(len(canonical(entry)) for entry in entries)
    attack(check, times, 60, SECONDS * size / 10_000, seed=SEEDS)


@LENGTHS
def test_with_bytes_flipped_or_cut_off(times: int, entries, tmp_path: Path):
    write_store(tmp_path, entries)
    whole = (tmp_path / DATABASE).read_bytes()

    def check(seed: int) -> None:
        rng = random.Random(seed)
        content = bytearray(whole)
        for _ in range(rng.choice((1, 1, 30))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        if rng.random() < 0.2:
            del content[rng.randrange(len(content)) :]
        (tmp_path / DATABASE).write_bytes(content)
        use(tmp_path, fully=False)

    attack(check, times, 25, seed=SEEDS)
