"""Is a term needed? What stands in square brackets is optional; every combination is a candidate."""

import odinfer as od

text = """
prey' = a*prey - b*prey*predator [- e*prey^2]
predator' = -c*predator [+ d*prey*predator]
"""
data = od.systems.lotka_volterra.sample(noise=0.1, seed=0)
comparison = od.compare(od.candidates(text, "lv"), data, draws=99)

print(comparison.summary())
comparison.save("comparison")  # a folder: comparison.html first
