"""Damaged models, data and problems are read, or refused in one line, in a time that goes with their size."""

import io
import random
import re
import time
import warnings
from pathlib import Path

import pytest

import odinfer as od
from fuzz.attacks import LENGTHS, SEEDS, attack, check_line
from odinfer.errors import InputError
from sbml_files import AT_3, LOW, TABLES, TIME, event, math, petab, sbml

SECONDS = 5.0  # of CPU time for one file below 20 kB; 2 for 10 kB where nothing else runs
ODE = """# a model
prey' = a*prey - b*prey*predator [+ c]
predator' = -g*predator + e*sin(2*pi*t)*max(prey, 1)^2
total = prey + predator
prey(0) = 5; a ~ lognormal(1, 0.5)
0 < b < 3; fixed g = 2; log a
when prey > 10 {delay 2, priority 3}: prey = 1, predator += 2
at 3, 5: predator = where(prey > 2 and t < 4, 1, 0)
y ~ normal(total, sd)
"""
CSV = "time,prey,predator,amt,experiment\n" + "\n".join(
    f"{t},{t * 0.5},{3 - t},{t % 2},{'ab'[t % 2]}" for t in range(8)
)
RULES = f'<assignmentRule variable="y">{math(f"<apply><plus/><ci>A</ci>{TIME}</apply>")}</assignmentRule>'
PARTS = {
    "MORE_PARAMETERS": '<parameter id="y" constant="false"/>', "RULES": RULES, "EVENTS": event(LOW) + event(AT_3, "B"),
    "STARTS": f'<initialAssignment symbol="B">{math("<ci>k</ci>")}</initialAssignment>',
}  # fmt: skip
SNIPPETS = (
    "", "(", ")", "[", "]", "{", "'", '"', "_", "a", "1", "0", "9", ".", "-", "+", "*", "**", "^", "/", "e", "1e", "\0",
    "\n", "\t", ",", ";", ":", "=", "~", "<", ">", "&", "#", "%", "|", "x'", "é", "\ufeff", "\u2028", "nan", "inf",
    "1e999", "-0", "1" * 400, "where(", "max(", "<apply>", "<ci>A</ci>", "<math>", "- a\n", "&a ", "*a ", "? ", "..",
    "!!python/object",
)  # fmt: skip


def damaged(content: bytes, rng: random.Random, most: int = 15_000) -> bytes:
    """A text with pieces replaced, moved, removed or repeated."""
    found = content
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        a, b = sorted(rng.randrange(len(found) + 1) for _ in range(2))
        b = min(b, a + rng.choice((1, 3, 20, 200)))
        piece = rng.choice(SNIPPETS).encode()
        match rng.randrange(6):
            case 0:
                found = found[:a] + piece + found[b:]
            case 1:
                found = found[:a] + piece * rng.choice((1, 2, 100, 10_000 // max(len(piece), 1))) + found[a:]
            case 2:
                found = found[:a] + found[b:]
            case 3:
                found = found[:a] + found[a:b] * rng.choice((2, 50, 1000)) + found[b:]
            case 4:
                words = re.findall(rb"[\w.]+", found) or [b"x"]
                found = found.replace(rng.choice(words), rng.choice((*words, piece)), rng.choice((1, 1, 100)))
            case _:
                found = found[:a] + bytes(rng.randrange(256) for _ in range(rng.choice((1, 4)))) + found[b:]
        found = found[:most]
    return found


def read_or_refused(read, *args) -> None:
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(*args)
        except InputError as error:
            check_line(str(error))
    assert time.process_time() - begin < SECONDS


def read_ode(path: Path) -> None:
    content = path.read_bytes()
    for model in od.candidates(content.decode("utf-8", "replace")):
        repr(model)
    od.Model.from_file(path)


def used_csv(path: Path) -> None:
    repr(od.read_csv(path))


def used_petab(folder: Path) -> None:
    problem = od.read_petab(folder / "drug.yaml")
    repr(problem)


def excel() -> bytes:
    from openpyxl import Workbook

    book = Workbook()
    for line in CSV.splitlines():
        book.active.append(line.split(","))
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


@LENGTHS
def test_models(times: int, tmp_path: Path):
    def check(seed: int) -> None:
        (tmp_path / "m.ode").write_bytes(damaged(ODE.encode(), random.Random(seed)))
        read_or_refused(read_ode, tmp_path / "m.ode")

    attack(check, times, 60, seed=SEEDS)


@LENGTHS
def test_tables(times: int, tmp_path: Path):
    def check(seed: int) -> None:
        (tmp_path / "d.csv").write_bytes(damaged(CSV.encode(), random.Random(seed)))
        read_or_refused(used_csv, tmp_path / "d.csv")

    attack(check, times, 60, seed=SEEDS)


@LENGTHS
def test_sheets(times: int, tmp_path: Path):
    whole = excel()

    def check(seed: int) -> None:
        (tmp_path / "d.xlsx").write_bytes(damaged(whole, random.Random(seed)))
        read_or_refused(used_csv, tmp_path / "d.xlsx")

    attack(check, times, 30, seed=SEEDS)


@LENGTHS
def test_sbml(times: int, tmp_path: Path):
    whole = sbml(tmp_path, **PARTS).read_bytes()

    def check(seed: int) -> None:
        (tmp_path / "drug.xml").write_bytes(damaged(whole, random.Random(seed)))
        read_or_refused(od.read_sbml, tmp_path / "drug.xml")

    attack(check, times, 60, seed=SEEDS)


@LENGTHS
def test_petab(times: int, tmp_path: Path):
    petab(tmp_path, **PARTS)
    names = ("drug.yaml", *(f"{name}.tsv" for name in TABLES))
    whole = {name: (tmp_path / name).read_bytes() for name in names}

    def check(seed: int) -> None:
        rng = random.Random(seed)
        name = rng.choice(names)
        (tmp_path / name).write_bytes(damaged(whole[name], rng))
        read_or_refused(used_petab, tmp_path)
        (tmp_path / name).write_bytes(whole[name])

    attack(check, times, 60, seed=SEEDS)


@pytest.mark.parametrize("piece", [s for s in SNIPPETS if s])
def test_a_piece_that_is_repeated_over_10_kb(piece: str, tmp_path: Path):
    text = piece * (10_000 // len(piece))
    for line in (
        text,
        f"x' = {text}",
        f"x' = -k*x [+ {text}]",
        f"x' = -k*x\nk ~ {text}",
        f"x' = -k*x\nwhen x > 1: x = {text}",
    ):
        (tmp_path / "m.ode").write_text(line, "utf-8")
        read_or_refused(read_ode, tmp_path / "m.ode")
    (tmp_path / "d.csv").write_text(f"time,x\n0,1\n{text}", "utf-8")
    read_or_refused(used_csv, tmp_path / "d.csv")
