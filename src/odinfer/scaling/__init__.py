"""Scales of parameters and hidden states from dimensional analysis of data and equations.

Start points and step sizes use them.
"""
