"""SBML models become equations with the same solutions; what cannot be said is refused in one line."""

import numpy as np
import pytest

import odinfer as od
from odinfer.errors import InputError
from odinfer.io.sbml_document import load_document
from odinfer.io.sbml_reader import read_sbml
from odinfer.io.sbml_system import names_in, needed_definitions
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
    assert model.declarations.definitions.keys() >= {"A"}
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


def combined(first, sign, second):
    return f"<apply><{sign}/>{first}{second}</apply>"


def test_algebraic_rules_are_solved_for_what_nothing_else_determines(tmp_path):
    """0 = k (y + z - A) - input and 0 = sum - B/5 + t with the assignment rule sum = y - z."""
    names = {name: f"<ci>{name}</ci>" for name in ("k", "y", "z", "A", "B", "input", "sum")}
    inside = combined(combined(names["y"], "plus", names["z"]), "minus", names["A"])
    rules = [
        combined(combined(names["k"], "times", inside), "minus", names["input"]),
        combined(combined(names["sum"], "minus", combined(names["B"], "divide", "<cn>5</cn>")), "plus", TIME),
    ]
    parts = {
        "MORE_PARAMETERS": "".join(f'<parameter id="{name}" constant="false"/>' for name in ("y", "z", "sum")),
        "RULES": "".join(f"<algebraicRule>{math(rule)}</algebraicRule>" for rule in rules)
        + f'<assignmentRule variable="sum">{math(combined(names["y"], "minus", names["z"]))}</assignmentRule>',
    }
    model = read_sbml(sbml(tmp_path, **parts))
    assert model.states == ("A", "B")
    x, theta = solved(model), np.array([[model.start[name] for name in model.parameters]] * len(T))
    program = model.program(tuple(model.declarations.definitions[name] for name in ("y", "z")))
    y, z = program.evaluate(T, x, theta, np.zeros((len(T), 0))).T
    np.testing.assert_allclose(y + z, x[:, 0] + 2 / 0.3)
    np.testing.assert_allclose(y - z, x[:, 1] / 5 - T)


def test_files_of_level_1_are_read(tmp_path):
    path = tmp_path / "old.xml"
    path.write_text(
        '<sbml xmlns="http://www.sbml.org/sbml/level1" level="1" version="2"><model><listOfCompartments>'
        '<compartment name="blood" volume="5"/></listOfCompartments><listOfSpecies>'
        '<species name="A" compartment="blood" initialAmount="10"/></listOfSpecies>'
        '<listOfParameters><parameter name="k" value="0.3"/></listOfParameters><listOfReactions>'
        '<reaction name="loss" reversible="false"><listOfReactants><speciesReference species="A"/></listOfReactants>'
        '<kineticLaw formula="blood * k * pow(A, 1)"/></reaction></listOfReactions></model></sbml>'
    )
    np.testing.assert_allclose(solved(read_sbml(path))[:, 0], 2 * np.exp(-0.3 * T), rtol=1e-7)


def test_a_delayed_event_sets_a_concentration_by_the_size_at_its_execution(tmp_path):
    parts = {
        "BLOOD_IS_CONSTANT": "false",
        "RULES": f'<rateRule variable="blood">{math("<cn>1</cn>")}</rateRule>',
        "EVENTS": delayed(event(LOW, value="<cn>3</cn>")),
    }
    model = read_sbml(sbml(tmp_path, **parts))
    x = dict(zip(model.states, od.simulate(model, {"k": 0.6}, {}, np.linspace(0, 4, 401)).T, strict=True))
    jump = int(np.argmax(np.diff(x["A_amount"]))) + 1
    np.testing.assert_allclose(x["A_amount"][jump] / x["blood"][jump], 3.0, rtol=1e-2)


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
    for first, start in (("true", 2.0), ("false", 5.0)):
        own = event(high, value="<cn>5</cn>").replace('initialValue="true"', f'initialValue="{first}"')
        x = od.simulate(read_sbml(sbml(tmp_path, EVENTS=own)), {"k": 0.3}, {}, [0.0, 1.0])
        np.testing.assert_allclose(x[:, 0], [start, start * np.exp(-0.3)], rtol=1e-7)


