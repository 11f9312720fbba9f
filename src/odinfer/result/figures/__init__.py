"""Figures of a fit, each with a text alternative.

`states.py` and `phase.py` show data and states, `slopes.py` what the equations say about slopes, and γ;
`residuals.py` what is left of the data; `uncertainty.py` and `samples.py` the uncertainty; `inputs.py` doses and
inputs; `unknown.py` unknown functions. `marks.py` has what they share.
"""
