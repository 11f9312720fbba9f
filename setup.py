"""Compile the kernels and copy the help when the package is built; everything else is in pyproject.toml."""

import runpy
import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

KERNELS = Path("src/odinfer/ode/kernels")
STUDIO, DOCS = Path("src/odinfer/apps/studio"), Path("docs")
RECIPE = runpy.run_path(str(KERNELS / "build.py"))


class BuildPackage(build_py):
    """Put the compiled library into the package; in the sources where these are what is installed.

    The pages of the documentation are copied beside the studio, which shows them as help.
    """

    def run(self):
        super().run()
        folder = KERNELS if self.editable_mode else Path(self.build_lib, *KERNELS.parts[1:])
        for old in folder.glob("kernels-*.*"):
            old.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        RECIPE["build"](folder)
        if not self.editable_mode:
            for page in DOCS.rglob("*.md"):
                if not page.relative_to(DOCS).parts[0].startswith("_"):
                    target = Path(self.build_lib, *STUDIO.parts[1:], page)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(page, target)


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
