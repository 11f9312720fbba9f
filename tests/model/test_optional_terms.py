"""Optional terms make candidates; brackets that make no sense are refused."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import odinfer as od
from odinfer.model.optional_terms import candidates

TEXT = """prey' = a*prey [- e*prey^2] - b*prey*predator   # [not this]
predator' = -c*predator + [d*prey*predator | d*prey^h*predator]
0 < e < 1; log a, e
h ~ normal(1, 0.5)"""


def test_every_combination_is_a_model_with_just_its_own_parameters():
    models = candidates(TEXT, "lv")
    assert [m.parameters for m in models] == [
        ("a", "b", "c", "d"),
        ("a", "b", "c", "d", "h"),
        ("a", "e", "b", "c", "d"),
        ("a", "e", "b", "c", "d", "h"),
    ]
    assert models[0].name == "lv [d*prey*predator]"
    assert models[3].name == "lv [- e*prey^2; d*prey^h*predator]"
    assert [dict(m.prior) for m in models[:2]] == [{}, {"h": ("normal", 1.0, 0.5)}]
    assert "e" in models[2].bounds
    assert "e" not in models[0].bounds
    assert dict(models[0].scale) == {"a": "log"}


def test_noise_initial_values_and_events_may_be_optional_too():
    text = """x' = -k*x [+ e*rate]; rate = c*x^2; log e, c; local e
    x(0) > 0; [x(0) = x0]
    x ~ [normal(x) | student(x, s)]; s ~ lognormal(1, 1); 0 < s < 9
    [at 3: x = x + dose]; start dose = 2"""
    models = candidates(text, "decay")
    assert len(models) == 16
    assert models[0].parameters == ("k", "x(0)")
    assert dict(models[0].prior) == {}
    assert models[1].parameters == ("k", "x(0)", "dose")
    assert models[2].parameters == ("k", "x(0)", "s")
    assert dict(models[2].prior) == {"s": ("lognormal", 1.0, 1.0)}
    assert models[4].parameters == ("k", "x0")
    assert models[-1].parameters == ("k", "e", "c", "x0", "dose", "s")


def test_a_text_without_brackets_is_one_model():
    (model,) = candidates("x' = -k*x", "decay")
    assert (model.name, model.parameters) == ("decay", ("k",))


def test_a_declaration_that_no_model_uses_is_still_an_error_without_brackets():
    with pytest.raises(od.InputError, match="'z'"):
        candidates("x' = -k*x\nfixed z = 1")


@pytest.mark.parametrize("text", ["x' = -k*x [+ a", "x' = -k*x + a]", "x' = -k*x [+ a [+ b]]"])
def test_brackets_that_do_not_match_are_refused(text):
    with pytest.raises(od.InputError, match="pairs"):
        candidates(text)


def test_too_many_combinations_are_refused():
    text = "x' = -k*x" + "".join(f" [+ a{i}]" for i in range(7))
    with pytest.raises(od.InputError, match="more than 64 candidates; compare fewer"):
        candidates(text)
    with pytest.raises(od.InputError, match="more than 64 candidates"):
        candidates("x' = a" + "[+a]" * 20_000)
    with pytest.raises(od.InputError, match="at most 100000 characters"):
        candidates("[+a]" * 1_500_000)


@example("a=k")
@given(st.text(alphabet="[]|x'=k*+-a \n#~(0):", max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_models_or_an_input_error(text):
    try:
        found = candidates("y' = -y\n" + text)
    except od.InputError:
        return
    assert all(isinstance(m, od.Model) for m in found)
