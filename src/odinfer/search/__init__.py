"""Search for the best trajectory: start points, strategies, and one acceptance test.

`multistart.py` is the one driver: it runs strategies, cheapest first, until its acceptance test is met. Strategies
are refinement from ODIN's minima (for relaxed problems by `gaussian_relaxation.py`), `evolutionary.py` with the
batched `trust_region.py`, `multiple_shooting.py`, `growing_horizon.py`, and `continuation.py` for many states.
`startpoints.py` and `event_startpoints.py` draw start points; `start_executor.py` distributes them over workers.
Afterwards `neighbours.py`, `rescaling.py`, `release.py` and `alternatives.py` look around the optimum.
`warm_start.py` needs no search.
"""
