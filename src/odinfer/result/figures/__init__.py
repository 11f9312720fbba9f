"""Figures of a fit, each with a text alternative.

`states` has data, estimated states, phase portraits and inputs; `slopes` what the equations say about slopes, and γ;
`residuals` what is left of the data; `uncertainty` and `samples` how sure the estimates are. `marks` is what
they share. Imports from the style, judgement and uncertainty folders, and what a fit is made of.
"""
