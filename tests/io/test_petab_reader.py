"""PEtab problems become Problems of the same likelihood: every case of the test suite, and what it leaves out."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import curve_fit

import odinfer as od
from odinfer.errors import InputError
from odinfer.io.petab_reader import nominal, read_petab
from odinfer.likelihood.loglik import at, solutions
from odinfer.observation import observation_of
from odinfer.problem.parameter_vector import ParameterVector
from sbml_files import LOW, TABLES, TIME, event, petab
from sbml_files import math as sbml_math

petabtests = pytest.importorskip("petabtests")
yaml = pytest.importorskip("yaml")
CASES = Path(petabtests.__file__).parent / "cases"
SUITE = sorted(path for path in CASES.glob("v*/sbml/*") if path.name.isdigit())


def simulated(problem, values):
    """Predicted values by experiment, time and column of the data."""
    problem, v = at(problem, values)
    phi = ParameterVector(problem).phi(v)[None]
    found = []
    for e, x in enumerate(solutions(problem, v)):
        m = observation_of(problem).predicted(e, x, phi)[0]
        seen = np.isfinite(problem.data.experiments[e].y)
        found += m[seen].tolist()
    return np.sort(found)


def test_the_suite_is_there():
    assert [sum(path.parts[-3] == v for path in SUITE) for v in ("v1.0.0", "v2.0.0")] == [18, 19]


@pytest.mark.parametrize("case", SUITE, ids=lambda path: f"{path.parts[-3]}-{path.name}")
def test_every_case_of_the_suite_has_its_likelihood_and_simulations(case):
    solution = yaml.safe_load((case / f"_{case.name}_solution.yaml").read_text())
    path = case / f"_{case.name}.yaml"
    problem, values = read_petab(path), nominal(path)
    assert od.loglik(problem, values) == pytest.approx(solution["llh"], abs=solution["tol_llh"])
    rows = [line.split("\t") for line in (case / "_simulations.tsv").read_text().splitlines()]
    right = np.sort([float(row[rows[0].index("simulation")]) for row in rows[1:]])
    np.testing.assert_allclose(simulated(problem, values), right, atol=solution["tol_simulations"])


def test_scales_bounds_and_fixed_values_are_taken_over_and_nominal_ones_are_not(tmp_path):
    path = petab(tmp_path)
    problem = read_petab(path)
    assert problem.free == ("k", "sd_B")
    assert problem.limits("k") == (1e-3, 10.0)
    assert (problem.scale.get("k"), problem.scale.get("sd_B")) == ("log", None)
    assert (dict(problem.fixed), dict(problem.start)) == ({"input_": 3.0}, {})
    assert nominal(path) == {"k": 0.5, "sd_B": 0.2}


def test_row_by_row_errors_and_parameters_are_those_of_their_rows(tmp_path):
    problem = read_petab(petab(tmp_path))
    A, B = (lambda a, t: a * np.exp(-0.5 * t)), (lambda a, t: 5 + 10 * a * (1 - np.exp(-0.5 * t)))
    right = stats.norm.logpdf([1.2, 0.8], A(2, np.array([1, 2])), [0.1, 0.2]).sum()
    right += stats.norm.logpdf([4.5, 10.0], [B(4, 2) / 3, B(4, 3) / 2], 0.2).sum()
    assert od.loglik(problem, {"k": 0.5, "sd_B": 0.2}) == pytest.approx(right, abs=1e-6)


ONLY_A = {"parameters": TABLES["parameters"].replace("sd_B\tlin\t0.01\t10\t0.2\t1\n", "")}
MEASURED = "observableId\tpreequilibrationConditionId\tsimulationConditionId\ttime\tmeasurement\tnoiseParameters\n"


def test_a_measurement_at_infinity_is_of_the_steady_state(tmp_path):
    rows = MEASURED + "obs_A\t\tlow\t1\t1\t0.1\nobs_A\t\tlow\tinf\t0.2\t0.1\n"
    problem = read_petab(petab(tmp_path, {**ONLY_A, "measurements": rows}))
    right = stats.norm.logpdf([1, 0.2], [2 * np.exp(-0.5), 0], 0.1).sum()
    assert od.loglik(problem, {"k": 0.5}) == pytest.approx(right, abs=1e-6)


def test_some_experiments_may_settle_and_others_not(tmp_path):
    conditions = "conditionId\tA\nlow\t2\nagain\t\n"
    rows = MEASURED + "obs_A\tlow\tagain\t1\t0.1\t0.1\nobs_A\t\tlow\t1\t1\t0.1\nobs_A\t\tlow\t1\t1.1\t0.1\n"
    problem = read_petab(petab(tmp_path, {**ONLY_A, "conditions": conditions, "measurements": rows}))
    right = stats.norm.logpdf([0.1, 1, 1.1], [0, 2 * np.exp(-0.5), 2 * np.exp(-0.5)], 0.1).sum()
    assert od.loglik(problem, {"k": 0.5}) == pytest.approx(right, abs=1e-6)


def test_version_2_changes_conditions_in_time(tmp_path):
    files = {
        "parameters": "parameterId\tlowerBound\tupperBound\tnominalValue\testimate\nk2\t0.001\t10\t0.5\ttrue\n",
        "conditions": "conditionId\ttargetId\ttargetValue\nc1\tk\tk2\nc1\tA\t2\nc2\tk\t2*k2\nc2\tA\t3\n",
        "experiments": "experimentId\ttime\tconditionId\ne\t0\tc1\ne\t1\tc2\n",
        "observables": "observableId\tobservableFormula\tnoiseFormula\nobs\tA\t0.1\n",
        "measurements": "observableId\texperimentId\ttime\tmeasurement\nobs\te\t0.5\t1\nobs\te\t2\t1.2\n",
    }
    path = petab(tmp_path, files)
    path.write_text(
        "format_version: 2.0.0\nparameter_files: [parameters.tsv]\ncondition_files: [conditions.tsv]\n"
        "experiment_files: [experiments.tsv]\nmeasurement_files: [measurements.tsv]\n"
        "observable_files: [observables.tsv]\nmodel_files: {m: {location: drug.xml, language: sbml}}\n"
    )
    right = stats.norm.logpdf([1, 1.2], [2 * np.exp(-0.25), 3 * np.exp(-1.0)], 0.1).sum()
    assert od.loglik(read_petab(path), nominal(path)) == pytest.approx(right, abs=1e-6)


def test_what_is_used_nowhere_is_left_out_with_a_warning(tmp_path):
    rows = TABLES["parameters"] + "other\tlin\t0\t1\t0.5\t1\n"
    with pytest.warns(od.InputWarning, match="other is used nowhere"):
        assert "other" not in read_petab(petab(tmp_path, {"parameters": rows})).parameters


def test_what_has_no_influence_is_fixed_with_a_warning(tmp_path):
    rows = TABLES["measurements"].splitlines()
    files = {
        "observables": "\n".join(TABLES["observables"].splitlines()[:2]) + "\n",
        "measurements": "\n".join([*rows[:3], ""]),
        "parameters": TABLES["parameters"].replace("sd_B", "q"),
    }
    law = '<rateRule variable="z">' + sbml_math("<apply><times/><ci>q</ci><ci>A</ci></apply>") + "</rateRule>"
    more = '<parameter id="q" value="3" constant="true"/><parameter id="z" value="1" constant="false"/>'
    path = petab(tmp_path, files, MORE_PARAMETERS=more, RULES=law)
    with pytest.warns(od.InputWarning, match="fixed at nominal values: q"):
        problem = read_petab(path)
    assert (problem.free, problem.fixed["q"]) == (("k",), 0.2)
    right = stats.norm.logpdf([1.2, 0.8], 2 * np.exp([-0.5, -1.0]), [0.1, 0.2]).sum()
    assert od.loglik(problem, {"k": 0.5}) == pytest.approx(right, abs=1e-6)


BAD = [
    ("conditions", "\tA\n", "\tC\n", "the conditions set 'C', which is nothing in the model"),
    ("observables", "obs_A\tA\t", "obs_A\tD\t", "'D' is used in a formula, but is neither"),
    ("observables", "obs_A\tA\t", "obs_A\tfactorial(A)\t", "the factorial of what is no number"),
]


@pytest.mark.parametrize(("table", "before", "after", "expected"), BAD, ids=range(len(BAD)))
def test_what_is_not_known_is_refused_by_name(tmp_path, table, before, after, expected):
    path = petab(tmp_path, {table: TABLES[table].replace(before, after, 1)})
    with pytest.raises(InputError, match=expected):
        read_petab(path)


@pytest.mark.parametrize(
    ("noise", "scale", "log_p"),
    [
        ("normal", "log10", lambda y, m, s: stats.norm.logpdf(np.log10(y), np.log10(m), s) - np.log(y * math.log(10))),
        ("normal", "log", lambda y, m, s: stats.lognorm.logpdf(y, s, scale=m)),
        ("laplace", "lin", lambda y, m, s: stats.laplace.logpdf(y, m, s)),
        ("laplace", "log", lambda y, m, s: stats.laplace.logpdf(np.log(y), np.log(m), s) - np.log(y)),
    ],
)
def test_noise_is_that_of_the_table(tmp_path, noise, scale, log_p):
    head = "observableId\tobservableFormula\tnoiseFormula\tnoiseDistribution\tobservableTransformation\n"
    files = {**ONLY_A, "observables": f"{head}obs_A\tA\tnoiseParameter1_obs_A\t{noise}\t{scale}\n"}
    files["measurements"] = MEASURED + "obs_A\t\tlow\t1\t1\t0.1\nobs_A\t\tlow\t2\t0.5\t0.3\n"
    problem = read_petab(petab(tmp_path, files))
    right = log_p(np.array([1, 0.5]), 2 * np.exp([-0.5, -1.0]), np.array([0.1, 0.3])).sum()
    assert od.loglik(problem, {"k": 0.5}) == pytest.approx(right, abs=1e-6)


def test_events_of_states_have_a_likelihood_and_other_conditions(tmp_path):
    path = petab(tmp_path, EVENTS=event(LOW, value="<cn>3</cn>"))
    problem = od.read_petab(path)
    assert "when A < 1: A = 3" in problem.model.text
    (x, _), k = solutions(*at(problem, {"k": 0.5, "sd_B": 0.2})), 0.5
    first = np.log(2) / k  # the condition 'low' begins at 2 and comes to 1 then
    np.testing.assert_allclose(x[0, :, 0], [2 * np.exp(-k), 3 * np.exp(-k * (2 - first))], rtol=1e-7)


def test_events_of_states_in_a_system_that_settles_first_are_refused(tmp_path):
    lines = TABLES["measurements"].splitlines()
    rows = [f"{lines[0]}\tpreequilibrationConditionId", *(f"{line}\thigh" for line in lines[1:])]
    with pytest.raises(od.InputError, match="events that states trigger in a system that settles first"):
        od.read_petab(petab(tmp_path, {"measurements": "\n".join(rows)}, EVENTS=event(LOW)))


SECOND = (
    "format_version: 2.0.0\nparameter_files: [parameters.tsv]\nmeasurement_files: [measurements.tsv]\n"
    "observable_files: [observables.tsv]\nmodel_files: {m: {location: drug.xml, language: sbml}}\n"
)
ONE = {
    "parameters": "parameterId\tlowerBound\tupperBound\tnominalValue\testimate\nk\t0.001\t10\t0.5\ttrue\n",
    "observables": "observableId\tobservableFormula\tnoiseFormula\nobs\tA\t0.1\n",
}


def test_version_2_needs_no_experiments(tmp_path):
    rows = "observableId\texperimentId\ttime\tmeasurement\nobs\t\t1\t1\nobs\t\t2\t0.5\n"
    path = petab(tmp_path, {**ONE, "measurements": rows})
    path.write_text(SECOND)
    right = stats.norm.logpdf([1, 0.5], 2 * np.exp([-0.5, -1.0]), 0.1).sum()
    assert od.loglik(read_petab(path), {"k": 0.5}) == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("starts", [(2.0, 2.0), (-3.0, -3.0), (-3.0, 1.5), (0.0, 2.0)])
def test_experiments_of_version_2_start_at_any_time(tmp_path, starts):
    files = {
        **ONE,
        "conditions": "conditionId\ttargetId\ttargetValue\nc1\tA\t2\nc2\tA\t3\n",
        "experiments": f"experimentId\ttime\tconditionId\ne\t{starts[0]}\tc1\nf\t{starts[1]}\tc2\n",
        "measurements": "observableId\texperimentId\ttime\tmeasurement\n"
        "obs\te\t3\t1\nobs\te\t4\t0.5\nobs\tf\t3\t1\nobs\tf\t5\t0.5\n",
    }
    path = petab(tmp_path, files)
    path.write_text(SECOND + "condition_files: [conditions.tsv]\nexperiment_files: [experiments.tsv]\n")
    times = np.array([3.0, 4.0]), np.array([3.0, 5.0])
    right = sum(
        stats.norm.logpdf([1, 0.5], a * np.exp(-0.5 * (t - start)), 0.1).sum()
        for a, t, start in zip((2, 3), times, starts, strict=True)
    )
    assert od.loglik(read_petab(path), {"k": 0.5}) == pytest.approx(right, abs=1e-6)


SWITCH = (
    '<rateRule variable="z">'
    + sbml_math("<piecewise><piece><cn>1</cn><apply><lt/>TIME<ci>SWITCH</ci></apply></piece></piecewise>")
    + "</rateRule>"
)


@pytest.mark.parametrize("estimated", [True, False])
def test_a_switch_at_a_parameter_or_at_the_time_of_a_condition_is_followed(tmp_path, estimated):
    rule = SWITCH.replace("TIME", TIME).replace("SWITCH", "stop")
    parts = {
        "MORE_PARAMETERS": '<parameter id="z" value="0" constant="false"/>'
        '<parameter id="stop" value="3" constant="true"/>',
        "RULES": rule,
    }
    files = {
        "parameters": "parameterId\tparameterScale\tlowerBound\tupperBound\tnominalValue\testimate\n"
        + ("stop\tlin\t0\t10\t3\t1\n" if estimated else "")
        + "sd\tlin\t0.01\t10\t0.2\t1\n",
        "observables": "observableId\tobservableFormula\tnoiseFormula\nobs\tz\tsd\n",
        "conditions": "conditionId\tA\nlow\t2\nhigh\t4\n" if estimated else "conditionId\tstop\nlow\t2\nhigh\t4\n",
        "measurements": "observableId\tsimulationConditionId\ttime\tmeasurement\n"
        "obs\tlow\t1\t1\nobs\tlow\t9\t2.5\nobs\thigh\t1\t1\nobs\thigh\t9\t3.9\n",
    }
    problem = read_petab(petab(tmp_path, files, **parts))
    means = [1, 3, 1, 3] if estimated else [1, 2, 1, 4]
    right = stats.norm.logpdf([1, 2.5, 1, 3.9], means, 0.2).sum()
    values = {"sd": 0.2, "stop": 3.0} if estimated else {"sd": 0.2}
    assert od.loglik(problem, values) == pytest.approx(right, abs=1e-4)
    if not estimated:
        assert [c.corners.tolist() for c in map(problem.condition, range(2))] == [[2.0], [4.0]]


def test_an_observable_may_be_a_constant(tmp_path):
    rows = TABLES["observables"].replace("obs_A\tA\t", "obs_A\t1\t")
    problem = read_petab(petab(tmp_path, {"observables": rows}))
    right = stats.norm.logpdf([1.2, 0.8], 1, [0.1, 0.2]).sum()
    B = lambda a, t: 5 + 10 * a * (1 - np.exp(-0.5 * t))  # noqa: E731
    right += stats.norm.logpdf([4.5, 10.0], [B(4, 2) / 3, B(4, 3) / 2], 0.2).sum()
    assert od.loglik(problem, {"k": 0.5, "sd_B": 0.2}) == pytest.approx(right, abs=1e-6)


def test_a_problem_without_differential_equations_is_fitted_and_exported(tmp_path):
    t = np.arange(8.0)
    y = 3 * np.exp(-0.5 * t) + 0.05 * np.random.default_rng(0).normal(size=8)
    decay = f"<apply><times/><ci>a</ci><apply><exp/><apply><times/><cn>-1</cn><ci>k</ci>{TIME}</apply></apply></apply>"
    files = {
        "parameters": TABLES["parameters"].replace("sd_B", "a_low").replace("input\tlin", "a_high\tlin"),
        "conditions": "conditionId\ta\nlow\ta_low\nhigh\ta_high\n",
        "observables": "observableId\tobservableFormula\tnoiseFormula\nobs\ty\t0.05\nlevel\ta\t0.1\n",
        "measurements": "observableId\tsimulationConditionId\ttime\tmeasurement\n"
        + "".join(f"obs\tlow\t{time}\t{value}\n" for time, value in zip(t, y, strict=True))
        + "level\thigh\tinf\t3.2\n",
    }
    path = petab(
        tmp_path, files, MORE_PARAMETERS='<parameter id="a" constant="false"/><parameter id="y" constant="false"/>',
        RULES=f'<assignmentRule variable="y">{sbml_math(decay)}</assignmentRule>',
    )  # fmt: skip
    model = tmp_path / "drug.xml"
    model.write_text(re.sub(r"(?s)<listOf(Species|Reactions)>.*</listOf\1>", "", model.read_text()))
    problem = read_petab(path)
    values = {"k": 0.5, "a_low": 3.0}
    right = stats.norm.logpdf(y, 3 * np.exp(-0.5 * t), 0.05).sum() + stats.norm.logpdf(3.2, 3, 0.1)
    assert od.loglik(problem, values) == pytest.approx(right, abs=1e-8)
    fit = od.fit(problem)
    best, _ = curve_fit(lambda t, k, a: a * np.exp(-k * t), t, y, [0.5, 3.0])
    assert [fit.theta["k"], fit.theta["a_low"]] == pytest.approx(best, rel=1e-4)
    again = read_petab(fit.to_petab(tmp_path / "again"))
    assert od.loglik(again, values) == pytest.approx(right, abs=1e-6)
