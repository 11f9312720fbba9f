"""One studio that most tests ask; each has a tab of its own."""

import shutil

import pytest

from apps.studio.browsing import LONG
from apps.studio.running import Running
from browsers import chromium


@pytest.fixture(scope="session")
def studio():
    running = Running()
    running.login()
    yield running
    code, errors = running.stop()
    assert (code, errors) == (0, "")


@pytest.fixture
def tab(studio):
    return studio.tab()


@pytest.fixture(scope="session")
def node():
    if shutil.which("node") is None:
        pytest.skip("needs node, to run what the page runs")
    from apps.studio.node import Node

    with Node() as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def context(browser, studio):
    """A browser that has the cookie of whoever has opened the link; every test has a tab of its own."""
    found = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    name, _, value = studio.cookie.partition("=")
    found.add_cookies([{"name": name, "value": value, "url": f"http://{studio.host}"}])
    yield found
    found.close()


@pytest.fixture
def page(context, studio):
    """A new tab; nothing may go wrong on it unseen, and nothing may leave the machine."""
    found = context.new_page()
    found.set_default_timeout(LONG)
    faults: list[str] = []
    away: list[str] = []
    home = f"http://{studio.host}/"
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    found.on("request", lambda r: None if r.url.startswith((home, f"blob:{home}", "data:")) else away.append(r.url))
    found.expected = []  # type: ignore[attr-defined]
    found.goto(home)
    found.wait_for_selector("#examples button")
    yield found
    assert [f for f in faults if not any(words in f for words in found.expected)] == []  # type: ignore[attr-defined]
    assert away == []
    found.close()
