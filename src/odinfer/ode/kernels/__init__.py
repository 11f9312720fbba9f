"""Loops over single numbers in C: what is done step by step cannot be done for all steps at once in numpy.

Models are not compiled: their instructions are numbers (bytecode.py), and the function that runs them is the same for
all. The library is compiled when the package is installed (build.py) and called through ctypes (library.py).
"""
