"""Thresholds and wording of the verdicts of a search for missing terms."""

NOTHING, FOUND, TIED = "nothing is missing", "a term is missing", "these cannot be told apart"
NO_TERM = "no single term explains what the model misses"
EQUATIONS, CONTRADICTED = "the equations agree with the data", "the equations found contradict the data"
NO_EQUATIONS = "no trajectory of the equations found follows the data"
AS_GOOD = 2.0  # units of BIC: terms that are no further behind the best cannot be told apart from it
LEVEL = 0.05  # of the simulated test
