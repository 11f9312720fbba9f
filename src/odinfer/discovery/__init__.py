"""Which terms do equations lack? Candidates are screened against smoothed states and refitted along trajectories.

`terms.py` has the candidates, `integral_form.py` the regression that screens them, `refit.py` fits a model with further
terms by the likelihood over trajectories, `missing_term.py` ranks one further term of a given model, `sparse.py` finds
equations from data alone, `discover.py` is the entry, `report.py` its words, files and figure.
"""
