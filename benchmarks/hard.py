# ruff: noqa: E501  (tables of systems, one a line)
"""What happens with problems nobody here made: stiff, chaotic, badly scaled, and just different systems; real data.

    .venv/bin/python benchmarks/hard.py [--group named|fresh|scaled|units|real] [--only NAME …] [--seeds 5] [--workers 2]
        [--keep FILE]

`named` are systems that once failed, and were mended; `fresh` were never used to mend anything; `scaled` are those of
`fresh` whose equations stay what they are in other units, in such units that parameters lie between 1e-9 and 1e9;
`units` are all of `fresh` in any units of states, time and parameters, which makes numbers in the text others; `real`
are data sets as published. Every fit is compared with the best likelihood known: its own, or that of the best
trajectory from the truth in the first units (for real data, of all seeds). Columns: fits that reached it to 0.1 nats; that missed it and said "converged"; that
said that they failed or kept ODIN's estimate; right equations accused; exceptions; CPU seconds (median, largest).
With `--keep`, every fit is a line of a file, and those that are there already are not made again.
"""

from __future__ import annotations

import argparse
import os
import re
import time
import traceback
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import kept
from real import REAL

System = tuple[str, dict[str, float], list[float], Any, float]

_HH = (
    "v' = (I - gna*m^3*h*(v - 50) - gk*n^4*(v + 77) - gl*(v + 54.4))/c; "
    "m' = 0.1*(v + 40)/(1 - exp(-(v + 40)/10))*(1 - m) - 4*exp(-(v + 65)/18)*m; "
    "h' = 0.07*exp(-(v + 65)/20)*(1 - h) - h/(1 + exp(-(v + 35)/10)); "
    "n' = 0.01*(v + 55)/(1 - exp(-(v + 55)/10))*(1 - n) - 0.125*exp(-(v + 65)/80)*n; fixed c = 1"
)
_CALCIUM = (
    "x' = r*(v0 + v1*b - v2*x^2/(k2^2 + x^2) + v3*y^2/(k3^2 + y^2)*x^4/(ka^4 + x^4) + kf*y - k*x); "
    "y' = r*(v2*x^2/(k2^2 + x^2) - v3*y^2/(k3^2 + y^2)*x^4/(ka^4 + x^4) - kf*y); "
    "fixed v0 = 1; fixed b = 0.301; fixed k2 = 1; fixed k3 = 2; fixed ka = 0.9; fixed r = 1"
)

# name: equations, true parameters, initial values, times, noise in standard deviations of each state
NAMED: dict[str, System] = {
    "robertson": ("x' = -a*x + b*y*z; y' = a*x - b*y*z - c*y^2; z' = c*y^2", {"a": 0.04, "b": 1e4, "c": 3e7}, [1, 0, 0], np.geomspace(1e-5, 1e5, 40), 0.02),
    "oregonator": ("x' = a*(y - x*y + x - q*x^2); y' = (-y - x*y + f*z)/a; z' = w*(x - z)", {"a": 77.27, "q": 8.375e-6, "f": 1.0, "w": 0.161}, [1, 2, 3], np.linspace(0, 360, 60), 0.02),
    "van der pol 100": ("x' = y; y' = m*(1 - x^2)*y - x", {"m": 100.0}, [2, 0], np.linspace(0, 200, 40), 0.02),
    "van der pol 1000": ("x' = y; y' = m*(1 - x^2)*y - x", {"m": 1000.0}, [2, 0], np.linspace(0, 2000, 40), 0.02),
    "lienard 100": ("x' = m*(y - x^3/3 + x); y' = -x/m", {"m": 100.0}, [2, 0.6], np.linspace(0, 200, 40), 0.02),
    "lienard 1000": ("x' = m*(y - x^3/3 + x); y' = -x/m", {"m": 1000.0}, [2, 0.6], np.linspace(0, 2000, 40), 0.02),
    "two rates": ("x' = -a*x; y' = a*x - b*y", {"a": 1e6, "b": 1e-6}, [1, 0], np.geomspace(1e-7, 3e6, 40), 0.02),
    "hodgkin-huxley": (_HH, {"I": 10.0, "gna": 120.0, "gk": 36.0, "gl": 0.3}, [-65, 0.05, 0.6, 0.32], np.linspace(0, 30, 80), 0.02),
    "calcium": (_CALCIUM, {"v1": 7.3, "v2": 65.0, "v3": 500.0, "kf": 1.0, "k": 10.0}, [0.2, 2.0], np.linspace(0, 4, 60), 0.02),
    "blow-up": ("x' = a*x^2", {"a": 1.0}, [1.0], np.linspace(0, 0.999, 25), 0.01),
    "lorenz, 20 units": ("x' = s*(y - x); y' = x*(r - z) - y; z' = x*y - b*z", {"s": 10.0, "r": 28.0, "b": 8 / 3}, [-8, 7, 27], np.linspace(0, 20, 400), 0.02),
    "hill": ("x' = a/(1 + x^n) - b*x", {"a": 5.0, "n": 4.0, "b": 1.0}, [0.1], np.linspace(0, 6, 20), 0.03),
    "repressilator, free exponent": ("a' = k/(1 + c^n) - a; b' = k/(1 + a^n) - b; c' = k/(1 + b^n) - c", {"k": 10.0, "n": 3.0}, [1, 2, 3], np.linspace(0, 15, 40), 0.03),
}  # fmt: skip

