"""Imports point one way, importing the package is cheap, and what is public is documented."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import odinfer as od

SOURCE = Path(od.__file__).parent
ROOT = "__init__"

# Each module may import, when it is loaded, only from the lines above its own.
LAYERS = [
    {"errors", "_jax"},
    {"kernels", "files", "packing", "page", "expression", "data", "example", "methods", "workers", "curve"},
    {"gp", "equations", "executor"},
    {"model", "prior", "smoother", "snapped", "misfit"},
    {"problem", "simulate", "sparsity", "uncertainty", "optional_terms"},
    {"fit", "risk", "collocation", "systems"},
    {"solve", "starts", "refine", "sparse_risk", ROOT},
    {"preconditioner"},
    {"krylov"},
    {"gradient_matching", "assemble", "continuation"},
    {"ensemble", "information", "many_states"},
    {"profile", "identifiability", "ridge", "splines", "driven"},
    {"trajectories"},
    {"bootstrap"},
    {"methods.odin", "density", "whole"},
    {"judge", "missing", "heldout"},
    {"methods.gpr", "methods.sampling", "chains", "population"},
    {"nuts"},
    {"methods.*", "posterior"},
    {"dataset"},
    {"store", "comparison"},
    {"plot", "check"},
    {"uncertainty_plot", "comparison_plot"},
    {"comparison_report"},
    {"report"},
    {"flags", "terminal", "bench"},
    {"bench.store", "bench.check"},
    {"bench.runs"},
    {"bench.compute"},
    {"bench.cells"},
    {"bench.grid"},
    {"bench.runner", "bench.results"},
    {"bench.tables"},
    {"bench.medians", "bench.marginals", "bench.selection", "bench.scaling"},
    {"bench.figures", "bench.words"},
    {"bench.report"},
    {"bench.cli"},
    {"cli"},
]


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1]) if parts[-1] == ROOT and len(parts) > 1 else ".".join(parts)


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def layer(module: str) -> int:
    for name in (module, "methods.*" if module.startswith("methods.") else module):
        for i, names in enumerate(LAYERS):
            if name in names:
                return i
    raise AssertionError(f"module '{module}' has no layer yet: add it to LAYERS in {__file__}")


def loaded_with(path: Path) -> set[str]:
    """Modules of the package that a module imports when it is loaded; not in functions or for type checking."""
    found: set[str] = set()

    def visit(nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if isinstance(node, ast.Import):
                found.update(a.name.removeprefix("odinfer.") for a in node.names if a.name.startswith("odinfer."))
                found.update(ROOT for a in node.names if a.name == "odinfer")
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                if node.module == "odinfer":
                    found.update(a.name if a.name in MODULES else ROOT for a in node.names)
                elif node.module and node.module.startswith("odinfer."):
                    module = node.module.removeprefix("odinfer.")
                    found.update(
                        f"{module}.{a.name}" if f"{module}.{a.name}" in MODULES else module for a in node.names
                    )
            elif isinstance(node, ast.If):
                visit([] if "TYPE_CHECKING" in ast.unparse(node.test) else node.body)
                visit(node.orelse)
            elif isinstance(node, ast.Try | ast.With | ast.ClassDef | ast.For):
                visit(node.body)

    visit(ast.parse(path.read_text("utf-8")).body)
    return found


IMPORTS = {name: loaded_with(path) for name, path in MODULES.items()}


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_to_earlier_layers(module):
    for other in IMPORTS[module]:
        assert other in MODULES
        allowed = layer(other) < layer(module)
        assert allowed, f"{module} imports {other}"


def test_there_are_no_import_cycles():
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " → ".join([*above, module])
        if module not in done:
            for other in IMPORTS[module]:
                visit(other, (*above, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())
    assert len(done) == len(MODULES) > 20


def fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


HEAVY = ("jax", "pandas", "scipy", "matplotlib", "xarray")


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, odinfer; odinfer.Data; odinfer.Model; print([m for m in {HEAVY} if m in sys.modules])"
    assert fresh(code) == "[]"
    # The same question does find what is loaded.
    assert "'scipy'" in fresh(f"import sys, odinfer, odinfer.solve; print([m for m in {HEAVY} if m in sys.modules])")


def test_every_module_can_be_imported_first():
    code = "import importlib, sys; importlib.import_module(sys.argv[1])"
    for name in ("store", "plot", "report", "refine", "systems", "methods.odin"):
        run = subprocess.run([sys.executable, "-c", code, f"odinfer.{name}"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr


PUBLIC = {
    "Data": ["join", "select", "n_observed", "t", "y", "inputs"],
    "Experiment": [],
    "read_csv": [],
    "InputError": [],
    "InputWarning": [],
    "Fit": [
        "states",
        "states_of",
        "predict",
        "forecast",
        "interval",
        "covariance",
        "profile",
        "bootstrap",
        "sample",
        "including",
        "derivative",
        "residuals",
        "summary",
        "plot",
        "to_xarray",
        "save",
    ],
    "fit": [],
    "Model": ["from_text", "from_file", "linearise"],
    "Problem": ["limits", "theta", "phi", "check_field", "free"],
    "simulate": [],
    "Odin": ["paper", "fit", "solve", "risk", "minimise"],
    "load": [],
    "systems": [],
}


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_exists_and_is_documented(name):
    assert name in dir(od)
    thing = getattr(od, name)
    assert (inspect.getdoc(thing) or "").strip()
    for member in PUBLIC[name]:
        attribute = inspect.getattr_static(thing, member)
        attribute = getattr(attribute, "__func__", attribute)
        assert (inspect.getdoc(attribute) or "").strip(), f"{name}.{member}"


def test_every_module_says_what_it_is_for():
    for name, path in MODULES.items():
        text = path.read_text("utf-8")
        assert not text.strip() or ast.get_docstring(ast.parse(text)), name


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        _ = od.nothing
    assert od.__version__
