"""The subcommands of `odinfer` with their options; each calls a module of this folder."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odinfer.apps.command.bench import app as bench
from odinfer.apps.command.each import fit_all
from odinfer.apps.command.flags import (
    LIMITS,
    check_uncertainty,
    read_candidates,
    read_method,
    read_opening,
    read_problem,
    read_values,
)
from odinfer.apps.command.options import (
    DESIGN,
    EACH,
    HOW,
    OUT,
    DataFile,
    Debug,
    Kernel,
    ModelFile,
    Quiet,
    Seed,
    option,
    with_problem_options,
)
from odinfer.apps.command.population import fit_population
from odinfer.apps.command.terminal import (
    DONE,
    INTERRUPTED,
    NOT_CONVERGED,
    collected_notes,
    exit_code_and_message,
    prepare_streams,
    progress,
    say,
    show,
    show_rich,
    staged,
    until_interrupted,
)
from odinfer.checks import checked_integer
from odinfer.errors import InputError, listed
from odinfer.files import safe_name
from odinfer.methods import METHODS

if TYPE_CHECKING:
    from odinfer.problem.problem import Problem
    from odinfer.result.fit import Fit

Posed = dict[str, Any]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Estimate parameters and states of ODE models from noisy time series, and test the model.",
    epilog="Start here:  [bold]odinfer example lotka_volterra[/bold]",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench, name="bench")


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", metavar="", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from odinfer.version import __version__

        show(f"odinfer {__version__}")
        raise typer.Exit


@app.command(
    epilog="Examples:\n\n  odinfer fit model.ode data.csv\n\n"
    "  odinfer fit model.ode data.csv --bounds a=0:10 --log k --prior 'b~normal(2,0.5)' -o results\n\n"
    "  odinfer fit problem.yaml     (PEtab)\n\n"
    "  odinfer fit model.ode many.csv --each --workers 8     (stop it any time: the same command resumes)\n\n"
    "Exit codes: 0 done, 1 did not converge, 2 bad input, 130 interrupted."
)
@with_problem_options
def fit(
    model: ModelFile,
    data: DataFile = None,
    *,
    posed: Posed,
    method: Annotated[str, option("--method", "NAME", f"{', '.join(METHODS[:-1])} or {METHODS[-1]}.", HOW)] = "odin",
    kernel: Kernel = None,
    gamma: Annotated[
        str | None, option("--gamma", "learn|NUMBER", "Mismatch variance γ of the equations: learned, or fixed.", HOW)
    ] = None,
    grid: Annotated[int | None, option("--grid", "N", "Grid points per gap between observations.", HOW)] = None,
    starts: Annotated[int | None, option("--starts", "N", "Number of random start points.", HOW)] = None,
    optimizer: Annotated[str | None, option("--optimizer", "NAME", "gauss-newton or lbfgsb.", HOW)] = None,
    no_refine: Annotated[
        bool, option("--no-refine", "", "Stop after ODIN (slopes), before maximum likelihood.", HOW)
    ] = False,
    paper: Annotated[
        str | None, option("--paper", "SYSTEM", "Settings of the ODIN paper for one of its systems.", HOW)
    ] = None,
    uncertainty: Annotated[
        str | None, option("--uncertainty", "KIND", "Further intervals: profile, bootstrap or sample.", HOW)
    ] = None,
    test: Annotated[bool, option("--test", "", "Test the model by simulation.", HOW)] = False,
    seed: Seed = 0,
    each: Annotated[bool, option("--each", "", "Fit every experiment separately.", EACH)] = False,
    workers: Annotated[
        int | None, option("--workers", "N", "Number of processes; with --each one per core if not given.", EACH)
    ] = None,
    cluster: Annotated[str | None, option("--cluster", "ADDRESS", "Address of a Dask scheduler.", EACH)] = None,
    store: Annotated[
        Path | None, option("--store", "DIR", "Folder for finished results: the same command resumes.", EACH)
    ] = None,
    timeout: Annotated[
        float | None, option("--timeout", "S", "Stop the fit of a series after S seconds.", EACH)
    ] = None,
    out: Annotated[
        Path | None, option("--out -o", "DIR", "Where to write; MODEL-fit or MODEL-each if not given.", OUT)
    ] = None,
    truth: Annotated[
        str | None, option("--truth", "a=2,b=1|FILE", "True or published values to compare with.", OUT)
    ] = None,
    as_json: Annotated[bool, option("--json", "", "Print fit.json and nothing else.", OUT)] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Estimate parameters and states of MODEL from DATA, and test the model."""
    from odinfer.problem.observables import unusual

    for_each = {"workers": workers, "cluster": cluster, "store": store, "timeout": timeout}
    if timeout is not None and not each:
        raise InputError("--timeout is for --each, which was not given")
    if each and truth:
        raise InputError("--truth cannot be used with --each: every series has values of its own")
    folder = out or Path(f"{safe_name(model.stem)}-{'each' if each else 'fit'}")
    with collected_notes(quiet) as notes:
        problem = read_problem(model, data, posed, notes)
        if problem.model.declarations.effects:
            if each or uncertainty or method != "odin" or store:
                flags = "--test, --seed, --workers, --cluster, --truth, --out, --json, --quiet"
                raise InputError(f"parameters vary by subject; use no flags but {flags}")
            executor = {"workers": workers, "cluster": cluster}
            done = fit_population(problem, folder, truth, seed, as_json, quiet, test, executor)
            return DONE if done else NOT_CONVERGED
        known = (*problem.parameters, *problem.model.parameters)
        true = problem.split.spread(read_values("--truth", truth, known)) if truth else None
        options = {"kernel": kernel, "gamma": gamma, "grid": grid, "starts": starts, "optimizer": optimizer}
        how = read_method(method, paper, options | {"refine": False if no_refine else None})
        given = [f"--{name}" for name, value in options.items() if value is not None]
        if given and how.name == "odin" and not problem.fully_observed_gaussian:
            notes.append(f"{listed(given)} were not used: {unusual(problem)}, so ODIN is not used")
        check_uncertainty(uncertainty)
        if each:
            asked = {"method": how, "seed": seed, "uncertainty": uncertainty, "test": test, **for_each}
            return DONE if fit_all(problem, folder, asked, as_json, quiet) else NOT_CONVERGED
        how_run = {"method": how, "seed": seed, "workers": workers, "cluster": cluster, "store": store}
        result, end = _fit_one(problem, how_run, folder, uncertainty, test, true, notes, as_json, quiet)
    if end:
        show(end)
    if not result.converged:
        say(f"not converged: {result.status}")
    return DONE if result.converged else NOT_CONVERGED


