"""What tests of the page do on it, over and over."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

LONG = 90_000  # milliseconds, for fits on machines that have other things to do


def example(page: Any, words: str) -> None:
    page.click(f"#examples button:has-text('{words}')")
    page.wait_for_selector(".chart canvas")
    page.wait_for_function("() => Number(document.body.dataset.drawn) > 0")


def fit(page: Any) -> None:
    page.click("#fit")
    page.wait_for_selector("#verdict:not([hidden])", timeout=LONG)


def pixels(page: Any, selector: str = ".chart canvas") -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(page.locator(selector).first.screenshot())).convert("RGB")).astype(int)


def type_model(page: Any, text: str) -> None:
    page.fill("#editor textarea", text)


def drop(page: Any, name: str, rows: str) -> None:
    """A file, brought to the page."""
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": rows.encode()})
