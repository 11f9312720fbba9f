"""Columns with any distribution: likelihood, gradients and information are right, whatever is censored or known."""

import numpy as np
import pytest
from scipy import stats

import odinfer as od
from odinfer.observation import observation_of
from odinfer.observation.column_model import Measured

T = np.arange(6.0)
MODEL = "x' = -k*x + k*y; y' = k*x - y"
X = np.stack([4.0 * np.exp(-0.3 * T), 1.0 + 0.5 * T], -1)[None]

CASES = {
    "normal(x)": ("x", X[0, :, 0] + 0.3),
    "normal(q*x, s0 + s1*x)": ("x", X[0, :, 0] * 1.3),
    "lognormal(x + y)": ("z", X[0].sum(-1) * 1.2),
    "lognormal(x, s)": ("z", X[0, :, 0] * 1.2),
    "student(x, s)": ("z", X[0, :, 0] + 0.7),
    "laplace(x, b)": ("z", X[0, :, 0] - 0.4),
    "poisson(rho*y)": ("n", np.arange(1.0, 7.0)),
    "negbinomial(y, r)": ("n", np.arange(6.0)),
    "binomial(x, 9)": ("n", np.array([4.0, 3, 3, 1, 0, 2])),
}


def problem(distribution, column, y, **more):
    model = od.Model.from_text(f"{MODEL}; {column} ~ {distribution}")
    return od.Problem(model, od.Data(T, y[:, None], states=[column], **more), positive=False)


def objective(p, phi, x=X):
    seen = observation_of(p)
    assert isinstance(seen, Measured)
    return seen.best([x], [e.y[None] for e in p.data.experiments], phi[None])


@pytest.mark.parametrize("distribution", CASES)
def test_the_gradient_of_the_likelihood_is_that_of_its_residuals(distribution):
    p = problem(distribution, *CASES[distribution])
    seen, phi = observation_of(p), np.full(len(p.free), 0.4)
    phi = np.where(p.is_log, np.log(0.4), phi)
    noise, loglik = objective(p, phi)
    assert np.isfinite(loglik).all()
    S = np.concatenate([np.broadcast_to(np.eye(2), (1, 6, 2, 2)), np.zeros((1, 6, 2, len(phi)))], -1)  # x0 moves x
    r, J = seen.rows(0, X, S, p.data.experiments[0].y[None], noise, phi[None])
    assert r.shape[-1] == len(seen.owners)
    gradient = np.einsum("bnr,bnrw->w", r, J)
    h = 1e-6
    for w, step in enumerate(h * np.eye(2 + len(phi))):
        up, down = (objective(p, phi + side * step[2:], X + side * step[:2])[1][0] for side in (1, -1))
        assert gradient[w] == pytest.approx(-(up - down) / (2 * h), rel=1e-4, abs=1e-5)


def test_an_sd_that_is_left_out_is_the_best_one_and_the_likelihood_is_scipys():
    p = problem("lognormal(x)", "x", X[0, :, 0] * np.exp(0.3 * np.array([1, -1, 0.5, 2, -1, -0.5])))
    noise, loglik = objective(p, np.array([0.3]))
    y = p.data.experiments[0].y[:, 0]
    sd = np.sqrt(np.mean(np.log(y / X[0, :, 0]) ** 2))
    assert noise[0, 0] == pytest.approx(sd**2)
    assert loglik[0] == pytest.approx(stats.lognorm.logpdf(y, sd, scale=X[0, :, 0]).sum())
    known = od.Problem(p.model, p.data, sigma={"x": 0.5}, positive=False)
    assert objective(known, np.array([0.3]))[1][0] == pytest.approx(
        stats.lognorm.logpdf(y, 0.5, scale=X[0, :, 0]).sum()
    )


def test_standard_deviations_by_row_are_taken_row_by_row():
    sd = np.linspace(0.1, 1.0, 6)
    p = od.Problem(
        od.Model.from_text(MODEL), od.Data(T, X[0] + 0.2, states=["x", "y"], sd=np.stack([sd, sd], -1)), positive=False
    )
    expected = stats.norm.logpdf(0.2, 0.0, np.stack([sd, sd])).sum()
    assert objective(p, np.array([0.3]))[1][0] == pytest.approx(expected)


