"""Tables, figures and words on a grid of runs, and the page that holds them.

Imports from `bench` and before.
"""
