"""Pictures of a fit, each with the words that say what it shows to those who do not see it.

`states` has data, estimated states, phase portraits and inputs; `slopes` what the equations say about slopes, and γ;
`residuals` what is left of the data; `uncertainty` and `samples` how sure the estimates are. `marks` is what
they share. Imports from the style, judgement and uncertainty folders, and what a fit is made of.
"""