FRESH: dict[str, System] = {
    "exponential growth": ("x' = r*x", {"r": 0.3}, [2.0], np.linspace(0, 10, 15), 0.03),
    "richards": ("n' = r*n*(1 - (n/K)^v)", {"r": 0.8, "K": 20.0, "v": 2.0}, [1.0], np.linspace(0, 12, 30), 0.03),
    "von bertalanffy": ("w' = a*w^(2/3) - b*w; w > 0", {"a": 1.0, "b": 0.3}, [0.5], np.linspace(0, 20, 25), 0.03),
    "allee": ("n' = r*n*(n/A - 1)*(1 - n/K)", {"r": 0.5, "A": 2.0, "K": 10.0}, [3.0], np.linspace(0, 12, 25), 0.03),
    "ricker flow": ("n' = n*(b*exp(-c*n) - d)", {"b": 2.0, "c": 0.3, "d": 0.4}, [0.5], np.linspace(0, 10, 25), 0.03),
    "cooling": ("T' = -k*(T - A)", {"k": 0.15, "A": 20.0}, [90.0], np.linspace(0, 30, 20), 0.03),
    "torricelli, two tanks": ("h' = -a*sqrt(h); g' = a*sqrt(h) - b*sqrt(g); h > 0; g > 0", {"a": 0.3, "b": 0.2}, [4.0, 1.0], np.linspace(0, 8, 25), 0.03),
    "driven circuit": ("q' = -q/tau + v*cos(w*t)", {"tau": 0.8, "v": 2.0, "w": 3.0}, [0.0], np.linspace(0, 6, 40), 0.03),
    "competition": ("a' = r*a*(1 - (a + p*b)/K); b' = s*b*(1 - (b + q*a)/L)", {"r": 0.8, "p": 0.6, "K": 10.0, "s": 0.5, "q": 0.9, "L": 8.0}, [1.0, 2.0], np.linspace(0, 25, 30), 0.03),
    "rosenzweig-macarthur": ("n' = r*n*(1 - n/K) - a*n*p/(1 + b*n); p' = e*a*n*p/(1 + b*n) - m*p", {"r": 1.0, "K": 10.0, "a": 1.0, "b": 0.5, "e": 0.6, "m": 0.4}, [4.0, 1.0], np.linspace(0, 30, 50), 0.03),
    "holling-tanner": ("n' = r*n*(1 - n/K) - a*n*p/(h + n); p' = s*p*(1 - c*p/n)", {"r": 1.0, "K": 10.0, "a": 1.2, "h": 1.5, "s": 0.3, "c": 1.0}, [5.0, 1.0], np.linspace(0, 40, 50), 0.03),
    "food chain": ("x' = x*(1 - x) - a*x*y/(1 + b*x); y' = a*x*y/(1 + b*x) - c*y*z/(1 + d*y) - m*y; z' = c*y*z/(1 + d*y) - n*z", {"a": 5.0, "b": 3.0, "c": 0.1, "d": 2.0, "m": 0.4, "n": 0.01}, [0.8, 0.2, 9.0], np.linspace(0, 80, 80), 0.03),
    "sirs with births": ("S' = m*(1 - S) - b*S*I + w*R; I' = b*S*I - g*I - m*I; R' = g*I - w*R - m*R", {"m": 0.02, "b": 0.8, "w": 0.05, "g": 0.2}, [0.95, 0.05, 0.0], np.linspace(0, 80, 50), 0.03),
    "hiv target cells": ("T' = s - d*T - b*T*V; I' = b*T*V - e*I; V' = p*I - c*V", {"s": 10.0, "d": 0.1, "b": 0.002, "e": 0.5, "p": 10.0, "c": 3.0}, [100.0, 0.0, 5.0], np.linspace(0, 40, 50), 0.03),
    "influenza within host": ("T' = -b*T*V; I' = b*T*V - d*I; V' = p*I - c*V", {"b": 3e-5, "d": 2.0, "p": 0.02, "c": 3.0}, [4e8 / 1e3, 0.0, 1.0], np.linspace(0, 12, 40), 0.03),
    "chemostat": ("s' = D*(s0 - s) - mu*s*x/(k + s)/Y; x' = mu*s*x/(k + s) - D*x", {"D": 0.2, "s0": 10.0, "mu": 0.6, "k": 1.5, "Y": 0.5}, [10.0, 0.2], np.linspace(0, 25, 40), 0.02),
    "enzyme, mass action": ("s' = -a*s*e + b*c; e' = -a*s*e + (b + k)*c; c' = a*s*e - (b + k)*c; p' = k*c", {"a": 2.0, "b": 0.5, "k": 1.0}, [5.0, 1.0, 0.0, 0.0], np.linspace(0, 10, 40), 0.03),
    "reversible chain": ("a' = -k1*a + k2*b; b' = k1*a - k2*b - k3*b + k4*c; c' = k3*b - k4*c", {"k1": 0.5, "k2": 0.2, "k3": 0.3, "k4": 0.1}, [10.0, 0.0, 0.0], np.linspace(0, 20, 30), 0.03),
    "autocatalysis": ("a' = -k*a*b; b' = k*a*b - d*b", {"k": 0.4, "d": 0.1}, [5.0, 0.1], np.linspace(0, 20, 30), 0.03),
    "oral absorption": ("g' = -ka*g; c' = ka*g/V - ke*c", {"ka": 1.5, "V": 20.0, "ke": 0.2}, [300.0, 0.0], np.linspace(0, 15, 20), 0.03),
    "saturable elimination": ("c' = -vm*c/(km + c) - k*c", {"vm": 2.0, "km": 0.5, "k": 0.05}, [12.0], np.linspace(0, 9, 30), 0.02),
    "glucose and insulin": ("G' = p1*(Gb - G) - X*G; X' = -p2*X + p3*(I - Ib); I' = -n*(I - Ib) + s*G; fixed Gb = 5; fixed Ib = 8", {"p1": 0.05, "p2": 0.1, "p3": 0.002, "n": 0.3, "s": 0.5}, [15.0, 0.0, 20.0], np.linspace(0, 60, 40), 0.03),
    "schnakenberg": ("u' = a - u + u^2*v; v' = b - u^2*v", {"a": 0.1, "b": 0.6}, [1.0, 1.0], np.linspace(0, 25, 50), 0.03),
    "selkov": ("x' = -x + a*y + x^2*y; y' = b - a*y - x^2*y", {"a": 0.08, "b": 0.6}, [1.0, 1.0], np.linspace(0, 25, 50), 0.03),
    "lengyel-epstein": ("x' = a - x - 4*x*y/(1 + x^2); y' = b*x*(1 - y/(1 + x^2))", {"a": 10.0, "b": 2.0}, [1.0, 2.0], np.linspace(0, 15, 60), 0.03),
    "gray-scott": ("u' = -u*v^2 + F*(1 - u); v' = u*v^2 - (F + k)*v", {"F": 0.04, "k": 0.03}, [0.6, 0.3], np.linspace(0, 120, 50), 0.03),
    "toggle switch": ("u' = a/(1 + v^n) - u; v' = b/(1 + u^m) - v", {"a": 5.0, "n": 2.0, "b": 4.0, "m": 3.0}, [0.5, 1.0], np.linspace(0, 8, 30), 0.03),
    "self-activation": ("x' = b + v*x^2/(K^2 + x^2) - d*x", {"b": 0.1, "v": 3.0, "K": 1.0, "d": 1.0}, [0.5], np.linspace(0, 8, 30), 0.02),
    "goldbeter mitosis": ("C' = vi - vd*X*C/(kd + C) - k*C; M' = vm*C/(kc + C)*(1 - M)/(k1 + 1 - M) - v2*M/(k1 + M); X' = vx*M*(1 - X)/(k1 + 1 - X) - v4*X/(k1 + X); fixed k = 0.01; fixed kd = 0.02; fixed kc = 0.5; fixed k1 = 0.2; 0 < M < 1; 0 < X < 1", {"vi": 0.025, "vd": 0.25, "vm": 3.0, "v2": 1.5, "vx": 1.0, "v4": 0.5}, [0.1, 0.3, 0.3], np.linspace(0, 80, 80), 0.02),
    "tyson cell cycle": ("u' = k4*(v - u)*(a + u^2) - k6*u; v' = k1 - k6*u", {"k4": 180.0, "a": 0.0001, "k6": 1.0, "k1": 0.015}, [0.05, 0.1], np.linspace(0, 80, 80), 0.03),
    "morris-lecar": ("v' = (I - 4.4*(1 + tanh((v + 1.2)/18))/2*(v - 120) - gk*w*(v + 84) - gl*(v + 60))/20; w' = phi*((1 + tanh((v - 2)/30))/2 - w)*cosh((v - 2)/60)", {"I": 100.0, "gk": 8.0, "gl": 2.0, "phi": 0.04}, [-40.0, 0.1], np.linspace(0, 200, 100), 0.03),
    "hindmarsh-rose": ("x' = y - a*x^3 + b*x^2 - z + I; y' = c - d*x^2 - y; z' = r*(s*(x + 1.6) - z)", {"a": 1.0, "b": 3.0, "I": 2.0, "c": 1.0, "d": 5.0, "r": 0.006, "s": 4.0}, [-1.0, -4.0, 1.5], np.linspace(0, 60, 120), 0.03),
    "wilson-cowan": ("e' = -e + 1/(1 + exp(-(a*e - b*i + P))); i' = -i + 1/(1 + exp(-(c*e - d*i)))", {"a": 10.0, "b": 8.0, "P": 0.5, "c": 9.0, "d": 2.0}, [0.3, 0.1], np.linspace(0, 12, 60), 0.03),
    "two oscillators": ("p' = w + k*sin(q - p); q' = v + k*sin(p - q)", {"w": 1.0, "v": 1.5, "k": 0.4}, [0.0, 1.0], np.linspace(0, 12, 30), 0.02),
    "rayleigh": ("x' = y; y' = e*(1 - y^2)*y - k*x", {"e": 2.0, "k": 1.5}, [0.5, 0.0], np.linspace(0, 15, 60), 0.03),
    "van der pol 10": ("x' = y; y' = m*(1 - x^2)*y - k*x", {"m": 10.0, "k": 1.0}, [2.0, 0.0], np.linspace(0, 40, 80), 0.03),
    "duffing, double well": ("x' = v; v' = a*x - b*x^3 - d*v", {"a": 1.0, "b": 1.0, "d": 0.2}, [0.1, 0.0], np.linspace(0, 20, 60), 0.03),
    "double spring": ("x' = v; v' = -(k + c)*x + c*y; y' = w; w' = c*x - (k + c)*y - d*w", {"k": 2.0, "c": 0.7, "d": 0.1}, [1.0, 0.0, -0.5, 0.0], np.linspace(0, 15, 60), 0.03),
    "projectile with drag": ("x' = u; y' = w; u' = -c*u*sqrt(u^2 + w^2); w' = -g - c*w*sqrt(u^2 + w^2)", {"c": 0.02, "g": 9.8}, [0.0, 0.0, 20.0, 25.0], np.linspace(0, 4, 30), 0.02),
    "kepler": ("x' = u; y' = w; u' = -M*x/(x^2 + y^2)^1.5; w' = -M*y/(x^2 + y^2)^1.5", {"M": 1.0}, [1.0, 0.0, 0.0, 1.2], np.linspace(0, 12, 50), 0.02),
    "euler top": ("a' = p*b*c; b' = q*a*c; c' = r*a*b", {"p": -1.0, "q": 0.8, "r": -0.5}, [1.0, 0.5, 0.9], np.linspace(0, 15, 50), 0.03),
    "rossler": ("x' = -y - z; y' = x + a*y; z' = b + z*(x - c)", {"a": 0.2, "b": 0.2, "c": 5.7}, [1.0, 1.0, 0.0], np.linspace(0, 15, 80), 0.03),
    "lorenz, 4 units": ("x' = s*(y - x); y' = x*(r - z) - y; z' = x*y - b*z", {"s": 10.0, "r": 28.0, "b": 8 / 3}, [5.0, 5.0, 20.0], np.linspace(0, 4, 120), 0.03),
    "thomas": ("x' = sin(y) - b*x; y' = sin(z) - b*y; z' = sin(x) - b*z", {"b": 0.2}, [1.0, 0.0, 0.5], np.linspace(0, 20, 50), 0.03),
    "brine tanks": ("a' = f*c - f*a/u; b' = f*a/u - f*b/v", {"f": 2.0, "c": 3.0, "u": 10.0, "v": 15.0}, [0.0, 20.0], np.linspace(0, 25, 25), 0.03),
    "fermentation": ("x' = m*s/(k + s)*exp(-p/q)*x; s' = -x*m*s/(k + s)*exp(-p/q)/y; p' = a*x*m*s/(k + s)*exp(-p/q)", {"m": 0.6, "k": 1.0, "q": 15.0, "y": 0.3, "a": 2.0}, [0.2, 20.0, 0.0], np.linspace(0, 20, 40), 0.02),
    "tumour and immune": ("T' = r*T*(1 - T/K) - a*E*T; E' = s + p*E*T/(g + T) - d*E", {"r": 0.5, "K": 50.0, "a": 0.1, "s": 0.1, "p": 0.6, "g": 10.0, "d": 0.3}, [2.0, 1.0], np.linspace(0, 40, 60), 0.03),
    "feedback cascade": ("a' = k/(1 + (c/q)^2) - a; b' = a - b; c' = b - c", {"k": 5.0, "q": 0.5}, [0.1, 0.1, 0.1], np.linspace(0, 12, 30), 0.03),
    "calcium, li-rinzel": ("c' = (v1*(c/(c + 0.08))^3*h^3 + v2)*(3 - 1.2*c) - v3*c^2/(k^2 + c^2); h' = a*(0.5*(1 - h) - c*h)", {"v1": 6.0, "v2": 0.1, "v3": 0.9, "k": 0.1, "a": 0.2}, [0.2, 0.5], np.linspace(0, 60, 80), 0.03),
    "brain metabolism": ("g' = v - k*g/(m + g); l' = 2*k*g/(m + g) - e*l", {"v": 0.3, "k": 0.8, "m": 1.0, "e": 0.4}, [3.0, 0.2], np.linspace(0, 15, 30), 0.03),
    "crop nitrogen": ("b' = g*b*n/(h + n) - m*b; n' = -u*b*n/(h + n) + s", {"g": 0.5, "h": 2.0, "m": 0.05, "u": 0.3, "s": 0.2}, [0.5, 10.0], np.linspace(0, 30, 40), 0.03),
    "ozone": ("o' = a*q - b*o*q - c*o; q' = -a*q - b*o*q + c*o + s", {"a": 0.5, "b": 0.2, "c": 0.3, "s": 0.4}, [0.1, 3.0], np.linspace(0, 12, 30), 0.03),
    "hires, stiff": ("a' = -1.71*a + k1*b + 8.32*c + 0.0007; b' = 1.71*a - 8.75*b; c' = -k2*c + 0.43*d + 0.035*e; d' = 8.32*b + 1.71*c - 1.12*d; e' = -1.745*e + 0.43*f + 0.43*g; f' = -k3*f*h + 0.69*d + 1.71*e - 0.43*f + 0.69*g; g' = k3*f*h - 1.81*g; h' = -k3*f*h + 1.81*g", {"k1": 0.43, "k2": 10.03, "k3": 280.0}, [1, 0, 0, 0, 0, 0, 0, 0.0057], np.linspace(0, 8, 40), 0.02),
    "fast binding": ("l' = -kon*l*r + koff*c; r' = -kon*l*r + koff*c; c' = kon*l*r - koff*c - d*c", {"kon": 50.0, "koff": 30.0, "d": 0.2}, [2.0, 1.0, 0.0], np.linspace(0, 10, 40), 0.02),
    "flame": ("y' = k*(y^2 - y^3)", {"k": 1.0}, [0.01], np.linspace(0, 200, 40), 0.03),
    "slow and fast decay": ("a' = -k*a; b' = -m*(b - a)", {"k": 0.1, "m": 500.0}, [1.0, 0.0], np.linspace(0, 20, 30), 0.02),
    "nagumo, slow": ("v' = v*(v - a)*(1 - v) - w; w' = e*(v - g*w)", {"a": 0.1, "e": 0.01, "g": 0.5}, [0.5, 0.0], np.linspace(0, 100, 60), 0.02),
    "predator, two prey": ("x' = r*x*(1 - x - a*y) - p*x*z; y' = s*y*(1 - y - b*x) - q*y*z; z' = z*(e*x + f*y - m)", {"r": 1.0, "a": 0.5, "p": 1.5, "s": 0.8, "b": 0.6, "q": 0.7, "e": 1.2, "f": 0.5, "m": 0.4}, [0.5, 0.5, 0.3], np.linspace(0, 40, 60), 0.03),
    "may-leonard": ("x' = x*(1 - x - a*y - b*z); y' = y*(1 - y - a*z - b*x); z' = z*(1 - z - a*x - b*y)", {"a": 1.4, "b": 0.7}, [0.5, 0.3, 0.2], np.linspace(0, 40, 60), 0.03),
    "lotka, three": ("x' = x*(a - b*y); y' = y*(-c + d*x - e*z); z' = z*(-f + g*y)", {"a": 1.0, "b": 0.5, "c": 0.5, "d": 0.4, "e": 0.3, "f": 0.6, "g": 0.4}, [2.0, 1.5, 1.0], np.linspace(0, 15, 50), 0.03),
    "daphnia and algae": ("a' = r*a*(1 - a/k) - g*d*a^2/(h^2 + a^2); d' = e*g*d*a^2/(h^2 + a^2) - m*d", {"r": 0.8, "k": 8.0, "g": 1.0, "h": 2.0, "e": 0.5, "m": 0.2}, [2.0, 1.0], np.linspace(0, 40, 50), 0.03),
}  # fmt: skip


