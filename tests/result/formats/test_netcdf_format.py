"""Fits as xarray datasets and netCDF files: the same numbers under names that every reader takes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fits import ODD, hidden, make_fit
from odinfer.result.formats import write
from odinfer.result.formats.load import load
from odinfer.result.formats.netcdf_format import Group, to_xarray


@pytest.fixture(params=list(ODD))
def fit(request):
    return ODD[request.param]


def test_netcdf_opens_in_xarray_with_the_same_numbers(fit, tmp_path: Path):
    path = tmp_path / "fit.nc"
    write(fit, path)
    with xr.open_dataset(path) as opened:
        xr.testing.assert_identical(opened.load(), xr.decode_cf(to_xarray(fit)))
        several = len(fit.experiments) > 1
        assert opened.experiment.values.tolist() == list(fit.experiments)
        for i, e in enumerate(fit.experiments.values()):
            end = f"_{i}" if several else ""
            np.testing.assert_array_equal(opened[f"y{end}"], e.y)
            np.testing.assert_array_equal(opened[f"curve_sd{end}"], e.curve.sd)
            np.testing.assert_array_equal(opened[f"time{end}"], e.t)
        for name, value in fit.theta.items():
            np.testing.assert_array_equal(opened.theta.sel(parameter=name), value)
        for key in ("gamma", "gamma_user", "sigma"):
            for name, value in getattr(fit, key).items():
                along = {"column" if fit.noise and key == "sigma" else "state": name}
                np.testing.assert_array_equal(opened[key].sel(along), value)
        for name, stage in fit.stages.items():
            found = opened.stage_x_0 if several else opened.stage_x
            np.testing.assert_array_equal(found.sel(stage=name), stage.x[0])
            assert opened.stage_note.sel(stage=name) == stage.note
        assert opened.attrs["model"] == fit.model
        assert opened.attrs["status"] == fit.status
        assert opened.attrs["equations"] == (fit.equations or "")
        assert opened.attrs["seed"] == fit.seed


def test_columns_that_are_not_states_have_a_dimension_of_their_own(tmp_path: Path):
    fit = hidden()
    write(fit, tmp_path / "fit.nc")
    with xr.open_dataset(tmp_path / "fit.nc") as opened:
        assert dict(zip(opened.column.values.tolist(), opened.noise.values.tolist(), strict=True)) == fit.noise
        for i, e in enumerate(fit.experiments.values()):
            for key in ("fitted", "scores", "limit", "expected", "expected_sd"):
                np.testing.assert_array_equal(opened[f"{key}_{i}"], getattr(e, key))
                assert opened[f"{key}_{i}"].dims[1] == "column"
        np.testing.assert_array_equal(opened.theta.sel(parameter="k[two]"), fit.theta["k[two]"])


def test_variable_names_are_safe_whatever_the_user_named(fit):
    assert all(str(name).isidentifier() and str(name).isascii() for name in to_xarray(fit).variables)


def test_a_seed_beyond_64_bits_is_kept(tmp_path: Path):
    write(make_fit(seed=2**80), tmp_path / "fit.nc")
    write(make_fit(seed=2**80), tmp_path / "fit.json")
    assert load(tmp_path / "fit.json").seed == 2**80
    with xr.open_dataset(tmp_path / "fit.nc") as opened:
        assert opened.attrs["seed"] == str(2**80)


def test_groups_read_back_as_they_are_datasets(tmp_path: Path):
    import h5netcdf

    group = Group(
        {"yes": ("draw", [True, False]), "words": ("draw", ["ä", ""]), "none": (("draw", "nobody"), np.empty((2, 0)))},
        {"draw": ("draw", np.arange(2))},
        {"text": "", "whole": 3, "real": 0.5},
    )
    with h5netcdf.File(tmp_path / "group.nc", "w") as file:
        group.write(file.create_group("a"))
    with xr.open_dataset(tmp_path / "group.nc", group="a") as opened:
        xr.testing.assert_identical(opened.load(), xr.decode_cf(group.dataset()))
        assert opened["yes"].dtype == bool


def test_files_are_written_without_xarray(tmp_path: Path):
    code = (
        "import sys; from fits import ODD; from odinfer.result.formats import write\n"
        f"for fit in ODD.values(): write(fit, {str(tmp_path / 'fit.nc')!r})\n"
        "sys.exit(', '.join({'xarray', 'dask'} & {*sys.modules}) or 0)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


FULL = """
import resource, signal, sys
from fits import uncertain
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
uncertain().save(sys.argv[1])
"""


def test_a_file_that_does_not_fit_on_the_disk_is_one_line_and_leaves_nothing(tmp_path: Path):
    command = [sys.executable, "-c", FULL, tmp_path / "fit.nc"]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert run.returncode == 1
    assert "InputError: cannot write" in run.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())
