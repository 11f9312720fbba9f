"""The density of trajectories in JAX is the likelihood that everything else uses, whatever is observed and happens."""

import numpy as np
import pytest

import odinfer as od
from odinfer._jax import jax
from odinfer.likelihood.likelihood import Likelihood
from odinfer.ode.adaptive_mesh import integrated
from odinfer.problem.parameter_vector import ParameterVector
from odinfer.sampling import density as ds
from odinfer.sampling.trajectory_posterior import TrajectoryCode, TrajectoryData, compiled_functions, step_sequence

T = np.linspace(0.5, 6.0, 9)
PEAK = 3.0 * np.exp(-((T - 2.0) ** 2) / 4.0) + 0.2


def events() -> od.Problem:
    text = """gut' = -ka*gut; c' = ka*gut - ke*c
        gut(0) = 0; c(0) = b; log ka, ke, b
        at 0, 3: gut = gut + 4; at 3: c = c/2; at 4.1: gut = 0; at 4.1: c = 0.5*c + gut
        conc ~ lognormal(c/V, 0.2); fixed V = 1.5"""
    return od.Problem(od.Model.from_text(text), od.Data(T, PEAK, states=["conc"]), positive=False)


def doses() -> od.Problem:
    model = od.Model.from_text("c' = -k*c; c(0) = 0; obs ~ normal(c/V, 0.1 + s*c); log V")
    given = (od.Dose(0.0, 5.0, "c", 2.0), od.Dose(3.0, 2.0, "c"), od.Dose(5.0, 50.0, "1", 10.0))
    return od.Problem(model, od.Data(T, PEAK, states=["obs"], doses=given), positive=False)


def inputs() -> od.Problem:
    text = "step u; x' = u - k*x + where(t > 2.2, a, 0); n ~ negbinomial(5*x, d)"
    u = {"u": (np.array([0.0, 1.7, 4.0]), np.array([1.0, 3.0, 0.0]))}
    return od.Problem(od.Model.from_text(text), od.Data(T, np.round(5 * PEAK), states=["n"], inputs=u), positive=False)


def local() -> od.Problem:
    model = od.Model.from_text("x' = -k*x; h' = x - h; local k; log k; x(t0) = N; n ~ poisson(h*r)")
    data = {name: od.Data(T, np.round(PEAK * f), states=["n"]) for name, f in (("one", 2.0), ("two", 3.0))}
    return od.Problem(model, od.Data.join(data), positive=False)


def beyond_limits() -> od.Problem:
    model = od.Model.from_text("x' = -k*x; z' = x - z; x ~ student(x, 0.3, 4)")
    limit = np.zeros((9, 2))
    limit[[0, 5, 7]] = [[1, 0], [-1, 0], [-1, 0]]
    sd = {"z": np.linspace(0.1, 0.3, 9)}
    return od.Problem(
        model, od.Data(T, np.stack([PEAK, PEAK], -1), states=["x", "z"], limit=limit, sd=sd), positive=False
    )


def plain() -> od.Problem:
    y = np.stack([PEAK, PEAK[::-1]], -1)
    y[3, 0] = np.nan
    data = od.Data(T, y, states=["x", "z"])
    return od.Problem(
        od.Model.from_text("x' = -k*x; z' = x - z"),
        data,
        sigma={"x": 0.3, "z": 0.4},
        scale={"k": "log"},
        positive=False,
    )


@pytest.mark.parametrize("problem", [events, doses, inputs, local, beyond_limits, plain])
def test_the_density_is_the_likelihood_of_the_integrated_trajectory(problem):
    p = problem()
    u = ParameterVector(p, noise=True)
    assert not any(u.in_v)
    phi = np.linspace(0.3, 0.6, len(p.free))
    K, unknown = len(p.model.states), np.full(len(p.model.states), np.nan)
    x0, paths = [], []
    for e in range(len(p.data.experiments)):
        theta = p.theta_of(e, phi)
        free = np.linspace(2.0, 1.5, K)[p.model.free_initial]
        x0.append(p.condition(e).initial(theta[None], free[None])[0])
        paths.append(integrated(p, e, theta, x0[-1], unknown))
    likelihood = Likelihood(p, np.ones(K))
    x = [path.states(t)[None] for path, t in zip(paths, likelihood.t, strict=True)]
    right = float(likelihood.evaluate(x, phi[None]).loglik[0]) + phi[p.is_log].sum()  # uniform in θ, not in log θ
    form, parameters = ds.parameter_density(p)
    told = TrajectoryCode.of(p, form, u.layout)
    made = [step_sequence(p, e, path.mesh, 24) for e, path in enumerate(paths)]
    log_known = np.log(np.nan_to_num(p.known_sigma, nan=1.0))
    facts = TrajectoryData(parameters, tuple(path for path, _ in made), u.low, u.high, log_known)
    log_density, states = compiled_functions(told)
    v = u.join(x0, phi)
    value, slope = jax.jit(jax.value_and_grad(log_density, 1))(facts, v)
    assert np.isfinite(right)
    assert float(value) == pytest.approx(right, abs=1e-3)
    assert np.isfinite(slope).all()
    for found, (_, nodes), path in zip(states(facts, v[None]), made, paths, strict=True):
        np.testing.assert_allclose(np.asarray(found)[0][nodes], path.nodes, rtol=1e-4, atol=1e-4)