def posed(group: str, name: str, seed: int) -> tuple[Any, Any]:
    """The problem with the data of one seed, and its truth: θ (P,), times (N,) and states (N, K) without noise."""
    import odinfer as od

    text, theta, x0, t, noise = (NAMED if group == "named" else FRESH)[name]
    model = od.Model.from_text(text, name)
    values = np.array([theta[p] if p in theta else model.fixed[p] for p in model.parameters])
    x = od.simulate(model, values, x0, t, rtol=1e-9, atol=1e-13)
    if not np.isfinite(x).all():
        raise RuntimeError(f"{name}: no solution")
    rng = np.random.default_rng([seed, len(name)])
    y = x + noise * x.std(0) * rng.normal(size=x.shape)
    low = np.array([model.bounds.get(s, (-np.inf, np.inf))[0] for s in model.states])
    y = np.maximum(y, np.where(np.isfinite(low), low + 0.1 * noise * x.std(0), low))
    return od.Problem(model, od.Data(t, y, states=model.states)), (values, t, x)


def in_other_units(group: str, problem: Any, truth: Any, seed: int) -> tuple[Any, float]:
    """The same problem in other units, and what that adds to log-likelihoods; None if no units leave it as it is."""
    import odinfer as od

    model, rng = problem.model, np.random.default_rng([seed, 5, len(problem.model.name)])
    K, P = len(model.states), len(model.parameters)
    free = np.array([p not in model.fixed for p in model.parameters])
    decades = np.where(free, np.log10(np.maximum(np.abs(truth[0]), 1e-300)), 0.0)
    if group == "scaled":
        change = unit_changes(model)
        if not len(change):
            return None, 0.0
        change = rng.normal(size=len(change)) @ change  # of states, time and parameters, as far as sizes allow
        steps = np.linspace(0.0, 60.0, 601)[1:, None] * change
        allowed = (np.abs(steps[:, K + 1 :] + decades)[:, free].max(1) <= 9) & (np.abs(steps[:, : K + 1]).max(1) <= 9)
        units = 10.0 ** (steps[allowed][-1] if allowed.any() else 0.0 * change)
    else:
        units = 10.0 ** np.concatenate([rng.uniform(-5, 5, K + 1), rng.uniform(-9, 9, P) - decades])
        units[K + 1 :][~free] = 1.0
        model = od.Model.from_text(written(model, FRESH[model.name][0], units), model.name)
    e = problem.data.experiments[0]
    return od.Problem(model, od.Data(e.t * units[K], e.y * units[:K], states=model.states)), -len(e.t) * float(
        np.log(units[:K]).sum()
    )


