"""The page and the table as files: self-contained, escaped, and small for a thousand series."""

import csv
import json
import re

import numpy as np
import pytest

import odinfer as od
from apps.each.conftest import FAST, SHORT
from odinfer.apps.each.fits import Fits
from odinfer.apps.each.page import dumps, html, save
from odinfer.apps.each.row import Row
from odinfer.errors import InputError


def test_the_page_shows_every_series_that_could_be_posed_and_needs_no_other_file(fits):
    page = html(fits)
    assert page.count("<figure") == len(fits) - 1
    assert "1 series are not drawn here" in page
    assert fits.failed[SHORT].replace("'", "&#39;") in page
    assert not re.search(r"(src|href)=\"?(?!data:|#)", page)
    assert "&lt;b&gt;fast" in page
    assert FAST not in page


def test_a_thousand_series_stay_below_a_few_megabytes(lv, lv_fit):
    rng, rows, problems = np.random.default_rng(0), {}, {}
    base = od.Problem(lv.model, lv.sample(0.1, 0))
    drawn = Row.of(lv_fit)
    for i in range(1000):
        problems[f"plot {i}"] = base
        theta = {n: tuple(np.multiply(v, np.exp(0.1 * rng.normal()))) for n, v in drawn.theta.items()}
        rows[f"plot {i}"] = Row("converged", True, theta, 0.0, drawn.initial, drawn.sigma, (), drawn.t, drawn.x)
    page = html(Fits("lv", "odin", problems, rows, {}))
    assert page.count("<figure") == 1000
    assert 200_000 < len(page.encode()) < 3_000_000


def test_fits_are_saved_by_the_ending_of_the_file(fits, tmp_path):
    for name in ("fits.csv", "fits.html", "folder"):
        save(fits, tmp_path / name)
    with open(tmp_path / "fits.csv", newline="") as file:
        rows = {row["experiment"]: row for row in csv.DictReader(file)}
    assert float(rows["s0"]["k"]) == fits["s0"].theta["k"]
    assert rows[SHORT]["k"] == ""
    assert sorted(p.name for p in (tmp_path / "folder").iterdir()) == ["estimates.csv", "report.html"]
    with pytest.raises(InputError, match=r"not as '\.pdf'"):
        save(fits, tmp_path / "fits.pdf")


def test_the_table_as_json_is_strict(fits):
    rows = json.loads(dumps(fits), parse_constant=lambda token: pytest.fail(token))
    assert rows[0]["experiment"] == "s0"
    assert rows[-1]["k"] is None
