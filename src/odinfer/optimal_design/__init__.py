"""Optimal experimental design: which samples determine the parameters best, or tell two models apart.

`basis.py` has what is known before (parameters, noise, information of existing data), `information.py` the Fisher
information of candidate samples, `criteria.py` what a design should make small, `exchange.py` the search,
`discrimination.py` the criterion for two models, `population.py` the information on a population's parameters,
`confirmation.py` the check by simulation, `result.py` and `figures.py` what comes out, `entry.py` the function
`design`, `next_measurements.py` the cheapest next measurement for each parameter that is not determined.
"""
