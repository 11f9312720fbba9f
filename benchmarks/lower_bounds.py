"""Print the lower bounds of all dependencies in pyproject.toml as constraints: numpy>=2 becomes numpy==2.0.0."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
groups = [project["dependencies"], *project["optional-dependencies"].values()]
for name, version in sorted({found.groups() for group in groups for text in group
                             if (found := re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", text))}):  # fmt: skip
    # The first release that satisfies the bound: 2 means 2.0, which pip reads as 2.0.*.
    print(f"{name}=={version}.*" if version.count(".") < 2 else f"{name}=={version}")
