"""Tests of the model and of every equation, with a known false-alarm rate.

`verdicts.py` decides, for a fit and for a comparison; `model_test.py` tests the model as a whole, `equation_test.py`
each equation, by γ and by its own solution (`single_equation.py`); `monte_carlo.py` has the p-values.
"""
