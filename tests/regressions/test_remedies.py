"""Messages name what is really missing, and the remedy for frequent slips."""

import numpy as np
import pytest

import odinfer as od
from odinfer.apps.command.check import findings


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dAlgae = r*Algae", "Algae' = ... for dAlgae"),
        ("dAlgae/dt <- r*Algae", "assigns by <-; write Algae' = ..."),
        ("dAlgae <- r*Algae", "assigns by <-; write Algae' = ..."),
    ],
)
def test_equations_in_the_style_of_other_programs_get_the_remedy(text, words):
    with pytest.raises(od.InputError) as error:
        od.Model.from_text(text)
    assert words in str(error.value)


def test_a_bound_below_a_negative_number_is_no_assignment():
    model = od.Model.from_text("x' = -k*x; x <-2; k > 0")
    assert model.bounds["x"][1] == -2.0


def write(path, text):
    path.write_text(text)
    return path


def test_a_word_for_below_the_limit_asks_for_the_limit(tmp_path):
    path = write(tmp_path / "data.csv", "time,x\n0,1\n1,BLQ\n2,3\n3,3\n4,4\n")
    with pytest.raises(od.InputError, match=r"'BLQ' says that the value is below a limit.*<0.05"):
        od.read_csv(path, ["x"])


def test_long_data_with_names_of_their_own_get_the_map_to_use(tmp_path):
    path = write(tmp_path / "data.csv", "Day,Species,Biomass\n0,Algae,1\n1,Algae,2\n2,Algae,3\n3,Algae,3\n")
    with pytest.raises(od.InputError, match="--map 'Species=observable' --map 'Biomass=value'"):
        od.read_csv(path, ["Algae"])


def test_a_parameter_that_is_nearly_the_name_of_a_state_is_asked_about():
    model = od.Model.from_text("Algae' = r*Algae - a*Algea")
    problem = od.Problem(model, od.Data(np.arange(8.0), np.exp(0.1 * np.arange(8.0)), states=["Algae"]))
    assert "'Algea' is a parameter to estimate; did you mean 'Algae'?" in findings(problem)


def test_an_input_that_ends_with_the_data_but_for_rounding_is_no_finding():
    model = od.Model.from_text("x' = u - k*x; input u")
    t = np.linspace(0.0, 60.0, 13)
    u = (np.array([0.0, 30.0, 60.0 - 1e-11]), np.ones(3))
    problem = od.Problem(model, od.Data(t, 1.0 + np.exp(-t / 20.0), states=["x"], inputs={"u": u}))
    assert not [said for said in findings(problem) if "is known from" in said]


def test_a_numerically_open_combination_is_not_said_to_be_determined():
    model = od.Model.from_text("x' = r*x*(1 - x/K)")
    t = np.linspace(0.0, 3.0, 15)
    y = 0.01 * np.exp(t) * np.exp(0.05 * np.random.default_rng(0).normal(size=15))
    said = " ".join(od.fit(model, od.Data(t, y, states=["x"])).warnings)
    assert "e+" not in said
