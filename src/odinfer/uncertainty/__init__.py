"""Uncertainty at an optimum: intervals, profiles, bootstrap, posterior, identifiability.

`maximum` holds the optimum, `verification` re-integrates it, `information` and `small_sample` give its covariance.
`limits` is the root finder on the profile likelihood, `limit_verification` re-optimises from other start points, and
`quantities` has what can be profiled. `intervals`, `profile`, `bootstrap`, `posterior`, `forecast` and
`identifiability` are what users ask for, `results` what they get.
"""
