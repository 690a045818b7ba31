"""The algorithms as printed: against plain NumPy written from the pseudocode of the paper."""

import math

import numpy as np
import pytest
import torch

import jorth
from jorth import Quadratic, Signature, as_printed, minimize

THETA, SEED = 1e-2, 5
SIGNS = {"sorted": [1, 1, 1, -1, -1, -1], "unsorted": [1, -1, -1, 1, -1, 1]}
SWAP, TURN = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])
BASES = {
    True: [(np.eye(2), TURN), (np.diag([1.0, -1.0]), SWAP)],
    False: [(np.eye(2), SWAP), (np.diag([-1.0, 1.0]), TURN)],
}
"""All of J_B: V = cos E + sin F for equal signs, and +-(cosh E + sinh F) for opposite ones."""


def solved(P, Q, same):
    """The global minimiser over J_B of 1/2 vec(V)^T Q vec(V) + <V, P>, vec by rows."""
    best, least = np.eye(2), math.inf
    for E, F in BASES[same]:
        e, f = E.reshape(-1), F.reshape(-1)
        a, b, c, d, w = P.reshape(-1) @ e, P.reshape(-1) @ f, e @ Q @ e, e @ Q @ f, f @ Q @ f
        if same:  # the slope -a s + b c + d (c^2 - s^2) + (w - c) s c, with z = e^(i t)
            k = (d / 2 - 1j * (w - c) / 4, (b + 1j * a) / 2)
            z = np.roots([k[0], k[1], 0, np.conj(k[1]), np.conj(k[0])])
            angles = np.angle(z[abs(abs(z) - 1) < 1e-4])
            pairs = [
                (math.cos(t), math.sin(t)) for t in (_polished(t, a, b, c, d, w, 1) for t in angles)
            ]
        else:  # F(u) = A u + B / u + C u^2 + D / u^2 + constant for u = +-e^mu
            A, B, C, D = (a + b) / 2, (a - b) / 2, (c + 2 * d + w) / 8, (c - 2 * d + w) / 8
            u = np.roots([2 * C, A, 0, -B, -2 * D])
            u = u[abs(u.imag) < 1e-6 * abs(u)].real
            turns = [
                (sign, _polished(math.log(abs(v)), sign * a, sign * b, c, d, w, -1))
                for v in u
                for sign in [np.sign(v)]
            ]
            pairs = [(sign * math.cosh(t), sign * math.sinh(t)) for sign, t in turns]
        for x, y in pairs:
            value = a * x + b * y + (c * x * x + 2 * d * x * y + w * y * y) / 2
            if value < least:
                best, least = x * E + y * F, value
    return best


def _polished(t, a, b, c, d, w, kind):
    """Newton steps on the slope of a C + b S + c C^2/2 + d C S + w S^2/2 with C' = -kind S."""
    for _ in range(3):
        x, y = (math.cos(t), math.sin(t)) if kind == 1 else (math.cosh(t), math.sinh(t))
        slope = -kind * a * y + b * x + d * (x * x - kind * y * y) + (w - kind * c) * x * y
        bend = (
            -kind * a * x
            - kind * b * y
            - 4 * kind * d * x * y
            + (w - kind * c) * (x * x - kind * y * y)
        )
        t -= slope / bend
    return t


def step(X, G, B, Q, signs):
    """(S3) and (S4): the new rows of the pair B."""
    Q = Q + THETA * np.eye(4)
    P = G[B] @ X[B].T - (Q @ np.eye(2).reshape(-1)).reshape(2, 2)
    return solved(P, Q, signs[B[0]] == signs[B[1]]) @ X[B]


