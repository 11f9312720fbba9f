"""What the text says about random effects is understood, and what cannot be is refused in one line."""

import numpy as np
import pandas as pd
import pytest

import odinfer as od
from odinfer.apps.command import check
from odinfer.io.petab_writer import write_petab
from odinfer.population.structure import Structure
from odinfer.problem.user_input import as_model_and_data

DECAY = "x' = -k*x; x(0) = 10; y ~ normal(x, 0.3)"


def table(subjects: int = 4, **columns) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    t = np.tile([0.5, 1.0, 2.0, 4.0], subjects)
    k = np.repeat(0.5 * np.exp(0.3 * rng.normal(size=subjects)), 4)
    found = {"subject": np.repeat([f"s{i}" for i in range(subjects)], 4), "time": t, "y": 10 * np.exp(-k * t)}
    found["y"] = found["y"] + 0.3 * rng.normal(size=len(t))
    return pd.DataFrame(found | {name: np.repeat(values, 4) for name, values in columns.items()})


def problem(statements: str, covariates=(), **columns) -> od.Problem:
    model = od.Model.from_text(f"{DECAY}; {statements}")
    return od.Problem(model, od.read_csv(table(**columns), states=["y"], covariates=covariates))


def test_names_in_centres_and_standard_deviations_are_parameters_of_the_population():
    s = Structure.of(problem("k ~ lognormal(k_pop*(wt/70)^b, omega_k) by subject", ["wt"], wt=[60, 70, 80, 90]))
    assert s.names == ("k_pop", "b", "omega_k")
    roles = {p.name: (p.role, p.low) for p in s.parameters}
    assert roles["k_pop"] == ("centre", 0.0)  # a factor of a log-normal is positive
    assert roles["b"] == ("centre", -np.inf)
    v = s.vector({"k_pop": 0.5, "b": 0.75, "omega_k": 0.3})
    assert s.values(v) == pytest.approx({"k_pop": 0.5, "b": 0.75, "omega_k": 0.3})
    means, slopes = s.means(v)
    assert np.exp(means[:, 0]) == pytest.approx(0.5 * (np.array([60, 70, 80, 90]) / 70) ** 0.75)
    for i in range(3):
        h = np.zeros(3)
        h[i] = 1e-6
        assert slopes[..., i] == pytest.approx((s.means(v + h)[0] - s.means(v - h)[0]) / 2e-6, abs=1e-6)


def test_labels_are_compared_and_a_standard_deviation_may_be_left_out():
    own = problem("k ~ lognormal(k_pop*where(sex == f, r, 1)) by subject", ["sex"], sex=["f", "m", "m", "f"])
    s = Structure.of(own)
    assert s.names == ("k_pop", "r", "omega_k")
    means = s.means(s.vector({"k_pop": 0.5, "r": 2.0, "omega_k": 0.3}))[0]
    assert np.exp(means[:, 0]) == pytest.approx([1.0, 0.5, 0.5, 1.0])


def test_numbers_of_a_covariate_may_stand_in_an_observed_column():
    model = od.Model.from_text(f"{DECAY}; k ~ lognormal(k_pop*wt/70, omega) by subject")
    data = od.read_csv(table(wt=[60, 70, 80, 90]))
    assert od.Problem(model, data).data.states == ("y",)


def test_correlations_are_named_by_their_effects_and_round_trip():
    text = "x' = -k*x + c - d*x; x(0) = 10; y ~ normal(x, 0.3); correlated all"
    text += "; k ~ lognormal(a, o1) by subject; c ~ normal(b, o2) by subject; d ~ logitnormal(e, o3) by subject"
    s = Structure.of(od.Problem(od.Model.from_text(text), od.read_csv(table(), states=["y"])))
    values = {"a": 0.5, "b": -1.0, "e": 0.2, "o1": 0.3, "o2": 0.4, "o3": 0.5}
    values |= {"corr(k,c)": 0.5, "corr(k,d)": -0.2, "corr(c,d)": 0.6}
    v = s.vector(values)
    assert s.values(v) == pytest.approx(values)
    omega = s.covariance(v)
    assert omega[0, 1] == pytest.approx(0.5 * 0.3 * 0.4)
    assert omega[1, 2] == pytest.approx(0.6 * 0.4 * 0.5)


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ("q ~ lognormal(k_pop, o) by subject", "no equation has it"),
        ("k ~ gamma(k_pop, o) by subject", "no distribution of a parameter"),
        ("k ~ lognormal(k_pop, -1) by subject", "positive number"),
        ("k ~ lognormal(x, o) by subject", "no parameter of the population"),
        ("k ~ lognormal(k_pop, o) by subject; correlated k", "only one effect"),
        ("k ~ lognormal(k_pop, o) by subject; correlated k, z", "does not vary"),
        ("k ~ lognormal(k, g) by occasion", "not by subject"),
        ("z ~ normal(q*x); k ~ lognormal(p, o) by id; q ~ normal(m, w) by place", "varies by place, but 'k' by id"),
    ],
)
def test_statements_that_make_no_sense_are_refused(statements, words):
    with pytest.raises(od.InputError, match=words):
        od.Model.from_text(f"{DECAY}; {statements}")