def unit_changes(model: Any) -> Any:
    """A basis (n, K+1+P) of changes of the decades of states, time and parameters that leave the equations as they are.

    f must go over into f times the unit of the state over that of time, at every point: linear equations.
    """
    rng, n, K, P = np.random.default_rng(0), 400, len(model.states), len(model.parameters)
    t, x, theta = rng.uniform(0.5, 2.0, n), rng.uniform(0.2, 0.8, (n, K)), rng.uniform(0.5, 2.0, (n, P))
    f, fx, ft = model.linearise(t, x, theta, np.zeros((n, 0)))
    later = model.linearise(t * (1.0 + 1e-7), x, theta, np.zeros((n, 0)))[0]
    D = np.zeros((n, K, K + 1 + P))
    D[..., :K] = fx * x[:, None] - f[..., None] * np.eye(K)
    D[..., K] = f + (later - f) / 1e-7
    D[..., K + 1 :] = ft * theta[:, None]
    D = D.reshape(n * K, -1)
    held = np.eye(K + 1 + P)[[K + 1 + i for i, p in enumerate(model.parameters) if p in model.fixed]]
    every = np.concatenate([D / np.maximum(np.abs(D).max(1, keepdims=True), 1e-300), held])
    _, s, V = np.linalg.svd(every)
    exact = V[(s > 1e-3 * s[0]).sum() :]
    return exact[np.abs(every @ exact.T).max(0) < 1e-5]


