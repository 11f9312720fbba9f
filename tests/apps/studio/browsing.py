"""What tests of the page do on it, over and over."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
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


def still(page: Any) -> None:
    """Wait until curves have stopped to change."""
    page.evaluate(
        """() => new Promise((done) => {
          let last = null;
          const look = () => {
            const now = document.body.dataset.drawn;
            if (now === last) return done();
            last = now;
            setTimeout(look, 100);
          };
          look();
        })"""
    )


def guessed(page: Any) -> None:
    """Wait until the sliders of prey and predators stand where the data suggest, and the curve with them."""
    page.wait_for_function("() => document.querySelector(`[aria-label='Value of a']`)?.value === '2.02'")
    still(page)


def box_of(page: Any, selector: str) -> dict[str, float]:
    """Where the first such element is, scrolled into view: in one step, since the page may replace it at any time."""
    return page.wait_for_function(
        """(selector) => {
          const element = document.querySelector(selector);
          element?.scrollIntoViewIfNeeded();
          const { x, y, width, height } = element?.getBoundingClientRect() ?? {};
          return width > 0 && height > 0 && { x, y, width, height };
        }""",
        arg=selector,
    ).json_value()


def pixels(page: Any, selector: str = ".chart canvas") -> np.ndarray:
    from PIL import Image

    picture = page.screenshot(clip=box_of(page, selector))
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int)


def differing(page: Any, before: np.ndarray, selector: str = ".chart canvas") -> int:
    """How many pixels are no longer what they were."""
    now = pixels(page, selector)
    return int((np.abs(before - now).sum(-1) > 60).sum()) if now.shape == before.shape else before.size


def until(page: Any, condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG / 1000
    while not condition():
        assert time.monotonic() < end
        page.wait_for_timeout(30)


def type_model(page: Any, text: str) -> None:
    page.fill("#editor textarea", text)


def drop(page: Any, name: str, rows: str) -> None:
    """A file, brought to the page."""
    page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": rows.encode()})
