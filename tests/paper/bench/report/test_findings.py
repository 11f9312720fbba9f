"""Sentences about the paper follow the records: they agree, agree in part or differ as the numbers do."""

from dataclasses import replace

import pytest

from odinfer.paper.bench.report.findings import AGREES, DIFFERS, PARTLY, SO_FAR, beyond_paper, findings, too_few
from odinfer.paper.bench.report.results import Results
from paper.bench.report.invented import changed, emptied, invented


def test_sentences_follow_the_records(tmp_path):
    def verdicts(results: Results) -> dict[str, str]:
        return {f.claim.split()[0] + f.claim.split()[-1]: f.verdict for f in findings(results)}

    good = {f.claim: f for f in findings(invented(tmp_path / "a"))}
    accuracy = "ODIN is more accurate than AGM, FGPGM and RKG3."
    assert good[accuracy].verdict == AGREES
    assert good["Run time grows linearly with the number of states."].verdict == AGREES
    assert "power 1.00" in good["Run time grows linearly with the number of states."].evidence
    assert good["γ stays at its floor for right equations and exceeds 1 for wrong ones (Table 2)."].verdict == AGREES
    part = {f.claim: f for f in findings(invented(tmp_path / "b", rkg3=0.2))}
    assert part[accuracy].verdict == PARTLY
    assert part[accuracy].why
    bad = {f.claim: f for f in findings(invented(tmp_path / "c", rkg3=0.2, agm=0.2, fgpgm=0.2))}
    assert bad[accuracy].verdict == DIFFERS
    acquitted = {"verdicts": {"prey": "consistent", "predator": "consistent"}}
    blind = changed(invented(tmp_path / "d"), "odin", lambda r: acquitted)
    assert verdicts(blind) != verdicts(invented(tmp_path / "a2"))


def claims(results: Results) -> dict[str, str]:
    """Verdicts by the first words of the claim."""
    return {" ".join(f.claim.split()[:3]): f.verdict for f in findings(results)}


def test_every_claim_of_the_paper_has_a_finding_with_its_numbers(results):
    found = findings(results)
    assert len(found) == 11
    assert len({f.claim for f in found}) == 11
    for f in found:
        assert f.verdict in (AGREES, PARTLY, DIFFERS)
        assert any(c.isdigit() for c in f.evidence), f.claim
        assert f.evidence.endswith(".")


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, AGREES), (1.5, DIFFERS)])
def test_parameters_are_identified_where_odin_finds_them(results, factor, verdict):
    def scaled(record):
        return {"theta": {name: factor * value for name, value in record["outcome"]["theta"].items()}}

    assert claims(changed(results, "odin-paper", scaled))["θ5 and θ6"] == verdict


@pytest.mark.parametrize(("gamma", "verdict"), [(2.0, AGREES), (0.5, PARTLY)])
def test_gamma_must_exceed_one_for_wrong_equations(results, gamma, verdict):
    def held(record):
        return {"gamma": {s: gamma if g > 1 else g for s, g in record["outcome"]["gamma"].items()}}

    assert claims(changed(results, "odin-paper-states", held))["γ stays at"] == verdict


def test_the_marginal_of_a_gaussian_agrees_and_that_of_another_does_not(results):
    assert claims(results)["At fixed γ"] == AGREES

    def wild(record):
        return {"moments": {n: m | {"skewness": 2.0} for n, m in record["outcome"]["moments"].items()}}

    assert claims(changed(results, "fgpgm", wild))["At fixed γ"] == PARTLY


def test_a_method_that_never_converges_is_called_unstable(results):
    assert claims(results)["AGM was unstable"] == DIFFERS
    lost = changed(results, "agm", lambda r: {"converged": False})
    assert claims(lost)["AGM was unstable"] == AGREES


@pytest.mark.parametrize(("seconds", "verdict"), [(1.0, AGREES), (6.0, PARTLY), (60.0, DIFFERS)])
def test_run_times_are_compared_with_odins(results, seconds, verdict):
    timing = {"timing": {"seconds": seconds, "cpu": seconds}}
    found = [(c, [r | timing for r in records] if "odin" in c.method.name else records) for c, records in results.found]
    assert claims(replace(results, found=found))["ODIN is the"] == verdict


def test_what_the_paper_does_not_have_is_said_of_the_default_fit(results):
    (sentence,) = beyond_paper(results)
    assert "1.000 to 1.000 times that of maximum likelihood" in sentence
    assert "a lower likelihood in 0 of 24 draws" in sentence


def test_without_records_or_without_the_paper_nothing_is_claimed(results):
    assert findings(emptied(results)) == beyond_paper(emptied(results)) == []
    mine = replace(results, grid=replace(results.grid, report={}))
    assert findings(mine) == []


def test_nothing_is_said_to_agree_about_methods_that_were_not_run(tmp_path):
    whole = invented(tmp_path / "a")
    less = replace(whole, found=[(c, r if c.method.name != "fgpgm" else []) for c, r in whole.found])
    for start in ("ODIN is more", "ODIN is the"):
        full, part = (next(f for f in findings(r) if f.claim.startswith(start)) for r in (whole, less))
        assert "Not run" not in full.evidence
        assert part.evidence.endswith(" Not run: FGPGM.")
        assert part.verdict == (SO_FAR if full.verdict == AGREES else part.verdict) != AGREES


@pytest.mark.parametrize("draws", [1, 3])
def test_nothing_is_said_to_agree_from_too_few_draws(results, draws):
    whole = {f.claim: f.verdict for f in findings(results)}
    few = replace(results, found=[(c, records[:draws]) for c, records in results.found])
    judged = {f.claim.split()[0]: f.verdict for f in findings(few) if f.verdict != too_few(draws)}
    assert [*judged] == ["At", "Table", "Run"]  # a figure of one rollout, and seconds
    assert AGREES in whole.values()
    assert too_few(4) not in whole.values()
    assert too_few(1) == "not judged: 1 draw only"
