"""Results: Fit, summary, figures, report and files.

`assemble` makes one from a method's numbers, `from_draws` from a sampler's. Imports from `uncertainty` and before; what
`Fit` needs of its own folder it imports when asked.
"""
