"""Compare candidate models of the same data.

`compare.py` ranks candidates, `missing_terms.py` hints at what an equation lacks, `held_out.py` scores predictions;
`report.py` and `figures.py` show them.
"""
