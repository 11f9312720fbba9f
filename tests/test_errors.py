"""What is said when things go wrong: bad input is an error with a hint, bad luck a status with a sentence."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.errors import MOST, InputError, InputWarning, Status, cut, listed, nearest

FEW = settings(max_examples=40, deadline=None)
WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=8), max_size=6, unique=True)


def test_bad_input_is_a_value_error_and_odd_input_a_warning_that_can_be_silenced_alone():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputWarning, UserWarning)
    with pytest.raises(ValueError, match="what, where"):
        raise InputError("what, where")


def test_only_fits_that_ended_well_have_converged():
    assert {status for status in Status if status.converged} == {
        Status.CONVERGED,
        Status.ODIN_KEPT,
        Status.NOT_FOLLOWED,
    }
    for status in Status:
        assert status.value.startswith("converged") is status.converged
        assert status.value.isprintable()
        assert Status(status.value) is status


@FEW
@given(WORDS.filter(bool), st.data())
def test_a_slip_of_one_letter_names_the_word_that_was_meant(words, data):
    word = data.draw(st.sampled_from(words)) + "abcdefgh"
    assert nearest(word + "x", [*words, word]) == nearest(word, [*words, word]) == f"; did you mean '{word}'?"


@FEW
@given(WORDS)
def test_a_word_like_none_of_them_gets_their_list_and_nothing_for_nothing(words):
    assert nearest("ZZZ", iter(words)) == (f"; choose from: {', '.join(words)}" if words else "")


@FEW
@given(WORDS)
def test_words_are_listed_with_commas_and_a_last_and(words):
    text = listed(words)
    assert text.replace(" and ", ", ") == ", ".join(words)
    assert text.count(" and ") == (len(words) > 1)


def test_lists_of_one_two_and_three():
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


@FEW
@given(st.text(max_size=60), st.integers(6, 50))
def test_a_long_text_loses_its_middle(text, most):
    short = cut(text, most)
    assert len(short) <= max(most, 0)
    assert short == text if len(text) <= most else " … " in short
    assert text.startswith(short.partition(" … ")[0]) or len(text) <= most


def test_a_message_of_any_length_says_in_a_line_what_is_wrong_and_what_to_do():
    message = str(InputError(f"cannot use '{'x' * 100_000}'; write y"))
    assert len(message) == MOST
    assert message.startswith("cannot use 'xxx")
    assert message.endswith("xxx'; write y")
    assert nearest("x" * 10_000_000, ["abc"]) == "; choose from: abc"
