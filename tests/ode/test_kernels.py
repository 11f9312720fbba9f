"""The compiled loops are built once, in any place that can be written to, by whatever C compiler there is."""

import os
import subprocess
import sys

import numpy as np
import pytest

from odinfer.ode.kernels.build import file_name
from odinfer.ode.kernels.library import call

SOLVE = """
from pathlib import Path
import numpy as np
from odinfer.ode.kernels import library
from odinfer.ode.interpreter import solve_equations
library.FOLDER = Path("nowhere")
print(solve_equations(np.array([[2.0]]), np.ones(1), np.ones((1, 1)))[0][0])
"""


def solved(**env):
    """Start a process that has no library of the installation, and needs one."""
    every = {name: value for name, value in os.environ.items() if name != "CC"} | {"LC_ALL": "tr_TR.UTF-8"} | env
    return subprocess.Popen(
        [sys.executable, "-c", SOLVE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=every
    )


def test_several_processes_may_build_at_once_and_leave_one_library(tmp_path):
    every = [solved(XDG_CACHE_HOME=str(tmp_path)) for _ in range(4)]
    assert [process.communicate() for process in every] == [("0.5\n", "")] * 4
    assert [path.name for path in (tmp_path / "odinfer" / "kernels").iterdir()] == [file_name()]


def test_the_loops_work_where_no_cache_can_be_written_to(tmp_path):
    (tmp_path / "file").touch()
    assert solved(XDG_CACHE_HOME=str(tmp_path / "file")).communicate() == ("0.5\n", "")


def test_without_library_and_compiler_the_message_says_what_to_do(tmp_path):
    _, error = solved(XDG_CACHE_HOME=str(tmp_path), CC=str(tmp_path / "no-compiler")).communicate()
    assert "odinfer.errors.InputError: this needs the compiled loops" in error
    assert "the C compiler cannot be started" in error


@pytest.mark.parametrize("wrong", [np.zeros((2, 2), np.float32), np.zeros((4, 2))[::2]])
def test_arrays_of_another_type_or_with_gaps_are_refused(wrong):
    with pytest.raises(TypeError, match="contiguous arrays"):
        call("solve_equations", wrong)
