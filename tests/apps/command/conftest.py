"""What the tests of the command share: a cache of their own, and one fit that several look at."""

import pytest

from apps.command.commands import Run, odinfer
from odinfer.apps.command import example


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """Compiled code of the tests stays out of the user's cache, and the first fit is a cold one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("fit")
    example.write("lotka_volterra", folder)
    return odinfer("fit", "lotka_volterra.ode", "lotka_volterra.csv", "--truth", "truth.json", cwd=folder)
