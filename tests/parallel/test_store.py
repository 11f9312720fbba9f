"""The store: what is written stays, whatever happens to the process, to its neighbours or to the disk."""

import json
import os
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.attacks import check_line
from odinfer.errors import InputError
from odinfer.parallel.store import DATABASE, Store, canonical
from stores import damage, execute


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


def test_a_result_can_be_replaced_and_forgotten_and_open_stores_see_it(tmp_path):
    reader = Store(tmp_path, create=True)
    with Store(tmp_path) as store:
        store.add([record("a"), record("b")])
        reader.refresh()
        assert list(reader.records) == ["a", "b"]
        store.add([record("a", 2.0)])
        store.forget(["b"])
        store.add_grid({"title": "one"})
    reader.refresh()
    for found in (store, reader, Store(tmp_path)):
        assert list(found.records) == ["a"]
        assert found.records["a"]["outcome"]["x"] == 2.0
        assert found.grids == [{"title": "one"}]


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
        for name, seen in (("old", time.time() - 4000), ("new", time.time())):
            execute(tmp_path, "INSERT INTO process VALUES (?, 'elsewhere', 1, '1', ?)", name, seen)
            execute(tmp_path, "INSERT INTO claim VALUES (?, ?)", f"of {name}", name)
        assert store.claim(["of old", "of new"]) == ["of old"]


def test_a_process_killed_at_any_moment_leaves_every_result_it_had_stored(tmp_path):
    code = f"""
from odinfer.parallel.store import Store
with Store({str(tmp_path)!r}, create=True) as store:
    for i in range(100_000):
        store.add([{{"key": str(i), "run": {{}}, "outcome": {{"x": [i] * 500}}, "timing": {{}}}}])
        print(i, flush=True)
"""
    for delay in (0.0, 0.003, 0.0071, 0.013):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay)
            process.kill()
            reported = [0, *map(int, process.stdout.read().split())]
        with Store(tmp_path) as store:
            assert store.damaged == 0
            assert {*map(str, reported)} <= set(store.records)
            assert all(r["outcome"]["x"] == [int(key)] * 500 for key, r in store.records.items())


def test_a_damaged_record_counts_as_not_done(tmp_path):
    filled(tmp_path)
    execute(tmp_path, "UPDATE record SET content = replace(content, '0.1', '0.7') WHERE key = 'b'")
    assert set(Store(tmp_path).records) == {"a", "c"}
    with Store(tmp_path) as store:
        assert store.damaged == 1
        assert store.claim(["a", "b", "c"]) == ["b"]
        store.add([record("b")])
    with Store(tmp_path) as store:
        assert store.damaged == 0
        assert set(store.records) == set("abc")
    damage(tmp_path, '"key":"a"', '"key":"c"')
    assert set(Store(tmp_path).records) == {"b", "c"}


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    filled(folder, "abcdef")
    return (folder / DATABASE).read_bytes()


@settings(max_examples=100, deadline=None)
@given(st.floats(0, 1, exclude_max=True), st.integers(1, 255), st.floats(0, 2))
def test_a_damaged_file_gives_only_right_records_or_one_line(tmp_path_factory, content, where, change, length):
    folder = tmp_path_factory.mktemp("store")
    damaged = bytearray(content)
    damaged[int(where * len(content))] ^= change
    (folder / DATABASE).write_bytes(damaged[: int(length * len(content))])
    try:
        with Store(folder) as store:
            assert all(r["outcome"] == record("a")["outcome"] for r in store.records.values())
            store.claim(["a", "new"])
            store.add([record("new")])
    except InputError as error:
        check_line(str(error))


def test_a_database_of_something_else_is_refused(tmp_path):
    execute(tmp_path, "CREATE VIEW record AS SELECT 1 AS id, '' AS key, '' AS digest, '' AS content")
    with pytest.raises(InputError, match="is not a store of this version"):
        Store(tmp_path)
    with pytest.raises(InputError, match="is not a store of this version"):
        Store(tmp_path, create=True)
    (tmp_path / DATABASE).write_bytes(b"no database " * 1000)
    with pytest.raises(InputError, match=r"cannot read the store .*file is not a database"):
        Store(tmp_path)


def test_a_store_that_cannot_be_written_to_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write to the store .*choose another place"):
        Store(tmp_path / "file" / "runs", create=True)
    with pytest.raises(InputError, match="there are no results in"):
        Store(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_of_somebody_else_can_be_read(tmp_path):
    filled(tmp_path)
    (tmp_path / DATABASE).chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert set(Store(tmp_path).records) == set("abc")
    finally:
        tmp_path.chmod(0o755)


def test_a_full_disk_leaves_what_was_stored(tmp_path):
    filled(tmp_path)
    size = (tmp_path / DATABASE).stat().st_size + 8192
    code = f"""
import resource
from odinfer.parallel.store import Store
from odinfer.errors import InputError
store = Store({str(tmp_path)!r})
store.__enter__()
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
try:
    for i in range(1000):
        store.add([{{"key": str(i), "run": {{}}, "outcome": {{}}, "timing": {{}}}}])
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "cannot write to the store" in done.stdout, done.stderr
    assert "results in it are safe" in done.stdout
    with Store(tmp_path) as store:
        assert store.damaged == 0
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


def test_a_schema_that_is_no_text_is_one_line(tmp_path):
    filled(tmp_path)
    content = (tmp_path / DATABASE).read_bytes()
    (tmp_path / DATABASE).write_bytes(content.replace(b"CREATE TABLE claim", b"CREATE TABLE cl\xd6\xd6\xd6"))
    with pytest.raises(InputError, match="cannot read the store") as caught:
        Store(tmp_path)
    check_line(str(caught.value))