def written(model: Any, text: str, units: Any) -> str:
    """The text for states, time and parameters in other units, which are numbers in it."""
    names = dict(zip((*model.states, "t", *model.parameters), units.tolist(), strict=True))
    lines = []
    for line in map(str.strip, text.split(";")):
        if "'" in line:
            state, right = line.split("'", 1)
            own = re.sub(r"[A-Za-z_]\w*(?!\s*\()", lambda m: f"({m[0]}/{names[m[0]]!r})" if m[0] in names else m[0],
                         right.split("=", 1)[1])  # fmt: skip
            line = f"{state}' = {names[state] / names['t']!r}*({own})"
        elif "<" in line or ">" in line:
            unit = next(names[w] for w in line.split() if w in names)
            line = " ".join(repr(float(w) * unit) if w[0].isdigit() else w for w in line.split())
        lines.append(line)
    return "; ".join(lines)


def from_truth(problem: Any, truth: Any) -> float:
    """The best log-likelihood of trajectories that start near the truth, by SciPy alone."""
    from scipy.optimize import least_squares

    import odinfer as od

    theta, t, x = truth
    free = list(problem.free_index)
    y = problem.data.experiments[0].y
    at = np.concatenate([x[0], theta[free]])
    size = np.concatenate([x.std(0), np.maximum(np.abs(theta[free]), 1e-300)])
    low = np.array([problem.limits(s)[0] for s in (*problem.model.states, *problem.free)])
    high = np.array([problem.limits(s)[1] for s in (*problem.model.states, *problem.free)])

    def states(v: Any) -> Any:
        full = theta.copy()
        full[free] = v[y.shape[1] :]
        return od.simulate(problem.model, full, v[: y.shape[1]], t, rtol=1e-8, atol=1e-12)

    def worth(v: Any) -> float:
        s2 = np.mean((y - states(v)) ** 2, 0)
        return float(-0.5 * len(t) * (np.log(2 * np.pi * s2) + 1).sum())

    best, sd = worth(at), np.sqrt(np.mean((y - x) ** 2, 0))
    for _ in range(4):

        def left(v: Any, sd: Any = sd) -> Any:
            return np.nan_to_num(((y - states(v * size)) / sd).ravel(), nan=1e3, posinf=1e3, neginf=-1e3)

        start = np.clip(at, low + 1e-12 * size, high - 1e-12 * size)
        found = least_squares(
            left, start / size, bounds=(low / size, high / size), diff_step=1e-5, max_nfev=25, x_scale="jac"
        )
        v = found.x * size
        value = worth(v)
        if not value > best + 1e-4:
            break
        best, at, sd = value, v, np.sqrt(np.mean((y - states(v)) ** 2, 0))
    return best


