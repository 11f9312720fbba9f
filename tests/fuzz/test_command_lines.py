"""Any command line ends in a result or one line, and never as an internal error."""

import contextlib
import io
import random
import warnings
from pathlib import Path

import pytest

from fuzz.attacks import LENGTHS, SEEDS, TEXTS, attack, check_line
from odinfer.apps.command import cli
from odinfer.apps.command.terminal import exit_code_and_message
from odinfer.errors import cut
from odinfer.style.text import printable

MODEL = "x' = -k*x\n"
DATA = "time,x\n0,3.1\n1,1.4\n2,0.8\n3,0.4\n4,0.2\n5,0.11\n"
KNOWN = ("--set", "--fixed", "--start", "--log", "--prior", "--sigma", "--input", "--replicates")
FLAGS = {
    "check": KNOWN,
    "fit": (*KNOWN, "--method", "--kernel", "--gamma", "--optimizer", "--paper", "--truth", "--seed", "--uncertainty"),
    "simulate": ("--theta", "--x0", "--times", "--noise", "--seed", "--inputs"),
    "compare": (*KNOWN, "--kernel", "--level", "--holdout", "--workers", "--draws"),
    "example": ("--force",),
    "bench status": ("--store",),
    "bench report": ("--store",),
    "bench run": ("--draws", "--methods", "--systems", "--shard", "--workers"),
}
FILES = {"check": 2, "fit": 2, "simulate": 1, "compare": 2, "example": 1}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    (tmp_path / "m.ode").write_text(MODEL)
    (tmp_path / "d.csv").write_text(DATA)
    (tmp_path / "t.json").write_text('{"k": 0.7}')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(arguments: list[str]) -> tuple[int, str]:
    """As `main` does, in this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return int(cli.app(arguments, prog_name="odinfer", standalone_mode=False) or 0), ""
        except SystemExit as ended:
            return int(ended.code or 0), ""
        except Exception as error:
            return exit_code_and_message(error)


@LENGTHS
def test_any_values_of_flags(times: int, folder: Path):
    def check(seed: int) -> None:
        rng = random.Random(seed)
        command = rng.choice(list(FLAGS))
        arguments = command.split()
        names = ["m.ode", "d.csv"][: FILES.get(command, 0)]
        arguments += [rng.choice(TEXTS) if rng.random() < 0.1 else name for name in names]
        if command == "simulate" and rng.random() < 0.7:
            arguments += ["--theta", "k=1", "--x0", "x=1", "--times", "0:1:3"]
        if command == "fit":
            arguments += ["--starts", "1", *(["--no-refine"] if rng.random() < 0.7 else [])]
        if command == "compare":
            arguments += ["--draws", "19"]
        if command == "bench run":  # never begun: there is no such grid
            arguments += ["no.toml", "--store", "runs"]
        for _ in range(rng.choice((0, 1, 1, 2))):
            arguments += [rng.choice(FLAGS[command]), rng.choice((*TEXTS, "t.json", "d.csv"))]
        if rng.random() < 0.05:
            rng.shuffle(arguments)
        code, words = run(arguments)
        assert code in (0, 1, 2), (arguments, words)
        check_line(cut(printable(words)))

    attack(check, times, 60, seed=SEEDS)
