"""A damaged fit.json is a fit that can be used and written as fit.nc, or one line; a damaged fit.nc is one line."""

import json
import random
import warnings
from pathlib import Path

import h5netcdf
import numpy as np
import pytest

from fits import ODD as FITS
from fits import uncertain
from fuzz.attacks import LENGTHS, SECONDS, SEEDS, attack, check_line, spoilt
from fuzz.test_input_files import damaged
from odinfer.errors import InputError
from odinfer.result.formats.json_format import dumps
from odinfer.result.formats.load import load
from odinfer.result.report import write_outputs

WHOLE = {name: dumps(FITS[name]) for name in ("plain", "one state", "three experiments", "failed", "hidden")}
WHOLE["every interval"] = dumps(uncertain())
LIMIT = SECONDS * max(map(len, WHOLE.values())) / 10_000


def use(path: Path, fully: bool) -> None:
    try:
        fit = load(path)
    except InputError as error:
        check_line(str(error))
        return
    assert fit.summary() == repr(fit)
    dumps(fit)
    e = next(iter(fit.experiments.values()))
    if len(e.curve.t) > 1 and np.isfinite([e.curve.x, e.curve.slope]).all():
        fit.predict(e.curve.t[:2])
        _ = fit.states
    fit.intervals_by_kind()
    fit.save(path.with_name("fit.nc"))
    with h5netcdf.File(path.with_name("fit.nc")) as file:
        for variable in file.variables.values():
            variable[...]
    if fully:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as the command does: matplotlib has something to say about odd numbers
            write_outputs(fit, path.parent / "out")


@LENGTHS
def test_with_values_replaced(times: int, tmp_path: Path):
    def check(seed: int) -> None:
        name = random.Random(seed).choice(list(WHOLE))
        path = tmp_path / "fit.json"
        path.write_text(json.dumps(spoilt(json.loads(WHOLE[name]), seed)))
        use(path, fully=seed % 20 == 0)

    attack(check, times, 150, LIMIT, seed=SEEDS)


@LENGTHS
def test_with_bytes_flipped_or_cut_off(times: int, tmp_path: Path):
    def check(seed: int) -> None:
        rng = random.Random(seed)
        content = bytearray(WHOLE[rng.choice(list(WHOLE))].encode())
        for _ in range(rng.choice((1, 1, 3))):
            content[rng.randrange(len(content))] = rng.choice((*b'0123456789-.,:"[]{}e', rng.randrange(256)))
        if rng.random() < 0.2:
            del content[rng.randrange(len(content)) :]
        path = tmp_path / "fit.json"
        path.write_bytes(content)
        use(path, fully=seed % 20 == 0)

    attack(check, times, 150, LIMIT, seed=SEEDS)


@LENGTHS
def test_netcdf_with_bytes_flipped_or_cut_off(times: int, tmp_path: Path):
    uncertain().save(tmp_path / "fit.nc")
    whole = (tmp_path / "fit.nc").read_bytes()

    def check(seed: int) -> None:
        rng = random.Random(seed)
        (tmp_path / "fit.nc").write_bytes(damaged(whole, rng, len(whole)))
        with pytest.raises(InputError) as refused:
            load(tmp_path / "fit.nc")
        check_line(str(refused.value))

    attack(check, times, 50, seed=SEEDS)


@pytest.mark.parametrize("name", ["one state", "every interval"])
def test_what_is_not_damaged_can_be_used(name: str, tmp_path: Path):
    (tmp_path / "fit.json").write_text(WHOLE[name])
    load(tmp_path / "fit.json")
    use(tmp_path / "fit.json", fully=True)
