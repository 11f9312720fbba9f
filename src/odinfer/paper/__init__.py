"""The experiments of Wenk et al. (AAAI 2020): its systems, the methods it compares with, and benchmark grids.

No other part of inference depends on this folder. Methods are registered in `odinfer.methods.MODULES`.
"""
