"""What a JSON file holds comes back to the last digit; what is no fit is refused in a line."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fits import ODD, assert_same, hidden, make_fit, strict_json
from odinfer.errors import InputError
from odinfer.result.formats import write
from odinfer.result.formats.json_format import dumps
from odinfer.result.formats.load import load

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))  # files of results hold no NUL
ODD_FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3]


@pytest.fixture(params=list(ODD))
def fit(request):
    return ODD[request.param]


def test_every_fit_comes_back_exactly(fit, tmp_path: Path):
    write(fit, tmp_path / "fit.json")
    assert_same(fit, load(tmp_path / "fit.json"))


def test_fit_save_and_str_paths_work(tmp_path: Path):
    make_fit().save(str(tmp_path / "fit.json"))
    assert_same(make_fit(), load(str(tmp_path / "fit.json")))


@settings(deadline=None, max_examples=60)
@given(
    numbers=st.lists(st.floats() | st.sampled_from(ODD_FLOATS), min_size=4, max_size=4),
    name=TEXT,
    free=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | TEXT,
        lambda inner: (
            st.lists(inner)
            | st.lists(inner).map(tuple)
            | st.dictionaries(TEXT | st.sampled_from(["$float", "$tuple", "$dict"]), inner)
            | st.dictionaries(st.integers(), inner)
        ),
        max_leaves=8,
    ),
)
def test_odd_numbers_names_and_options_come_back_exactly(numbers, name, free, tmp_path_factory):
    path = tmp_path_factory.mktemp("odd") / "fit.json"
    fit = make_fit(n=4)
    e = fit.experiments["1"]
    odd = replace(e, y=np.array([numbers, numbers]).T)
    fit = replace(
        fit,
        experiments={name: odd},
        theta=dict(zip("abcd", numbers, strict=True)),
        stages={name: replace(fit.stages["odin"], objective=numbers[0], note=name)},
        options={"free": free},
        details={name: free},
        status=name,
        warnings=(name,),
    )
    write(fit, path)
    strict_json(path.read_text())
    assert_same(fit, load(path))


def test_a_fit_with_no_times_keeps_the_shape_of_its_arrays(tmp_path: Path):
    fit = make_fit(stages=(), gradients=False)
    e = fit.experiments["1"]
    fit = replace(fit, experiments={"1": replace(e, t=e.t[:0], y=e.y[:0])})
    write(fit, tmp_path / "fit.json")
    assert load(tmp_path / "fit.json").experiments["1"].y.shape == (0, 2)


def test_a_file_of_the_first_version_still_loads(tmp_path: Path):
    content = {k: v for k, v in json.loads(dumps(make_fit())).items() if k not in ("columns", "noise")}
    (tmp_path / "fit.json").write_text(json.dumps({**content, "format": "odinfer-fit/1"}))
    assert_same(make_fit(), load(tmp_path / "fit.json"))


@settings(deadline=None, max_examples=30)
@given(
    numbers=st.lists(st.floats() | st.sampled_from(ODD_FLOATS), min_size=3, max_size=3),
    limits=st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3),
    names=st.lists(TEXT, min_size=3, max_size=3, unique=True),
)
def test_columns_with_odd_names_numbers_and_limits_come_back_exactly(numbers, limits, names, tmp_path_factory):
    path, fit = tmp_path_factory.mktemp("odd") / "fit.json", hidden()
    experiments = {}
    for name, e in fit.experiments.items():
        rows = {key: np.array([numbers] * len(e.t)) for key in ("y", "fitted", "scores")}
        curves = {key: np.array([numbers] * len(e.curve.t)) for key in ("expected", "expected_sd")}
        experiments[name] = replace(e, **rows, **curves, limit=np.array([limits] * len(e.t), np.int8))
    noise = dict(zip(names, ("student", "binomial", "laplace"), strict=True))
    sigma = dict(zip(names[:2], numbers, strict=False))
    stages = {name: replace(stage, sigma=sigma) for name, stage in fit.stages.items()}
    fit = replace(fit, experiments=experiments, columns=tuple(names), noise=noise, sigma=sigma, stages=stages)
    write(fit, path)
    assert_same(fit, load(path))


def edited(**changes) -> str:
    return json.dumps({**json.loads(dumps(make_fit())), **changes})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not a JSON file"),
        (dumps(make_fit())[:2000], "is not a JSON file: line"),
        ('{"format": NaN}', "is not a JSON file"),
        ("[" * 100_000, "is not a JSON file"),
        ("[1, 2]", "is not an odinfer fit"),
        ('{"a": 1}', "is not an odinfer fit"),
        ('{"format": 3}', "is not an odinfer fit"),
        (edited(format="odinfer-fit/3"), "newer odinfer .format odinfer-fit/3.; update"),
        ('{"format": "odinfer-fit/1"}', "damaged odinfer fit: 'seed' is missing"),
        (edited(theta=[1, 2]), "damaged"),
        (edited(theta={"a": "one"}), "damaged"),
        (edited(theta={"a": [1.0]}), "damaged"),
        (edited(state_names=["prey"]), "damaged odinfer fit: an array has shape"),
        (edited(status=7), "damaged odinfer fit: 7 stands where a text"),
        (edited(experiments=[]), "damaged"),
        (edited(experiments=3), "damaged"),
    ],
)
def test_what_is_not_a_fit_is_refused_in_one_line(tmp_path: Path, content, words):
    path = tmp_path / "fit.json"
    path.write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_and_binary_files_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"cannot read .*No such file"):
        load(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot read"):
        load(tmp_path)
    write(make_fit(), tmp_path / "fit.nc")
    with pytest.raises(InputError, match=r"not a JSON file; .*xarray"):
        load(tmp_path / "fit.nc")
