"""What data and equations imply: sizes of parameters and of states that nobody has seen (`sizes`), which parameters
need no start (`linear`), how fast sines of time may run (`rhythms`), and from which size on a parameter
matters (`onset`).

Searches start there, before anything has been fitted. Imports from the folder above and before.
"""
