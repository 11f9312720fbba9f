"""Results: Fit, summary, figures, report and files.

`assemble.py` makes a `Fit` from a method's numbers, `from_draws.py` from a sampler's; `fit.py` is what users get.
`summary.py` and `estimates.py` are its text, `figures/` and `report.py` its pictures and pages, `formats/` its files.
"""