def _fit_one(
    problem: Problem, how: dict[str, Any], folder: Path, uncertainty: str | None, test: bool,
    truth: Mapping[str, float] | None, notes: list[str], as_json: bool, quiet: bool,
) -> tuple[Fit, str]:  # fmt: skip
    """Fit all data together, print the summary and write the files.

    Returns:
        The fit, and what is printed last: the document as JSON or the list of files.
    """
    from odinfer.methods import fit as run
    from odinfer.optimal_design.next_measurements import with_next_measurements
    from odinfer.result.extras import with_extras
    from odinfer.result.report import OUTPUTS

    with staged(folder, OUTPUTS) as stage:
        with progress(quiet or as_json) as tell:
            result = with_extras(run(problem, progress=tell, **how), uncertainty, test, how["seed"], tell)
            result = with_next_measurements(result)
            if uncertainty is not None and result.uncertainty is None:
                notes.append(f"no {uncertainty}: {result.without_intervals}")
            if test and result.uncertainty is None:
                notes.append("no trajectory follows the data, so the model was not tested")
        if not (as_json or quiet):  # before the files, since writing takes longer than most fits
            _print_summary(result, truth)
        from odinfer.result import report

        logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its remarks about fonts are not for our users
        names = [path.name for path in report.write_outputs(result, stage, truth)]
        if as_json:
            return result, (stage / "fit.json").read_text("utf-8").rstrip()
    first = next((name for name in names if name.endswith(".html")), names[0])
    others = ", ".join(name for name in names if name != first)
    return result, "" if quiet else f"\nOpen {folder / first} first. Also in {folder}: {others}"


