"""A problem that is written as files of our own is the same when it is read again."""

import numpy as np
import pytest

import odinfer as od
from odinfer.errors import InputError
from odinfer.io.native_files import columns_of, write_own
from odinfer.io.petab_reader import nominal
from sbml_files import TABLES, petab


def test_the_likelihood_is_the_same(tmp_path):
    more = TABLES["measurements"] + "obs_A\tlow\t2\t0.9\t\t0.2\n"  # a replicate
    path = petab(tmp_path, {"measurements": more})
    problem = od.read_petab(path)
    model, data = write_own(problem, tmp_path, "mine")
    system = od.Model.from_file(model)
    with pytest.warns(od.InputWarning, match="independent observations"):
        read = od.read_csv(data, problem.columns, inputs=system.inputs)
    again = od.Problem(system, read)
    assert again.free == problem.free
    assert od.loglik(again, nominal(path)) == pytest.approx(od.loglik(problem, nominal(path)), abs=1e-9)


def test_times_of_replicates_are_written_as_they_were(tmp_path):
    more = TABLES["measurements"] + "obs_A\tlow\t2\t0.9\t\t0.2\n"
    columns = columns_of(od.read_petab(petab(tmp_path, {"measurements": more})))
    assert sorted(columns["time"]) == [1.0, 2.0, 2.0, 2.0, 3.0]


def test_what_has_no_text_or_no_place_in_a_file_is_refused(tmp_path, lv, lv_data):
    field = od.Model(lambda t, x, th: [-th[0] * x[0]], ["x"], ["k"])
    data = od.Data(np.arange(5.0), np.ones((5, 1)) * [[1.0]] + np.arange(5)[:, None], ["x"])
    with pytest.raises(InputError, match="the model is a function"):
        write_own(od.Problem(field, data), tmp_path, "f")
    dosed = od.Data(np.arange(5.0), np.arange(5.0) + 1, ["x"], doses=[(0, 1)])
    with pytest.raises(InputError, match="experiment '1' has limits, doses"):
        columns_of(od.Problem(od.Model.from_text("x' = -k*x"), dosed))
