"""SBML models become equations with the same solutions; what cannot be said is refused in one line."""

import numpy as np
import pytest

import odinfer as od
from odinfer.errors import InputError
from odinfer.io.sbml_reader import loaded, needed, read_sbml, words
from sbml_files import AT_3, LOW, TIME, event, math, sbml

T = np.array([0.0, 1.0, 2.0, 4.0])


def solved(model, **values):
    return od.simulate(model, {**model.start, **model.fixed, **values}, {}, T)


def test_concentrations_and_amounts_are_kept_apart(tmp_path):
    model = read_sbml(sbml(tmp_path))
    assert model.states == ("A", "B")
    assert model.parameters == ("k",)
    a = 2 * np.exp(-0.3 * T)
    np.testing.assert_allclose(solved(model), np.stack([a, 5 + 2 * 5 * (2 - a)], -1), rtol=1e-7)


def test_the_text_says_it_all_and_can_be_read_again(tmp_path):
    model = read_sbml(sbml(tmp_path))
    assert "A' = (-turn)/blood" in model.text
    assert "turn = blood*k*A" in model.text
    assert model.name == "drug"
    np.testing.assert_array_equal(solved(od.Model.from_text(model.text)), solved(model))


def test_rules_functions_and_initial_assignments_are_followed(tmp_path):
    parts = {
        "FUNCTIONS": '<functionDefinition id="f">'
        + math("<lambda><bvar><ci>x</ci></bvar><apply><power/><ci>x</ci><cn>2</cn></apply></lambda>")
        + "</functionDefinition>",
        "MORE_PARAMETERS": '<parameter id="y" constant="false"/><parameter id="z" value="1" constant="false"/>',
        "STARTS": '<initialAssignment symbol="A">'
        f"{math('<apply><ci>f</ci><ci>input</ci></apply>')}</initialAssignment>",
        "RULES": f'<assignmentRule variable="y">{math("<apply><ci>f</ci><ci>A</ci></apply>")}</assignmentRule>'
        f'<rateRule variable="z">{math("<ci>y</ci>")}</rateRule>',
    }
    model = read_sbml(sbml(tmp_path, **parts))
    assert model.states == ("A", "B", "z")
    assert "input_" in model.parameters
    x = solved(model)
    np.testing.assert_allclose(x[:, 0], 4 * np.exp(-0.3 * T), rtol=1e-7)
    np.testing.assert_allclose(x[:, 2], 1 + 16 * (1 - np.exp(-0.6 * T)) / 0.6, rtol=1e-7)


def test_in_a_compartment_that_grows_amounts_are_conserved(tmp_path):
    parts = {
        "BLOOD_IS_CONSTANT": "false",
        "RULES": f'<rateRule variable="blood">{math("<cn>1</cn>")}</rateRule>',
    }
    model = read_sbml(sbml(tmp_path, **parts))
    assert set(model.states) == {"A_amount", "B", "blood"}
    x = dict(zip(model.states, solved(model, k=0.0).T, strict=True))
    np.testing.assert_allclose(x["A_amount"], 10.0)
    assert model.said.definitions.keys() >= {"A"}
    np.testing.assert_allclose(x["blood"], 5 + T, rtol=1e-8)


def test_events_at_constant_times_come_before_what_is_observed_then(tmp_path):
    model = read_sbml(sbml(tmp_path, EVENTS=event(AT_3)))
    assert "before 3: A = 1" in model.text
    x = od.simulate(model, model.start, {}, [0.0, 2.9, 3.0, 4.0])
    np.testing.assert_allclose(x[:, 0], [2, 2 * np.exp(-0.87), 1, np.exp(-0.3)], rtol=1e-7)


def test_events_that_states_trigger_happen_each_time_their_condition_becomes_true(tmp_path):
    model = read_sbml(sbml(tmp_path, EVENTS=event(LOW, value="<cn>2</cn>")))
    assert "when A < 1: A = 2" in model.text
    np.testing.assert_allclose(
        od.simulate(model, {"k": 0.9}, {}, T)[:, 0], 2 * np.exp(-0.9 * (T % (np.log(2) / 0.9))), rtol=1e-7
    )


TRIGGERS = {
    "a parameter": (f"<apply><geq/>{TIME}<ci>k</ci></apply>", "when t >= k: A = 1"),
    "time and a state": (f"<apply><and/>{AT_3}{LOW}</apply>", "when t >= 3 and A < 1: A = 1"),
    "a negation": (f"<apply><not/>{LOW}</apply>", "when not (A < 1): A = 1"),
    "a rule": ("<apply><gt/><ci>twice</ci><ci>A</ci></apply>", "when twice > A: A = 1"),
}


