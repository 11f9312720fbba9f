# ruff: noqa: E501  (a table of models, one a line)
"""Fit models to published data sets, and compare estimates with published values.

    python benchmarks/real.py FOLDER [--only NAME]

Models are listed by the names of CSV files. Of local parameters the table shows geometric means over experiments.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import odinfer as od

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
# What was published about them: equations and noise where they differ from those above, and values of parameters.
PUBLISHED: dict[str, tuple[str, dict[str, float]]] = {
    "carlson_yeast": ("", {"r": 0.547, "K": 662.0}),
    "hare_lynx": (
        REAL["hare_lynx"] + "; Hare ~ lognormal(Hare); Lynx ~ lognormal(Lynx)",
        {"a": 0.545, "b": 0.028, "g": 0.803, "d": 0.024},
    ),
    "bod": ("demand' = k*(A - demand); demand(0) = 0", {"k": 0.53, "A": 19.1}),
    "orange_trees": (REAL["orange_trees"] + "; local Asym", {"Asym": 192.0}),
    "alpha_pinene": (
        REAL["alpha_pinene"] + "; y1(0) = 100; y2(0) = 0; y3(0) = 0; y4(0) = 0; y5(0) = 0",
        {"p1": 5.93e-5, "p2": 2.96e-5, "p3": 2.05e-5, "p4": 27.5e-5, "p5": 4.00e-5},
    ),
    "bellman_no": (REAL["bellman_no"] + "; y(0) = 0", {"p1": 4.577e-6, "p2": 2.796e-4}),
    "school_flu": (
        "S' = -R0*g*S*I/763; I' = R0*g*S*I/763 - g*I; S(0) = 763 - I(0); 0 < I(0) < 20; log R0, g", {"R0": 3.78},
    ),
    "theophylline": (
        """gut' = -ka*gut; body' = ka*gut - ke*body; conc ~ normal(body/V); gut(t0) = dose; body(t0) = 0
        input dose; local ka, ke, V; log ka, ke, V; ka > 0.3; ke < 0.3""",
        {"ka": 1.5, "ke": 0.085, "V": 0.5},
    ),
}  # fmt: skip


def typical(fit: od.Fit, name: str) -> tuple[float, float, float]:
    """Estimate and 95 % limits of a parameter; geometric means over the experiments of a local one."""
    limits = fit.interval()
    rows = [(v, *limits[n]) for n, v in fit.theta.items() if n.partition("[")[0] == name and n in limits]
    with np.errstate(divide="ignore"):
        low, middle, high = np.exp(np.log(np.maximum([(a, v, b) for v, a, b in rows], 0.0)).mean(0))
    return float(middle), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(
        "| data | parameter | estimate | 95 % interval | published | model test p | CPU s |\n|---|---|---|---|---|---|---|"
    )
    for name in dict.fromkeys([*REAL, *HIDDEN, *PUBLISHED]):
        if options.only not in name:
            continue
        text, known = PUBLISHED.get(name, ("", {}))
        model = od.Model.from_text(text or (REAL | HIDDEN)[name], name)
        clock = time.process_time()
        inputs = ("dose",) if "dose" in model.inputs else ()
        fit = od.fit(model, od.read_csv(options.folder / f"{name}.csv", inputs=inputs))
        seconds = time.process_time() - clock
        p = fit.details.get("model_test", {}).get("p", np.nan)
        for i, parameter in enumerate(dict.fromkeys(n.partition("[")[0] for n in fit.interval())):
            value, low, high = typical(fit, parameter)
            shown = f"{known[parameter]:.4g}" if parameter in known else "-"
            rest = f"{p:.2g} | {seconds:.1f}" if i == 0 else " | "
            print(
                f"| {name if i == 0 else ''} | {parameter} | {value:.4g} | {low:.3g} to {high:.3g} | {shown} | {rest} |",
                flush=True,
            )
        for warning in fit.warnings:
            print(f"  {name}: {warning}", file=sys.stderr)


if __name__ == "__main__":
    main()
