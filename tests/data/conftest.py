"""What the tests of tables share: a file of some content."""

from pathlib import Path

import pytest


@pytest.fixture
def csv_file(tmp_path: Path):
    def write(content: str | bytes) -> Path:
        path = tmp_path / "data.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
