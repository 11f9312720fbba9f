"""Step 1: curves through noisy data, one state at a time, and the units that everything later is computed in.

Gaussian processes (`kernels`, `evidence`, `operators`; `shape_grid` for thousands of states, `markov`
for thousands of times), and the smoothers of
other methods (`splines`, `ridge`). `smooth` does a whole problem; `residual_signal` asks what a fit has left.
Imports from `problem` and `noise`.
"""
