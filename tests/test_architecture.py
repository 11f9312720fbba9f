"""Folders follow the way of the data, imports point back along it, and importing the package is cheap."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import odinfer as od

SOURCE = Path(od.__file__).parent
ROOT = "__init__"

# A module may import at run time, when it is loaded or later, only from its own folder and those before it.
# Imports for type annotations alone may point forward.
FOLDERS = (
    "", "parallel", "style", "noise", "model", "data", "problem", "observation", "io", "gp", "scaling", "optimize",
    "odin", "ode", "likelihood", "search", "sampling", "uncertainty", "diagnostics", "result", "population", "methods",
    "paper", "discovery", "selection", "optimal_design", "apps", ROOT, "__main__",
)  # fmt: skip


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == ROOT and len(parts) > 1 else parts)


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def folder(module: str) -> str:
    """The first part of a module's name, or its own name if it stands on top and has a place of its own."""
    first, _, rest = module.partition(".")
    return first if rest or first in FOLDERS else ""


def imported(tree: ast.AST, lazily: bool = True, types: bool = True) -> set[str]:
    """The modules of the package that a module imports: wherever in its code, or only when loaded; for types, too."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not lazily:
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not types:
            return
        if isinstance(node, ast.Import):
            found.update(a.name.removeprefix("odinfer").strip(".") or ROOT for a in node.names if is_own(a.name))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if is_own(str(node.module)):
                base = str(node.module).removeprefix("odinfer").strip(".")
                for a in node.names:
                    full = f"{base}.{a.name}".strip(".")
                    found.add(full if full in MODULES else base or ROOT)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


def is_own(name: str) -> bool:
    return name == "odinfer" or name.startswith("odinfer.")


TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


@pytest.mark.parametrize("module", MODULES)
def test_imports_come_from_the_own_folder_or_from_folders_before_it(module):
    for other in imported(TREES[module], types=False):
        assert other in MODULES, f"{module} imports {other}, which is no module"
        assert FOLDERS.index(folder(other)) <= FOLDERS.index(folder(module)), f"{module} imports {other}"


def test_every_folder_has_its_place():
    assert {folder(module) for module in MODULES} == set(FOLDERS)


def cycles(graph: dict[str, set[str]]) -> list[str]:
    done: set[str] = set()
    found: list[str] = []

    def visit(module: str, above: tuple[str, ...]) -> None:
        if module in above:
            found.append(" → ".join([*above[above.index(module) :], module]))
        elif module not in done:
            for other in graph[module]:
                visit(other, (*above, module))
            done.add(module)

    for module in graph:
        visit(module, ())
    return found


def test_no_modules_import_each_other_not_even_lazily():
    graph = {name: imported(tree, types=False) - {name} for name, tree in TREES.items()}
    assert cycles(graph) == []
    assert len(graph) > 100


def test_the_reader_of_imports_sees_lazy_ones_and_the_search_finds_cycles():
    code = "import odinfer.errors\nif TYPE_CHECKING:\n    from odinfer.paper import systems\n"
    code += "def f():\n    from odinfer.model import model\n    from odinfer.checks import is_integer\n"
    assert imported(ast.parse(code)) == {"errors", "paper.systems", "model.model", "checks"}
    assert imported(ast.parse(code), lazily=False) == {"errors", "paper.systems"}
    assert imported(ast.parse(code), types=False) == {"errors", "model.model", "checks"}
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a → b → c → a"]


def test_every_folder_says_what_lives_in_it():
    for path in SOURCE.rglob("*/__init__.py"):
        words = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        assert len(words) > 60, f"{path.parent.name} does not say what lives there"


def test_every_module_says_what_it_is_for():
    for name, tree in TREES.items():
        assert ast.get_docstring(tree), name


def fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


HEAVY = ("jax", "pandas", "scipy", "matplotlib", "xarray")
LOADED = f"print([m for m in {HEAVY} if m in sys.modules])"


def test_importing_the_package_loads_nothing_heavy():
    assert fresh(f"import sys, odinfer; odinfer.Data; odinfer.Model; {LOADED}") == "[]"
    # The same question does find what is loaded.
    assert "'scipy'" in fresh(f"import sys, odinfer, odinfer.odin.gauss_newton; {LOADED}")


def test_every_module_can_be_imported_first():
    code = "import importlib, sys; importlib.import_module(sys.argv[1])"
    for name in (
        "result.formats.load",
        "result.figures",
        "result.report",
        "likelihood.refinement",
        "paper.systems",
        "methods.odin",
    ):
        run = subprocess.run([sys.executable, "-c", code, f"odinfer.{name}"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr


# The whole public API: every name of `odinfer`, and every member of its classes.
METHOD = {"name", "fit", "paper"}
RESULT = {
    "attach", "params", "stderr", "loglik", "aic", "bic", "pvalue", "table", "to_markdown", "to_arviz", "to_latex",
    "states",
    "states_of", "observables", "observables_of", "predict", "derivative", "residuals", "residuals_of", "interval",
    "unknown", "intervals_by_kind", "without_intervals", "covariance", "draws", "including", "summary", "plot",
    "plot_residuals", "plot_predicted", "plot_quantiles", "plot_phase", "plot_traces", "posterior",
    "to_xarray", "save",
}  # fmt: skip
PUBLIC: dict[str, set[str]] = {
    "Data": {
        "join", "from_experiments", "select", "with_observations", "with_rows", "first", "with_inputs", "n_observed",
        "t", "y",
        "inputs", "only", "with_covariates",
    },
    "Dose": set(),
    "Experiment": {"moments"},
    "FitResult": RESULT,
    "Fit": RESULT | {"profile", "bootstrap", "sample", "test", "forecast", "maximum", "to_petab"},
    "PopulationFit": {
        "aic", "bic", "conditional", "converged", "document", "eta", "forecast", "individual", "interval",
        "observations", "ofv", "plot", "profile", "residuals", "sample", "save", "shrinkage", "simulate",
        "standard_errors", "status", "structure", "subjects", "summary", "table", "test",
    },
    "Fits": {
        "failed", "contradicted", "outliers", "estimates", "table", "summary", "save", "get", "items", "keys", "values",
    },
    "InputError": set(),
    "InputWarning": set(),
    "Model": {
        "from_text", "from_file", "f", "derivatives", "linearise", "evaluate", "equation", "with_statements",
        "smoothed", "with_sharp_switches", "switch_times",
        "switches", "declarations", "code", "program", "instruction", "given_initial", "free_initial",
    },
    "Observe": set(),
    "Problem": {
        "holding", "alone", "limits", "penalty", "prior_at", "count", "free", "free_index", "is_log", "theta", "phi",
        "slope", "phi_bounds", "state_bounds", "undetermined_states", "bounded", "known_sigma", "inputs_at", "corners",
        "assumed_positive", "assumed_positive_names", "scale_of", "linear", "check_field", "columns",
        "fully_observed_gaussian", "hidden", "observed", "observation_program", "estimated_noise", "split",
        "parameters",
        "condition", "theta_of", "own_phi", "own_index", "inequalities", "penalised",
    },
    "Design": {"times", "schedule", "table", "summary", "plot", "to_dict", "save"},
    "design": set(),
    "Comparison": {"fits", "table", "best", "gamma", "verdicts", "summary", "plot", "save"},
    "Discovery": {
        "best", "equations", "fit", "footnote", "headline", "lines", "p", "plot", "ranking", "save", "summary", "tied",
    },
    "Odin": METHOD | {"search", "rule", "solve", "risk", "minimise"},
    "Gpr": METHOD | {"smooth"},
    "TwoStep": METHOD | {"smooth"},
    "Trajectory": METHOD | {"quick"},
    "Fgpgm": METHOD | {"quick", "decided", "lengths", "search", "begin"},
    "Agm": METHOD | {"quick", "search", "begin"},
    "Rkg": METHOD | {"quick"},
    "Vgm": METHOD | {"quick"},
    "candidates": set(), "compare": set(), "discover": set(), "fit": set(),
    "fit_each": set(), "load": set(), "loglik": set(),
    "read_csv": set(), "read_petab": set(), "read_sbml": set(), "simulate": set(), "systems": set(),
}  # fmt: skip


def test_what_is_public_is_listed_here_and_nothing_else():
    private = {*FOLDERS, "TYPE_CHECKING", "Any", "importlib"} - {"systems"}
    tops = {name for name in MODULES if "." not in name} - {"systems"}
    assert {name for name in dir(od) if not name.startswith("_")} - private - tops == set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_exists_and_is_documented(name):
    thing = getattr(od, name)
    assert (inspect.getdoc(thing) or "").strip()
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return
    fields = set(getattr(thing, "__dataclass_fields__", ()))
    members = {m for m in dir(thing) if not m.startswith("_")} - fields
    assert members == PUBLIC[name]
    for member in members - {"name"}:
        attribute = inspect.getattr_static(thing, member)
        attribute = getattr(attribute, "__func__", attribute)
        assert (inspect.getdoc(attribute) or "").strip(), f"{name}.{member}"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        _ = od.nothing
    assert od.__version__


def test_files_that_docstrings_and_comments_name_exist():
    known = {path.name for path in SOURCE.rglob("*.py")} | {"setup.py"}
    for name, path in MODULES.items():
        mentioned = set(re.findall(r"[`(/ ]([a-z_0-9]+\.py)\b", path.read_text("utf-8")))
        assert mentioned <= known | {"script.py", "model.py"}, (
            f"{name} names files that do not exist: {mentioned - known}"
        )
