"""A sheet that is written as SBML is valid and says the same when it is read."""

import libsbml
import numpy as np

import odinfer as od
from odinfer.io.sbml_writer import Sheet, SheetEvent, write_sbml


def test_what_is_written_is_consistent_and_read_as_it_was_meant(tmp_path):
    sheet = Sheet(
        "m",
        {"k": 0.5},
        {"x": ("-k*x*f", "3")},
        {"f": "piecewise(1, time < 1, 2)"},
        [SheetEvent("time >= 2", {"x": "7"})],
    )
    write_sbml(sheet, tmp_path / "m.xml")
    document = libsbml.readSBMLFromFile(str(tmp_path / "m.xml"))
    document.setConsistencyChecks(libsbml.LIBSBML_CAT_UNITS_CONSISTENCY, False)
    document.checkConsistency()
    assert document.getNumErrors(libsbml.LIBSBML_SEV_ERROR) == 0
    model = od.read_sbml(tmp_path / "m.xml")
    assert (model.states, model.parameters, dict(model.start)) == (("x",), ("k",), {"k": 0.5})
    x = od.simulate(model, model.start, {}, [0.0, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(x[:, 0], [3, 3 * np.exp(-0.5), 3 * np.exp(-1.0), 7], rtol=1e-7)


def test_conditions_of_states_are_triggers(tmp_path):
    sheet = Sheet("m", {"k": 0.5}, {"x": ("-k*x", "3")}, {}, [SheetEvent("x < 1 && time > k", {"x": "3"})])
    write_sbml(sheet, tmp_path / "m.xml")
    model = od.read_sbml(tmp_path / "m.xml")
    assert "when x < 1 and t > k: x = 3" in model.text
    t = np.linspace(0.0, 5.0, 11)
    np.testing.assert_allclose(
        od.simulate(model, {"k": 0.5}, {}, t)[:, 0], 3 * np.exp(-0.5 * (t % (np.log(3) / 0.5))), rtol=1e-7
    )
