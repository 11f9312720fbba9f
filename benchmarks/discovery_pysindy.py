"""PySINDy's part of discovery.py, to be run where PySINDy is installed: data as JSON in, terms and trajectory out.

Polynomials to degree 3, with and without sines and cosines; smoothed finite differences (Savitzky and Golay) and the
weak form, each with sequential thresholding (STLSQ) and its bagged ensemble over a scan of thresholds; of all, the
model with the lowest BIC of its trajectory from the first smoothed value. The scan ends after the given CPU seconds.
"""

import json
import sys
import time
import warnings

import numpy as np
import pysindy as ps
from scipy.signal import savgol_filter

warnings.filterwarnings("ignore")
THRESHOLDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


def forms(names):
    found = ["1", *names]
    found += [f"{a}*{b}" for i, a in enumerate(names) for b in names[i:]]
    found += [f"{a}*{b}*{c}" for i, a in enumerate(names) for j, b in enumerate(names[i:], i) for c in names[j:]]
    return [*found, *(f"{f}({a})" for a in names for f in ("sin", "cos"))]


def values(names, x):
    known = {name: x[..., i] for i, name in enumerate(names)} | {"sin": np.sin, "cos": np.cos}
    return np.stack([np.broadcast_to(eval(f, {}, known), x.shape[:-1]) for f in forms(names)], -1)


def simulate(names, C, x0, t):
    from scipy.integrate import solve_ivp

    limit, calls = 1e3 * (1 + np.abs(x0).max()), [0]

    def field(_, x):
        calls[0] += 1
        if calls[0] > 5000:  # of a model that no solver follows
            raise ValueError("too stiff")
        return C @ values(names, x) if np.abs(x).max() < limit else 0 * x

    s = solve_ivp(field, (t[0], t[-1]), x0, t_eval=t, rtol=1e-6, atol=1e-8, method="LSODA")
    return s.y.T if s.success and len(s.y.T) == len(t) else None


def main():
    asked = json.load(sys.stdin)
    t, y, names = np.array(asked["t"]), np.array(asked["y"]), asked["names"]
    clock = time.process_time()
    polynomials = ps.PolynomialLibrary(degree=3)
    library = ps.GeneralizedLibrary([polynomials, ps.FourierLibrary(n_frequencies=1)])
    weak = ps.WeakPDELibrary(polynomials, spatiotemporal_grid=t, K=100)
    smooth = ps.SmoothedFiniteDifference(smoother_kws={"window_length": 9})
    start = savgol_filter(y, 9, 3, axis=0)[0]
    best = (np.inf, None)
    for features in (polynomials, library, weak):
        for threshold in THRESHOLDS:
            for ensemble in (False, True):
                if time.process_time() - clock > asked["seconds"]:
                    continue
                try:
                    optimizer = ps.STLSQ(threshold=threshold)
                    if ensemble:
                        optimizer = ps.EnsembleOptimizer(optimizer, bagging=True, n_models=20)
                    how = {} if features is weak else {"differentiation_method": smooth}
                    model = ps.SINDy(optimizer=optimizer, feature_library=features, **how)
                    model.fit(y, t=t)
                    full = np.zeros((len(names), len(forms(names))))
                    C = np.array(model.coefficients())
                    C[np.abs(C) < threshold] = 0.0  # means of an ensemble are seldom zero
                    full[:, order_of(model, names)] = C
                    x = simulate(names, full, start, t)
                except (ValueError, np.linalg.LinAlgError):
                    continue
                if x is None or not np.isfinite(x).all():
                    continue
                rss = ((x - y) ** 2).mean(0)
                bic = len(t) * np.log(rss).sum() + np.count_nonzero(full) * np.log(y.size)
                if bic < best[0]:
                    best = bic, full
    seconds = time.process_time() - clock
    if best[1] is None:
        print(json.dumps({"terms": [["nan_"] for _ in names], "x": None, "seconds": seconds}))
        return
    terms = [[forms(names)[j] for j in np.flatnonzero(row)] for row in best[1]]
    other = np.array(asked["other"][0]), np.array(asked["other"][1])
    try:
        x = simulate(names, best[1], other[1][0], other[0])
    except ValueError:
        x = None
    print(json.dumps({"terms": terms, "x": None if x is None else x.tolist(), "seconds": seconds}))


def order_of(model, names):
    """The place in `forms` of every feature of a fitted model, by its name."""
    known = {tuple(sorted(form.split("*"))): j for j, form in enumerate(forms(names))}
    found = []
    for text in model.get_feature_names():
        if text[:3] in ("sin", "cos"):
            factors = [f"{text[:3]}({names[int(text[:-1].rpartition('x')[2])]})"]
        else:
            factors = []
            for part in text.split() if text != "1" else ():
                name, _, power = part.partition("^")
                factors += [names[int(name[1:])]] * int(power or 1)
        found.append(known[tuple(sorted(factors or ["1"]))])
    return found


if __name__ == "__main__":
    main()
