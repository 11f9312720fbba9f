"""Compile the kernels when the package is built; everything else is in pyproject.toml."""

import runpy
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

KERNELS = Path("src/odinfer/ode/kernels")
RECIPE = runpy.run_path(str(KERNELS / "build.py"))


class BuildPackage(build_py):
    """Put the compiled library into the package; in the sources where these are what is installed."""

    def run(self):
        super().run()
        folder = KERNELS if self.editable_mode else Path(self.build_lib, *KERNELS.parts[1:])
        for old in folder.glob("kernels-*.*"):
            old.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        RECIPE["build"](folder)


class PlatformDistribution(Distribution):
    """A distribution with compiled code."""

    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    """A wheel for one platform and every Python: the library is called through ctypes."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildPackage, "bdist_wheel": Wheel},
    setup_requires=[] if RECIPE["compiler"]() else ["ziglang"],
)
