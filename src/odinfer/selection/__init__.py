"""Which model, and which of its equations is wrong?

`compare` ranks candidates; `equation_test` judges each equation by γ and by its solution alone (`single_equation`,
`residual_signal`), `model_test` all together; `missing_terms` hints at what is lacking, `held_out` scores predictions.
Imports from `methods` and before.
"""
