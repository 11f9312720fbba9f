"""Models from text are fitted, simulated and written without JAX; what needs it says how to get it."""

import subprocess
import sys

import pytest

BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib", "blackjax"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import odinfer as od
"""
LV = """
data = od.systems.lotka_volterra.sample(0.1, 1)
fit = od.fit(od.systems.lotka_volterra.model, data)
assert fit.converged
"""


def run(code, folder):
    return subprocess.run([sys.executable, "-c", BLOCK + code], cwd=folder, capture_output=True, text=True)


def test_profiles_bootstraps_and_simulations_need_no_jax(tmp_path):
    code = "fit.profile('a'); fit.bootstrap(10); od.simulate(fit.problem.model, fit.theta, [1, 1], [0, 1])"
    done = run(LV + code, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_demo_writes_all_its_files_without_jax(tmp_path):
    command = """
from odinfer.apps.command import main
for line in ("example lotka_volterra .", "fit lotka_volterra.ode lotka_volterra.csv -o . --truth truth.json"):
    sys.argv = ["odinfer", *line.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
"""
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"report.html", "fit.json"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "code",
    [
        (
            'model = od.Model.from_text("x\' = -k*x")\n'
            "od.Problem(model, od.Data([0, 1, 2, 3], [4, 3, 2, 1], ['x']), prior={'k': lambda k: -k})"
        ),
        LV + "fit.sample()",
    ],
    ids=["a prior that is a function", "sampling"],
)
def test_what_needs_jax_says_how_to_get_it_in_one_line(code, tmp_path):
    done = run(code, tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("odinfer.errors.InputError")
    assert "pip install 'odinfer[sample]'" in last
