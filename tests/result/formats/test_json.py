"""Fits as JSON: everything comes back exactly, and damaged files are refused in one line."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import odinfer as od
from fits import ODD, assert_same, hidden, make_fit, strict_json, uncertain
from odinfer.errors import InputError
from odinfer.result.fit import Fit
from odinfer.result.formats import write
from odinfer.result.formats.json_format import dumps
from odinfer.result.formats.json_values import (
    decode,
    decode_array,
    decode_record,
    encode,
    encode_numbers,
    encode_record,
)
from odinfer.result.formats.load import load
from odinfer.result.formats.validation import validate


@pytest.fixture(params=list(ODD))
def fit(request):
    return ODD[request.param]


def test_the_file_is_strict_json_with_format_and_version(fit):
    content = strict_json(dumps(fit))
    assert content["format"] == "odinfer-fit/2"
    assert content["version"] == od.__version__


def test_nan_is_null_and_infinity_a_word():
    content = strict_json(dumps(make_fit(theta={"a": np.nan, "b": np.inf, "c": -np.inf, "d": -0.0})))
    assert content["theta"] == {"a": None, "b": "inf", "c": "-inf", "d": 0.0}


def test_arrays_and_unknown_objects_among_the_details_become_lists_and_text(tmp_path: Path):
    details = {"array": np.array([1.0, np.nan]), "number": np.float64(2.0), "count": np.int64(3), "path": Path("a")}
    write(make_fit(details=details), tmp_path / "fit.json")
    assert repr(load(tmp_path / "fit.json").details) == "{'array': [1.0, nan], 'number': 2.0, 'count': 3, 'path': 'a'}"


# --- writing


@pytest.mark.parametrize("name", ["fit.pkl", "fit", "fit.json.gz"])
def test_other_endings_are_refused_and_nothing_is_written(tmp_path: Path, name):
    with pytest.raises(InputError, match=r"must end in \.json or \.nc"):
        write(make_fit(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["fit.json", "fit.nc"])
def test_a_missing_folder_is_an_input_error(tmp_path: Path, name):
    with pytest.raises(InputError, match=r"cannot write .*No such file or directory") as caught:
        write(make_fit(), tmp_path / "none" / name)
    assert "\n" not in str(caught.value)


FEW = settings(max_examples=25, deadline=None)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
NAMES = st.text() | st.sampled_from(["$float", "$tuple", "$dict", "$array"])
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(NAMES, inner)
        | st.dictionaries(st.integers() | st.booleans(), inner)
    ),
    max_leaves=10,
)
ARRAYS = arrays(float, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))


def through_a_file(content: Any) -> Any:
    return strict_json(json.dumps(content, allow_nan=False))


@FEW
@given(ANYTHING)
def test_what_is_packed_comes_back_exactly(value):
    assert_same(decode(through_a_file(encode(value))), value)


@FEW
@given(ARRAYS)
def test_arrays_come_back_with_their_shape_and_the_sign_of_zero(values):
    assert_same(decode_array(through_a_file(encode_numbers(values)), *values.shape), values)
    assert_same(decode(through_a_file(encode(values, arrays=True))), values)


def test_nan_is_null_and_an_infinity_a_word_in_whatever_holds_them():
    assert encode_numbers([1.0, np.nan]) == [1.0, None]
    assert encode_numbers({"a": -np.inf, "b": [[np.inf]]}) == {"a": "-inf", "b": [["inf"]]}
    assert encode_numbers(np.nan) is None


@pytest.mark.parametrize(("values", "shape"), [([1.0, 2.0], (3,)), ([[1.0]], (1,)), ([], (2,)), (1.0, (1,))])
def test_an_array_of_another_shape_is_refused(values, shape):
    with pytest.raises(ValueError, match="instead of"):
        decode_array(values, *shape)


def test_an_empty_array_takes_the_shape_that_it_should_have():
    assert decode_array([], 0, 3).shape == (0, 3)


def test_numbers_of_numpy_become_plain_and_unknown_objects_text():
    assert_same(encode({"n": np.int64(3), "x": np.float64(2.0), "v": np.arange(2)}), {"n": 3, "x": 2.0, "v": [0, 1]})
    assert encode(Path("a") / "b") == "a/b"


@dataclass(frozen=True)
class Example:
    name: str
    values: np.ndarray
    by_name: dict[str, Any]
    limits: tuple[float, float]


@FEW
@given(ARRAYS, st.dictionaries(st.text(), ARRAYS))
def test_a_record_comes_back_as_what_it_was(values, by_name):
    example = Example("x", values, by_name, (0.0, np.inf))
    assert_same(decode_record(Example, through_a_file(encode_record(example))), example)


def test_no_record_is_nothing():
    assert decode_record(Example, None) is None


TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))  # files of results hold no NUL
ODD_FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3]


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


@pytest.mark.parametrize("name", ODD)
def test_every_fit_that_a_method_could_return_is_sound(name: str):
    assert validate(ODD[name]) is ODD[name]


def of_part(part: str, **changes: Any) -> Fit:
    fit = uncertain()
    return replace(fit, **{part: replace(getattr(fit, part), **changes)})


def of_curve(**changes: Any) -> Fit:
    fit = make_fit()
    e = fit.experiments["1"]
    return replace(fit, experiments={"1": replace(e, curve=replace(e.curve, **changes))})


def of_hidden(**changes: Any) -> Fit:
    fit = hidden()
    return replace(fit, experiments={name: replace(e, **changes) for name, e in fit.experiments.items()})


T = make_fit().experiments["1"].curve.t
BAD: dict[str, tuple[Fit, str]] = {
    "seed": (make_fit(seed=1.5), "seed"),
    "converged": (make_fit(converged="yes"), "true nor false"),
    "options": (make_fit(options=[]), "no tables"),
    "names": (replace(make_fit(), state_names=("prey", "prey")), "twice"),
    "theta": (make_fit(theta={"a": 1.0}), "parameters"),
    "sigma": (make_fit(sigma={"wolf": 1.0}), "unknown columns"),
    "gamma": (make_fit(gamma_user={"wolf": 1.0}), "unknown states"),
    "distributions": (hidden(noise={"I": "normal"}), "not those of the columns"),
    "distribution": (hidden(noise={"I": "normal", "cases": "magic", "load": "normal"}), "unknown name"),
    "columns": (replace(make_fit(), columns=("prey", "x"), sigma={}, stages={}), "no distributions"),
    "predicted values": (of_hidden(scores=None), "missing or too many"),
    "limits": (of_hidden(limit=np.full((20, 3), 7, np.int8)), "limit"),
    "starts": (hidden(details={"start_objectives": ["a"]}), "start_objectives"),
    "experiments": (replace(make_fit(), experiments={}), "no experiments"),
    "times": (of_curve(t=T[::-1]), "increase"),
    "times twice": (of_curve(t=np.concatenate([T[:1], T[:-1]])), "increase"),
    "times that are none": (of_curve(t=T * np.nan), "increase"),
    "seconds": (make_fit(details={"seconds": "long"}), "no number"),
    "fixed": (make_fit(details={"fixed": 3}), "no names"),
    "samples": (make_fit(samples={"z": np.zeros((2, 3))}), "unknown parameters"),
    "samples without chains": (make_fit(samples={"a": np.zeros(3)}), "chain"),
    "covariance": (of_part("uncertainty", covariance=np.eye(2)), "covariance"),
    "interval": (of_part("uncertainty", low=[1.0, 2.0, 3.0]), "low"),
    "level": (of_part("uncertainty", level=2.0), "level"),
    "names of intervals": (of_part("uncertainty", names=("a", "b", "z")), "unknown parameters"),
    "refits": (of_part("bootstrapped", draws=np.zeros((5, 3))), "shape"),
    "posterior": (of_part("sampled", theta={}), "draws"),
    "states of draws": (of_part("sampled", x=()), "states of draws"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_could_not_be_used_is_named(what: str):
    fit, words = BAD[what]
    with pytest.raises(ValueError, match=words):
        validate(fit)
