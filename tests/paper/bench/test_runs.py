"""A run has a key made of everything that determines its result, and of nothing else."""

import dataclasses
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.paper.bench.runs import Run

OPTIONS = st.dictionaries(
    st.text(max_size=5), st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=4
)


def test_equal_runs_have_equal_keys_and_any_change_changes_the_key(paper):
    run = paper.cells[0].run(7)
    assert run.key == paper.cells[0].run(7).key
    other = {
        "system": {"name": "fitzhugh_nagumo"}, "noise": 0.2, "candidate": {"name": "m", "equations": "x' = x"},
        "method": "gpr", "preset": "default", "options": {"kernel": "rbf"}, "seed": 8, "version": "0.0.0",
    }  # fmt: skip
    assert set(other) == {f.name for f in dataclasses.fields(Run)}
    keys = {dataclasses.replace(run, **{name: value}).key for name, value in other.items()}
    assert len(keys | {run.key}) == len(other) + 1


@settings(max_examples=25, deadline=None)
@given(options=OPTIONS, seed=st.integers(0, 10**6))
def test_the_order_of_options_does_not_matter_and_a_key_survives_the_way_to_a_worker(options, seed):
    def run(given):
        return Run({"name": "decay"}, 0.1, None, "odin", "default", given, seed)

    key = run(options).key
    assert run(dict(reversed(options.items()))).key == key
    assert pickle.loads(pickle.dumps(run(options))).key == key
    assert len(key) == 64
    assert int(key, 16) >= 0
