"""Discover missing terms: screen candidates against smoothed states, refit them along trajectories, test the best.

`terms.py` has the candidates, `integral_form.py` the regression behind `screening.py`, `refit.py` fits a model with
further terms by the likelihood over trajectories, `sparse.py` finds equations from data alone, `discover.py` is the
entry, `verdicts.py` decides, and `result.py`, `report.py` and `figures.py` present.
"""
