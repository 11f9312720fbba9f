"""What `simulate` writes: solutions with observables, and data as the model's distributions make them."""

import csv
from pathlib import Path

import numpy as np
import pytest

import odinfer as od
from apps.command.commands import odinfer
from odinfer.apps.command.simulate import csv_text, read_noise

T = np.linspace(0.0, 4.0, 2001)
NOTHING: dict[str, float] = {}


def test_without_noise_states_and_predicted_columns_are_written():
    model = od.Model.from_text("x' = -k*x; n ~ poisson(3*x); x(0) = A")
    found = csv_text(model, {"k": 0.5, "A": 4.0}, NOTHING, T, {}, 0.0, 0)
    assert list(found) == ["time", "x", "n"]
    np.testing.assert_allclose(found["x"], 4 * np.exp(-0.5 * T), rtol=1e-7)
    np.testing.assert_allclose(found["n"], 3 * found["x"])


@pytest.mark.parametrize("sd", [0.3, None])
def test_with_noise_columns_are_drawn_from_their_distributions(sd):
    own = "y ~ normal(x)" if sd else "y ~ normal(x, s)"
    model = od.Model.from_text(f"x' = -k*x; n ~ poisson(3*x); {own}; fixed k = 0.5")
    theta = {"k": 0.5, **({} if sd else {"s": 0.3})}
    found = csv_text(model, theta, {"x": 40.0}, T, {}, sd, 1)
    x = 40 * np.exp(-0.5 * T)
    assert list(found) == ["time", "n", "y"]
    assert (found["n"] % 1 == 0).all()
    assert np.mean((found["n"] - 3 * x) ** 2 / (3 * x)) == pytest.approx(1.0, abs=0.15)
    assert np.std(found["y"] - x) == pytest.approx(0.3, abs=0.03)


def test_events_and_steps_of_inputs_are_followed():
    model = od.Model.from_text("x' = -x + u; at 1, 2: x = x + 5; step u; x(0) = 0")
    found = csv_text(
        model,
        NOTHING,
        NOTHING,
        np.array([0.0, 1.0, 1.5, 3.0]),
        {"u": (np.array([0.0, 2.0]), np.array([0.0, 1.0]))},
        0.0,
        0,
    )
    at_two = 5 * np.exp(-1.0) + 5
    np.testing.assert_allclose(
        found["x"], [0.0, 0.0, 5 * np.exp(-0.5), 1 + (at_two - 1) * np.exp(-1.0)], rtol=1e-6, atol=1e-9
    )


def test_noise_that_nobody_gave_is_asked_for():
    states = od.Model.from_text("x' = -x")
    with pytest.raises(od.InputError, match="--noise model: the model has no distributions"):
        csv_text(states, NOTHING, {"x": 1.0}, T, {}, None, 0)
    column = od.Model.from_text("x' = -x\ny ~ normal(x)")
    with pytest.raises(od.InputError, match="line 2: 'y' has no sd"):
        csv_text(column, NOTHING, {"x": 1.0}, T, {}, None, 0)
    for text in ("much", "-1", "nan"):
        with pytest.raises(od.InputError, match="--noise"):
            read_noise(text)


MODEL = """S' = -b*S*I/N
I' = b*S*I/N - g*I
cases ~ poisson(rho*I)
S(0) = N - I(0); 0 < I(0) < 50
log b, g; fixed rho = 0.5; fixed N = 1000
"""


def test_what_is_simulated_can_be_checked_and_fitted(tmp_path: Path):
    (tmp_path / "sir.ode").write_text(MODEL)
    truth = "b=0.7,g=0.3,I(0)=5"
    run = odinfer(
        "simulate", "sir.ode", "--theta", truth, "--times", "0:40:30", "--noise", "model", "-o", "d.csv", cwd=tmp_path
    )
    assert run.code == 0, run.stderr
    with (tmp_path / "d.csv").open() as file:
        assert next(csv.reader(file)) == ["time", "cases"]
    run = odinfer("check", "sir.ode", "d.csv", cwd=tmp_path)
    assert run.code == 0, run.stderr
    for line in (
        "cases is Poisson with mean rho*I.",
        "S and I are hidden.",
        "Given at time 0: S(0) = N - I(0).",
        "Looks good.",
    ):
        assert line in run.stdout
    run = odinfer("fit", "sir.ode", "d.csv", "--truth", truth, cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert run.stderr == ""
    assert "The model is consistent with the data" in run.stdout
    fit = od.load(tmp_path / "sir-fit" / "fit.json")
    assert fit.noise == {"cases": "poisson"}
    assert fit.theta["b"] == pytest.approx(0.7, rel=0.2)
    low, high = fit.interval()["g"]
    assert low < 0.3 < high
    with (tmp_path / "sir-fit" / "states.csv").open() as file:
        assert next(csv.reader(file))[-3:] == ["cases", "cases_low", "cases_high"]


def test_a_state_without_a_column_is_hidden_and_said_to_be(tmp_path: Path):
    (tmp_path / "m.ode").write_text("x' = -a*x\ny' = a*x - b*y\nx(0) = 10; y(0) = 0; log a, b")
    t = np.linspace(0, 6, 13)
    y = 10 * 0.9 / (0.4 - 0.9) * (np.exp(-0.9 * t) - np.exp(-0.4 * t)) + 0.05 * np.random.default_rng(0).normal(size=13)
    rows = "\n".join(f"{a:g},{b:.4f}" for a, b in zip(t, y, strict=True))
    (tmp_path / "d.csv").write_text(f"time,y\n{rows}")
    run = odinfer("check", "m.ode", "d.csv", cwd=tmp_path)
    assert run.code == 0
    assert run.stderr == "note: 'x' has no column in the data: hidden\n"
    assert "x is hidden." in run.stdout
    assert "Given at time 0: x(0) = 10, y(0) = 0." in run.stdout


def test_events_with_delays_are_simulated_and_checked_but_not_fitted(tmp_path: Path):
    (tmp_path / "m.ode").write_text("V' = I - V\nV(0) = 0\nwhen V > 1 {delay 0.1}: V = 0\n0 < I < 5\n")
    run = odinfer("simulate", "m.ode", "--theta", "I=2", "--times", "0:4:9", "-o", "d.csv", cwd=tmp_path)
    assert run.code == 0, run.stderr
    run = odinfer("check", "m.ode", "d.csv", cwd=tmp_path)
    assert run.code == 0, run.stderr
    assert "Whenever V > 1 becomes true" in run.stdout
    assert "Can be simulated, but not fitted: an event has a delay." in run.stdout
    (tmp_path / "other.ode").write_text("V' = I - V\n")
    for command in ("fit m.ode d.csv", "fit m.ode d.csv --each", "compare other.ode m.ode d.csv"):
        run = odinfer(*command.split(), cwd=tmp_path)
        assert run.code == 2
        assert "line 3: an event with a delay can be simulated" in run.stderr
        assert "but not fitted; write 'at TIME:' if its time is known" in run.stderr
