"""How sure a fit is: everything that goes on from a maximum of the likelihood.

`maximum` holds it, `information` and `small_sample` say what the data tell around it; `intervals` (by `ends`),
`profile`, `bootstrap`, `posterior`, `forecast` and `identifiability` are what users ask for, `results` what they get.
Imports from `sampling`, `trajectory` and before.
"""
