"""Pages escape what users give, and say what they lack."""

import base64

import jinja2
import pytest

from odinfer.style.html import inlined, page


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        page("comparison.html", headline="x")


def test_what_users_give_is_escaped():
    words = "<script>alert(1)</script>"
    common = {"good": True, "failures": [], "header": [words], "rows": [[words]], "judged": [], "footnote": words}
    text = page(
        "comparison.html", headline=words, sentences=[words], ended={words: words}, equations={words: words},
        pictures={}, version="1", **common,
    )  # fmt: skip
    assert "<script>" not in text
    assert text.count("&lt;script&gt;") >= 8


def test_pictures_are_text_that_gives_the_file_back():
    assert base64.b64decode(inlined({"a": b"\x89PNG\x00"})["a"]) == b"\x89PNG\x00"
