"""How the best trajectory is found: from ODIN's minima, or from many starts where no smoother can be fitted.

`search.py` goes on from ODIN's minima, `multistart.py` from anywhere; both use growing horizons (`shooting.py`) and
bring back parameters that ran off (`runaways.py`). Imports from `trajectory` and what stands before it.
"""
