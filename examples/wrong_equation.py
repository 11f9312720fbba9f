"""γ tells which equation the data contradict: the second model has the wrong law for prey only."""

import odinfer as od

data = od.systems.lotka_volterra.sample(noise=0.1, seed=3)
predator = "predator' = -c*predator + d*prey*predator"

for name, prey in {"right": "prey' = a*prey - b*prey*predator", "wrong": "prey' = a*prey^2 + b*predator"}.items():
    fit = od.fit(od.Model.from_text(f"{prey}\n{predator}", name=name), data)
    print(f"{name}: {fit.status}")
    for state, verdict in fit.verdicts.items():
        print(f"    the equation for {state}: {verdict} (γ = {fit.gamma[state]:.2g})")
