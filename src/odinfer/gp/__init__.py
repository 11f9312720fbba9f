"""Step 1 of ODIN: Gaussian processes through noisy data, state by state, and standardised units.

Gaussian processes (`kernels`, `evidence`, `operators`; `shape_grid` for thousands of states, `markov`
for thousands of times), and the smoothers of
other methods (`splines`, `ridge`). `smooth` does a whole problem; `residual_signal` asks what a fit has left.
Imports from `problem` and `noise`.
"""
