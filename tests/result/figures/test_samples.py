"""Pictures of chains: a colour per chain, ranks that count every draw, and what R-hat says beside them."""

import numpy as np

from fits import make_fit, uncertain
from odinfer.result.figures.samples import ranks_picture, traces_picture
from odinfer.style.picture import alone


def test_every_chain_has_its_line_and_every_parameter_its_panel():
    picture = traces_picture(uncertain())
    assert [plot.name for plot in picture.plots] == ["a", "b", "c"]
    lines = alone(picture.plots[0]).axes[0].lines
    assert len(lines) == len({line.get_color() for line in lines}) == 4
    np.testing.assert_array_equal(lines[1].get_ydata(), uncertain().posterior.theta["a"][1])
    assert picture.plots[0].alt == "a: draws in their order of 4 chains, R-hat 1.010"
    assert [words for words, _ in picture.groups] == ["chain 1", "chain 2", "chain 3", "chain 4"]


def test_ranks_count_every_draw_of_a_chain_once():
    ax = alone(ranks_picture(uncertain()).plots[0]).axes[0]
    for patch in ax.patches:
        values, edges = patch.get_data()[:2]
        assert values.sum() == 25
        assert (edges[0], edges[-1]) == (0, 100)


def test_a_method_that_samples_has_them_too_and_a_fit_without_draws_has_none():
    fit = make_fit(samples={"a": np.random.default_rng(0).normal(size=(2, 50))}, details={"r_hat": {"a": 1.2}})
    assert traces_picture(fit).plots[0].title == "R-hat 1.200"
    assert traces_picture(make_fit()) is ranks_picture(make_fit()) is None
