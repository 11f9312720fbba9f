"""Two experiments that share parameters, a known input u(t), missing values, bounds, a prior and a fixed value."""

import numpy as np

import odinfer as od

model = od.Model.from_text("""
    # a substance with an infusion u(t), eliminated by a saturable process
    c' = u - Vmax*c/(Km + c) - ke*c
    input u
    Vmax > 0
    Km ~ lognormal(1, 0.5)
    fixed ke = 0.05
""")

truth = {"Vmax": 1.2, "Km": 0.8, "ke": 0.05}
t = np.linspace(0.0, 10.0, 21)
rng = np.random.default_rng(1)
experiments = {}
for name, c0, rate in (("bolus", 4.0, 0.0), ("infusion", 0.2, 1.0)):
    infusion = (t, np.where(t < 5.0, rate, 0.0))
    c = od.simulate(model, truth, [c0], t, inputs={"u": infusion})
    y = c + 0.05 * rng.normal(size=c.shape)
    y[::7] = np.nan  # samples that were lost
    experiments[name] = od.Data(t, y, states=["c"], inputs={"u": infusion})

fit = od.fit(od.Problem(model, od.Data.join(experiments), bounds={"c": (0, None)}), seed=0)
print(fit.summary())
print(fit.states_of("infusion").head())
