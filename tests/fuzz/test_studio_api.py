"""Whatever is sent to the studio is answered, or refused in one line; never by an internal error."""

import json
import random

import pytest

from apps.studio.running import Running
from fuzz.attacks import LENGTHS, ODD, SEEDS, attack, check_line, spoilt

DECAY = "x' = -k*x\nx(0) = 5\n"
ROWS = b"time,x\n0,5\n1,3.4\n2,2.5\n3,1.7\n4,1.2\n"
CHOICE = {"time": "time", "names": {"x": "x"}, "sd": {}}
MODEL = {"name": "m", "text": DECAY}
REQUESTS = {
    "/api/example": {"name": "decay"}, "/api/table": CHOICE, "/api/understand": {**MODEL, "choice": CHOICE},
    "/api/guess": {**MODEL, "choice": CHOICE}, "/api/page": {"models": [MODEL], "choice": CHOICE},
    "/api/jobs": {"kind": "compare", "models": [MODEL, MODEL], "choice": CHOICE},
}  # fmt: skip


@pytest.fixture(scope="module")
def studio():
    running = Running()
    running.login()
    yield running
    assert running.stop() == (0, "")


def ask_anything(studio: Running, seed: int) -> None:
    rng, tab = random.Random(seed), studio.tab()
    assert tab.upload("d.csv", ROWS)[0] == 200
    path = rng.choice(list(REQUESTS))
    body = spoilt(REQUESTS[path], seed)
    method = "PUT" if path == "/api/page" else "POST"
    sent = json.dumps(body).encode()
    if rng.random() < 0.2:
        sent = sent[: rng.randrange(len(sent) + 1)] + bytes([rng.randrange(256)])
    status, found = tab.ask(method, path, sent)
    assert status in (200, 400, 413), (path, sent, found)
    if status != 200:
        check_line(found["error"])
    if path == "/api/jobs" and status == 200:
        tab.ask("DELETE", f"/api/jobs/{found['id']}")
    assert tab.ask("GET", "/api/session")[0] == 200
    name = "".join(rng.choice("ab./%\\é\0 ") for _ in range(8)).encode("unicode_escape").decode().replace(" ", "+")
    for address in (f"/static/{name}", f"/model/{name}.js", f"/api/jobs/{name}/files/{name}"):
        assert tab.ask("GET", address.replace("\\", "%5c").replace("%", "%25"))[0] in (200, 400, 404)


@LENGTHS
def test_any_request_is_answered(times: int, studio: Running):
    attack(lambda seed: ask_anything(studio, seed), times, 15, seed=SEEDS)


@pytest.mark.parametrize("odd", [o for o in ODD if isinstance(o, str)])
def test_any_name_of_a_file_is_taken_or_refused(odd: str, studio: Running):
    tab = studio.tab()
    name = odd.encode("utf-8", "surrogatepass").hex("%", 1)
    status, found = tab.upload(f"%{name}.csv" if name else ".csv", ROWS)
    assert status in (200, 400), found
