"""Ends of likelihood intervals: `held.py` has the quantities that can be held, `find.py` how far each can go.

Imports from `trajectory` and what stands before it; nothing else of `uncertainty`.
"""
