"""Doses: what can be one, from Python, and in which words the rest is refused."""

import pytest

import odinfer as od
from odinfer.data.dose import Dose, checked_doses
from odinfer.errors import InputError


def test_a_dose_is_given_at_once_to_nothing_in_particular_unless_it_says_so():
    assert Dose(0, 100) == Dose(0.0, 100.0, None, 0.0)
    assert Dose(0, 100, 2).state == "2"
    assert od.Dose is Dose


def test_doses_come_in_the_order_of_their_times_and_those_of_one_time_in_theirs():
    given = [Dose(3, 1, "x", 2), (1, 5), [1, 4, "gut"]]
    assert checked_doses(given) == (Dose(1, 5), Dose(1, 4, "gut"), Dose(3, 1, "x", 2))
    assert checked_doses(()) == ()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([(0, -1)], "the amount of a dose must be positive, not -1"),
        ([(0, 0)], "the amount of a dose must be positive, not 0"),
        ([(0, "much")], "the amount of a dose must be a number, not 'much'"),
        ([(float("nan"), 1)], "the time of a dose must be a finite number"),
        ([(0, 1, "x", 2)], r"doses are a list of Dose or of \(time, amount\) or"),
        ([7], "doses are a list"),
        (7, "doses are a list"),
    ],
)
def test_what_is_no_dose_is_refused_in_one_line(given, words):
    with pytest.raises(InputError, match=f"^here: {words}") as caught:
        checked_doses(given, "here: ")
    assert len(str(caught.value).splitlines()) == 1


def test_a_rate_is_not_negative():
    with pytest.raises(InputError, match="the rate of a dose must be positive, or 0 if it is given at once, not -2"):
        Dose(0, 1, "x", -2)
