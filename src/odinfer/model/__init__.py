"""The model language: parse text to instructions with derivatives. No text is ever executed.

`parser.py` combines what `statements.py` reads line by line and `expression.py` expression by expression;
`program.py` makes instructions of both. `distributions.py`, `initial_values.py`, `events.py`, `declarations.py`,
`random_effects.py` and `unknown_functions.py` are about one kind of statement each; `optional_terms.py` makes several
models of one text. `differentiation.py` evaluates instructions in numpy with exact derivatives, `jax_program.py` in
JAX; `numpy_field.py` is for models that are Python functions.
"""
