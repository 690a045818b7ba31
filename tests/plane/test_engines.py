"""The engines agree: the reference in torch, from P and Q or from rows, and numba.

Triton's is in test_interpreted.py and, on a CUDA device, in test_rounds_gpu.py.
"""

import numpy as np
import pytest
import torch

from jorth import Signature
from jorth.plane import random_matching, solve_plane, solve_rows, tournament
from jorth.plane.rounds import Majoriser
from tests.plane.problems import check_edges, check_steps, quadratic
from tests.plane.reference import kronecker, step_by_numba

UNIT = 2.0**-53


@pytest.mark.parametrize("theta", [0.0, 0.3])
@pytest.mark.parametrize("components", ["all", "identity"])
def test_steps_by_numba(components, theta):
    check_steps(step_by_numba, components, theta)
    check_edges(step_by_numba, components)


@pytest.mark.parametrize("components", ["all", "identity"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("definite", [False, True])
def test_steps_from_rows(components, weighted, definite):
    rng = np.random.default_rng(1)
    G, Z = rng.standard_normal((2, 400, 2, 5))
    A, D = rng.standard_normal((400, 2, 2)), rng.standard_normal((5, 5))
    A = A @ A.swapaxes(1, 2) if definite else A + A.swapaxes(1, 2)
    D, signs = D @ D.T if weighted else np.eye(5), rng.choice([-1, 1], (400, 2))
    P, Q = G @ Z.swapaxes(1, 2), kronecker(Z @ D @ Z.swapaxes(1, 2), A)
    plain = solve_plane(P, Q, signs, theta=1e-3, components=components)
    rows = solve_rows(G, Z, A, signs, D=D if weighted else None, theta=1e-3, components=components)
    np.testing.assert_array_equal(plain.unbounded, rows.unbounded)
    size = np.abs(Q).max(axis=(1, 2)) + np.abs(P).max(axis=(1, 2))
    squares = np.linalg.norm(plain.V, axis=(1, 2)) ** 2
    assert (np.abs(plain.decrease - rows.decrease) <= 1e3 * UNIT * size * squares).all()
    J = signs[:, :, None] * np.eye(2)
    drift = np.abs(rows.V.swapaxes(1, 2) @ J @ rows.V - J).max(axis=(1, 2))
    assert (drift <= 64 * UNIT * squares).all()


@pytest.mark.parametrize("theta", [0.0, -1e-12, 0.3])
@pytest.mark.parametrize("all_components", [False, True])
@pytest.mark.parametrize("kind", ["rows", "scalar", "exact"])
def test_rounds(kind, all_components, theta):
    """One round and a tournament on the majoriser of one gradient, by numba and in torch."""
    sig, X, A, C, D = quadratic(9, 9, with_d=True)
    options = {"rows": {}, "scalar": {"scalar": True}, "exact": {"A": A, "D": D}}[kind]
    majoriser = Majoriser(sig, all_components, theta, **options)
    calls = [("round", X, C, random_matching(9, seed=2))]
    if kind == "rows":
        calls.append(("rounds", X[None], C[None], tournament(9, seed=1)))
    for name, point, gradient, pairs in calls:
        found = getattr(majoriser, f"compiled_{name}")(point, gradient, 3.7, pairs)
        expected = getattr(majoriser, f"torch_{name}")(point, gradient, 3.7, pairs)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)
        assert (found[0] - point).abs().max() > 0.1


@pytest.mark.parametrize("round_of", ["compiled_round", "torch_round"])
def test_nearly_null_rows(round_of):
    """A boost by 2^12 is undone by one step on ||X||^2 / 2: the short null direction is 2^-48 of
    the long one, and can only be formed from the rows."""
    X = torch.eye(4, dtype=torch.float64)
    X[:2, :2] = 2.0**11 - 2.0**-13 + 2.0**-12 * torch.eye(2, dtype=torch.float64)
    majoriser = Majoriser(Signature.of([1, -1, 1, 1]))
    pairs = np.array([[0, 1], [2, 3]])
    moved, decrease, _, unbounded = getattr(majoriser, round_of)(X, X, 1.0, pairs)
    torch.testing.assert_close(moved, torch.eye(4, dtype=torch.float64), rtol=0, atol=1e-8)
    assert abs(decrease - (float(X.square().sum()) / 2 - 2)) <= 1e-12 * decrease
    assert not unbounded
