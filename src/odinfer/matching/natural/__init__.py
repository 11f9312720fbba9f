"""What sizes the data and the equations imply: of parameters (`scales`), and of states that nobody has seen (`sizes`).

Searches start there, before anything has been fitted. Imports from the folder above and before.
"""
