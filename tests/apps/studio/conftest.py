"""One studio that most tests ask; each has a tab of its own."""

import shutil

import pytest

from apps.studio.running import Running


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
