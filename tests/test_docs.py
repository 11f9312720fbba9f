"""What the documentation shows runs as it stands there."""

import re
from pathlib import Path

import pytest

import odinfer as od

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "observing.md").read_text("utf-8")
MODELS = re.findall(r"```ode\n(.*?)```\n\n```csv\n(.*?)```", PAGE, re.S)
SCRIPTS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_every_model_on_the_page_has_data():
    assert len(MODELS) == PAGE.count("```ode") >= 9


@pytest.mark.parametrize(("text", "table"), MODELS, ids=[text.partition("'")[0] for text, _ in MODELS])
def test_every_model_on_the_page_is_fitted_and_not_contradicted(text: str, table: str, tmp_path: Path):
    (tmp_path / "data.csv").write_text(table)
    model = od.Model.from_text(text)
    fit = od.fit(model, od.read_csv(tmp_path / "data.csv", inputs=model.inputs))
    assert fit.converged
    assert not fit.warnings
    assert all(low < fit.theta[name] < high for name, (low, high) in fit.interval().items())
    assert "contradict" not in repr(fit)


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_on_the_page_runs(script: str):
    exec(compile(script, "observing.md", "exec"), {})


def test_links_between_pages_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
