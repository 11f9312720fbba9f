"""Integrate trajectories, alone or in batches, with sensitivities, events, doses and steady states.

Every solver takes a problem's `Condition` or a batch of parameter sets and returns states at given times:

- `integrate_batch.py` integrates batches by RODAS (`rodas.py`), the default; `sensitivities.py` adds derivatives.
  Equations are encoded by `right_hand_side.py`, `bytecode.py` and `forcing.py` for the compiled loops in `kernels/`,
  which `interpreter.py` calls for single points; `breakpoints.py` says where steps must end, `event_crossing.py`
  handles events of states.
- `linear_propagation.py` replaces it for linear equations with constant coefficients.
- `collocation.py` solves Radau collocation equations on a mesh, which `adaptive_mesh.py` finds.
- `reference.py` integrates single trajectories of any model with SciPy, for `simulate.py` and `od.loglik`;
  `state_events.py` does so where states make events happen.

`steady_state.py` solves for steady states, `tolerance.py` has the error control. Compiled modules are imported where
they are used, since loading them takes a moment.
"""
