"""More than a fit gives by default is added where it can be, and a fit without intervals stays as it is."""

import odinfer as od
from odinfer.result.extras import with_more


def test_profiles_of_all_parameters_and_a_test_are_added_if_asked_for(decay, decay_data):
    fit, told = od.fit(decay, decay_data), []
    assert with_more(fit, None, False) is fit
    more = with_more(fit, "profile", True, progress=lambda what, share: told.append(what))
    assert set(more.profiles) == {"k"}
    assert 0 < more.details["model_test"]["p"] <= 1
    assert told[0] == "profile of k"
    assert with_more(fit, "bootstrap", False).bootstrapped is not None


def test_a_fit_without_intervals_stays_as_it_is(decay, decay_data):
    fit = od.fit(decay, decay_data, method=od.TwoStep())
    assert with_more(fit, "profile", True) is fit
