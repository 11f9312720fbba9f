"""The model language: parse text to instructions with derivatives. No text is ever executed.

`equations.py` puts together what `statements.py` reads line by line, `expression.py` expression by expression, and
`program.py` makes instructions of: `columns.py` what is observed and how, `initial.py` from where it starts,
`events.py` what jumps, `declarations.py` what is said about parameters. `optional_terms.py` makes many models of one
text. `traced.py` runs programs in JAX, `differentiate.py` turns them into functions of numpy arrays with exact
derivatives. Imports from `noise` what families there are, and from what stands before it.
"""
