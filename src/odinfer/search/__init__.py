"""Search for the best trajectory: start points, strategies, and one acceptance test.

`search.py` goes on from ODIN's minima, `multistart.py` from anywhere (`starts.py`): both by growing horizons
(`shooting.py`), or, where all that is estimated has two bounds, by generations of starts (`generations.py`), which are
followed side by side (`follow.py`, `side_by_side.py`). Where horizons lead nowhere, `windows.py` cuts the data
into windows that grow together. `runaways.py` brings back parameters that ran off. `ahead.py`
goes on from what was found. Imports from `trajectory` and what stands before it.
"""
