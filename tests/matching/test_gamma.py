"""G"""


@settings(FEW, max_examples=60)
@given(seed=SEEDS, shared=st.booleans())
def test_best_gamma_is_the_global_minimum(seed, shared):
    rng = np.random.default_rng(seed)
    K, M = rng.integers(1, 4), rng.integers(3, 40)
    w = 10.0 ** rng.uniform(-8, 2, (K, M))
    e = np.sqrt(w + 10.0 ** rng.uniform(-8, 2, (K, 1))) * rng.normal(size=(K, M)) * 10.0 ** rng.uniform(-1, 1, (K, 1))
    low, high = 1e-6, 1e3
    found = best_gamma(w, e, (low, high), shared)
    assert found.shape == (K,)
    assert (found >= low * (1 - 1e-9)).all()
    assert (found <= high * (1 + 1e-9)).all()
    grid = np.geomspace(low, high, 4001)

    def risk(w, e, gamma):
        spread = w[..., None] + gamma
        return (e[..., None] ** 2 / spread + np.log(spread)).sum(-2)

    if shared:
        assert (found == found[0]).all()
        w, e, found = w.reshape(1, -1), e.reshape(1, -1), found[:1]
    for k in range(len(found)):
        best = risk(w[k : k + 1], e[k : k + 1], grid).min()
        assert risk(w[k : k + 1], e[k : k + 1], found[k])[0] <= best + 1e-6 * (1 + abs(best))
