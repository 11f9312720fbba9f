"""Ends of likelihood intervals: `held.py` has the quantities that can be held, `find.py` how far each can go.

Where that is no answer, `elsewhere.py` asks from anywhere else (`way.py`, `pool.py`: what is known), or `shot.py` by
integration.

Imports from `trajectory` and what stands before it; nothing else of `uncertainty`.
"""
