"""Pictures of slopes and γ: what is written, and that γ of any size is drawn."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Text

from fits import ODD, make_fit
from odinfer.result.figures.slopes import gamma_picture, slopes_picture
from odinfer.style.drawing import png
from odinfer.style.picture import sheet


def words(figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def test_verdicts_and_gamma_are_written():
    fit = make_fit(contradicting=("prey",))
    assert {"contradicts the data, γ = 3", "consistent, γ = 1e-6"} <= words(sheet(slopes_picture(fit)))
    picture = gamma_picture(fit)
    assert {"prey", "predator", "3  contradicts the data", "1e-6  consistent"} <= words(picture.figure)
    assert picture.alt == "γ: prey 3  contradicts the data; predator 1e-6  consistent"


def test_the_words_say_how_far_slopes_are_apart():
    alt = slopes_picture(make_fit(contradicting=("prey",))).plots[0].alt
    assert alt.startswith("slope of prey by its equation and by the data, up to ")
    assert alt.endswith("apart: contradicts the data")


def test_a_fit_without_gradients_or_gamma_has_no_such_picture():
    assert slopes_picture(ODD["no gradients"]) is None
    assert gamma_picture(ODD["no gamma"]) is None


@pytest.mark.parametrize("values", [(0.0, np.nan), (np.inf, 1e-6), (1e-30, 1e30), (np.nan, np.nan)])
def test_gamma_of_any_size_is_drawn(values):
    fit = make_fit()
    gamma = dict(zip(fit.state_names, values, strict=True))
    png(gamma_picture(replace(fit, gamma=gamma, verdicts={})).figure, dpi=40)