def delayed(own):
    return own.replace("</trigger>", f"</trigger><delay>{math('<cn>2</cn>')}</delay>")


OPTIONS = {
    "a delay": (delayed(event(LOW)), "when A < 1 {delay 2}: A = 1"),
    "a delay after a constant time": (delayed(event(AT_3)), "before 5: A = 1"),
    "values of the trigger time": (delayed(event(AT_3, value="<ci>B</ci>")), "when t >= 3 {delay 2}: A = B"),
    "no persistence": (
        event(LOW).replace('persistent="true"', 'persistent="false"'), "when A < 1 {cancellable}: A = 1"
    ),
    "values of the time of execution": (
        event(LOW).replace('TriggerTime="true"', 'TriggerTime="false"'), "when A < 1 {current values}: A = 1"
    ),
    "time after which": (event(AT_3.replace("geq", "gt")), "at 3: A = 1"),
    "an equality": (event(LOW.replace("lt", "eq")), "when A <= 1 and A >= 1: A = 1"),
    "a number": (event("<ci>A</ci>"), "when A < 0 or A > 0: A = 1"),
    "two at one time": (event(AT_3) + event(AT_3).replace('"e"', '"f"'), "when t >= 3: A = 1\nwhen t >= 3: A = 1"),
}  # fmt: skip


@pytest.mark.parametrize("what", OPTIONS)
def test_options_of_events_are_read(tmp_path, what):
    own, expected = OPTIONS[what]
    assert expected in read_sbml(sbml(tmp_path, EVENTS=own)).text


def test_a_model_without_equations_can_be_simulated(tmp_path):
    path, rule = tmp_path / "still.xml", math(f"<apply><times/><ci>p</ci>{TIME}</apply>")
    path.write_text(
        '<sbml xmlns="http://www.sbml.org/sbml/level3/version2/core" level="3" version="2"><model>'
        '<listOfParameters><parameter id="p" value="3" constant="true"/><parameter id="q" constant="false"/>'
        f'</listOfParameters><listOfRules><assignmentRule variable="q">{rule}'
        "</assignmentRule></listOfRules></model></sbml>"
    )
    model = read_sbml(path)
    x = od.simulate(model, model.start, {}, T)
    values = model.program((model.declarations.definitions["q"],)).evaluate(
        T, x, np.array([[3.0]] * 4), np.zeros((4, 0))
    )
    np.testing.assert_allclose(values[:, 0], 3 * T)


BAD = {
    "an algebraic rule without unknown": (
        {"RULES": f"<algebraicRule>{math('<ci>A</ci>')}</algebraicRule>"}, "an algebraic rule is not linear"
    ),
    "an algebraic rule that is not linear": (
        {"MORE_PARAMETERS": '<parameter id="y" constant="false"/>',
         "RULES": f"<algebraicRule>{math('<apply><times/><ci>y</ci><ci>y</ci></apply>')}</algebraicRule>"},
        "an algebraic rule is not linear",
    ),
    "later values of concentrations in a compartment that changes": (
        {"BLOOD_IS_CONSTANT": "false", "RULES": f'<rateRule variable="blood">{math("<cn>1</cn>")}</rateRule>',
         "EVENTS": delayed(event(LOW, value="<ci>B</ci>"))},
        "an event with a delay and values from its trigger time",
    ),
    "a function": (
        {"MORE_PARAMETERS": '<parameter id="y" constant="false"/>',
         "RULES": f'<assignmentRule variable="y">{math("<apply><factorial/><ci>A</ci></apply>")}</assignmentRule>'},
        "the factorial of what is no number cannot be written",
    ),
    "an entity": ({"FUNCTIONS": "<!ENTITY x 'y'>"}, "drug.xml: line 4"),
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
        load_document(tmp_path / "none.xml")
    (tmp_path / "page.xml").write_text("<html/>")
    with pytest.raises(InputError, match=r"page\.xml"):
        load_document(tmp_path / "page.xml")


def test_only_what_is_used_is_kept():
    definitions = {"a": "b + 1", "b": "2", "c": "a", "d": "x"}
    assert needed_definitions(definitions, ["a*x"]) == {"a": "b + 1", "b": "2"}
    assert names_in(["a + b2*c_d", "1e5"]) == {"a", "b2", "c_d"}
