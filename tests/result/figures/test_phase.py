"""Phase portraits: two states, their path and the model's own best one."""

from fits import ODD, refuted
from odinfer.result.figures.phase import phase_picture
from odinfer.style.picture import alone


def test_two_states_have_a_phase_portrait_and_others_none():
    picture = phase_picture(refuted())
    assert len(alone(picture.plots[0]).axes[0].lines) == 4
    assert picture.plots[0].alt == "predator against prey: the path of the estimated states"
    assert phase_picture(ODD["one state"]) is None
    assert phase_picture(ODD["six states"]) is None
    assert phase_picture(ODD["failed"]) is None
