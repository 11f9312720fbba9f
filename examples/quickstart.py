"""Ten lines from equations and data to parameters: noisy prey and predators."""

import odinfer as od

model = """
    prey' = a*prey - b*prey*predator
    predator' = -c*predator + d*prey*predator
"""
data = od.systems.lotka_volterra.sample(noise=0.1, seed=0)  # or a DataFrame, or "data.csv"

fit = od.fit(model, data, seed=0)

print(fit.summary())
print(fit.predict([0.05, 0.5, 1.95]).round(3))
fit.plot("quickstart.png")
fit.save("quickstart.json")
assert od.load("quickstart.json").theta == fit.theta
