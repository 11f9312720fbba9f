"""The text of a file is strict JSON, whatever the numbers; what cannot be written is said in a line."""

from pathlib import Path

import numpy as np
import pytest

import odinfer as od
from fits import ODD, make_fit, strict_json
from odinfer.errors import InputError
from odinfer.result.formats import write
from odinfer.result.formats.json_format import dumps
from odinfer.result.formats.load import load


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
