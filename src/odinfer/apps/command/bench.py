"""The commands `odinfer bench run`, `status` and `report`."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odinfer.apps.command.terminal import DONE, INTERRUPTED, PROGRESS_SECONDS, bar, say, show, signal_handlers
from odinfer.style.text import format_duration

if TYPE_CHECKING:
    from odinfer.parallel.resume import JobProgress, ProgressCallback

app = typer.Typer(
    no_args_is_help=True,
    help="Run the paper's experiments, or your own grid, and report them.",
    epilog="Start here:  [bold]odinfer bench run paper --store runs --draws 5[/bold]",
)

StoreFolder = Annotated[list[Path], typer.Option("--store", metavar="DIR", help="Where results are kept.")]
Methods = Annotated[str | None, typer.Option(metavar="A,B", help="Only these methods of the grid.")]
Systems = Annotated[str | None, typer.Option(metavar="A,B", help="Only these systems of the grid.")]
Draws = Annotated[
    int | None, typer.Option(metavar="N", help="Noise realisations per setting; the grid's if not given.")
]
Full = Annotated[bool, typer.Option("--full", metavar="", help="All draws of every method (hours).")]
Debug = Annotated[bool, typer.Option("--debug", metavar="", help="Show the traceback of an error.")]
Grid = Annotated[str, typer.Argument(metavar="[GRID]", help="paper, or a TOML file.")]


@app.command(
    epilog="Examples:\n\n  odinfer bench run paper --store runs\n\n"
    "  odinfer bench run paper --store runs --systems lotka_volterra --methods odin,rkg3 --draws 10\n\n"
    "  odinfer bench run mine.toml --store runs --cluster tcp://10.0.0.5:8786\n\n"
    "Stop it any time: the same command resumes. Exit codes: 0 done, 2 bad input, 130 interrupted."
)
def run(
    store: Annotated[Path, typer.Option("--store", metavar="DIR", help="Where results are kept.")],
    grid: Grid = "paper",
    draws: Draws = None,
    methods: Methods = None,
    systems: Systems = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Number of processes; one per core if not given.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler.")] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="i/n", help="Only the i-th of n parts, for batch queues.")
    ] = None,
    full: Full = False,
    retry: Annotated[
        bool, typer.Option("--retry", metavar="", help="Repeat runs that were lost or timed out.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="Print errors only.")] = False,
    debug: Debug = False,
) -> int:
    """Compute the runs of GRID that the store does not have yet."""
    import os

    from odinfer.paper.bench import grid as grids
    from odinfer.paper.bench.runner import run_grid, shard_of
    from odinfer.parallel import workers as crews
    from odinfer.parallel.store import Store

    count = workers if workers is not None else len(os.sched_getaffinity(0))
    crews.check_workers(count)
    part = shard_of(shard)
    what = grids.read(grid)
    chosen = what.chosen(methods, systems, draws, full)
    kept = Store(store, create=True)
    try:
        with (
            signal_handlers(signal.default_int_handler),
            kept,
            contextlib.closing(crews.start_workers(count, cluster)) as executor,
            _progress(quiet) as tell,
        ):
            state = run_grid(what, kept, chosen, executor, part, retry, tell)
    except KeyboardInterrupt:
        say(f"interrupted; the store has {len(kept.records)} results, and the same command resumes from there")
        return INTERRUPTED
    if not quiet:
        show(_end_message(state))
        show(f"Next: odinfer bench report --store {store}")
    return DONE


@app.command(epilog="Example:\n\n  odinfer bench status --store runs")
def status(
    store: StoreFolder,
    grid: Annotated[str | None, typer.Argument(metavar="[GRID]", help="The last one run if not given.")] = None,
    full: Full = False,
    debug: Debug = False,
) -> int:
    """Say what a store has and what is missing."""
    from odinfer.paper.bench.report.results import Results

    results = Results.of(store, grid)
    for line in results.status(full):
        show(line)
    return DONE


@app.command(epilog="Example:\n\n  odinfer bench report --store runs -o report")
def report(
    store: StoreFolder,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write.")] = Path("report"),
    grid: Annotated[str | None, typer.Argument(metavar="[GRID]", help="The last one run if not given.")] = None,
    debug: Debug = False,
) -> int:
    """Write tables (CSV and HTML), figures and a comparison with the paper in words."""
    from odinfer.paper.bench.report.page import write
    from odinfer.paper.bench.report.results import Results

    names = write(Results.of(store, grid), out)
    show(f"Open {out / names[0]} first. Also in {out}: {len(names) - 1} tables and figures")
    return DONE


def _end_message(state: JobProgress) -> str:
    words = [f"{state.before + state.done} of {state.total} runs are stored"]
    words += [f"{state.done} of them computed now in {format_duration(state.seconds)}"] if state.done else []
    words += [f"{state.failed} failed"] if state.failed else []
    words += [f"{state.claimed_by_others} are being computed by another process"] if state.claimed_by_others else []
    words += [f"{state.damaged} damaged results of the store were discarded"] if state.damaged else []
    return "; ".join(words) + "."


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[ProgressCallback | None]:
    """A bar on a terminal, otherwise a line now and then; both say how long it will still take."""
    if quiet:
        yield None
    elif not sys.stderr.isatty():
        last = [time.monotonic()]

        def line(state: JobProgress) -> None:
            if time.monotonic() - last[0] >= PROGRESS_SECONDS:
                last[0] = time.monotonic()
                done = state.before + state.done
                say(f"{done} of {state.total} runs, {state.failed} failed, {format_duration(state.left)} left")

        yield line
    else:
        from rich import progress

        with bar(progress.BarColumn(), progress.TimeElapsedColumn()) as shown:
            task = shown.add_task("starting workers", total=None)

            def show(state: JobProgress) -> None:
                done = state.before + state.done
                words = f"{done} of {state.total} runs, {format_duration(state.left)} left"
                shown.update(task, description=words, completed=done, total=state.total)

            yield show
