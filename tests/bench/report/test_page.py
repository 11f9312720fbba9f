"""Tables, figures and sentences say what the records say."""

import csv
import functools
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from bench_runs import bench, command, outcomes, start, wait_for_records
from odinfer.bench import grid as grids
from odinfer.bench.compute import QUANTILES, drawn_times, plain, system_of
from odinfer.bench.report.page import PAGE, write
from odinfer.bench.report.results import Results, quartiles, summary
from odinfer.bench.report.scaling import scalings
from odinfer.bench.report.verdicts import judged
from odinfer.bench.report.words import AGREES, DIFFERS, PARTLY, findings
from odinfer.bench.store import Store, canonical

DRAWS = 4


@functools.cache
def truth(spec: str) -> np.ndarray:
    system = system_of(spec)
    return system.states(drawn_times(system))


def invented(folder: Path, **errors: float) -> Results:
    """Results of the paper's grid that nobody computed: every method has an error, scattered over its draws."""
    grid = grids.read("paper")
    errors = {"odin-paper": 1.0, "gpr": 2.0, "limit": 0.5, "odin": 0.5} | errors
    rng = np.random.default_rng(0)
    records = []
    for cell in grid.cells:
        system = system_of(canonical(cell.case.spec))
        for i in range(min(DRAWS, cell.draws)):
            error = errors.get(cell.method.name, 3.0) * (0.9 + 0.05 * i) * cell.noise
            wrong = cell.candidate.wrong if cell.candidate else ()
            shown = system.model.states[:5]
            outcome = {
                "status": "converged", "converged": True, "state_rmse": error, "theta": system.theta,
                "gamma": {s: 2.0 if s in wrong else 1e-6 for s in shown},
                "verdicts": {s: "contradicts the data" if s in wrong else "consistent" for s in shown},
            }  # fmt: skip
            if cell.candidate is None and cell.case.size is None:
                by_state = dict.fromkeys(system.model.states, error)
                x = {
                    s: (v + error).tolist()
                    for s, v in zip(system.model.states, truth(canonical(cell.case.spec)).T, strict=True)
                }
                outcome |= {"trmse": error, "trmse_paper": error, "trmses_paper": by_state, "trajectory": x}
                outcome |= {"stages": {"odin": {"trmse": error}, "refined": {"objective": 1.0}}, "objective": 1.0}
            if cell.method.name in ("fgpgm", "agm"):
                draws = rng.normal(size=400) if cell.case.label == "LV" else rng.exponential(size=400)
                outcome["quantiles"] = dict.fromkeys(system.theta, np.quantile(draws, QUANTILES).tolist())
                skew = 0.0 if cell.case.label == "LV" else 2.0
                moments = {"mean": 0.0, "sd": 1.0, "skewness": skew, "kurtosis": skew}
                outcome["moments"] = dict.fromkeys(system.theta, moments)
            run = cell.run(grid.first_seed + i)
            slow = {"agm": 100.0, "fgpgm": 50.0, "rkg3": 5.0}.get(cell.method.name, 1.0)
            timing = {"seconds": 0.1 * cell.case.size if cell.case.size else slow, "cpu": 1.0, "first": i == 0}
            records.append({"key": run.key, "run": asdict(run), "outcome": plain(outcome), "timing": timing})
    with Store(folder, create=True) as store:
        store.add_grid(grid.content)
        store.add(records)
    return Results.of([folder])


def replaced(results: Results, method: str, **changes) -> Results:
    """The same with other outcomes of a method."""
    for cell, records in results.found:
        if cell.method.name == method:
            for record in records:
                record["outcome"] |= changes
    return results


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> tuple[Results, Path]:
    results, folder = invented(tmp_path_factory.mktemp("store")), tmp_path_factory.mktemp("report")
    spoilt = results.at("LV, σ = 0.1", "two-step")
    for record in spoilt[:3]:
        record["outcome"] = {"status": "timed out: took longer than 6 s", "converged": False, "theta": {}}
    spoilt[3]["outcome"]["converged"] = False
    write(results, folder)
    return results, folder


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_item_of_the_paper_has_a_table_and_a_figure(written):
    _, folder = written
    for item in range(1, 9):
        tables, figures = list(folder.glob(f"{item}_*.csv")), list(folder.glob(f"{item}_*.png"))
        assert tables, item
        assert figures, item
        assert all(len(rows(path)) > 0 for path in tables)
        assert all(path.stat().st_size > 5000 for path in figures)
    page = (folder / PAGE).read_text("utf-8")
    assert page.count("<table>") >= 10
    assert page.count("data:image/png") == len(list(folder.glob("*.png")))
    assert "Not run yet" not in page


