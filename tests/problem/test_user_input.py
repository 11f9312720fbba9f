"""The forms in which Python users pass models, data and noise."""

import warnings

import numpy as np
import pandas as pd
import pytest

import odinfer as od
from odinfer.style.progress_bar import shown_progress

T = np.linspace(0, 5, 12)
TABLE = pd.DataFrame({"time": T, "x": 3 * np.exp(-0.5 * T) + 0.02 * np.cos(40 * T)})
TEXT = "x' = -k*x"


def theta(*given, **keywords):
    return od.fit(*given, **keywords).theta["k"]


def test_text_and_a_table_give_what_model_and_data_give(tmp_path):
    TABLE.to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "m.ode").write_text(TEXT)
    expected = theta(od.Model.from_text(TEXT), od.read_csv(TABLE))
    for model in (TEXT, tmp_path / "m.ode", str(tmp_path / "m.ode"), lambda t, x, k: -k * x):
        assert theta(model, TABLE) == pytest.approx(expected, rel=1e-6)
    for data in (TABLE.to_dict("list"), tmp_path / "d.csv", str(tmp_path / "d.csv")):
        assert theta(TEXT, data) == pytest.approx(expected, rel=1e-6)


def test_columns_get_their_roles_from_the_model_and_this_is_said():
    table = TABLE.assign(u=np.ones(12))
    with pytest.warns(od.InputWarning, match="'u' is a column of the data, so it is a known input"):
        problem = od.Problem("x' = -k*x*u", table)
    assert (problem.model.inputs, problem.columns) == (("u",), ("x",))


def test_keywords_override_what_a_problem_says():
    problem = od.Problem(TEXT, TABLE, bounds={"k": (0, 0.4)}, fixed={})
    assert theta(problem) == pytest.approx(0.4, rel=1e-3)
    assert theta(problem, bounds={"k": (0, 10)}) == pytest.approx(0.5, rel=0.05)
    assert theta(problem, bounds={"k": (0, 10)}, fixed={"k": 0.7}) == 0.7
    assert problem.bounds["k"] == (0, 0.4)


def test_noise_is_a_standard_deviation_or_a_distribution():
    assert od.Problem(TEXT, TABLE, noise=0.1).sigma == {"x": 0.1}
    assert od.Problem(TEXT, TABLE, noise={"x": 0.1}).sigma == {"x": 0.1}
    counts = TABLE.assign(x=[40, 29, 25, 20, 16, 13, 9, 8, 7, 5, 3, 3])
    for noise in ("poisson", {"x": "poisson"}, {"x": "poisson(x)"}):
        assert od.Problem(TEXT, counts, noise=noise).observed[0].words == "poisson"
    for noise, words in (("poison", "did you mean 'poisson'"), (-1, "must be positive"), ({"y": 1}, "no column 'y'")):
        with pytest.raises(od.InputError, match=words):
            od.Problem(TEXT, TABLE, noise=noise)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((3, TABLE), "fit takes equations as text, .* not int"),
        ((TEXT,), "fit needs data"),
        ((TEXT, 3), "data are a DataFrame, .* not int"),
        ((TEXT, {"time": [1, 2], "x": [1]}), "columns of the data do not fit together"),
        (("missing.ode", TABLE), "model file 'missing.ode' does not exist"),
        ((TEXT, "missing.csv"), "missing.csv: No such file"),
        ((TEXT, TABLE.to_numpy()), "data need names"),
        ((TEXT, TABLE, od.Odin), "method must be a name"),
        ((TEXT, TABLE, 3), "method must be a name"),
    ],
)
def test_a_wrong_type_is_told_what_to_pass(given, words):
    with pytest.raises(od.InputError, match=words):
        od.fit(*given)


def test_an_initial_value_is_fixed_bounded_or_given_by_its_name():
    fit = od.fit(TEXT, TABLE, fixed={"x(0)": 3})
    assert (fit.params["x(0)"].value, fit.params["x(0)"].fixed) == (3.0, True)
    assert repr(fit.params["x(0)"]) == "3 (fixed)"
    assert od.fit(TEXT, TABLE, bounds={"x(0)": (0, 2.9)}).params["x(0)"].value == pytest.approx(2.9)
    given = od.fit(od.Problem(TEXT, TABLE), initial={"x": 3})
    assert given.table().loc["x(0)", "note"] == "given"
    assert given.theta["k"] == pytest.approx(fit.theta["k"], rel=1e-6)
    with pytest.raises(od.InputError, match=r"fixed: the model has no 'y\(0\)'"):
        od.fit(TEXT, TABLE, fixed={"y(0)": 3})


def test_a_model_whose_parameters_are_all_fixed_is_fitted():
    fit = od.fit(TEXT, TABLE, fixed={"k": 0.5})
    assert fit.params["k"].fixed
    low, high = fit.profile("x(0)").interval()
    assert low < 3 < high


def test_methods_and_priors_are_found_in_any_spelling():
    assert od.fit(TEXT, TABLE, method="Trajectory").method == "trajectory"
    for text in ("HalfNormal(2)", "half-normal(2)", "halfnormal(2)"):
        assert od.Problem(TEXT, TABLE, prior={"k": text}).prior["k"] == ("halfnormal", 0.0, 2.0)
    with pytest.raises(od.InputError, match="unknown prior 'nomal' of 'k'; did you mean 'normal'"):
        od.Problem(TEXT, TABLE, prior={"k": "nomal(1, 2)"})


def test_errors_by_row_in_noise_are_told_where_to_go():
    with pytest.raises(od.InputError, match="add a column 'x_sd' to the data"):
        od.Problem(TEXT, TABLE, noise=np.full(12, 0.1))


@pytest.mark.parametrize("name", ["X", "x [mg/l]", "DV"])
def test_columns_are_found_in_capitals_with_a_unit_or_as_dv(name):
    with pytest.warns(od.InputWarning, match="is taken as 'x'"):
        problem = od.Problem(TEXT, TABLE.rename(columns={"x": name}))
    assert problem.columns == ("x",)


def test_a_covariate_in_capitals_is_no_parameter():
    rows = [(i, t, 5 * np.exp(-0.1 * t * (1 + 0.1 * i)), 60 + i) for i in range(4) for t in range(6)]
    table = pd.DataFrame(rows, columns=["ID", "TIME", "DV", "WT"])
    text = "x' = -k*x; x(0) = 5; k ~ lognormal(k_pop*(wt/70), omega) by subject"
    with warnings.catch_warnings(action="ignore"):
        problem = od.Problem(text, table)
    assert dict(problem.data.experiments[1].covariates) == {"wt": 61.0}


def test_dv_is_nothing_by_itself_where_several_quantities_share_it():
    table = TABLE.rename(columns={"x": "DV"}).assign(DVID=["a", "b"] * 6)
    with pytest.raises(od.InputError, match="no column 'x'"), warnings.catch_warnings(action="ignore"):
        od.Problem(TEXT, table)


def test_progress_is_a_bar_a_function_or_nothing(capsys):
    told = []
    for progress in (True, False, None, lambda what, share: told.append(share)):
        with shown_progress(progress) as tell:
            if tell is not None:
                tell("fitting", 0.5)
    assert told == [0.5]
    with pytest.raises(od.InputError, match="progress must be True, False or a function"):
        od.fit(TEXT, TABLE, progress="yes")
