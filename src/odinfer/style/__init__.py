"""Visual style: drawing, text, tables and HTML pages.

What is drawn and said stands with what it is about: figures and reports of a fit in `result`, of a comparison in
`selection`. Imports nothing of the package but what stands at the top.
"""
