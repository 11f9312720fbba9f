# ruff: noqa: E501  (a table of models, one a line)
"""Data sets as published, by the names of their CSV files, with the models that are held against them."""

from __future__ import annotations

# The columns of a file are the states of its model.
REAL: dict[str, str] = {
    "carlson_yeast": "N' = r*N*(1 - N/K)",
    "gause_1935": "prey' = r*prey - a*prey*predator; predator' = -m*predator + b*prey*predator",
    "hare_lynx": "Hare' = a*Hare - b*Hare*Lynx; Lynx' = -g*Lynx + d*Hare*Lynx",
    "bod": "demand' = k*(A - demand)",
    "orange_trees": "C' = C*(1 - C/Asym)/scal",
    "hiv_decay": "V' = q*exp(-delta*t) - c*V; log q, delta, c",
    "alpha_pinene": "y1' = -(p1 + p2)*y1; y2' = p1*y1; y3' = p2*y1 - (p3 + p4)*y3 + p5*y5; y4' = p3*y3; y5' = p4*y3 - p5*y5",
    "gause_competition": "Pc' = r*Pc*(1 - (Pc + a*Pa)/K); Pa' = s*Pa*(1 - (Pa + b*Pc)/L)",
    "indomethacin": "conc' = -a*conc + b*exp(-c*t); log b, c",
    "bellman_no": "y' = p1*(126.2 - y)*(91.9 - y)^2 - p2*y^2",
}  # fmt: skip
# Here a state is hidden.
HIDDEN: dict[str, str] = {
    "school_flu": "S' = -b*S*I/763; I' = b*S*I/763 - g*I; S(0) = 762",
}  # fmt: skip
