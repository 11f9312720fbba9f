"""The language of models: text in, programs of instructions with their derivatives out. Nothing in it is ever run.

`equations.py` reads the statements, `expression.py` one expression, `optional_terms.py` many models from one text;
`differentiate.py` turns programs into functions of numpy arrays with exact derivatives. Imports from `noise` what
families there are, and from what stands before it.
"""