@app.command(epilog="Example:\n\n  odinfer check model.ode data.csv --bounds a=0:10")
@with_problem_options
def check(
    model: ModelFile,
    data: DataFile = None,
    *,
    posed: Posed,
    debug: Debug = False,
) -> int:
    """Show how MODEL and DATA are understood and what looks wrong, without fitting."""
    from odinfer.apps.command import check as checks

    with collected_notes() as notes:
        problem = read_problem(model, data, posed, notes)
        found = checks.findings(problem)
    show(checks.describe(problem))
    verdict = "Can be fitted, but note:" if found else "Looks good."
    if any(trigger.delay is not None for trigger in problem.model.declarations.triggers):
        verdict = "Can be simulated, but not fitted: an event has a delay."
    show("\n".join([f"\n{verdict}", *(f"- {f}" for f in found)]))
    return DONE


@app.command(
    epilog="Examples:\n\n  odinfer compare with.ode without.ode data.csv\n\n"
    "  odinfer compare model.ode data.csv     (terms in square brackets in model.ode are optional)\n\n"
    "Exit codes: 0 done, 1 no candidate could be fitted, 2 bad input, 130 interrupted."
)
@with_problem_options
def compare(
    files: Annotated[list[Path], typer.Argument(metavar="MODEL... DATA", help="Candidates, then the CSV file.")],
    posed: Posed,
    kernel: Kernel = None,
    level: Annotated[float, option("--level", "P", "Significance level; 0.05 if not given.", HOW)] = 0.05,
    draws: Annotated[
        int, option("--draws", "N", "Maximum number of simulations per test; 199 if not given.", HOW)
    ] = 199,
    holdout: Annotated[
        str | None, option("--holdout", "last|gaps", "Score predictions of a fifth of the data that is left out.", HOW)
    ] = None,
    workers: Annotated[int, option("--workers", "N", "Number of processes; 1 if not given.", HOW)] = 1,
    cluster: Annotated[str | None, option("--cluster", "ADDRESS", "Address of a Dask scheduler.", HOW)] = None,
    seed: Seed = 0,
    out: Annotated[Path | None, option("--out -o", "DIR", "Where to write; comparison if not given.", OUT)] = None,
    as_json: Annotated[bool, option("--json", "", "Print comparison.json and nothing else.", OUT)] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Rank several MODELs by how well DATA support them, and test their equations."""
    from odinfer.methods.odin import Odin
    from odinfer.population.compare import PopulationComparison
    from odinfer.selection import report as reports
    from odinfer.selection.compare import compare as run

    folder = out or Path("comparison")
    checked_integer("--draws", draws, 0, LIMITS["draws"])
    if len(files) < 2:
        raise InputError("compare takes model files and then a data file: odinfer compare a.ode b.ode data.csv")
    with collected_notes(quiet) as notes:
        problems = read_candidates(files[:-1], files[-1], posed, notes)
        how = Odin(kernel=kernel or "auto")
        with staged(folder) as stage, progress(quiet or as_json) as tell:
            found: Any = run(  # a PopulationComparison where parameters vary by subject
                problems, method=how, level=level, draws=draws, holdout=holdout, seed=seed,
                workers=workers, cluster=cluster, progress=tell,
            )  # fmt: skip
            if population := isinstance(found, PopulationComparison):
                written = found.write_outputs(stage)
            else:
                written = reports.write_outputs(found, stage)
            names = [path.name for path in written]
            document = (stage / "comparison.json").read_text("utf-8")
    if as_json:
        show(document.rstrip())
    elif not quiet:
        if sys.stdout.isatty() and not population:
            show_rich(reports.summary_rich(found))
        else:
            show(found.summary())
        show(f"Open {folder / names[0]} first. Also in {folder}: {', '.join(names[1:])}")
    return DONE if any(f.converged for f in found.fits.values()) else NOT_CONVERGED


Fitted = Annotated[
    Path | None, option("--fit", "fit.json", "A saved fit of the same problem; fitted anew if not given.", HOW)
]


@app.command(
    epilog="Examples:\n\n  odinfer forecast model.ode data.csv --times 0:30:61 -o forecast.csv\n\n"
    "  odinfer forecast population.ode data.csv --fit fit/fit.json --new patient.csv --times 0:24:25"
)
@with_problem_options
def forecast(
    model: ModelFile,
    data: DataFile = None,
    *,
    posed: Posed,
    times: Annotated[str, typer.Option(metavar="START:STOP:COUNT", help="Times, also a list such as 10,20,30.")],
    level: Annotated[float, option("--level", "P", "Level of the bands; 0.95 if not given.", OUT)] = 0.95,
    observed: Annotated[bool, option("--observed", "", "Bands of new observations, noise included.", OUT)] = False,
    subject: Annotated[
        list[str] | None, option("--subject", "NAME", "Population models: a subject of the data; repeat for more.", HOW)
    ] = None,
    new: Annotated[
        Path | None,
        option("--new", "FILE", "Population models: doses, covariates and samples of new subjects.", HOW),
    ] = None,
    fitted: Fitted = None,
    seed: Seed = 0,
    out: Annotated[Path, option("--out -o", "FILE", "A CSV file; forecast.csv if not given.", OUT)] = Path(
        "forecast.csv"
    ),
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Predict states with bands at any times, also beyond the data; of population models, observed columns."""
    from odinfer.apps.command import population
    from odinfer.apps.command.results import fit_of, run_forecast

    with collected_notes(quiet) as notes:
        problem = read_problem(model, data, posed, notes)
        if problem.model.declarations.effects:
            brought = None if new is None else read_problem(model, new, posed, notes).data
            names = tuple(subject or ())
            population.run_forecast(problem, brought, names, fitted, seed, quiet, times, level, observed, out)
            return DONE
        if subject or new:
            raise InputError("--subject and --new are for models with parameters that vary by subject")
        run_forecast(fit_of(problem, fitted, seed, quiet), times, level, observed, out)
    return DONE


@app.command(epilog="Example:\n\n  odinfer profile model.ode data.csv --parameter k -o profile.pdf")
@with_problem_options
def profile(
    model: ModelFile,
    data: DataFile = None,
    *,
    posed: Posed,
    parameter: Annotated[
        list[str] | None, option("--parameter", "NAME", "A parameter; all of them if not given.", HOW)
    ] = None,
    fitted: Fitted = None,
    seed: Seed = 0,
    out: Annotated[
        Path, option("--out -o", "FILE", "A .pdf, .svg or .png file; profile.svg if not given.", OUT)
    ] = Path("profile.svg"),
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Compute and draw profile likelihoods of parameters."""
    from odinfer.apps.command.results import fit_of, run_profile

    with collected_notes(quiet) as notes:
        run_profile(fit_of(read_problem(model, data, posed, notes), fitted, seed, quiet), parameter or [], out)
    return DONE


@app.command(epilog="Example:\n\n  odinfer plot fit.json --kind residuals --width column -o residuals.pdf")
def plot(
    fit: Annotated[Path, typer.Argument(metavar="FIT", help="A fit.json of `odinfer fit`.")],
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="states, residuals, predicted, quantiles, phase, intervals, pairs, starts, traces, ..."
        ),
    ] = "states",
    width: Annotated[
        str | None, typer.Option(metavar="WIDTH", help="Width: column (3.5 inches), page (7.2), or inches.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .pdf, .svg or .png file.")] = Path(
        "plot.pdf"
    ),
    debug: Debug = False,
) -> int:
    """Draw a picture of a saved fit, as vector graphics or pixels."""
    from odinfer.apps.command.results import run_plot

    run_plot(fit, kind, width, out)
    return DONE


@app.command(
    epilog="Examples:\n\n  odinfer discover model.ode data.csv\n\n"
    "  odinfer discover data.csv     (equations from data alone)\n\n"
    "Exit codes: 0 done, 1 the model contradicts the data and no term helps, 2 bad input, 130 interrupted."
)
@with_problem_options
def discover(
    model: ModelFile,
    data: DataFile = None,
    *,
    posed: Posed,
    refits: Annotated[int, option("--refits", "N", "Number of candidate terms to refit; 12 if not given.", HOW)] = 12,
    draws: Annotated[int, option("--draws", "N", "Simulations per test; 99 if not given.", HOW)] = 99,
    seed: Seed = 0,
    out: Annotated[Path | None, option("--out -o", "DIR", "Where to write; MODEL-discover if not given.", OUT)] = None,
    as_json: Annotated[bool, option("--json", "", "Print discovery.json and nothing else.", OUT)] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Find the term that is missing from MODEL; with DATA only, find equations."""
    from odinfer.apps.command.discover import is_data, run_discovery

    folder = out or Path(f"{safe_name(model.stem)}-discover")
    checked_integer("--draws", draws, 19, LIMITS["draws"])
    with collected_notes(quiet) as notes:
        problem = None if data is None and is_data(model) else read_problem(model, data, posed, notes)
        asked = {"data": model if problem is None else None, "refits": refits, "draws": draws, "seed": seed}
        return DONE if run_discovery(problem, asked, folder, as_json, quiet) else NOT_CONVERGED


@app.command(
    epilog="Examples:\n\n  odinfer simulate model.ode --theta a=2,b=1 --x0 prey=5,predator=3 --times 0:2:21\n\n"
    "  odinfer simulate model.ode --theta truth.json --x0 x=1 --times 0,1,2.5 --noise 0.1 -o data.csv"
)
def simulate(
    model: ModelFile,
    times: Annotated[str, typer.Option(metavar="START:STOP:COUNT", help="Times, also a list such as 0,1,2.5.")],
    x0: Annotated[str, typer.Option(metavar="x=1,y=2", help="States at the start; not those that MODEL gives.")] = "",
    theta: Annotated[str, typer.Option(metavar="a=2,b=1|FILE", help="Parameters, or a JSON file with them.")] = "",
    inputs: Annotated[Path | None, typer.Option(metavar="CSV", help="Known inputs over time, a column each.")] = None,
    noise: Annotated[
        str, typer.Option(metavar="SD|model", help="Add noise: of this sd where MODEL has no distribution.")
    ] = "0",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Random seed of the noise.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="A CSV file; else printed.")] = None,
    debug: Debug = False,
) -> int:
    """Simulate MODEL from given parameters and initial values, and write a CSV file."""
    from odinfer.apps.command.simulate import run_simulation

    return DONE if run_simulation(model, times, x0, theta, inputs, noise, seed, out) else NOT_CONVERGED