def one(task: tuple[str, str, int, str]) -> dict[str, Any]:
    import warnings

    import odinfer as od
    from odinfer.trajectory.refine import refine_from

    group, name, seed, folder = task
    row: dict[str, Any] = {"group": group, "name": name, "seed": seed}
    truth, more = None, 0.0
    if group == "real":
        model = od.Model.from_text(REAL[name], name)
        problem = od.Problem(model, od.read_csv(Path(folder) / f"{name}.csv", model.states))
    else:
        problem, truth = posed(group, name, seed)
        first = problem
        if group in ("scaled", "units"):
            problem, more = in_other_units(group, problem, truth, seed)
            if problem is None:
                return row | {"skipped": True}
    clock = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            fit = od.fit(problem, seed=seed)
    except Exception:
        return row | {"crash": traceback.format_exc(limit=-3), "best": -np.inf, "seconds": time.process_time() - clock}
    seconds = time.process_time() - clock
    refined = fit.stages.get("refined")
    known = [-np.inf if refined is None else refined.loglik]
    if truth is not None:
        close = refine_from(first, truth[0], [(truth[1], truth[2])])
        known.append(close.loglik + more if close is not None and np.isfinite(close.loglik) else -np.inf)
        known.append(from_truth(first, truth) + more)
    return row | {
        "loglik": -np.inf if refined is None else refined.loglik, "kept": fit.details["stage_used"] == "odin", "status": fit.status,
        "converged": fit.converged, "accused": [s for s, v in fit.verdicts.items() if v == "contradicts the data"],
        "best": float(np.nanmax(known)), "seconds": seconds, "theta": fit.theta,
        "open": [] if fit.uncertainty is None else [p for p, v in fit.interval().items() if not np.isfinite(v).all()],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", choices=["named", "fresh", "scaled", "units", "real"], action="append")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--data", default="../shared/data/real", help="folder with the real data")
    parser.add_argument("--keep", type=Path, help="file in which every fit is kept as it comes")
    parser.add_argument("--verbose", action="store_true", help="a line for every fit")
    options = parser.parse_args()
    tables = {"named": NAMED, "fresh": FRESH, "scaled": FRESH, "units": FRESH, "real": REAL}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [
        (group, name, seed, options.data)
        for group in options.group or ["named", "fresh", "real"]
        for name in tables[group]
        if not options.only or name in options.only
        for seed in seeds
        if group != "real" or (Path(options.data) / f"{name}.csv").exists()
    ]
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    print(
        f"{'group':8}{'system':32}{'fits':>5}{'reached':>9}{'missed':>8}{'said so':>9}{'accused':>9}{'crash':>7}{'median s':>10}{'most s':>8}"
    )
    for row in kept.rows(one, tasks, ("group", "name", "seed"), options.workers, options.keep):
        if options.verbose:
            short = {k: (float(f"{v:.5g}") if isinstance(v, float) else v) for k, v in row.items()}
            print("   ", short, flush=True)
        own = rows.setdefault((row["group"], row["name"]), [])
        own.append(row)
        if len(own) == len(seeds):
            tell(own)
    tell([r for own in rows.values() for r in own], "all")


def tell(rows: list[dict[str, Any]], name: str = "") -> None:
    rows = [r for r in rows if "skipped" not in r]
    if not rows:
        return
    if rows[0]["group"] == "real" and not name:  # the best of all seeds
        best = max(r["best"] for r in rows)
        for r in rows:
            r["best"] = best
    fine = [r for r in rows if "crash" not in r]
    reached = [r for r in fine if not r["kept"] and r["loglik"] >= r["best"] - 0.1]
    said = [r for r in fine if r not in reached and (r["kept"] or not r["converged"])]
    seconds = [r["seconds"] for r in rows]
    print(
        f"{rows[0]['group'] if not name else '':8}{name or rows[0]['name']:32}{len(rows):5d}{len(reached):9d}"
        f"{len(fine) - len(reached) - len(said):8d}{len(said):9d}{sum(bool(r['accused']) for r in fine):9d}"
        f"{len(rows) - len(fine):7d}{np.median(seconds):10.2f}{max(seconds):8.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
