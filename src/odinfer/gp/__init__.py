"""Step 1 of ODIN: Gaussian processes through noisy data, state by state, and standardised units.

`kernels.py`, `evidence.py` and `operators.py` are Gaussian process regression (`shared_hyperparameters.py` for
thousands of states, `markov/` for thousands of times), `smoother.py` does a whole problem; `splines.py` and
`kernel_ridge.py` are smoothers of other methods. `residual_signal.py` tests what a fit leaves of the data.
"""
