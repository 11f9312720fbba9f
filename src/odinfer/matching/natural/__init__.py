"""What data and equations imply: sizes of parameters and of states that nobody has seen (`sizes`), and which parameters
need no start (`linear`).

Searches start there, before anything has been fitted. Imports from the folder above and before.
"""
