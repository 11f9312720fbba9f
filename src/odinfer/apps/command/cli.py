"""The command `odinfer`: flags and files in, tables and files out, exceptions to exit codes."""

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
from odinfer.apps.command.options import EACH, HOW, OUT, DataFile, Debug, Kernel, ModelFile, Quiet, Seed, option, posing
from odinfer.apps.command.terminal import (
    DONE,
    INTERRUPTED,
    NOT_CONVERGED,
    begin,
    noticed,
    progress,
    said,
    say,
    show,
    show_drawn,
    staged,
    until_interrupted,
)
from odinfer.checks import whole
from odinfer.errors import InputError, listed
from odinfer.files import safe_name
from odinfer.methods import METHODS

if TYPE_CHECKING:
    from odinfer.result.fit import Fit

Posed = dict[str, Any]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="From a CSV of noisy time series and the equations of a model to parameters, states and a verdict.",
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
    "  odinfer fit model.ode data.csv --set a=0:10 --log k --prior 'b~normal(2,0.5)' -o results\n\n"
    "  odinfer fit problem.yaml     (PEtab)\n\n"
    "  odinfer fit model.ode many.csv --each --workers 8     (stop it any time: the same command goes on)\n\n"
    "Exit codes: 0 done, 1 did not converge, 2 bad input, 130 interrupted."
)
@posing
def fit(
    model: ModelFile,
    data: DataFile = None,
    *,
    posed: Posed,
    method: Annotated[str, option("--method", "NAME", f"{', '.join(METHODS[:-1])} or {METHODS[-1]}.", HOW)] = "odin",
    kernel: Kernel = None,
    gamma: Annotated[str | None, option("--gamma", "learn|NUMBER", "The mismatch of the equations.", HOW)] = None,
    grid: Annotated[int | None, option("--grid", "N", "Grid points per gap between observations.", HOW)] = None,
    starts: Annotated[int | None, option("--starts", "N", "How many random starts.", HOW)] = None,
    optimizer: Annotated[str | None, option("--optimizer", "NAME", "gauss-newton or lbfgsb.", HOW)] = None,
    no_refine: Annotated[bool, option("--no-refine", "", "Stop after ODIN: no trajectories.", HOW)] = False,
    paper: Annotated[str | None, option("--paper", "SYSTEM", "The paper's settings for its system.", HOW)] = None,
    uncertainty: Annotated[
        str | None, option("--uncertainty", "KIND", "More than the default: profile, bootstrap or sample.", HOW)
    ] = None,
    test: Annotated[bool, option("--test", "", "Test the model as a whole, by simulation.", HOW)] = False,
    seed: Seed = 0,
    each: Annotated[bool, option("--each", "", "Fit every experiment on its own.", EACH)] = False,
    workers: Annotated[
        int | None, option("--workers", "N", "Processes; with --each one per core if not given.", EACH)
    ] = None,
    cluster: Annotated[str | None, option("--cluster", "ADDRESS", "A Dask scheduler.", EACH)] = None,
    store: Annotated[
        Path | None, option("--store", "DIR", "Where results last: the same command goes on.", EACH)
    ] = None,
    timeout: Annotated[float | None, option("--timeout", "S", "Give a series up after S seconds.", EACH)] = None,
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
    """Estimate parameters and states of MODEL from DATA."""
    from odinfer.methods import fit as run
    from odinfer.problem.observables import unusual
    from odinfer.result.extras import with_more
    from odinfer.result.report import OUTPUTS

    for_each = {"workers": workers, "cluster": cluster, "store": store, "timeout": timeout}
    if timeout is not None and not each:
        raise InputError("--timeout is for --each, which was not given")
    if each and truth:
        raise InputError("--truth cannot be used with --each: every series has values of its own")
    folder = out or Path(f"{safe_name(model.stem)}-{'each' if each else 'fit'}")
    with noticed(quiet) as notes:
        problem = read_problem(model, data, posed, notes)
        known = (*problem.parameters, *problem.model.parameters)
        true = problem.split.spread(read_values("--truth", truth, known)) if truth else None
        options = {"kernel": kernel, "gamma": gamma, "grid": grid, "starts": starts, "optimizer": optimizer}
        how = read_method(method, paper, options | {"refine": False if no_refine else None})
        given = [f"--{name}" for name, value in options.items() if value is not None]
        if given and how.name == "odin" and not problem.plain:
            notes.append(f"{listed(given)} had no part: {unusual(problem)}, so the fit goes by trajectories alone")
        check_uncertainty(uncertainty)
        if each:
            asked = {"method": how, "seed": seed, "uncertainty": uncertainty, "test": test, **for_each}
            return DONE if fit_all(problem, folder, asked, as_json, quiet) else NOT_CONVERGED
        with staged(folder, OUTPUTS) as stage:
            with progress(quiet or as_json) as tell:
                result = run(
                    problem, method=how, seed=seed, progress=tell, workers=workers, cluster=cluster, store=store
                )
                result = with_more(result, uncertainty, test, seed, tell)
                if uncertainty is not None and result.uncertainty is None:
                    notes.append(f"no {uncertainty}: {result.without_intervals}")
                if test and result.uncertainty is None:
                    notes.append("no trajectory follows the data, so the model as a whole was not tested")
            if not (as_json or quiet):  # the answer first: writing takes longer than most fits
                _tell(result, true)
            from odinfer.result import report

            logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its remarks about fonts are not for our users
            names = [path.name for path in report.write_outputs(result, stage, true)]
            document = (stage / "fit.json").read_text("utf-8")
    if as_json:
        show(document.rstrip())
    elif not quiet:
        first = next((name for name in names if name.endswith(".html")), names[0])
        others = ", ".join(name for name in names if name != first)
        show(f"\nOpen {folder / first} first. Also in {folder}: {others}")
    if not result.converged:
        say(f"not converged: {result.status}")
    return DONE if result.converged else NOT_CONVERGED


@app.command(epilog="Example:\n\n  odinfer check model.ode data.csv --set a=0:10")
@posing
def check(
    model: ModelFile,
    data: DataFile = None,
    *,
    posed: Posed,
    debug: Debug = False,
) -> int:
    """Say what is understood from MODEL and DATA and what looks wrong, without fitting."""
    from odinfer.apps.command import check as checks

    with noticed() as notes:
        problem = read_problem(model, data, posed, notes)
        found = checks.findings(problem)
    show(checks.describe(problem))
    verdict = "Can be fitted, but note:" if found else "Looks good."
    if problem.model.said.triggers:
        verdict = "Can be simulated, but not fitted: states make events happen."
    show("\n".join([f"\n{verdict}", *(f"- {f}" for f in found)]))
    return DONE


@app.command(
    epilog="Examples:\n\n  odinfer compare with.ode without.ode data.csv\n\n"
    "  odinfer compare model.ode data.csv     (terms in square brackets in model.ode are optional)\n\n"
    "Exit codes: 0 done, 1 no candidate could be fitted, 2 bad input, 130 interrupted."
)
@posing
def compare(
    files: Annotated[list[Path], typer.Argument(metavar="MODEL... DATA", help="Candidates, then the CSV file.")],
    posed: Posed,
    kernel: Kernel = None,
    level: Annotated[float, option("--level", "P", "False alarms per right model; 0.05 if not given.", HOW)] = 0.05,
    draws: Annotated[int, option("--draws", "N", "Simulations at most per equation and model; 199.", HOW)] = 199,
    holdout: Annotated[str | None, option("--holdout", "last|gaps", "Also score a fifth left out.", HOW)] = None,
    workers: Annotated[int, option("--workers", "N", "Processes; 1 if not given.", HOW)] = 1,
    cluster: Annotated[str | None, option("--cluster", "ADDRESS", "A Dask scheduler.", HOW)] = None,
    seed: Seed = 0,
    out: Annotated[Path | None, option("--out -o", "DIR", "Where to write; comparison if not given.", OUT)] = None,
    as_json: Annotated[bool, option("--json", "", "Print comparison.json and nothing else.", OUT)] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Which of several MODELs do DATA support, and which of their equations do they contradict?"""
    from odinfer.methods.odin import Odin
    from odinfer.selection import report as reports
    from odinfer.selection.compare import compare as run

    folder = out or Path("comparison")
    whole("--draws", draws, 0, LIMITS["draws"])
    if len(files) < 2:
        raise InputError("compare takes model files and then a data file: odinfer compare a.ode b.ode data.csv")
    with noticed(quiet) as notes:
        problems = read_candidates(files[:-1], files[-1], posed, notes)
        how = Odin(kernel=kernel or "auto")
        with staged(folder) as stage, progress(quiet or as_json) as tell:
            found = run(
                problems, method=how, level=level, draws=draws, holdout=holdout, seed=seed,
                workers=workers, cluster=cluster, progress=tell,
            )  # fmt: skip
            names = [path.name for path in reports.write_outputs(found, stage)]
            document = (stage / "comparison.json").read_text("utf-8")
    if as_json:
        show(document.rstrip())
    elif not quiet:
        if sys.stdout.isatty():
            show_drawn(reports.summary_rich(found))
        else:
            show(found.summary())
        show(f"Open {folder / names[0]} first. Also in {folder}: {', '.join(names[1:])}")
    return DONE if any(f.converged for f in found.fits.values()) else NOT_CONVERGED


@app.command(
    epilog="Examples:\n\n  odinfer simulate model.ode --theta a=2,b=1 --x0 prey=5,predator=3 --times 0:2:21\n\n"
    "  odinfer simulate model.ode --theta truth.json --x0 x=1 --times 0,1,2.5 --noise 0.1 -o data.csv"
)
def simulate(
    model: ModelFile,
    times: Annotated[str, typer.Option(metavar="START:STOP:COUNT", help="Or a list such as 0,1,2.5.")],
    x0: Annotated[str, typer.Option(metavar="x=1,y=2", help="States at the start; not those that MODEL gives.")] = "",
    theta: Annotated[str, typer.Option(metavar="a=2,b=1|FILE", help="Parameters, or a JSON file with them.")] = "",
    inputs: Annotated[Path | None, typer.Option(metavar="CSV", help="Known inputs over time, a column each.")] = None,
    noise: Annotated[
        str, typer.Option(metavar="SD|model", help="Add noise: of this sd where MODEL has no distribution.")
    ] = "0",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the noise.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="A CSV file; else printed.")] = None,
    debug: Debug = False,
) -> int:
    """Integrate MODEL from given parameters and initial values; CSV out."""
    from odinfer.apps.command.simulate import simulated

    return DONE if simulated(model, times, x0, theta, inputs, noise, seed, out) else NOT_CONVERGED


@app.command(
    epilog="Examples:\n\n  odinfer convert problem.yaml folder     (PEtab, to .ode and CSV)\n\n"
    "  odinfer convert model.xml folder     (SBML, to .ode)\n\n"
    "  odinfer convert model.ode data.csv --petab folder     (to PEtab)"
)
@posing
def convert(
    model: Annotated[Path, typer.Argument(metavar="FILE", help="A PEtab problem.yaml or a model, in SBML or our own.")],
    data: Annotated[Path | None, typer.Argument(metavar="DIR|DATA", help="Where to; or, to PEtab, the data.")] = None,
    petab: Annotated[Path | None, option("--petab", "DIR", "Write MODEL and DATA there as PEtab.", OUT)] = None,
    *,
    posed: Posed,
    debug: Debug = False,
) -> int:
    """Write a PEtab problem or an SBML model as NAME.ode, NAME.csv and published.json, or any problem as PEtab."""
    from odinfer.apps.command.convert import to_own, to_petab

    folder = petab or data
    if folder is None:
        raise InputError(
            f"where to? odinfer convert {model.name} folder, or odinfer convert model.ode data.csv --petab folder"
        )
    with noticed() as notes, staged(folder) as stage:
        if petab is None:
            names = to_own(model, stage)
        else:
            names = to_petab(read_problem(model, data, posed, notes), stage)
    show(f"Wrote {listed([str(folder / name) for name in names])}.")
    return DONE


@app.command(epilog="Examples:\n\n  odinfer example\n\n  odinfer example sir try-sir")
def example(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which one; a list if not given.")] = None,
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="Where to; NAME if not given.")] = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace files that differ.")] = False,
    debug: Debug = False,
) -> int:
    """Write a model and data to try: NAME.ode, NAME.csv and truth.json, or published.json of real data."""
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
        list[Path] | None, typer.Argument(metavar="[FILE.ode] [DATA]", help="What to begin with; an example if none.")
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", help="Of the address; any that is free if not given.")] = 0,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="To be reached from other machines.")] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", metavar="", help="Print the address only.")] = False,
    debug: Debug = False,
) -> int:
    """Everything in the browser: drop data, type equations, move sliders, fit, compare, download."""
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
    begin()
    try:
        code = int(app(prog_name="odinfer", standalone_mode=False) or DONE)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
        say("interrupted; nothing was written")
    except Exception as error:
        if "--debug" in sys.argv:
            import traceback

            traceback.print_exc()
        code, words = said(error)
        say(words)
    sys.exit(code)


def _tell(result: Fit, truth: Mapping[str, float] | None) -> None:
    """The answer, in colour on a terminal."""
    from odinfer.result import summary

    if sys.stdout.isatty():
        show_drawn(summary.summary_rich(result, truth))
    else:
        show(summary.summary(result, truth).rstrip())
