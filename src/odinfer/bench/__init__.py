"""The benchmark suite: a grid of runs, computed on one machine or many, kept in a durable store, and reported."""
