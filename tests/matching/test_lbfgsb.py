"""L"""


def test_both_optimisers_reach_the_same_risk(easy):
    ours = gauss_newton(easy, easy.mean, TRUTH, GammaRule())
    theirs = lbfgsb(easy, easy.mean, TRUTH, GammaRule())
    assert ours.risk == pytest.approx(theirs.risk, abs=0.5)
    assert ours.risk <= theirs.risk + 1e-3
    np.testing.assert_allclose(ours.phi, theirs.phi, rtol=0.02)
    assert ours.iterations < theirs.iterations


def test_basin_hopping_reaches_the_same_risk_too_and_repeats_with_its_seed(easy):
    ours = gauss_newton(easy, easy.mean, TRUTH, GammaRule(shared=True))
    hopped = [
        lbfgsb(easy, easy.mean, TRUTH, GammaRule(shared=True), hops=2, rng=np.random.default_rng(1)) for _ in range(2)
    ]
    assert hopped[0].risk == pytest.approx(ours.risk, abs=0.5)
    np.testing.assert_array_equal(hopped[0].z, hopped[1].z)
    assert hopped[0].gamma[0] == hopped[0].gamma[1]
