"""The methods by name. A new one is one file here and one line in METHODS."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from odinfer.errors import InputError, nearest

# name: module and class
METHODS = {
    "odin": ("odin", "Odin"),
    "gpr": ("gpr", "Gpr"),
    "two-step": ("two_step", "TwoStep"),
    "trajectory": ("trajectory", "Trajectory"),
    "fgpgm": ("fgpgm", "Fgpgm"),
    "agm": ("agm", "Agm"),
    "rkg": ("rkg", "Rkg"),
    "vgm": ("vgm", "Vgm"),
}


def method_class(name: str) -> Any:
    """The class of a method.

    Raises:
        InputError: no method has this name.
    """
    if name not in METHODS:
        raise InputError(f"unknown method '{name}'{nearest(name, METHODS)}")
    module, cls = METHODS[name]
    return getattr(importlib.import_module(f"odinfer.methods.{module}"), cls)


def preset(system: Any, presets: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The entry of one of the paper's systems, given as a System or by name; all sizes of Lorenz '96 share one.

    Raises:
        InputError: there is no entry for the system.
    """
    name = str(getattr(getattr(system, "model", system), "name", system))
    family = "lorenz96" if name.startswith("lorenz96") else name
    if family not in presets:
        raise InputError(f"the paper has no system '{name}'{nearest(name, presets)}")
    return presets[family]
