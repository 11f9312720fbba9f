"""Damaged models, data and problems are read, or refused in one line, in a time that goes with their size."""

import copy
import io
import random
import re
import time
import warnings
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

import odinfer as od
from fuzz.attacks import LENGTHS, SECONDS, SEEDS, attack, check_line
from odinfer.errors import InputError
from sbml_files import AT_3, LOW, TABLES, TIME, event, math, petab, sbml

LARGEST = 15_000  # bytes of a damaged file
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


def damaged(content: bytes, rng: random.Random, most: int = LARGEST) -> bytes:
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(*args)
        except InputError as error:
            check_line(str(error))


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


def repacked(archive: bytes, rng: random.Random) -> bytes:
    """An archive with one of its files of XML damaged."""
    old = zipfile.ZipFile(io.BytesIO(archive))
    chosen = rng.choice([*old.namelist(), *["xl/worksheets/sheet1.xml"] * 10])
    with zipfile.ZipFile(content := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            text = old.read(name)
            if name == chosen:
                text = damaged_xml(text, rng) if rng.random() < 0.7 else damaged(text, rng)
            new.writestr(name, text)
    return content.getvalue()


VALUES = (
    "", "nan", "INF", "-INF", "1e999", "-1", "0", "1", "1e308", "5e-324", "true", "false", "A", "B", "k", "y", "t", "é",
    "3.5", "1" * 400, "XFD1048576", "A1:XFD9", "a/../b", "_", "blood", "n", "s", "d", "inlineStr", "1900-02-30",
)  # fmt: skip
OPERATORS = (
    "plus", "minus", "times", "divide", "power", "root", "ln", "abs", "floor", "factorial", "tan", "arccosh", "and",
    "or", "not", "xor", "eq", "neq", "max", "rem", "quotient", "implies", "piecewise", "true", "pi", "infinity",
    "notanumber", "csymbol", "lambda",
)  # fmt: skip


def damaged_xml(content: bytes, rng: random.Random) -> bytes:
    """XML with elements removed, repeated, moved or renamed, or with other values in them; it stays well formed."""
    root = ElementTree.fromstring(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        pairs = [(parent, child) for parent in root.iter() for child in parent]
        if not pairs:
            break
        (parent, child), (other, _) = rng.choice(pairs), rng.choice(pairs)
        known = [value for _, own in pairs for value in own.attrib.values()] or [""]
        match rng.randrange(6):
            case 0:
                parent.remove(child)
            case 1:
                other.append(copy.deepcopy(child))
            case 2:
                child.tag = child.tag[: child.tag.find("}") + 1] + rng.choice(OPERATORS)
            case 3 if child.attrib:
                del child.attrib[rng.choice([*child.attrib])]
            case 4:
                child.text = rng.choice((*VALUES, *known))
            case _:
                names = [name for _, own in pairs for name in own.attrib] or ["r"]
                child.attrib[rng.choice([*child.attrib] or names)] = rng.choice((*VALUES, *known))
    return ElementTree.tostring(root, "utf-8", xml_declaration=True)


def damaged_table(text: str, rng: random.Random) -> str:
    """A table with cells, rows or columns replaced, repeated or removed."""
    rows = [line.split("\t") for line in text.splitlines()]
    heads = [name for table in TABLES.values() for name in table.splitlines()[0].split("\t")]
    for _ in range(rng.choice((1, 1, 2, 3))):
        i = rng.randrange(len(rows))
        j = rng.randrange(len(rows[0])) if rows[0] else 0
        match rng.randrange(5):
            case 0 if len(rows) > 2:
                del rows[i]
            case 1:
                rows.append([*rows[i]])
            case 2:
                rows = [row[:j] + row[j + 1 :] for row in rows]
            case 3:
                rows = [[*row, rng.choice(CELLS if k else heads)] for k, row in enumerate(rows)]
            case _:
                rows[i][j : j + 1] = [rng.choice(CELLS if i else heads)]
    return "\n".join("\t".join(row) for row in [*rows, ""])


CELLS = (
    *VALUES, "1;2;3", "k;k", "(((", "a b", "log10", "laplace", "uniform", "0;1", "piecewise(1, A > 1, 2)", "rateOf(A)",
    "factorial(A)", "A/0", "ln(-1)", "observableParameter2_obs_B", "noiseParameter1_obs_A", "turn", "low", "where",
)  # fmt: skip


@LENGTHS
def test_models(times: int, tmp_path: Path):
    def check(seed: int) -> None:
        (tmp_path / "m.ode").write_bytes(damaged(ODE.encode(), random.Random(seed)))
        read_or_refused(read_ode, tmp_path / "m.ode")

    attack(check, times, 60, seconds=SECONDS * LARGEST / 10_000, seed=SEEDS)


@LENGTHS
def test_tables(times: int, tmp_path: Path):
    def check(seed: int) -> None:
        (tmp_path / "d.csv").write_bytes(damaged(CSV.encode(), random.Random(seed)))
        read_or_refused(used_csv, tmp_path / "d.csv")

    attack(check, times, 60, seconds=SECONDS * LARGEST / 10_000, seed=SEEDS)


@LENGTHS
def test_sheets(times: int, tmp_path: Path):
    whole = excel()

    def check(seed: int) -> None:
        rng = random.Random(seed)
        content = damaged(whole, rng) if rng.random() < 0.2 else repacked(whole, rng)
        (tmp_path / "d.xlsx").write_bytes(content)
        read_or_refused(used_csv, tmp_path / "d.xlsx")

    attack(check, times, 30, seconds=SECONDS * LARGEST / 10_000, seed=SEEDS)


@LENGTHS
def test_sbml(times: int, tmp_path: Path):
    whole = sbml(tmp_path, **PARTS).read_bytes()

    def check(seed: int) -> None:
        rng = random.Random(seed)
        (tmp_path / "drug.xml").write_bytes(rng.choice((damaged, damaged_xml))(whole, rng))
        read_or_refused(od.read_sbml, tmp_path / "drug.xml")

    attack(check, times, 60, seconds=SECONDS * LARGEST / 10_000, seed=SEEDS)


@LENGTHS
def test_petab(times: int, tmp_path: Path):
    petab(tmp_path, **PARTS)
    names = ("drug.yaml", *(f"{name}.tsv" for name in TABLES))
    whole = {name: (tmp_path / name).read_bytes() for name in names}

    def check(seed: int) -> None:
        rng = random.Random(seed)
        name = rng.choice(names)
        if name.endswith(".tsv") and rng.random() < 0.7:
            (tmp_path / name).write_text(damaged_table(whole[name].decode(), rng), "utf-8")
        else:
            (tmp_path / name).write_bytes(damaged(whole[name], rng))
        read_or_refused(used_petab, tmp_path)
        (tmp_path / name).write_bytes(whole[name])

    attack(check, times, 60, seconds=SECONDS * LARGEST / 10_000, seed=SEEDS)


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
        begin = time.process_time()
        read_or_refused(read_ode, tmp_path / "m.ode")
        assert time.process_time() - begin < SECONDS
    (tmp_path / "d.csv").write_text(f"time,x\n0,1\n{text}", "utf-8")
    read_or_refused(used_csv, tmp_path / "d.csv")
