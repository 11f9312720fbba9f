"""Step 2 of ODIN: minimise the risk that matches slopes of the smoothed curves with the equations.

`risk` and `gamma` are the paper's, `minimise` and `lbfgsb` the optimisers, `starts` where they start (at the sizes that
`natural` finds), and `search` the stage as a whole. An engine is a risk that minimises itself: `dense`, `sparse` for
many states, or `markov` for many times; `engine` chooses. `levenberg` is the loop that every search of the package goes
through. Imports from `smoothing` and before.
"""
