"""Integrate trajectories, alone or in batches, with sensitivities, events, doses and steady states.

`tape.py` has the equations as numbers, which the compiled loops of `machine.py` run (`compiled.py`), and `drive.py`
what changes in time beside them; `field.py` is both. `rodas.py` is one step of a stiff method, `timetable.py` where
steps must end and what jumps there, `march.py` goes from start to end, `sensitivities.py` follows with derivatives by
initial values and parameters; `settled.py` asks whether systems came to rest; `trust_region.py` has the steps of many
searches; `triggered.py` is for one trajectory whose states make events happen. What is compiled is imported where it is
used, since that takes a moment. Imports from `matching` and what stands before it.
"""
