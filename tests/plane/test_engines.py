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
@pytest.mark.parametrize("scalar", [False, True])
def test_rounds(scalar, all_components, theta):
    """One round and a tournament on the majoriser of one gradient, by numba and in torch."""
    sig, X, _, C, _ = quadratic(9, 9, with_d=True)
    majoriser = Majoriser(sig, all_components, theta, scalar=scalar)
    matching = random_matching(9, seed=2)[None]
    for rounds in (matching, tournament(9, seed=1))[: 1 if scalar else 2]:
        found = majoriser.compiled_rounds(X[None], C[None], 3.7, rounds)
        expected = majoriser.torch_rounds(X[None], C[None], 3.7, rounds)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)
        assert (found[0][0] - X).abs().max() > 1e-3


@pytest.mark.parametrize("engine", ["compiled_rounds", "torch_rounds"])
@pytest.mark.parametrize("mu", np.linspace(8, 17, 10))
def test_nearly_null_rows(engine, mu):
    """||X||^2 / 2 has a minimum in the plane of every boost X, also where ||x_i - x_j||^2 is lost
    in X X^T, from a condition of 1e8 (mu = 9.2) on. One step leads almost there."""
    block = np.array([[np.cosh(mu), np.sinh(mu)], [np.sinh(mu), np.cosh(mu)]])
    X = torch.block_diag(torch.from_numpy(block), torch.eye(2))[None]
    majoriser = Majoriser(Signature.of([1, -1, 1, 1]))
    _, decrease, unbounded = getattr(majoriser, engine)(X, X, 1.0, np.array([[[0, 1], [2, 3]]]))
    assert not unbounded
    assert decrease.item() == pytest.approx(np.cosh(2 * mu), rel=1e-6)
