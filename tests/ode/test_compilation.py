"""Compiled functions are kept for the next process where that is possible, and work where it is not."""

import subprocess
import sys

import pytest

WITHOUT_PLACE = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
from odinfer.ode.compilation import compiled

@compiled
def double(x):
    return 2.0 * x

print(double(21.0))
"""
FIT = """
import odinfer as od
data = od.Data([0, 1, 2, 3, 4, 5], [3.0, 1.9, 1.1, 0.7, 0.45, 0.25], states=["x"])
print(od.fit(od.Model.from_text("x' = -k*x; x(0) = 3"), data).status)
"""


def test_functions_are_compiled_where_no_place_can_be_written_to():
    run = subprocess.run([sys.executable, "-c", WITHOUT_PLACE], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("42.0\n", "")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_four_processes_may_compile_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    command = [sys.executable, "-c", FIT]
    every = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate() for process in every] == [("converged\n", "")] * 4
    assert list(tmp_path.rglob("*.nbi"))
