"""Forecasts, profiles and pictures of a saved fit on the command line."""

import pandas as pd
import pytest

from apps.command.commands import odinfer
from odinfer.apps.command import example
from odinfer.apps.command.results import read_width
from odinfer.errors import InputError


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    example.write("lotka_volterra", folder)
    files = ["lotka_volterra.ode", "lotka_volterra.csv"]
    assert odinfer("fit", *files, "-o", "out", "-q", cwd=folder).code == 0
    return folder, [*files, "--fit", "out/fit.json"]


def test_a_forecast_of_a_saved_fit_is_a_table_with_bands(fitted):
    folder, files = fitted
    run = odinfer("forecast", *files, "--times", "0:4:5", cwd=folder)
    assert run.code == 0, run.stderr
    table = pd.read_csv(folder / "forecast.csv")
    assert list(table.columns) == ["time", "prey", "prey_low", "prey_high", "predator", "predator_low", "predator_high"]
    assert (table["prey_low"] < table["prey"]).all()
    assert (table["prey"] < table["prey_high"]).all()
    assert list(table["time"]) == [0, 1, 2, 3, 4]


def test_a_profile_is_printed_and_drawn(fitted):
    folder, files = fitted
    run = odinfer("profile", *files, "--parameter", "a", "-o", "a.svg", cwd=folder)
    assert run.code == 0, run.stderr
    assert run.stdout.startswith("a = 2.01")
    assert (folder / "a.svg").read_text().startswith("<?xml")
    assert "did you mean" in odinfer("profile", *files, "--parameter", "aa", cwd=folder).stderr


def test_a_picture_of_a_saved_fit_is_vector_graphics_in_the_width_of_a_column(fitted):
    folder, _ = fitted
    run = odinfer("plot", "out/fit.json", "--width", "column", "-o", "fit.pdf", cwd=folder)
    assert run.code == 0, run.stderr
    assert (folder / "fit.pdf").read_bytes().startswith(b"%PDF")
    assert (
        "there is no picture 'stats'; did you mean 'states'"
        in odinfer("plot", "out/fit.json", "--kind", "stats", cwd=folder).stderr
    )
    assert "must end in" in odinfer("plot", "out/fit.json", "-o", "fit.doc", cwd=folder).stderr


def test_a_width_is_a_preset_or_a_number_of_inches():
    assert (read_width("column"), read_width("page"), read_width("5")) == (3.5, 7.2, 5.0)
    for wrong in ("wide", "0.1", "nan", "1000"):
        with pytest.raises(InputError, match="--width is column"):
            read_width(wrong)
