"""What notebooks show of a fit: names, verdict and picture, escaped, small, and without anything that runs."""

import html

import pytest

from fits import ODD
from odinfer.result.notebook import notebook
from odinfer.result.summary import headline


@pytest.mark.parametrize("name", ["plain", "refuted", "every interval", "hidden", "evil names", "failed"])
def test_a_notebook_shows_tables_with_the_picture(name):
    fit = ODD[name]
    text = notebook(fit)
    assert fit._repr_html_() == text
    for words in (headline(fit), *fit.parameter_names, *fit.state_names):
        assert words in html.unescape(text)
    assert text.count('src="data:image/svg+xml;base64,') == 1
    for tag in ("<script", "<style", "<link"):
        assert tag not in text
    assert len(text) < 2e5
