"""Pages escape what users give, say what they lack, and let nothing run but the package's own scripts."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import jinja2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.style.drawing import THEME, theme_css
from odinfer.style.html import _json, base64_images, page_figure, render_page, scripts
from odinfer.style.picture import LegendEntry, PanelFigure, Plot, SingleFigure
from odinfer.style.text import TextTable

EVIL = "</script><script>alert(1)</script>"


def comparison(words: str, pictures=None) -> str:
    table = TextTable((words,), ((words,),))
    return render_page(
        "comparison.html", live=True, headline=words, good=True, sentences=[words], failures=[words], ranking=table,
        estimates=table, letters={words: "A"}, ended={words: words}, judged=table,
        equations={words: words}, footnote=words, pictures=pictures or {}, version="1",
    )  # fmt: skip


class Scripts(HTMLParser):
    """The texts of scripts by their kind, and the policy of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.kind: str | None = None
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "script":
            self.kind = dict(attrs).get("type", "javascript")
        if tag == "meta" and dict(attrs).get("http-equiv"):
            self.policy = dict(attrs)["content"]

    def handle_endtag(self, tag):
        self.kind = None if tag == "script" else self.kind

    def handle_data(self, data):
        if self.kind:
            self.found.append((self.kind, data))


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        render_page("comparison.html", headline="x")


def test_what_users_give_is_escaped():
    text = comparison("<script>alert(1)</script>")
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;") >= 8


def test_the_policy_names_the_scripts_of_the_page_and_no_other():
    page_ = Scripts(comparison("x"))
    assert len(page_.found) == 2
    hashes = set(re.findall(r"'sha256-([^']+)'", page_.policy))
    assert hashes == {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for _, text in page_.found}
    assert page_.policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")
    assert page_.policy.count("unsafe") == 1
    assert "Leon Sorokin" in page_.found[0][1]  # the licence goes with every copy
    assert not any("</" in text for text, _ in scripts())


def test_data_of_plots_cannot_leave_their_element():
    live = {"y": EVIL, "lines": [{"name": EVIL, "t": np.array([0.123456789, np.nan, np.inf])}]}
    plot = Plot(EVIL, EVIL, lambda ax: ax.plot([0, 1], [0, 1]), title=EVIL, live=live)
    picture = page_figure(PanelFigure((plot,), (LegendEntry(EVIL, "-"),), ((EVIL, "red"),), EVIL))
    page_ = Scripts(comparison("x", {"fits": picture}))
    assert [kind for kind, _ in page_.found] == ["application/json", "javascript", "javascript"]
    content = json.loads(page_.found[0][1])
    assert content["y"] == content["lines"][0]["name"] == EVIL
    assert content["lines"][0]["t"] == [0.12346, None, None]


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_json_in_a_page_says_the_same_without_a_character_that_html_reads(text):
    written = _json({"a": [text]})
    assert not set(written) & set("<>&")
    assert written.isascii()
    assert json.loads(written) == {"a": [text]}


def test_pictures_are_text_that_gives_the_file_back():
    assert base64.b64decode(base64_images({"a": b"\x89PNG\x00"})["a"]) == b"\x89PNG\x00"
    image = base64.b64decode(page_figure(SingleFigure(1.0, 2.0, lambda figure: None, "nothing"))["plots"][0]["image"])
    assert image.startswith(b"<svg")


def test_a_page_has_the_colours_of_the_pictures_by_day_and_by_night():
    assert theme_css() in comparison("x")
    for light, (name, dark) in THEME.items():
        assert f"--plot-{name}:{light};" in theme_css().partition("@media")[0]
        assert f"--plot-{name}:{dark};" in theme_css().partition("@media")[2]
