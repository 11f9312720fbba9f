"""Compare candidate models of the same data.

`compare` ranks them; their equations are judged in `judgement`; `missing_terms` hints at what is lacking, `held_out`
scores predictions. Imports from `methods` and before.
"""
