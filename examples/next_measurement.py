"""When to take two more samples: the times that determine the clearance of a drug best after a pilot experiment."""

import odinfer as od

model = od.Model.from_text("""
gut' = -ka*gut
body' = ka*gut - CL/V*body
gut(0) = 100
body(0) = 0
conc ~ normal(body/V, 0.1)
ka > CL/V
""")
pilot = od.Data([0.5, 1, 1.5, 2, 4], [1.52, 2.24, 2.51, 2.83, 2.43], states=["conc"])
design = od.design(od.fit(model, pilot), add=2, times=(0, 36), for_="CL")
print(design)
