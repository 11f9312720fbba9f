"""Files of fits: what is written comes back, what cannot be read or written is said in a line."""

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import odinfer as od
from fits import ODD, make_fit
from odinfer.errors import InputError
from odinfer.result.store import write
from odinfer.result.store.json_format import dumps
from odinfer.result.store.load import load

ODD_FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3]


@pytest.fixture(params=list(ODD))
def fit(request):
    return ODD[request.param]


def assert_same(one, other) -> None:
    """Equal in type and in every number, NaN and the sign of zero included."""
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, np.ndarray):
        assert one.shape == other.shape
        assert_same(one.ravel().tolist(), other.ravel().tolist())
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, float):
        assert repr(one) == repr(other)
    else:
        assert one == other


def strict(text: str):
    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


# --- JSON


def test_every_fit_comes_back_exactly(fit, tmp_path: Path):
    write(fit, tmp_path / "fit.json")
    assert_same(fit, load(tmp_path / "fit.json"))


def test_fit_save_and_str_paths_work(tmp_path: Path):
    make_fit().save(str(tmp_path / "fit.json"))
    assert_same(make_fit(), load(str(tmp_path / "fit.json")))


def test_the_file_is_strict_json_with_format_and_version(fit):
    content = strict(dumps(fit))
    assert content["format"] == "odinfer-fit/1"
    assert content["version"] == od.__version__


def test_nan_is_null_and_infinity_a_word():
    content = strict(dumps(make_fit(theta={"a": np.nan, "b": np.inf, "c": -np.inf, "d": -0.0})))
    assert content["theta"] == {"a": None, "b": "inf", "c": "-inf", "d": 0.0}


@settings(deadline=None, max_examples=60)
@given(
    numbers=st.lists(st.floats() | st.sampled_from(ODD_FLOATS), min_size=4, max_size=4),
    name=st.text(),
    free=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.lists(inner).map(tuple)
            | st.dictionaries(st.text() | st.sampled_from(["$float", "$tuple", "$dict"]), inner)
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
    strict(path.read_text())
    assert_same(fit, load(path))


def test_arrays_and_unknown_objects_among_the_details_become_lists_and_text(tmp_path: Path):
    details = {"array": np.array([1.0, np.nan]), "number": np.float64(2.0), "count": np.int64(3), "path": Path("a")}
    write(make_fit(details=details), tmp_path / "fit.json")
    assert repr(load(tmp_path / "fit.json").details) == "{'array': [1.0, nan], 'number': 2.0, 'count': 3, 'path': 'a'}"


def test_a_fit_with_no_times_keeps_the_shape_of_its_arrays(tmp_path: Path):
    fit = make_fit(stages=(), gradients=False)
    e = fit.experiments["1"]
    fit = replace(fit, experiments={"1": replace(e, t=e.t[:0], y=e.y[:0])})
    write(fit, tmp_path / "fit.json")
    assert load(tmp_path / "fit.json").experiments["1"].y.shape == (0, 2)


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
        (edited(format="odinfer-fit/2"), "newer odinfer .format odinfer-fit/2.; update"),
        ('{"format": "odinfer-fit/1"}', "damaged odinfer fit: 'equations' is missing"),
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
