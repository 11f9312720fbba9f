"""The studio as a user starts it: the real command in a process of its own, asked over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from apps.command.commands import MAIN


class Running:
    """A studio with the cookie of whoever has opened its link, and a session per tab."""

    def __init__(self, *arguments: object, projects: Path | None = None) -> None:
        command = [sys.executable, "-c", MAIN, "studio", "--no-open", *map(str, arguments)]
        self._own = tempfile.mkdtemp() if projects is None else ""  # not those of whoever runs the tests
        env = {**os.environ, "XDG_STATE_HOME": str(projects or self._own)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", self.url)
        assert found, self.process.stderr and self.process.stderr.read()
        self.port, self.token = int(found[1]), found[2]
        self.host = f"127.0.0.1:{self.port}"
        self.cookie = ""

    def ask(
        self, method: str, path: str, body: bytes = b"", **headers: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """A request as the page makes it, but for the headers given; None leaves one out."""
        every = {"Host": self.host, "Origin": f"http://{self.host}", "Cookie": self.cookie, **headers}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in every.items():
            if value is not None:
                connection.putheader(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        with contextlib.suppress(OSError):  # refused before all of it was sent
            connection.send(body)
        response = connection.getresponse()
        found = response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        connection.close()
        return found

    def login(self) -> None:
        status, headers, _ = self.ask("GET", f"/?token={self.token}")
        assert status == 200
        self.cookie = headers["set-cookie"].partition(";")[0]

    def tab(self) -> Tab:
        return Tab(self, json.loads(self.ask("POST", "/api/session")[2])["id"])

    def stop(self) -> tuple[int, str]:
        self.process.terminate()
        _, errors = self.process.communicate(timeout=30)
        if self._own:
            shutil.rmtree(self._own)
        return self.process.returncode, errors


class Tab:
    def __init__(self, studio: Running, key: str) -> None:
        self.studio, self.key = studio, key

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        sent = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        status, got, content = self.studio.ask(method, path, sent, X_Session=self.key, **headers)
        return status, json.loads(content) if got["content-type"] == "application/json" else content

    def upload(self, name: str, content: bytes) -> tuple[int, Any]:
        return self.ask("POST", "/api/data", content, X_Name=name)

    def run(self, kind: str, *models: tuple[str, str], choice: Any = None) -> dict[str, Any]:
        """A job, to its end."""
        order = {"kind": kind, "models": [{"name": n, "text": t} for n, t in models], "choice": choice}
        status, job = self.ask("POST", "/api/jobs", order)
        assert status == 200, job
        found: dict[str, Any] = {}
        for line in self.ask("GET", f"/api/jobs/{job['id']}/stream")[1].splitlines():
            found |= json.loads(line)
        return found

    def files(self, job: dict[str, Any], folder: Path) -> None:
        for name in job["files"]:
            (folder / name).write_bytes(self.ask("GET", f"/api/jobs/{job['id']}/files/{quote(name)}")[1])
