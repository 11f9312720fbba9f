"""Pictures of profiles: a panel each, with the fall, the limit and the ends of the interval."""

import numpy as np
import pytest

import odinfer as od
from odinfer.uncertainty.figures import profiles_figure
from odinfer.uncertainty.results import Profile
from odinfer.uncertainty.small_sample import threshold


def test_a_profile_has_a_picture(lv_fit, tmp_path):
    lv_fit.profile("b").plot(tmp_path / "b.png")
    assert (tmp_path / "b.png").stat().st_size > 5000


def parabola(name: str, reach: float = 4.0) -> Profile:
    z = np.linspace(-reach, reach, 21)
    return Profile(name, 0.0, z, -0.5 * z**2, (-np.inf, np.inf), 10.0, 1.2)


def test_every_profile_has_a_panel_with_its_fall_and_the_limit():
    profiles = {name: parabola(name) for name in "abcde"}
    figure = profiles_figure(profiles)
    assert len(figure.axes) == 5
    for name, ax in zip(profiles, figure.axes, strict=True):
        fall, limit = ax.lines[:2]
        np.testing.assert_allclose(fall.get_ydata(), profiles[name].values ** 2)
        assert limit.get_ydata()[0] == pytest.approx(float(threshold(10.0, 1.2, 0.95)))
        assert ax.get_xlabel() == name
        ends = [line.get_xdata()[0] for line in ax.lines[2:]]
        np.testing.assert_allclose(ends, profiles[name].interval())


def test_ends_that_are_open_are_not_drawn():
    (ax,) = profiles_figure({"a": parabola("a", reach=0.5)}).axes
    assert len(ax.lines) == 2
    assert "inf" in ax.get_title(loc="left")


def test_names_are_shown_as_they_are():
    name = "_$k^$_"
    figure = profiles_figure({name: parabola(name)})
    assert figure.axes[0].get_xlabel().replace("\\", "") == name
    figure.canvas.draw()


def test_no_profile_is_no_picture():
    with pytest.raises(od.InputError, match="no profiles"):
        profiles_figure({})
