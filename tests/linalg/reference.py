"""Independent answers at many digits, from the exact double inputs,
and problems with a prescribed difficulty."""

import mpmath
import numpy as np


def hyperbolic_values(G, signature, digits=60):
    """sign * S^2 of G J G^T, ascending, as mpmath numbers:
    S over 1e+-12 needs 48 digits in the squares."""
    with mpmath.workdps(digits):
        R = mpmath.qr(mpmath.matrix(G.tolist()))[1][: signature.n, : signature.n]
        product = R * mpmath.diag([int(s) for s in signature.signs]) * R.T
        return sorted(mpmath.eigsy((product + product.T) / 2, eigvals_only=True))


def pencil_eigenvalues(A, signature, shift=0.0, digits=60):
    """lambda of A x = lambda J x, ascending, as floats, for A - shift J positive definite."""
    with mpmath.workdps(digits):
        J = mpmath.diag([int(s) for s in signature.signs])
        L = mpmath.cholesky(mpmath.matrix(A.tolist()) - mpmath.mpf(shift) * J)
        inverse = mpmath.inverse(L)
        product = inverse * J * inverse.T
        return np.sort(
            [
                float(shift + 1 / mu)
                for mu in mpmath.eigsy((product + product.T) / 2, eigvals_only=True)
            ]
        )


def principal_root(M, digits=60):
    """The principal square root of M by the Denman-Beavers iteration."""
    with mpmath.workdps(digits):
        Y = mpmath.matrix(M)
        Z = mpmath.eye(Y.rows)
        for _ in range(60):
            Y, Z = (Y + mpmath.inverse(Z)) / 2, (Z + mpmath.inverse(Y)) / 2
        return np.array(Y.tolist(), dtype=float)


def orthogonal(n, rng):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def positive_definite(n, cond, seed):
    Q = orthogonal(n, np.random.default_rng(seed))
    A = (Q * np.geomspace(1.0, 1 / cond, n)) @ Q.T
    return (A + A.T) / 2


# (cond, closeness) for `tall`. Rounding moves the eigenvalue 1 / closeness of V^T J V by a few u
# cond: where the product of the two comes near 1 / u, the rounded A may have no positive definite
# A^T J A at all
POWERS = (1.0, 1e2, 1e4, 1e6, 1e8)
TALL_GRID = [
    (cond, closeness) for cond in POWERS for closeness in POWERS if cond * closeness <= 1e14
]


def tall(signature, k, cond, closeness, seed):
    """A = V R0 (m, k): cond(R0) = cond, and the smallest eigenvalue of V^T J V is 1 / closeness."""
    rng = np.random.default_rng(seed)
    r = min(k, signature.q)
    sine = np.zeros(k)
    sine[:r] = np.sqrt((1 - np.geomspace(1 / closeness, 1.0, r)) / 2)
    Z = orthogonal(k, rng)
    V = np.zeros((signature.n, k))
    V[signature.positive] = (orthogonal(signature.p, rng)[:, :k] * np.sqrt(1 - sine**2)) @ Z.T
    if r:
        V[signature.negative] = (orthogonal(signature.q, rng)[:, :r] * sine[:r]) @ Z[:, :r].T
    return V @ (orthogonal(k, rng) * np.geomspace(1.0, 1 / cond, k)) @ orthogonal(k, rng)
