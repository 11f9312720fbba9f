"""The store: what is written stays, whatever happens to the process, to its neighbours or to the disk."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odinfer.errors import InputError
from odinfer.parallel.store import DAMAGED, LOG, Store, canonical


def record(key: str, value: float = 1.0) -> dict:
    return {"key": key, "run": {"seed": 1}, "outcome": {"status": "converged", "x": value}, "timing": {"seconds": 0.1}}


def filled(folder, keys="abc") -> None:
    with Store(folder, create=True) as store:
        for key in keys:
            store.add([record(key)])


def test_what_is_added_is_read_back(tmp_path):
    filled(tmp_path / "new" / "deep")
    store = Store(tmp_path / "new" / "deep")
    assert {k: r["outcome"] for k, r in store.records.items()} == dict.fromkeys("abc", record("a")["outcome"])


def test_a_result_can_be_replaced_and_forgotten(tmp_path):
    with Store(tmp_path, create=True) as store:
        store.add([record("a"), record("b")])
        store.add([record("a", 2.0)])
        store.forget(["b"])
    again = Store(tmp_path)
    assert list(again.records) == ["a"]
    assert again.records["a"]["outcome"]["x"] == 2.0


def test_a_run_is_claimed_once(tmp_path):
    with Store(tmp_path, create=True) as one, Store(tmp_path, create=True) as two:
        assert one.claim(["a", "b"]) == ["a", "b"]
        assert two.claim(["a", "c"]) == ["c"]
        assert two.busy() == {"a", "b"}
        one.add([record("a")])
        assert two.claim(["a"]) == []
    with Store(tmp_path) as three:  # both have left: what they did not finish is free
        assert three.claim(["a", "b", "c"]) == ["b", "c"]


def test_claims_of_a_dead_process_are_free(tmp_path):
    code = (
        f"from odinfer.parallel.store import Store; import os; s = Store({str(tmp_path)!r}, create=True);"
        "s.__enter__(); print(s.claim(['a']), flush=True); os.kill(os.getpid(), 9)"
    )
    dead = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert dead.stdout.strip() == "['a']"
    with Store(tmp_path) as store:
        assert store.claim(["a"]) == ["a"]


def test_a_silent_claim_of_another_machine_is_free_after_a_while(tmp_path):
    with Store(tmp_path, create=True) as store:
        for name, seen in (("old", 0.0), ("new", 4e9)):
            owner = {"kind": "owner", "owner": name, "host": "elsewhere", "pid": 1, "born": "1", "seen": seen}
            store._append([owner, {"kind": "claim", "owner": name, "keys": [f"of {name}"], "seen": seen}])
        assert store.claim(["of old", "of new"]) == ["of old"]


def test_a_damaged_record_is_set_aside_and_counts_as_not_done(tmp_path):
    filled(tmp_path)
    log = tmp_path / LOG
    lines = log.read_bytes().split(b"\n")
    at = next(i for i, line in enumerate(lines) if b'"key":"b"' in line)
    lines[at] = lines[at].replace(b'"seconds":0.1', b'"seconds":0.7')
    log.write_bytes(b"\n".join(lines))
    assert set(Store(tmp_path).records) == {"a", "c"}
    with Store(tmp_path) as store:
        assert store.damaged == 1
        assert store.claim(["a", "b", "c"]) == ["b"]
        store.add([record("b")])
    assert b'"seconds":0.7' in (tmp_path / DAMAGED).read_bytes()
    with Store(tmp_path) as store:
        assert store.damaged == 0
        assert set(store.records) == set("abc")


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_no_damage_to_one_place_costs_more_than_the_line_it_hits(tmp_path_factory, where, change):
    folder = tmp_path_factory.mktemp("store")
    filled(folder, "abcdef")
    log = folder / LOG
    content = bytearray(log.read_bytes())
    content[int(where * len(content))] ^= change
    log.write_bytes(content)
    with Store(folder) as store:
        # A line's end that is hit joins two lines.
        assert len(store.records) >= (5 if bytes(content).count(b"\n") >= 8 else 4)
        assert all(r["outcome"] == record("a")["outcome"] for r in store.records.values())
        store.add([record("new")])
    assert "new" in Store(folder).records


@pytest.mark.parametrize("left", [1, 40, 150])
def test_a_line_that_was_cut_off_costs_only_itself(tmp_path, left):
    filled(tmp_path, "ab")
    log = tmp_path / LOG
    with Store(tmp_path) as open_before:
        size = len(log.read_bytes())
        open_before.add([record("c")])
        os.truncate(log, size + left)
        open_before.add([record("d")])
        assert set(Store(tmp_path).records) == {"a", "b", "d"}
    with Store(tmp_path) as store:
        assert store.damaged == 1
        assert set(store.records) == {"a", "b", "d"}


def test_a_store_that_cannot_be_written_to_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write to the store .*choose another place"):
        Store(tmp_path / "file" / "runs", create=True)
    with pytest.raises(InputError, match="there are no results in"):
        Store(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()


def test_a_full_disk_leaves_what_was_stored(tmp_path):
    filled(tmp_path)
    size = (tmp_path / LOG).stat().st_size
    code = f"""
import resource
from odinfer.parallel.store import Store
from odinfer.errors import InputError
store = Store({str(tmp_path)!r})
store.__enter__()
resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 900}, {size + 900}))
try:
    for i in range(100):
        store.add([{{"key": str(i), "run": {{}}, "outcome": {{}}, "timing": {{}}}}])
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "cannot write to the store" in done.stdout, done.stderr
    assert "results in it are safe" in done.stdout
    with Store(tmp_path) as store:
        assert store.damaged == 0  # what did not fit was taken back
        assert set("abc") <= set(store.records)
        assert len(store.records) > 3
        store.add([record("z")])


@settings(max_examples=50, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
                    | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_canonical_text_is_the_same_for_equal_contents_and_reads_back(content):
    text = canonical(content)
    assert json.loads(text) == content
    assert "\n" not in text
    if isinstance(content, dict):
        assert canonical(dict(reversed(content.items()))) == text