def test_censored_values_count_by_the_probability_of_lying_beyond():
    y, limit = X[0, :, 0] + np.array([0.1, -0.2, 0.1, -0.1, 0.0, 0.0]), np.array([0, 0, 0, 0, -1, -1])
    model = od.Model.from_text("x' = -k*x")
    p = od.Problem(model, od.Data(T, y[:, None], states=["x"], limit=limit[:, None]), sigma={"x": 0.2}, positive=False)
    x = X[..., :1]
    expected = stats.norm.logpdf(y[:4], x[0, :4, 0], 0.2).sum() + stats.norm.logcdf(y[4:], x[0, 4:, 0], 0.2).sum()
    assert objective(p, np.array([0.3]), x)[1][0] == pytest.approx(expected)
    free = od.Problem(model, p.data, positive=False)
    variance, best = objective(free, np.array([0.3]), x)
    assert best[0] >= expected
    for factor in (0.97, 1.03):  # no other standard deviation is more likely
        other = od.Problem(model, p.data, sigma={"x": factor * float(np.sqrt(variance[0, 0]))}, positive=False)
        assert objective(other, np.array([0.3]), x)[1][0] < best[0]


@pytest.mark.parametrize("distribution", CASES)
def test_draws_are_missing_where_data_are_and_have_standard_normal_residuals(distribution):
    column, y = CASES[distribution]
    y = np.stack([np.where(np.arange(6) == 2, np.nan, y), np.arange(6.0)], -1)
    model = od.Model.from_text(f"{MODEL}; {column} ~ {distribution}; w ~ normal(y)")
    p = od.Problem(model, od.Data(T, y, states=[column, "w"]), positive=False)
    seen = observation_of(p)
    phi = np.where(p.is_log, np.log(0.4), 0.4)[None]
    drawn = seen.draw(np.random.default_rng(1), 0, X, phi, np.array([0.3, 1.0]), 3000)
    assert drawn.shape == (3000, 6, 2)
    np.testing.assert_array_equal(np.isnan(drawn), np.broadcast_to(np.isnan(y), drawn.shape))
    if seen.columns[0].family.discrete:
        assert (drawn[:, np.arange(6) != 2, 0] % 1 == 0).all()
    scores = seen.residuals(0, X, drawn, np.array([[0.09, 1.0]]), phi)[:, np.arange(6) != 2, 0]
    assert abs(scores.mean()) < 0.08
    # Middles of steps scatter less than what is spread over them.
    assert (0.7 if seen.columns[0].family.discrete else 0.95) < scores.std() < 1.05


def test_predictions_are_on_the_scale_of_the_data():
    p = problem("lognormal(x + y)", *CASES["lognormal(x + y)"])
    np.testing.assert_allclose(observation_of(p).predicted(0, X, np.array([[0.3]]))[0, :, 0], X[0].sum(-1))


def test_many_trajectories_side_by_side_equal_one_by_one():
    p = problem("negbinomial(rho*y, r)", *CASES["negbinomial(y, r)"])
    rng = np.random.default_rng(0)
    x, phi = X * rng.uniform(0.5, 2.0, (4, 1, 1)), rng.uniform(0.2, 1.0, (4, len(p.free)))
    seen, y = observation_of(p), p.data.experiments[0].y[None]
    noise, loglik = seen.best([x], [y], phi)
    for i in range(4):
        one = seen.best([x[i : i + 1]], [y], phi[i : i + 1])
        np.testing.assert_allclose([loglik[i]], one[1])
        np.testing.assert_allclose(
            seen.residuals(0, x, y, noise, phi)[i], seen.residuals(0, x[i : i + 1], y, noise[:1], phi[i : i + 1])[0]
        )


def test_predictions_that_a_distribution_cannot_have_are_impossible_and_no_exception():
    p = problem("poisson(y)", "n", np.arange(6.0))
    assert objective(p, np.array([0.3]), -X)[1][0] == -np.inf


@pytest.mark.parametrize(
    ("distribution", "known"),
    [("normal(x)", False), ("normal(x, s)", False), ("normal(x, 0.3)", True), ("poisson(x)", True),
     ("negbinomial(x)", False), ("negbinomial(x, 3)", True), ("normal(q*x, 0.1 + 0.2*x)", True)],
)  # fmt: skip
def test_a_level_of_noise_that_is_estimated_is_not_known(distribution, known):
    assert observation_of(problem(distribution, "z", np.arange(6.0))).is_known.tolist() == [known]