def gs_jobcd(gradient, Q_of, X, signs, sweeps):
    rng, n = np.random.default_rng(SEED), len(X)
    for _ in range(sweeps):
        for B in jorth.plane.random_pairs(n, n * (n - 1) // 2, seed=rng):
            X[B] = step(X, gradient(X), B, Q_of(X, B), signs)
    return X


def vr_j_jobcd(gradients, Q_of, X, signs, steps):
    """``gradients(X, index)`` is the mean over these samples; N = 1 is J-JOBCD."""
    rng, N = np.random.default_rng(SEED), gradients.N
    small = math.ceil(math.sqrt(N))
    estimate = gradients(X, range(N))
    for _ in range(steps):
        new = X.copy()
        for B in jorth.plane.random_matching(len(X), seed=rng):
            new[B] = step(X, estimate, B, Q_of(X, B), signs)
        if N == 1 or rng.random() < small / (N + small):
            estimate = gradients(new, range(N))
        else:
            batch = rng.choice(N, size=small, replace=False)
            estimate = estimate + gradients(new, batch) - gradients(X, batch)
        X = new
    return X


def problem(signs, seed=0):
    rng = np.random.default_rng(seed)
    M, N, C = rng.standard_normal((3, 6, 6))
    A, D = M @ M.T / 6 + np.eye(6), N @ N.T / 6 + np.eye(6)
    return A, C, D, jorth.random_point(Signature.of(signs), cond=2.0, seed=seed + 1)


def points(result, expected):
    np.testing.assert_allclose(result.x, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("Q", ["exact", "scalar"])
@pytest.mark.parametrize("order", SIGNS)
def test_gs_jobcd(order, Q):
    signs = np.array(SIGNS[order])
    A, C, D, x0 = problem(signs)
    sigma = np.linalg.norm(A, 2) * np.linalg.norm(D, 2) * np.linalg.norm(x0, 2) ** 2

    def Q_of(X, B):  # vec by rows: <V Z, A V Z D> is (A_BB) (x) (Z D Z^T)
        Z = X[B]
        return np.kron(A[np.ix_(B, B)], Z @ D @ Z.T) if Q == "exact" else sigma * np.eye(4)

    expected = gs_jobcd(lambda X: A @ X @ D + C, Q_of, x0.copy(), signs, 3)
    solver = as_printed("gs-jobcd", theta=THETA, Q=Q, sigma=sigma if Q == "scalar" else None)
    found = minimize(
        Quadratic(A, C, D), x0, signature=Signature.of(signs), method=solver,
        seed=SEED, max_iterations=3, gradient_tolerance=0,
    )  # fmt: skip
    points(found, expected)


@pytest.mark.parametrize("Q", ["exact", "scalar"])
@pytest.mark.parametrize("order", SIGNS)
@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd", "vr-j-jobcd"])
def test_a_function_and_a_finite_sum(method, order, Q):
    """f = 1/2N sum ||s_i X - t_i||^2: H = sigma I in Q_, where no Hessian is known."""
    signs, N = np.array(SIGNS[order]), 10
    rng = np.random.default_rng(3)
    S, T = rng.standard_normal((2, N, 6))
    x0 = jorth.random_point(Signature.of(signs), cond=2.0, seed=4)
    sigma = np.linalg.norm(S, 2) ** 2 / N
    if Q == "scalar":  # a majorant needs more than the printed bound, sigma <= L_f
        sigma *= 4 * np.linalg.norm(x0, 2) ** 2

    def gradients(X, index):
        index = np.arange(N) if gradients.N == 1 else np.asarray(index)
        return S[index].T @ (S[index] @ X - T[index]) / len(index)

    gradients.N = N if method == "vr-j-jobcd" else 1

    def Q_of(X, B):
        return sigma * (np.kron(np.eye(2), X[B] @ X[B].T) if Q == "exact" else np.eye(4))

    if method == "gs-jobcd":
        expected = gs_jobcd(lambda X: gradients(X, [0]), Q_of, x0.copy(), signs, 2)
    else:
        expected = vr_j_jobcd(gradients, Q_of, x0.copy(), signs, 30)

    def mean(X, batch):
        return (batch[0] @ X - batch[1]).square().sum() / (2 * len(batch[0]))

    found = minimize(
        jorth.FiniteSum(mean, (torch.from_numpy(S), torch.from_numpy(T))), x0,
        signature=Signature.of(signs), method=as_printed(method, theta=THETA, Q=Q, sigma=sigma),
        seed=SEED, max_iterations=2 if method == "gs-jobcd" else 30, gradient_tolerance=0,
    )  # fmt: skip
    points(found, expected)
    assert np.abs(expected - x0).max() > 1e-3


def test_the_eigenvalue_problem_goes_on():
    """f = -tr(X^T D^T D X) has no minimum: theta alone bounds the steps.

    With a small theta they leave the range of double precision within a sweep. It goes on without
    such steps, and the run ends only where most boosts are among them.
    """
    n = 100
    data = np.random.default_rng(0).standard_normal((n, n))
    objective, sig = jorth.HyperbolicEigenvalue(data=data, sense="max"), Signature(50, 50)
    size = np.linalg.norm(data, 2) ** 2
    for solver in (
        as_printed("gs-jobcd", theta=1000 * size),
        as_printed("j-jobcd", theta=1000 * size, sigma=1e-9 * size),
        as_printed("gs-jobcd", theta=1.0),
    ):
        found = minimize(
            objective, signature=sig, method=solver, on_unbounded="continue", max_iterations=2
        )
        assert np.isfinite(found.x).all()
        assert (np.diff(found.history["value"]) <= 0).all()
        if solver.theta > 1:
            assert found.status is jorth.Status.MAX_ITERATIONS, found.message
        else:
            assert found.status in (jorth.Status.UNBOUNDED, jorth.Status.MAX_ITERATIONS)
            assert found.evaluations.pair_updates >= n * (n - 1) // 2


def test_what_is_asked_for():
    with pytest.raises(ValueError, match="sigma must be a number for j-jobcd"):
        as_printed("j-jobcd")
    with pytest.raises(ValueError, match="method must be"):
        as_printed("umcm")
