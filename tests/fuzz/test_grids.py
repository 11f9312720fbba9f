"""A grid file with something odd in it is a grid that can be used, or one line."""

import json
import random
from pathlib import Path
from typing import Any

from fuzz.attacks import LENGTHS, SEEDS, attack, check_line, spoilt
from odinfer.errors import InputError
from odinfer.paper.bench import grid as grids

CONTENT: dict[str, Any] = {
    "title": "Decay", "draws": 3, "first_seed": 5, "timeout": 10.0,
    "systems": {
        "decay": {
            "label": "D", "equations": "x' = -k*x", "theta": {"k": 0.7}, "x0": {"x": 3.0}, "noise": [0.05, 0.1],
            "times": {"start": 0.0, "stop": 4.0, "count": 12}, "snr": False,
        },
        "lotka_volterra": {"label": "LV", "noise": [0.1]},
        "lorenz96": {"sizes": [5, 6], "noise": [1.0]},
    },
    "methods": {
        "odin": {"label": "ODIN"}, "limit": {}, "quick": {"method": "gpr", "options": {"kernel": "rbf"}, "draws": 2},
        "paper": {"method": "odin", "preset": "paper", "systems": ["lotka_volterra"]},
    },
    "candidates": {"growth": {"equations": "x' = k*x", "wrong": ["x"]}},
    "experiments": [
        {"systems": ["decay", "lotka_volterra"], "methods": ["odin", "limit", "paper"], "name": "first"},
        {"systems": ["decay"], "methods": ["odin"], "candidates": ["growth"], "noise": [0.2], "draws": 1, "full": 2},
        {"systems": ["lorenz96"], "methods": ["quick"]},
    ],
    "report": {
        "paper": "odin", "states": ["odin"], "compared": ["odin"], "also": [], "parameters": {"decay": ["k"]},
        "marginals": {"decay": "k"}, "seconds": {"odin": {"D, σ = 0.05": [1.0, 0.1]}},
        "gamma": {"growth": {"x": [1.0, 0.1]}}, "authors": {"trmse": {"D, σ = 0.05": 0.1}},
    },
}  # fmt: skip


def toml(value: Any) -> str:
    """Nested values as inline TOML; what TOML has not is left out."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(v) for v in value if v is not None) + "]"
    return str(value).lower() if isinstance(value, bool | float) else json.dumps(value)


def use(read: Any) -> None:
    try:
        grid = read()
    except InputError as error:
        check_line(str(error))
        return
    for cell, draws in grid.chosen():
        assert draws >= 1
        assert cell.setting
        assert cell.run(grid.first_seed).key


def test_the_grid_itself_is_in_order(tmp_path: Path):
    path = tmp_path / "grid.toml"
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in CONTENT.items()))
    assert len(grids.read(str(path)).cells) == len(grids.of_content(CONTENT).cells) == 10


@LENGTHS
def test_with_values_replaced(times: int, tmp_path: Path):
    def check(seed: int) -> None:
        content = spoilt(CONTENT, seed)
        if isinstance(content, dict):
            use(lambda: grids.of_content(content))
        path = tmp_path / "grid.toml"
        if isinstance(content, dict):
            lines = (f"{json.dumps(key)} = {toml(value)}" for key, value in content.items() if value is not None)
            path.write_text("\n".join(lines), errors="replace")
            use(lambda: grids.read(str(path)))

    attack(check, times, 120, seed=SEEDS)


@LENGTHS
def test_with_bytes_flipped_or_cut_off(times: int, tmp_path: Path):
    whole = "\n".join(f"{key} = {toml(value)}" for key, value in CONTENT.items()).encode()

    def check(seed: int) -> None:
        rng = random.Random(seed)
        content = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            content[rng.randrange(len(content))] = rng.choice((*b'0123456789-.,="[]{}e', rng.randrange(256)))
        if rng.random() < 0.1:
            del content[rng.randrange(len(content)) :]
        path = tmp_path / "grid.toml"
        path.write_bytes(content)
        use(lambda: grids.read(str(path)))

    attack(check, times, 60, seed=SEEDS)
