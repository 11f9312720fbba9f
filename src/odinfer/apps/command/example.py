"""`odinfer example`: list and copy the models and data that ship with the package."""

from __future__ import annotations

from pathlib import Path

from odinfer.errors import InputError, nearest

FOLDER = Path(__file__).parent / "examples"


def names() -> dict[str, str]:
    """Name → what it shows, the first line of its model."""
    files = sorted(FOLDER.glob("*.ode"))
    return {f.stem: f.read_text("utf-8").partition("\n")[0].lstrip("# ") for f in files}


def content(name: str) -> tuple[str, bytes]:
    """The text and the data of an example."""
    return (FOLDER / f"{name}.ode").read_text("utf-8"), (FOLDER / f"{name}.csv").read_bytes()


def write(name: str, folder: Path, force: bool = False) -> list[Path]:
    """Copy an example's model, data and true or published parameters to a folder.

    Args:
        name: one of `names()`.
        folder: made if need be.
        force: replace files of the same name that differ.

    Raises:
        InputError: no such example, or a different file of the same name is there.
    """
    if name not in names():
        raise InputError(f"there is no example '{name}'{nearest(name, names())}")
    (answer,) = FOLDER.glob(
        f"{name}.*.json"
    )  # truth.json of data that were drawn, published.json of those that were not
    contents = {
        folder / f"{name}.ode": (FOLDER / f"{name}.ode").read_bytes(),
        folder / f"{name}.csv": (FOLDER / f"{name}.csv").read_bytes(),
        folder / answer.name.removeprefix(f"{name}."): answer.read_bytes(),
    }
    try:
        for path, content in contents.items():
            if not force and path.exists() and path.read_bytes() != content:
                raise InputError(f"'{path}' exists and differs; choose another folder or --force to replace it")
        folder.mkdir(parents=True, exist_ok=True)
        for path, content in contents.items():
            path.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot write to '{folder}': {error.strerror}") from None
    return list(contents)
