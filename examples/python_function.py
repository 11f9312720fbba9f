"""A model as a plain numpy function, ODIN alone with chosen options, and the paper's own settings on the same data."""

import odinfer as od


def spiking(t, x, a, b, c):
    V, R = x
    return [c * (V - V**3 / 3 + R), -(V - a + b * R) / c]


model = od.Model(spiking, states=["V", "R"], name="spiking")
system = od.systems.fitzhugh_nagumo
data = system.sample(noise=100, seed=0)

ours = od.fit(model, data, start={"c": 2.0}, method=od.Odin(kernel="matern52", refine=False), seed=0)
paper = od.fit(system.problem(data), method=od.Odin.paper(system), seed=0)
full = od.fit(model, data)
for label, fit in {"ODIN": ours, "ODIN, the paper's settings": paper, "default": full}.items():
    print(f"{label:28}", {name: round(fit.theta[name], 3) for name in "abc"}, fit.status)
