"""Who is refused: forged hosts and origins, whoever has no token, and whoever sends too much."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest

from apps.command.commands import MAIN
from apps.studio.running import Running
from odinfer.apps.studio import access


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
@pytest.mark.parametrize("path", ["/", "/api/session", "/static/app.js"])
def test_a_forged_host_gets_nothing(studio, host, path):
    status, headers, body = studio.ask("GET", path, Host=host.format(port=studio.port))
    assert status in (400, 403)  # the first from the server itself, of what is no host at all
    assert b"script" not in body
    assert "set-cookie" not in headers


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", None]
)
def test_a_forged_or_missing_origin_changes_nothing(studio, origin):
    origin = origin and origin.format(port=studio.port)
    assert studio.ask("POST", "/api/session", Origin=origin)[0] == 403


def test_other_names_of_this_machine_are_fine(studio):
    host = f"localhost:{studio.port}"
    assert studio.ask("POST", "/api/session", Host=host, Origin=f"http://{host}")[0] == 200


def test_a_page_of_another_site_on_this_machine_is_refused(studio):
    assert studio.ask("POST", "/api/session", Sec_Fetch_Site="cross-site")[0] == 403
    assert studio.ask("POST", "/api/session", Sec_Fetch_Site="same-site")[0] == 403


@pytest.mark.parametrize("cookie", [None, "", "odinfer-{port}=wrong", "odinfer-1=x", "\xff=;;", "odinfer-{port}="])
@pytest.mark.parametrize("path", ["/", "/api/session", "/static/app.js", "/model/x.js"])
def test_without_the_cookie_everything_is_refused(studio, cookie, path):
    cookie = cookie and cookie.format(port=studio.port)
    status, headers, body = studio.ask("GET", path, Cookie=cookie)
    assert status == 403
    assert "set-cookie" not in headers
    assert b"terminal" in body


def test_the_token_works_once_and_a_wrong_one_never():
    running = Running()
    assert running.ask("GET", "/?token=wrong")[0] == 403
    assert running.ask("GET", f"/api/session?token={running.token}")[0] == 403
    assert running.ask("POST", f"/?token={running.token}")[0] == 403
    _, headers, body = running.ask("GET", f"/?token={running.token}")
    assert b'content="0; url=/"' in body  # no redirect, after which browsers keep strict cookies back
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    running.cookie = cookie.partition(";")[0]
    again = running.ask("GET", f"/?token={running.token}", Cookie=None)
    assert again[0] == 403
    assert b"used already" in again[2]
    known = running.ask("GET", f"/?token={running.token}")
    assert (known[0], known[1]["location"]) == (303, "/")
    assert running.stop() == (0, "")


def test_no_script_but_the_pages_own_can_run(studio):
    for path in ("/", "/static/app.js", "/api/session"):
        policy = studio.ask("GET", path)[1]["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    page = studio.ask("GET", "/")[2].decode()
    assert "<script>" not in page
    assert "style=" not in page
    assert " on" + "click" not in page


def test_too_much_is_refused_before_it_is_read(studio, tab):
    large = str(access.MAX_UPLOAD + 1)
    assert studio.ask("POST", "/api/data", b"time,x\n", X_Session=tab.key, Content_Length=large)[0] == 413
    assert studio.ask("PUT", "/api/page", b"x" * (access.MAX_REQUEST + 1), X_Session=tab.key)[0] == 413
    assert studio.ask("POST", "/api/data", b"x", X_Session=tab.key, Content_Length="-5")[0] in (400, 413)


def test_too_much_without_a_length_is_refused_as_well(studio, tab):
    headers = {"Host": studio.host, "Origin": f"http://{studio.host}", "Cookie": studio.cookie, "X-Session": tab.key}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", studio.port, timeout=60)) as connection:
        connection.putrequest("PUT", "/api/page", skip_host=True)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            connection.putheader(name, value)
        connection.endheaders()
        with contextlib.suppress(OSError):  # refused before all of it was sent
            for _ in range(5):
                connection.send(b"%x\r\n" % 1_000_000 + b"x" * 1_000_000 + b"\r\n")
            connection.send(b"0\r\n\r\n")
        assert connection.getresponse().status == 413


def test_a_websocket_is_refused(studio):
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "eA==",
    }
    assert studio.ask("GET", "/api/session", **upgrade)[0] in (400, 403, 410, 426)


def test_what_is_not_loopback_is_known():
    assert all(map(access.is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1")))
    assert not any(map(access.is_loopback, ("0.0.0.0", "192.168.1.2", "::", "example.org", "127.0.0.1.example.org")))


def test_an_open_host_warns():
    command = [sys.executable, "-c", MAIN, "studio", "--no-open", "--host", "0.0.0.0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "token=" in process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=30)
    assert errors.startswith("warning: whoever reaches 0.0.0.0")


def test_other_users_do_not_see_the_token_in_the_command_line_of_the_browser(tmp_path):
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o700)
    env = {**os.environ, "BROWSER": str(browser), "XDG_STATE_HOME": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "studio"], stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        token = process.stdout.readline().strip().partition("token=")[2]
        while not opened.exists():
            time.sleep(0.02)
        address = opened.read_text()
        link = Path(url2pathname(urlparse(address.strip()).path))
        assert token not in address
        assert f"token={token}" in link.read_text()
        assert link.stat().st_mode & 0o077 == 0
        process.terminate()


def test_answers_are_json_or_files_never_pages_of_the_user(tab):
    status, found = tab.ask("GET", "/api/session")
    assert status == 200
    assert json.dumps(found)
