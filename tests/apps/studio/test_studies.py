"""Population models, missing terms, unknown functions and designs, as the page asks for them."""

import json

import numpy as np
import pytest

import odinfer as od
from apps.studio.browsing import drop, example, fit, type_model
from odinfer.apps.command.example import FOLDER
from odinfer.apps.studio.interactive import Source, choice_of, understand
from odinfer.apps.studio.jobs import JobRequest, run
from odinfer.errors import InputError

VARIES = "x' = -k*x\nx(0) = 5\nk ~ lognormal(k_pop*(wt/70), omega_k) by subject\n"
LOTKA = Source(FOLDER / "lotka_volterra.csv", choice_of({}))
INCOMPLETE = "prey' = a*prey - b*prey*predator\npredator' = -c*predator\n"


def subjects(count: int = 8) -> str:
    """Subjects of different weight, whose rates vary."""
    rng, lines = np.random.default_rng(3), ["id,time,x,wt"]
    for i in range(count):
        weight = 50 + 6 * i
        k = 0.5 * weight / 70 * np.exp(0.3 * rng.normal())
        lines += [f"{i},{t},{5 * np.exp(-k * t) + 0.1 * rng.normal():.3f},{weight}" for t in (0.5, 1, 2, 4, 6)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def population(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(subjects())
    return Source(path, choice_of({}))


def asked(kind, text, source, folder, **options):
    """The answer of a job, as the page gets it, and the names of its files."""
    told: list[dict] = []
    order = JobRequest(kind, (("m", text),), source, "d.csv", folder / kind, options)
    files = run(order, told.append)["files"]
    assert all((order.folder / name).is_file() for name in files)
    (answer,) = [m["answer"] for m in told if "answer" in m]
    return json.loads(json.dumps(answer, allow_nan=False)), files


def test_a_population_fit_has_individual_curves_parameters_and_pictures(population, tmp_path):
    answer, files = asked("fit", VARIES, population, tmp_path)
    assert {*answer["experiments"]} == {str(i) for i in range(8)}
    for name, e in answer["experiments"].items():
        curve = e["columns"]["x"]
        middle = [low <= y <= high for low, y, high in zip(curve["low"], curve["y"], curve["high"], strict=True)]
        assert np.mean(middle) > 0.9
        assert max(map(abs, e["residuals"]["x"])) < 0.6
        value, low, high = answer["individual"][name]["k"]
        assert low < value < high
    expected = od.fit(od.Model.from_text(VARIES), od.read_csv(population.path, states=["x"], covariates=["wt"]), seed=0)
    assert answer["theta"] == pytest.approx(dict(expected.theta), rel=1e-6)
    drawn = [p["file"] for p in answer["pictures"]]
    assert {"fits.svg", "observed.svg", "residuals.svg", "vpc.svg", "effects.svg"} <= {*drawn} & {*files}
    assert b"<svg" in (tmp_path / "fit" / "fits.svg").read_bytes()
    assert (tmp_path / "fit" / "report.html").read_text().count("data:image/svg+xml") == len(drawn)


def test_population_models_are_compared(population, tmp_path):
    free = VARIES.replace("(wt/70)", "(wt/70)^e_wt")
    told: list[dict] = []
    order = JobRequest("compare", (("weight", VARIES), ("free", free)), population, "d.csv", tmp_path)
    assert {"comparison.csv", "weight.ode", "compare.py"} <= {*run(order, told.append)["files"]}
    (answer,) = [m["answer"] for m in told if "answer" in m]
    assert "is preferred over" in answer["headline"]
    assert [row[0] for row in answer["table"]["rows"]] == answer["headline"].split(" is preferred over ")[0:1] + [
        name for name in ("weight", "free") if not answer["headline"].startswith(name)
    ]
    assert {*answer["fits"]} == {"weight", "free"}
    json.dumps(answer, allow_nan=False)


def test_sliders_of_what_varies_have_a_value_for_every_subject_and_covariates_are_named(population):
    found = understand(VARIES, "m", population)
    assert {p["name"]: (p["local"], p["by"]) for p in found["parameters"]} == {"k": (True, "subject")}
    assert "wt" in found["covariates"]


def test_coefficients_of_unknown_functions_have_no_sliders_and_no_notes():
    source = Source(FOLDER / "changing_epidemic.csv", choice_of({}))
    found = understand((FOLDER / "changing_epidemic.ode").read_text(), "m", source)
    assert [p["name"] for p in found["parameters"] if not p["hidden"]] == ["N", "I(0)"]
    assert found["notes"] == []


def test_an_unknown_function_is_shown_with_its_band(tmp_path):
    t = np.linspace(0, 4, 25)
    path = tmp_path / "d.csv"
    x = 2 * np.exp(-0.6 * t) + 0.02 * np.random.default_rng(0).normal(size=25)
    path.write_text("time,x\n" + "".join(f"{a:.3f},{b:.4f}\n" for a, b in zip(t, x, strict=True)))
    answer, _ = asked("fit", "x' = ?(x)\n", Source(path, choice_of({})), tmp_path)
    (own,) = answer["unknown"]
    assert (own["label"], own["arguments"]) == ("?(x)", ["x"])
    x, low, high = (np.array(own[key]) for key in ("x", "low", "high"))
    assert np.mean((low < -0.6 * x) & (-0.6 * x < high)) > 0.7


def test_a_missing_term_is_found_and_offered_as_a_model_that_can_be_read(tmp_path):
    answer, files = asked("discover", INCOMPLETE, LOTKA, tmp_path)
    assert "A term is missing" in answer["headline"]
    first = answer["next"][0]
    assert first["label"] == "Add c2*prey*predator to predator'"
    assert od.Model.from_text(first["text"]).parameters == ("a", "b", "c", "c2")
    assert answer["command"] == "odinfer discover m.ode d.csv"
    assert {"discovery.svg", "ranking.csv", "best.ode"} <= {*files}


def test_the_next_samples_are_those_of_the_package(tmp_path):
    text = (FOLDER / "lotka_volterra.ode").read_text()
    answer, files = asked("design", text, LOTKA, tmp_path, add=3, last=4)
    expected = od.design(od.fit(od.Model.from_text(text), od.read_csv(LOTKA.path), seed=0), add=3, times=(0, 4))
    assert json.loads((tmp_path / "design" / "design.json").read_text()) == expected.to_dict() | {"model": "m"}
    assert answer["headline"] == f"Measure next at {', '.join(f'{v:.4g}' for v in expected.times)}."
    assert answer["command"].endswith("--add 3 --times 0:4")
    assert "design.svg" in files
    with pytest.raises(InputError, match="samples"):
        asked("design", text, LOTKA, tmp_path, add=0)
    with pytest.raises(InputError, match="after time 0"):
        asked("design", text, LOTKA, tmp_path, last=-1)


def test_what_cannot_be_done_with_a_population_says_what_can(population, tmp_path):
    for kind, words in (("profile", "intervals already"), ("discover", "without random effects"), ("design", "design")):
        with pytest.raises(InputError, match=words):
            asked(kind, VARIES, population, tmp_path)


@pytest.mark.browser
@pytest.mark.timeout(240)
def test_the_page_fits_a_population_and_shows_its_pictures(page):
    drop(page, "d.csv", subjects(5))
    page.wait_for_selector(".chart canvas")
    type_model(page, VARIES)
    page.wait_for_selector("#slider-k")
    fit(page)
    shown = "() => { const all = [...document.querySelectorAll('img.picture')];"
    page.wait_for_function(f"{shown} return all.length > 4 && all.every((i) => i.complete && i.naturalWidth > 0); }}")
    assert page.is_hidden("#uncertainty")
    assert page.locator(".chip.covariate").count() == 1
    page.select_option("#experiment", "3")
    page.wait_for_function("() => document.querySelector('.slider .estimate')?.textContent.includes('95 %')")


@pytest.mark.browser
@pytest.mark.timeout(240)
def test_a_missing_term_and_a_design_appear_below_the_fit_and_survive_a_reload(page):
    example(page, "Prey and predators")
    type_model(page, INCOMPLETE)
    page.wait_for_selector("#slider-d", state="detached")
    fit(page)
    page.click("[data-kind=discover]")
    page.wait_for_selector("[data-study=discover] .picture")
    page.click("[data-kind=design]")
    page.fill("[data-study=design] .plan input >> nth=0", "2")
    page.click("[data-study=design] .plan button")
    page.wait_for_function("() => document.querySelector('[data-study=design] .command').textContent.includes('add 2')")
    page.reload()
    page.wait_for_selector("[data-study=discover]")
    page.click("[data-study=discover] .next button")
    page.wait_for_function("() => document.querySelector('#editor textarea').value.includes('c2*prey*predator')")
    assert page.locator("#model-tabs [role=tab]").all_inner_texts() == ["A", "B"]
    page.wait_for_selector("[data-study]", state="detached")
