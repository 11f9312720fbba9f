"""The tables of PEtab are read as they are meant, and every wrong row is named."""

import math

import numpy as np
import pytest
from scipy import stats

from odinfer.errors import InputError
from odinfer.io.petab_reader import read_petab
from odinfer.io.petab_tables import is_number, read_study
from sbml_files import TABLES, petab


def test_a_study_has_all_that_the_tables_say(tmp_path):
    study = read_study(petab(tmp_path))
    assert study.parameters["k"].log
    assert (study.parameters["k"].low, study.parameters["k"].high) == (1e-3, 10.0)
    assert not study.parameters["input"].estimated
    assert study.observables["obs_A"].placeholders == ((), ("noiseParameter1_obs_A",))
    assert {name: [p.values for p in own] for name, own in study.experiments.items()} == {
        "low": [{"A": "2"}], "high": [{"A": "4"}],
    }  # fmt: skip
    assert [m.given for m in study.measurements][1:3] == [((), ("0.2",)), (("input",), ())]


def test_preequilibration_is_a_period_from_minus_infinity(tmp_path):
    measured = "observableId\tpreequilibrationConditionId\tsimulationConditionId\ttime\tmeasurement\tnoiseParameters\n"
    study = read_study(petab(tmp_path, {"measurements": measured + "obs_A\tlow\thigh\tinf\t1\t0.1\n"}))
    (own,) = study.experiments.values()
    assert [p.time for p in own] == [-math.inf, 0.0]
    assert study.measurements[0].time == math.inf


def test_version_2_has_experiments_of_several_periods(tmp_path):
    files = {
        "parameters": TABLES["parameters"].replace("\tparameterScale", "").replace("\tlog10", "").replace("\tlin", ""),
        "conditions": "conditionId\ttargetId\ttargetValue\nc1\tA\t2*k\nc2\tinput\t3\n",
        "experiments": "experimentId\ttime\tconditionId\ne\t-inf\tc1\ne\t0\tc2\ne\t5\tc1\n",
        "observables": "observableId\tobservableFormula\tnoiseFormula\tnoiseDistribution\tnoisePlaceholders\n"
        "obs_A\tA\tn\tlog-normal\tn\n",
        "measurements": "observableId\texperimentId\ttime\tmeasurement\tnoiseParameters\nobs_A\te\t1\t1.2\t0.1\n",
    }
    path = petab(tmp_path, files)
    path.write_text(
        "format_version: 2.0.0\nparameter_files: [parameters.tsv]\ncondition_files: [conditions.tsv]\n"
        "experiment_files: [experiments.tsv]\nmeasurement_files: [measurements.tsv]\n"
        "observable_files: [observables.tsv]\nmodel_files: {m: {location: drug.xml, language: sbml}}\n"
    )
    study = read_study(path)
    assert [(p.time, p.values) for p in study.experiments["e"]] == [
        (-math.inf, {"A": "2*k"}), (0.0, {"input": "3"}), (5.0, {"A": "2*k"}),
    ]  # fmt: skip
    assert study.observables["obs_A"].family == "lognormal"
    assert study.observables["obs_A"].placeholders == ((), ("n",))


BAD = [
    ("parameters", "lin", "cubic", "unknown parameterScale 'cubic'"),
    ("parameters", "3\t0", "\t0", "neither estimated nor has a nominal value"),
    ("parameters", "1e-3", "low", "lowerBound is 'low', which is no number"),
    ("observables", "observableFormula", "formula", "no column 'observableFormula'"),
    ("measurements", "obs_A\tlow\t1", "ob_A\tlow\t1", "no observable 'ob_A'; did you mean 'obs_A'"),
    ("measurements", "obs_A\tlow\t1", "obs_A\tlo\t1", "no condition 'lo'"),
    ("measurements", "0.1\n", "0.1;2\n", "'obs_A' has 1 noise parameters, but 2 are given"),
    ("measurements", "1.2", "much", "measurement is 'much'"),
]


@pytest.mark.parametrize(("table", "before", "after", "expected"), BAD, ids=range(len(BAD)))
def test_a_wrong_row_is_named(tmp_path, table, before, after, expected):
    path = petab(tmp_path, {table: TABLES[table].replace(before, after, 1)})
    with pytest.raises(InputError, match=expected) as found:
        read_study(path)
    assert f"{table}.tsv: line " in str(found.value)