@app.command(
    epilog="Examples:\n\n  odinfer design model.ode data.csv --add 4\n\n"
    "  odinfer design model.ode --theta ka=1,CL=3,V=30 --times 0:24 --add 6 --for CL\n\n"
    "  odinfer design a.ode data.csv --between b.ode     (which sample tells two models apart?)"
)
@with_problem_options
def design(
    model: ModelFile,
    known: Annotated[
        Path | None, typer.Argument(metavar="[DATA|FIT]", help="Data to fit first, or a fit.json; else --theta.")
    ] = None,
    *,
    posed: Posed,
    add: Annotated[int, option("--add", "N", "Number of samples; 4 if not given.", DESIGN, min=1, max=1000)] = 4,
    times: Annotated[
        str | None, option("--times", "START:STOP", "Candidate times, a range or a list 1,2,6.", DESIGN)
    ] = None,
    apart: Annotated[
        float | None, option("--apart", "T", "Shortest time between samples; 0 allows repeats.", DESIGN, min=0)
    ] = None,
    targets: Annotated[
        str, option("--for", "CL,V", "Parameters, or forecasts such as 'x(48)', that matter.", DESIGN)
    ] = "",
    criterion: Annotated[str, option("--criterion", "D|A|c", "What to make small; D if not given.", DESIGN)] = "D",
    observe: Annotated[str, option("--observe", "x,y", "Columns to measure; all if not given.", DESIGN)] = "",
    experiments: Annotated[
        str, option("--experiments", "a,b", "Experiments to add samples to; all if not given.", DESIGN)
    ] = "",
    doses: Annotated[
        list[str] | None, option("--doses", "0:gut=100", "Doses to choose from; repeat the option.", DESIGN)
    ] = None,
    cost: Annotated[
        list[str] | None, option("--cost", "NAME=C", "Cost of a column, or of a sample (sample=1).", DESIGN)
    ] = None,
    budget: Annotated[float | None, option("--budget", "C", "The most that all samples may cost.", DESIGN)] = None,
    between: Annotated[
        Path | None, option("--between", "MODEL", "A second model: samples that tell both apart.", DESIGN)
    ] = None,
    draws: Annotated[
        int, option("--draws", "N", "Average over so many draws of the parameters.", DESIGN, min=0, max=200)
    ] = 0,
    spread: Annotated[
        float | None, option("--spread", "S", "Relative standard deviation of these draws.", DESIGN)
    ] = None,
    theta: Annotated[str, option("--theta", "a=2,b=1|FILE", "Parameters, without data.", DESIGN)] = "",
    x0: Annotated[str, option("--x0", "x=1,y=2", "Initial states, without data.", DESIGN)] = "",
    subjects: Annotated[
        int, option("--subjects", "N", "Subjects of a study, for a MODEL with random effects.", DESIGN, min=0)
    ] = 0,
    covariates: Annotated[str, option("--covariates", "wt=70", "Covariates of these subjects.", DESIGN)] = "",
    confirm: Annotated[
        int, option("--confirm", "N", "Simulate and fit so many data sets of the design.", DESIGN, min=0)
    ] = 0,
    seed: Seed = 0,
    out: Annotated[Path | None, option("--out -o", "DIR", "Where to write; design if not given.", OUT)] = None,
    as_json: Annotated[bool, option("--json", "", "Print design.json and nothing else.", OUT)] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Find the next samples: those that determine the parameters of MODEL best, or tell two models apart."""
    from odinfer.apps.command.design import read_candidate_times, read_covariates, read_doses, run_design
    from odinfer.apps.command.flags import read_costs

    options = {
        "add": add, "times": read_candidate_times(times) if times else None, "apart": apart, "for_": targets,
        "criterion": criterion, "observe": observe, "experiments": experiments, "doses": read_doses(doses or []),
        "costs": read_costs(cost), "budget": budget, "draws": draws, "spread": spread, "confirm": confirm, "seed": seed,
        "subjects": subjects, "covariates": read_covariates(covariates),
    }  # fmt: skip
    values = {"theta": theta, "x0": x0}
    run_design(model, known, between, values, options, posed, out or Path("design"), as_json, quiet)
    return DONE


@app.command(
    epilog="Examples:\n\n  odinfer convert problem.yaml folder     (PEtab, to .ode and CSV)\n\n"
    "  odinfer convert model.xml folder     (SBML, to .ode)\n\n"
    "  odinfer convert model.ode data.csv --petab folder     (to PEtab)"
)
@with_problem_options
def convert(
    model: Annotated[Path, typer.Argument(metavar="FILE", help="A PEtab problem.yaml or a model, in SBML or our own.")],
    data: Annotated[
        Path | None, typer.Argument(metavar="DIR|DATA", help="Folder to write to; with --petab the data.")
    ] = None,
    petab: Annotated[Path | None, option("--petab", "DIR", "Write MODEL and DATA there as PEtab.", OUT)] = None,
    *,
    posed: Posed,
    debug: Debug = False,
) -> int:
    """Convert PEtab or SBML to model.ode and data.csv, or a problem to PEtab."""
    from odinfer.io.native_files import to_own
    from odinfer.io.petab_writer import write_petab

    folder = petab or data
    if folder is None:
        raise InputError(
            f"where to? odinfer convert {model.name} folder, or odinfer convert model.ode data.csv --petab folder"
        )
    with collected_notes() as notes, staged(folder) as stage:
        if petab is None:
            names = to_own(model, stage)
        else:
            names = [path.name for path in write_petab(read_problem(model, data, posed, notes), stage)]
    show(f"Wrote {listed([str(folder / name) for name in names])}.")
    return DONE


@app.command(epilog="Examples:\n\n  odinfer example\n\n  odinfer example sir try-sir")
def example(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which one; a list if not given.")] = None,
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="Where to; NAME if not given.")] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace files that differ.")] = False,
    debug: Debug = False,
) -> int:
    """List examples, or write one: NAME.ode, NAME.csv, and the true or published values."""
    from odinfer.apps.command import example as examples

    if name is None:
        known = examples.names()
        show("\n".join(f"{key:{max(map(len, known))}}  {what}" for key, what in known.items()))
        show("\nWrite one with: odinfer example NAME")
        return DONE
    ode, data, answer = examples.write(name, folder or Path(name), force)
    show(f"Wrote {ode}, {data} and {answer}. Next:")
    show(f"  odinfer check {ode} {data}\n  odinfer fit {ode} {data} --truth {answer}")
    return DONE


@app.command(epilog="Examples:\n\n  odinfer studio\n\n  odinfer studio model.ode data.csv --no-open")
def studio(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE.ode] [DATA]", help="Files to open; an example if none.")
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", help="Port to listen on; any free one if not given.")] = 0,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on, for other machines.")
    ] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", metavar="", help="Print the address only.")] = False,
    debug: Debug = False,
) -> int:
    """Open the page in the browser: drop data, type equations, move sliders, fit, compare, download."""
    from odinfer.apps.command.example import content, names
    from odinfer.apps.studio.access import is_loopback
    from odinfer.apps.studio.server import Example, serve

    examples = {name: Example(title, *content(name)) for name, title in names().items()}
    opening = read_opening(files or [])

    def listening(address: str) -> None:
        if not is_loopback(host):
            say(f"warning: whoever reaches {host} and has the link can use the studio; the connection can be read")
        show(address)

    with until_interrupted():
        serve(examples, opening, listening, host, port, not no_open)
    return DONE


def main() -> None:
    """Run the command: the one place where exceptions become one line and an exit code."""
    prepare_streams()
    try:
        code = int(app(prog_name="odinfer", standalone_mode=False) or DONE)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
        say("interrupted; nothing was written")
    except Exception as error:
        if "--debug" in sys.argv:
            import traceback

            traceback.print_exc()
        code, words = exit_code_and_message(error)
        say(words)
    sys.exit(code)


def _print_summary(result: Fit, truth: Mapping[str, float] | None) -> None:
    """The answer, in colour on a terminal."""
    from odinfer.result import summary

    if sys.stdout.isatty():
        show_rich(summary.summary_rich(result, truth))
    else:
        show(summary.summary(result, truth).rstrip())
