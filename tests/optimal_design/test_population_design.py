"""Designs of population studies: PopED's warfarin example, whose determinants are known."""

import numpy as np
import pytest

import odinfer as od
from odinfer.optimal_design.population import PopulationInformation

TEXT = """gut' = -KA*gut
body' = KA*gut - CL/V*body
gut(0) = 70
body(0) = 0
CL ~ lognormal(CL_pop, w_CL) by subject
V ~ lognormal(V_pop, w_V) by subject
KA ~ lognormal(KA_pop, w_KA) by subject
conc ~ normal(body/V, NOISE)
"""
PROPORTIONAL = od.Model.from_text(TEXT.replace("NOISE", "s*body/V"), "warfarin")
COMBINED = od.Model.from_text(TEXT.replace("NOISE", "sqrt(a2 + s^2*(body/V)^2)"), "warfarin")
VALUES = {"CL_pop": 0.15, "V_pop": 8.0, "KA_pop": 1.0, "w_CL": 0.07**0.5, "w_V": 0.02**0.5, "w_KA": 0.6**0.5, "s": 0.1}
TIMES = np.array([0.5, 1, 2, 6, 24, 36, 72, 120])


def of_variances(said, information):
    """The information on typical values and variances, from that on relative changes of values and deviations."""
    known = dict(zip(said.names, said.values, strict=True))
    by = np.array([1 / v if n.endswith("pop") or n == "a2" else 1 / (2 * v * v) for n, v in known.items()])
    return information * np.outer(by, by)


# The full information of the example, evaluated with 40 digits, is 1.2203694e24; PopED's differences give 1.220371e24.
@pytest.mark.parametrize(("full", "determinant"), [(False, 5.996147e22), (True, 1.2203694e24)])
def test_determinants_of_warfarin_are_the_published_ones(full, determinant):
    said = PopulationInformation.of(PROPORTIONAL, VALUES, TIMES, 32, full=full)
    found = np.linalg.det(of_variances(said, said(np.arange(8)[None])[0]))
    assert found == pytest.approx(determinant, rel=1e-6)


def test_expected_errors_of_warfarin_are_the_published_ones():
    said = PopulationInformation.of(PROPORTIONAL, VALUES, TIMES, 32)
    percent = 100 * np.sqrt(np.diag(np.linalg.inv(said(np.arange(8)[None])[0])))
    published = {"CL_pop": 4.74, "V_pop": 2.76, "KA_pop": 13.93, "w_CL": 25.6, "w_V": 30.3, "w_KA": 25.8, "s": 11.2}
    for name, value in zip(said.names, percent, strict=True):  # published errors are those of variances
        assert value * (1 if name.endswith("pop") else 2) == pytest.approx(published[name], abs=0.05)


def test_the_best_times_of_warfarin_are_at_least_as_good_as_the_published_ones():
    values = {**VALUES, "a2": 0.25}
    design = od.design(COMBINED, theta=values, times=(0, 120), add=8, subjects=32, apart=0.0)
    t = np.unique(design.times)
    said = PopulationInformation.of(COMBINED, values, t, 32)
    chosen = np.searchsorted(t, design.times)[None]
    assert np.linalg.slogdet(of_variances(said, said(chosen)[0]))[1] >= 56.717


def test_more_subjects_halve_the_errors_by_the_root_of_their_number():
    one, four = (
        od.design(PROPORTIONAL, theta=VALUES, times=TIMES, add=4, subjects=n, apart=0.0).after for n in (10, 40)
    )
    assert one / four == pytest.approx(np.full(7, 2.0), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subjects": 0}, "number of subjects"),
        ({"for_": "CL"}, "population has no 'CL'"),
        ({"budget": 3.0}, "takes no budget"),
        ({"theta": {"CL_pop": 0.15}}, "has no value"),
        ({"times": None}, "needs times"),
    ],
)
def test_impossible_requests_are_refused(options, words):
    with pytest.raises(od.InputError, match=words):
        od.design(PROPORTIONAL, **{"theta": VALUES, "times": TIMES, "subjects": 8, **options})
