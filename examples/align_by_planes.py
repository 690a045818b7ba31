"""Move one point of O(p, q) onto another by plane steps: the smallest block coordinate descent.

Minimises ||X - T||^2 / 2 over O(12, 8). The curvature of f is the identity,
so Q = (Z Z^T) (x) I_2 makes the surrogate of every pair equal f along the step.
"""

import numpy as np

import jorth
from jorth.plane import apply_rows, solve_plane, tournament

signature = jorth.Signature(12, 8)
target = jorth.random_point(signature, cond=10.0, seed=1)
X = np.eye(signature.n)

for sweep in range(60):
    for pairs in tournament(signature.n, seed=sweep):
        Z = X[pairs]  # (pairs, 2, n)
        P = (Z - target[pairs]) @ Z.swapaxes(1, 2)
        Q = np.einsum("kac,bd->kabcd", Z @ Z.swapaxes(1, 2), np.eye(2)).reshape(-1, 4, 4)
        step = solve_plane(P, Q, signature.signs[pairs], components="identity")
        apply_rows(X, pairs, step.V)
    if sweep % 10 == 9:
        value = 0.5 * np.linalg.norm(X - target) ** 2
        residual = jorth.residual(X, signature)
        print(f"sweep {sweep + 1:2d}: ||X - T||^2 / 2 = {value:.3e}, residual {residual:.1e}")

assert value < 1e-3
