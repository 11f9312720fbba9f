"""Names of files and words of commands are safe, whatever people call their things."""

import shlex

import hypothesis.strategies as st
import pytest
from hypothesis import given

from odinfer.apps.studio.scripts import Choice, compare_command, data_file, fit_command, model_file

NAMES = (
    "../../etc/passwd",
    "a/b.csv",
    "-rf.csv",
    "x;rm.csv",
    "<script>.csv",
    "",
    "C:\\x.csv",
    "é" * 300,
    ".",
    "..",
    ".xlsx",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_only_a_name(name):
    for made in (data_file(name), model_file(name)):
        assert not {*made} & {*"/\\<>;\0\n"}
        assert made[0] not in "-."
        assert len(made.encode()) < 150


def test_plain_names_stay_as_they_are_and_so_does_the_kind_of_a_file():
    assert data_file("trees 1.csv") == "trees 1.csv"
    assert data_file("book.XLSX") == "book.xlsx"
    assert data_file("notes.pdf") == "notes.csv"
    assert model_file("growth") == "growth.ode"


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)


@given(texts, st.dictionaries(texts, texts, max_size=3), texts)
def test_a_command_is_its_words(time, names, data):
    choice = Choice(time, names, {"x": "sd of x"})
    words = shlex.split(fit_command("m", data, choice, "profile"))
    assert words[:4] == ["odinfer", "fit", "m.ode", data_file(data)]
    assert words[4:6] == ["--time", time]
    assert words[-4:] == ["--sd", "x=sd of x", "--uncertainty", "profile"]
    assert [w for w in words[6:-4] if w != "--map"] == [f"{old}={new}" for old, new in names.items()]
    assert shlex.split(compare_command(["m", "n"], data, Choice()))[1:4] == ["compare", "m.ode", "n.ode"]
