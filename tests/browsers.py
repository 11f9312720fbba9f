"""Chromium for tests that look at pages, and what axe-core finds on them; both are set up by `make test-browser`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
AXE = Path(__file__).parents[1] / ".venv" / "package" / "axe.min.js"


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; where there is none, whoever asks is skipped with a line that says so."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright; run make test-browser")
    if CHROMIUM is None:
        pytest.skip("needs Chromium; run make test-browser")
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def serious(page: Any) -> list[str]:
    """What axe-core calls serious or critical on a page as it stands."""
    if not AXE.exists():
        pytest.skip("needs axe-core; run make test-browser")
    page.evaluate(f"() => {{ {AXE.read_text()} }}")  # not as a script of the page, whose policy would refuse it
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    wrong = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    return [f"{v['id']}: {node['target']} {node['failureSummary']}" for v in wrong for node in v["nodes"]]
