"""Options that commands share: one list of them, and what is given arrives by name."""

import inspect

import typer
from typer.testing import CliRunner

from odinfer.apps.command import cli
from odinfer.apps.command.options import DataFile, ModelFile, with_problem_options

SHARED = ["bounds", "fixed", "start", "log", "real", "prior", "sigma", "input", "time", "map", "sd", "replicates"]


def test_every_command_about_a_problem_has_the_same_options():
    for command in (cli.fit, cli.check, cli.compare, cli.convert):
        names = list(inspect.signature(command).parameters)
        at = names.index("bounds")
        assert names[at : at + len(SHARED)] == SHARED
        assert "posed" not in names


def test_what_is_given_arrives_by_name_and_the_rest_has_its_default():
    arrived = {}
    app = typer.Typer()

    @app.command()
    @with_problem_options
    def command(model: ModelFile, data: DataFile = None, *, posed: dict, last: int = 7) -> int:
        """Say it."""
        arrived.update(posed, model=str(model), data=data, last=last)
        return 0

    words = ["m.ode", "--set", "a=0:1", "--set", "b=2:", "--real", "e", "--map", "c=d", "--last", "9"]
    assert CliRunner().invoke(app, words).exit_code == 0
    given = {"bounds": ["a=0:1", "b=2:"], "real": ["e"], "map": ["c=d"], "model": "m.ode", "data": None, "last": 9}
    assert {name: arrived[name] for name in given} == given
    assert arrived["replicates"] == "keep"
    assert arrived["fixed"] is arrived["time"] is None
