"""Visual style: drawing, text, tables and HTML pages.

Figures and reports of a fit are in `result/`, those of a comparison in `selection/`; here is what they share.
"""
