"""Many trajectories forward in time side by side, every one with steps of its own, and their sensitivities.

`rodas.py` is one step of a stiff method, `timetable.py` where steps must end and what jumps there, `field.py` what the
equations are asked at points of different experiments, `march.py` goes from start to end, `sensitivities.py` follows
with derivatives by initial values and parameters; `settled.py` asks whether systems came to rest; `trust_region.py` has
the steps of many searches. Imports from `matching` and what stands before it.
"""
