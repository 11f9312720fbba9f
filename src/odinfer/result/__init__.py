"""A Fit and what one does with it: files, pictures, words and the report.

`assemble` makes one from a method's numbers, `from_draws` from a sampler's. Imports from `uncertainty` and before; what
`Fit` needs of its own folder it imports when asked.
"""
