"""SBML documents: load a file safely and flatten hierarchical models (package comp)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from odinfer.errors import InputError
from odinfer.io import libsbml
from odinfer.io.limits import check_xml, checked_bytes, inside

_PACKAGES = ("comp", "qual", "multi", "spatial", "arrays", "distrib", "dyn")  # which change the meaning of a model
_CORE = "http://www.sbml.org/sbml/level"
_NAMESPACES = {("1", "1"): f"{_CORE}1", ("1", "2"): f"{_CORE}1", ("2", "1"): f"{_CORE}2"}
_NAMESPACES |= {("2", v): f"{_CORE}2/version{v}" for v in "2345"}
_NAMESPACES |= {("3", v): f"{_CORE}3/version{v}/core" for v in "12"}
_PACKAGE = re.compile(rf"{re.escape(_CORE)}3/version[12]/[a-z]+/version[1-9]")
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_MOST_SUBMODELS = 1_000  # instances in a flattened hierarchical model
_FLATTEN_SECONDS = 60.0  # of wall-clock time
_FLATTEN = """
import pathlib, sys, libsbml
path = pathlib.Path(sys.argv[1])
document = libsbml.readSBMLFromString(path.read_text("utf-8", "replace"))
document.setLocationURI(path.as_uri())
options = libsbml.ConversionProperties()
options.addOption("flatten comp", True)
options.addOption("performValidation", False)
options.addOption("abortIfUnflattenable", "none")
if document.convert(options) != libsbml.LIBSBML_OPERATION_SUCCESS:
    sys.exit(1)
sys.stdout.buffer.write(libsbml.writeSBMLToString(document).encode())
"""
_MOST_FILES = 20  # that a hierarchical model consists of


def load_document(path: Path) -> Any:
    """Load the SBML document in a file; hierarchical models are flattened.

    Raises:
        InputError: the file cannot be read, is no valid SBML, or uses a package that cannot be read.
    """
    lib, content = libsbml(), checked_bytes(path)
    document = _parse(content, path.name)
    _check_errors(document, path.name)
    if document.getModel() is None:
        raise InputError(f"{path.name} is no SBML file with a model")
    if document.getPlugin("comp") is not None and _uses(document, "comp", content):
        document = _flatten(document, path)
        content = lib.writeSBMLToString(document).encode()
    for package in _PACKAGES:
        if document.getPlugin(package) is not None and _uses(document, package, content):
            raise InputError(f"{path.name}: the package '{package}' of SBML cannot be read; only its core can")
    return document


def listed(items: Any) -> list[Any]:
    """The elements of a list of libsbml."""
    return [items.get(i) for i in range(items.size())] if items is not None else []


def _parse(content: bytes, where: str) -> Any:
    """The document of a file; libsbml ends the process at namespaces that it does not know, so they come first."""
    name, attributes = check_xml(content, where)
    level, version = attributes.get("level", "").strip(), attributes.get("version", "").strip()
    if name.rpartition(":")[2] != "sbml":
        raise InputError(f"{where} is no SBML file with a model")
    if (level, version) not in _NAMESPACES:
        choices = ", ".join(f"{a}.{b}" for a, b in _NAMESPACES)
        raise InputError(
            f"{where}: level {level[:9]!r}, version {version[:9]!r} of SBML cannot be read; those that can: {choices}"
        )
    prefix = name.rpartition(":")[0]
    if attributes.get(f"xmlns:{prefix}" if prefix else "xmlns") != _NAMESPACES[level, version]:
        raise InputError(f"{where}: the namespace does not belong to level {level}, version {version} of SBML")
    for key, value in attributes.items():
        known = value in _NAMESPACES.values() or _PACKAGE.fullmatch(value)
        if key.startswith("xmlns:") and "sbml.org/sbml/level" in value and not known:
            raise InputError(f"{where}: the namespace {value[:80]!r} is no package of SBML")
    text = content.decode("utf-8-sig", "replace")
    return libsbml().readSBMLFromString(_DECLARATION.sub('<?xml version="1.0" encoding="UTF-8"?>', text))


def _check_errors(document: Any, where: str) -> None:
    lib = libsbml()
    for i in range(document.getNumErrors()):
        found = document.getError(i)
        if found.getSeverity() >= lib.LIBSBML_SEV_ERROR:
            raise InputError(f"{where}: line {found.getLine()}: {' '.join(found.getShortMessage().split())[:200]}")


def _uses(document: Any, package: str, content: bytes) -> bool:
    """Whether a file has elements of a package."""
    return f"<{document.getPlugin(package).getPrefix()}:".encode() in content


def _flatten(document: Any, path: Path) -> Any:
    """A hierarchical model as one of core SBML.

    The converter of libsbml runs in a process of its own, since it ends the process at some invalid models.
    """
    lib = libsbml()
    if not _external_files(document, path, {path.resolve()}):
        _count(document, document.getModel(), path.name, ())
    refusal = InputError(f"{path.name}: the hierarchical model (package comp) cannot be flattened")
    try:
        command = [sys.executable, "-c", _FLATTEN, str(path.resolve())]
        done = subprocess.run(command, capture_output=True, timeout=_FLATTEN_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise refusal from None
    if done.returncode != 0:
        raise refusal
    flat = lib.readSBMLFromString(done.stdout.decode("utf-8", "replace"))
    _check_errors(flat, path.name)
    if flat.getModel() is None:
        raise refusal
    return flat


def _external_files(document: Any, path: Path, seen: set[Path]) -> set[Path]:
    """The other files that a hierarchical model uses, once all are found harmless."""
    found: set[Path] = set()
    plugin = document.getPlugin("comp")
    every = [] if plugin is None else [plugin.getExternalModelDefinition(i)
                                       for i in range(plugin.getNumExternalModelDefinitions())]  # fmt: skip
    for external in every:
        own = inside(path.parent, external.getSource().removeprefix("file:"), path.name)
        found.add(own)
        if own.resolve() in seen:
            continue
        seen.add(own.resolve())
        if len(seen) > _MOST_FILES:
            raise InputError(f"{path.name}: the hierarchical model has more than {_MOST_FILES} files")
        found |= _external_files(_parse(checked_bytes(own), own.name), own, seen)
    return found


def _count(document: Any, model: Any, where: str, above: tuple[str, ...]) -> int:
    """The number of instances of models in a model; refuses too many and circles."""
    plugin, total = model.getPlugin("comp"), 1
    definitions = document.getPlugin("comp")
    for i in range(plugin.getNumSubmodels() if plugin is not None else 0):
        name = plugin.getSubmodel(i).getModelRef()
        if name in above:
            raise InputError(f"{where}: the model '{name}' contains itself")
        own = definitions.getModelDefinition(name)
        if own is not None:
            total += _count(document, own, where, (*above, name))
        if total > _MOST_SUBMODELS:
            raise InputError(f"{where}: the hierarchical model has more than {_MOST_SUBMODELS} submodels")
    return total
