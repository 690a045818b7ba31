"""Regression in a window that slides over a series: rows are added to the fit and dropped from it.

A sensor follows 60 inputs with weights that drift slowly. In every step the weights are fitted to
the last 600 rows of [A b]. The triangular factor R of these rows has all that the fit needs: with
R = [[T, u], [0, r]], the weights solve T x = u, and |r| is the length of the residual.
`jorth.cholesky_update` adds the new row to R and drops the oldest, in O(n^2) whatever the window,
where a new fit takes O(n^2) for each of its rows. All the way no new factorisation is made, and the
weights stay equal to those of new fits up to rounding.

    python examples/sliding_window.py
"""

import time

import numpy as np
from scipy.linalg import solve_triangular

import jorth

STEPS, INPUTS, WINDOW = 900, 60, 600


def series(seed=0):
    """Rows (inputs, output), and the weights (STEPS, INPUTS) that made them."""
    rng = np.random.default_rng(seed)
    phase = np.linspace(0, 0.5, STEPS)[:, None]
    weights = np.sin(phase + np.arange(INPUTS))
    inputs = rng.standard_normal((STEPS, INPUTS))
    output = (inputs * weights).sum(axis=1) + 0.05 * rng.standard_normal(STEPS)
    return np.column_stack([inputs, output]), weights


def solved(R):
    """The weights from the triangular factor of [A b]."""
    return solve_triangular(R[:-1, :-1], R[:-1, -1])


def slide(rows):
    """The weights at every step from the end of the first window on, by one R that is kept up."""
    R = jorth.cholesky_update(np.zeros((INPUTS + 1, INPUTS + 1)), add=rows[:WINDOW])
    found = [solved(R)]
    for step in range(WINDOW, len(rows)):
        R = jorth.cholesky_update(R, add=rows[step], drop=rows[step - WINDOW])
        found.append(solved(R))
    return np.array(found)


def refit(rows):
    """The same by least squares of every window."""
    windows = (rows[step - WINDOW : step] for step in range(WINDOW, len(rows) + 1))
    return np.array([np.linalg.lstsq(w[:, :-1], w[:, -1], rcond=None)[0] for w in windows])


def main():
    """Both ways over the whole series: their times, errors and difference."""
    rows, weights = series()
    slide(rows[: WINDOW + 1])  # compiles, once per machine
    results = {}
    for name, fit in {"slide": slide, "refit": refit}.items():
        start = time.perf_counter()
        results[name] = fit(rows)
        microseconds = 1e6 * (time.perf_counter() - start) / len(results[name])
        error = np.sqrt(np.mean((results[name] - weights[WINDOW - 1 :]) ** 2))
        print(
            f"{name}: {microseconds:6.0f} microseconds per step, error of the weights {error:.3f}"
        )
    difference = np.abs(results["slide"] - results["refit"]).max()
    print(f"largest difference after {STEPS - WINDOW} steps: {difference:.1e}")
    assert difference < 1e-12


if __name__ == "__main__":
    main()
