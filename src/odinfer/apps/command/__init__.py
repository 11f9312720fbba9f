"""The command `odinfer`: parse options, call the package, write files, and map exceptions to exit codes.

`cli.py` declares the commands, one module each does the work; `flags.py` turns files and options into a Problem, and
`terminal.py` has all output and signals.
"""


def main() -> None:
    """Run the command; an interrupt is one line even before anything that takes time is loaded."""
    import os
    import signal

    def stop(*_: object) -> None:
        os.write(2, b"interrupted; nothing was written\n")
        os._exit(130)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, stop)
    from odinfer.apps.command.cli import main as run

    run()