@pytest.mark.parametrize("what", TRIGGERS)
def test_triggers_name_parameters_times_and_rules(tmp_path, what):
    trigger, expected = TRIGGERS[what]
    rule = math("<apply><times/><cn>2</cn><ci>B</ci></apply>")
    parts = {
        "MORE_PARAMETERS": '<parameter id="twice" constant="false"/>',
        "RULES": f'<assignmentRule variable="twice">{rule}</assignmentRule>',
    }
    assert expected in read_sbml(sbml(tmp_path, EVENTS=event(trigger), **parts)).text


def test_a_trigger_that_is_taken_as_false_before_the_beginning_happens_there(tmp_path):
    high = LOW.replace("lt", "gt")
    for first, after in (("true", 2.0), ("false", 5.0)):
        own = event(high, value="<cn>5</cn>").replace('initialValue="true"', f'initialValue="{first}"')
        x = od.simulate(read_sbml(sbml(tmp_path, EVENTS=own)), {"k": 0.3}, {}, [0.0, 1.0])
        np.testing.assert_allclose(x[:, 0], [2.0, after * np.exp(-0.3)], rtol=1e-7)


def test_what_matters_only_beside_other_events_is_read_where_there_are_none(tmp_path):
    own = event(LOW).replace('persistent="true"', 'persistent="false"')
    assert "when A < 1: A = 1" in read_sbml(sbml(tmp_path, EVENTS=own)).text


def delayed(own):
    return own.replace("</trigger>", f"</trigger><delay>{math('<cn>2</cn>')}</delay>")


BAD = {
    "an equality": ({"EVENTS": event(LOW.replace("lt", "eq"))}, "event 'e' is triggered by more than comparisons"),
    "a trigger that is a number": ({"EVENTS": event("<ci>A</ci>")}, "event 'e' is triggered by more than comparisons"),
    "a delay": ({"EVENTS": delayed(event(LOW))}, "event 'e' is delayed after a trigger that is no constant time"),
    "a delay of values": ({"EVENTS": delayed(event(AT_3))}, "event 'e' is delayed with values of its trigger time"),
    "two events of which one does not persist": (
        {"EVENTS": event(LOW).replace('persistent="true"', 'persistent="false"') + event(AT_3).replace('"e"', '"f"')},
        "event 'e' has a trigger that does not persist, which cannot be read beside other events",
    ),
    "two events with values of another time": (
        {"EVENTS": event(LOW).replace('TriggerTime="true"', 'TriggerTime="false"') + event(AT_3).replace('"e"', '"f"')},
        "event 'e' has values of the time at which it is executed",
    ),
    "two events at one time": (
        {"EVENTS": event(AT_3) + event(AT_3).replace('"e"', '"f"')}, "f changes 'A' at 3, as another event does"
    ),
    "an algebraic rule": ({"RULES": f"<algebraicRule>{math('<ci>A</ci>')}</algebraicRule>"}, "algebraic rules"),
    "a function": (
        {"MORE_PARAMETERS": '<parameter id="y" constant="false"/>',
         "RULES": f'<assignmentRule variable="y">{math("<apply><floor/><ci>A</ci></apply>")}</assignmentRule>'},
        "the function 'floor' cannot be written",
    ),
    "an entity": ({"FUNCTIONS": "<!ENTITY x 'y'>"}, "DOCTYPE or ENTITY"),
    "no xml": ({"FUNCTIONS": "<"}, "drug.xml: line"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_read_is_named_in_one_line(tmp_path, what):
    parts, expected = BAD[what]
    with pytest.raises(InputError, match=expected) as found:
        read_sbml(sbml(tmp_path, **parts))
    assert "\n" not in str(found.value)


def test_files_that_are_not_there_or_no_sbml_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        loaded(tmp_path / "none.xml")
    (tmp_path / "page.xml").write_text("<html/>")
    with pytest.raises(InputError, match=r"page\.xml"):
        loaded(tmp_path / "page.xml")


def test_only_what_is_used_is_kept():
    definitions = {"a": "b + 1", "b": "2", "c": "a", "d": "x"}
    assert needed(definitions, ["a*x"]) == {"a": "b + 1", "b": "2"}
    assert words(["a + b2*c_d", "1e5"]) == {"a", "b2", "c_d"}
