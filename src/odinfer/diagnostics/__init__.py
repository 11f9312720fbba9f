"""Tests of the model and of every equation, with a known false-alarm rate.

`verdicts` is the one place that decides, for a fit and for a comparison; `equation_test` judges each equation by γ and
by its solution alone (`single_equation`), `model_test` all together. Imports from `uncertainty` and
before.
"""