@pytest.mark.parametrize(
    ("kind", "numbers", "expected"),
    [
        ("parameterScaleNormal", "0;1", ("near", (1.0, math.log(10)))),
        ("normal", "2;1", ("normal", (2.0, 1.0))),
        ("logNormal", "0;1", ("lognormal", (1.0, 1.0))),
        ("parameterScaleUniform", "-1;1", ("uniform", (0.1, 10.0))),
    ],
)
def test_priors_are_those_of_our_language(tmp_path, kind, numbers, expected):
    rows = TABLES["parameters"].replace("estimate\n", "estimate\tobjectivePriorType\tobjectivePriorParameters\n")
    study = read_study(petab(tmp_path, {"parameters": rows.replace("0.5\t1", f"0.5\t1\t{kind}\t{numbers}")}))
    family, values = study.parameters["k"].prior
    assert (family, values) == (expected[0], pytest.approx(expected[1]))
    assert study.parameters["sd_B"].prior is None


@pytest.mark.parametrize(
    ("kind", "numbers"), [("student", "0;1"), ("gamma", "1"), ("gamma", "1;0"), ("rayleigh", "nan")]
)
def test_priors_that_are_not_known_or_lack_numbers_are_refused(tmp_path, kind, numbers):
    rows = TABLES["parameters"].replace("estimate\n", "estimate\tobjectivePriorType\tobjectivePriorParameters\n")
    with pytest.raises(InputError, match=f"the prior '{kind}'"):
        read_study(petab(tmp_path, {"parameters": rows.replace("0.5\t1", f"0.5\t1\t{kind}\t{numbers}")}))


LN10 = math.log(10)
DENSITIES = {
    "laplace": ("0.5;2", lambda k: stats.laplace.logpdf(k, 0.5, 2)),
    "logLaplace": ("0.5;2", lambda k: stats.laplace.logpdf(np.log(k), 0.5, 2) - np.log(k)),
    "parameterScaleLaplace": ("0.5;2", lambda k: -abs(np.log10(k) - 0.5) / 2),
    "cauchy": ("0.5;2", lambda k: stats.cauchy.logpdf(k, 0.5, 2)),
    "gamma": ("3;2", lambda k: stats.gamma.logpdf(k, 3, scale=2)),
    "exponential": ("2", lambda k: stats.expon.logpdf(k, scale=2)),
    "chisquare": ("3", lambda k: stats.chi2.logpdf(k, 3)),
    "rayleigh": ("2", lambda k: stats.rayleigh.logpdf(k, scale=2)),
    "log-uniform": ("0.01;5", lambda k: stats.loguniform.logpdf(k, 0.01, 5)),
}


@pytest.mark.parametrize("kind", DENSITIES)
def test_every_prior_has_its_density_and_derivatives(tmp_path, kind):
    numbers, log_density = DENSITIES[kind]
    rows = TABLES["parameters"].replace("estimate\n", "estimate\tobjectivePriorType\tobjectivePriorParameters\n")
    path = petab(tmp_path, {"parameters": rows.replace("0.5\t1", f"0.5\t1\t{kind}\t{numbers}")})
    term, h = read_petab(path).penalty.terms["k"], 1e-4
    for k in (0.3, 1.7, 4.2):
        value, slope, curvature = term.derivatives(k)
        assert value == pytest.approx(-log_density(k), abs=1e-3)
        before, after = (term.derivatives(k + d) for d in (-h, h))
        assert slope == pytest.approx((after[0] - before[0]) / (2 * h), abs=1e-4)
        assert curvature == pytest.approx((after[1] - before[1]) / (2 * h), abs=1e-4)


@pytest.mark.parametrize("text", ["", "[1, 2]", "format_version: 3", "a: [", "format_version: 1\nproblems: [{}, {}]"])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "other.yaml").write_text(text)
    with pytest.raises(InputError, match=r"other\.yaml"):
        read_study(tmp_path / "other.yaml")


def test_numbers_are_told_from_names():
    assert [is_number(text) for text in ("1e-3", "inf", "k1", "2*k")] == [True, True, False, False]