def test_a_covariate_that_changes_within_a_subject_is_refused():
    own = table(wt=[60, 70, 80, 90])
    own.loc[2, "wt"] = 61
    with pytest.raises(od.InputError, match=r"changes from 60 to 61 within 's0'"):
        od.read_csv(own, states=["y"], covariates=["wt"])
    model = od.Model.from_text(f"{DECAY}; k ~ lognormal(k_pop*wt/70, omega) by subject")
    with pytest.raises(od.InputError, match="'wt' changes from 60 to 61"):
        od.Problem(model, od.read_csv(own, states=["y"], inputs=["wt"]))


@pytest.mark.parametrize(
    ("text", "subjects", "words"),
    [
        (DECAY, 1, "one subject"),
        ("x' = -k*x; y ~ normal(x, 0.3)", 4, "initial value of 'x' is not given"),
        (f"{DECAY}; k_pop ~ normal(1, 1)", 4, "priors cannot be used"),
    ],
)
def test_a_population_that_cannot_be_fitted_is_refused(text, subjects, words):
    model = od.Model.from_text(f"{text}; k ~ lognormal(k_pop, omega) by subject")
    with pytest.raises(od.InputError, match=words):
        od.fit(model, od.read_csv(table(subjects), states=["y"]))


def test_names_in_a_centre_that_are_no_columns_and_cannot_be_estimated_are_refused():
    with pytest.raises(od.InputError, match="do not determine k_pop, age and b; if one is a covariate"):
        Structure.of(problem("k ~ lognormal(k_pop*(age/70)^b, omega_k) by subject"))
    own = problem("k ~ lognormal(k_pop*where(sex == x, a, 1)) by subject", ["sex"], sex=["f", "m", "m", "f"])
    with pytest.raises(od.InputError, match="do not determine a; "):
        Structure.of(own)
    assert Structure.of(problem("k ~ lognormal(2*k_pop, omega_k) by subject")).names == ("k_pop", "omega_k")


def test_a_population_is_not_written_as_petab(tmp_path):
    own = problem("k ~ lognormal(k_pop, omega_k) by subject")
    with pytest.raises(od.InputError, match="'k' varies by subject, which PEtab does not have"):
        write_petab(own, tmp_path)


def test_check_says_what_varies_by_what_and_with_which_covariates():
    own = problem("k ~ lognormal(k_pop*(wt/70)^b, omega_k) by subject", ["wt"], wt=[60, 70, 80, 90])
    said = check.describe(own)
    assert "4 subjects with 4 observations each, from 0.5 to 4." in said
    assert "k varies by subject: lognormal about k_pop*(wt/70)^b, sd omega_k." in said
    assert "Covariates: wt." in said
    assert "3 parameters of the population: k_pop, b, omega_k." in said
    assert "Of any sign: b." in said
    assert not check.findings(own)


def test_one_name_for_an_exponent_and_the_noise_is_pointed_out():
    text = "x' = -k*x; x(0) = 10; y ~ normal(x, a + b*x); k ~ lognormal(k_pop*(wt/70)^b, omega_k) by subject"
    own = od.Problem(od.Model.from_text(text), od.read_csv(table(wt=[60, 70, 80, 90]), covariates=["wt"]))
    assert any(said.startswith("b is one parameter in a centre and in the equations") for said in check.findings(own))
    assert "Assumed positive: a." in check.describe(own)


def test_the_column_that_parameters_vary_by_marks_the_subjects():
    own = table().rename(columns={"subject": "Tree"})
    by_tree = od.Model.from_text(f"{DECAY}; k ~ lognormal(k_pop, omega_k) by Tree")
    assert [e.name for e in as_model_and_data(by_tree, own)[1].experiments] == ["s0", "s1", "s2", "s3"]
    by_plot = od.Model.from_text(f"{DECAY}; k ~ lognormal(k_pop, omega_k) by plot")
    with pytest.raises(od.InputError, match="varies by plot, but each 'id' is a subject"):
        as_model_and_data(by_plot, own.rename(columns={"Tree": "id"}).assign(plot=1))