def test_tables_have_the_quantiles_of_the_records_and_the_numbers_of_the_paper(written):
    results, folder = written
    row = next(r for r in rows(folder / "2_trmse.csv") if r["setting"] == "LV, σ = 0.1" and r["method"] == "rkg3")
    errors = [r["outcome"]["trmse"] for r in results.at("LV, σ = 0.1", "rkg3")]
    assert [float(row[n]) for n in ("q25", "median", "q75")] == pytest.approx(np.quantile(errors, (0.25, 0.5, 0.75)))
    assert row["draws"] == str(DRAWS)
    times = rows(folder / "4_run_times.csv")
    paper = {(r["method"], r["setting"]): r["paper_median"] for r in times}
    assert paper["agm", "PT, σ = 0.01"] == "30493.0"
    assert paper["odin-paper", "FHN, SNR = 10"] == "4.4"
    assert paper["agm", "FHN, SNR = 100"] == ""  # the paper has none
    gamma = {(r["candidate"], r["state"]): r["paper_median"] for r in rows(folder / "7_model_selection.csv")}
    assert gamma["M00", "predator"] == "1.53"
    assert gamma["M11", "prey"] == "1e-06"


def test_failures_are_counted_and_are_infinite_errors(written):
    results, folder = written
    s = summary(results.at("LV, σ = 0.1", "two-step"), lambda o: o.get("trmse"))
    assert (s.draws, s.failed, s.unconverged) == (4, 3, 1)
    assert s.median == np.inf
    page = (folder / PAGE).read_text("utf-8")
    assert "3 failed, 1 not converged" in page
    assert "3 × two-step: timed out" in page


def test_quartiles_of_what_is_partly_infinite_are_numbers_or_infinite():
    assert quartiles(np.array([1.0, 2.0, np.inf]))[:3] == (1.5, 2.0, np.inf)
    assert np.isnan(quartiles(np.array([]))).all()


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
    blind = replaced(invented(tmp_path / "d"), "odin", verdicts={"prey": "consistent", "predator": "consistent"})
    assert verdicts(blind) != verdicts(invented(tmp_path / "a2"))
    wrong = [j for j in judged(blind) if j.method == "odin" and j.wrong]
    assert wrong
    assert all(j.right == 0 for j in wrong)


def test_the_exponent_of_run_time_is_that_of_the_records(written):
    fit = scalings(written[0])["odin-paper"]
    assert fit.exponent == pytest.approx(1.0)
    assert fit.K[-1] == 1000


def test_names_in_a_grid_of_ones_own_are_text_and_not_markup(tmp_path):
    text = """
title = "<script>alert(1)</script>"
draws = 3
[systems.decay]
label = "=cmd <b>"
equations = "x' = -k*x"
theta = { k = 0.7 }
x0 = { x = 3.0 }
times = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
noise = [0.05]
[methods.odin]
[methods.gpr]
[methods.limit]
[candidates.growth]
equations = "x' = k"
wrong = ["x"]
[[experiments]]
systems = ["decay"]
methods = ["odin", "gpr", "limit"]
[[experiments]]
systems = ["decay"]
methods = ["odin"]
candidates = ["growth"]
"""
    (tmp_path / "g.toml").write_text(text)
    bench("run", tmp_path / "g.toml", "--store", tmp_path / "s", "--workers", 1)
    done = bench("report", "--store", tmp_path / "s", "-o", tmp_path / "r")
    assert done.stdout.startswith(f"Open {tmp_path / 'r' / PAGE} first")
    page = (tmp_path / "r" / PAGE).read_text("utf-8")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert not rows(tmp_path / "r" / "1_states.csv")[0]["setting"].startswith("=")
    (row,) = rows(tmp_path / "r" / "7_model_selection.csv")
    assert row["equation_is_wrong"] == "True"
    limits = rows(tmp_path / "r" / "2_limit.csv")[0]
    assert float(limits["ratio"]) == pytest.approx(1.0, abs=0.05)
    errors = rows(tmp_path / "r" / "1_states.csv")
    assert {r["method"] for r in errors} == {"odin", "gpr", "limit"}
    assert all(0 < float(r["median"]) < 0.1 for r in errors)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_the_paper_in_small_is_produced_by_one_command_also_after_a_kill(tmp_path):
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    recipe = makefile.split("\npaper:")[1].split("\n\n")[0].replace("\\\n", " ").split("\n")[1:]
    settings = makefile.split("SETTINGS := ")[1].split("\n")[0]
    store, page = str(tmp_path / "runs"), str(tmp_path / "report")
    commands = []
    for line in recipe:
        words = line.replace("$(SETTINGS)", settings).replace("-o paper-report", f"-o {page}").split()
        assert words[:2] == ["$(BIN)/odinfer", "bench"]
        commands.append([store if word == "paper-report/runs" else word for word in words[2:]])
    process = start(*commands[0])
    wait_for_records(Path(store), process, 20)
    process.kill()
    process.communicate()
    before = outcomes(Path(store))
    for arguments in commands:
        done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=2500)
        assert done.returncode == 0, done.stderr
    after = outcomes(Path(store))
    assert before.items() <= after.items()
    for item in range(1, 9):
        assert list((tmp_path / "report").glob(f"{item}_*.csv")), item
        assert list((tmp_path / "report").glob(f"{item}_*.png")), item
    text = (tmp_path / "report" / PAGE).read_text("utf-8")
    assert "Not run yet" not in text
    assert text.count('class="badge') >= 8
