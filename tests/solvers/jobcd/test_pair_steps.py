"""One round of disjoint pairs on the CPU, in one pass: against `solve_plane` on P and the 4x4 Q."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.objectives import AbstractObjective
from jorth.plane import random_matching
from jorth.plane.problem import RELATIVE_THETA
from jorth.plane.rounds import Majoriser

N = 11
SIG = Signature.of(np.random.default_rng(1).permutation([1] * 6 + [-1] * 5))
L = 1.7


@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.parametrize("theta", [None, 0.0, 0.4])
@pytest.mark.parametrize("all_components", [False, True])
@pytest.mark.parametrize("columns", [N, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_round_is_the_plane_solutions(scalar, theta, all_components, columns, dtype):
    G = np.random.default_rng(0).standard_normal((N, columns)).astype(dtype)
    X = jorth.random_point(
        SIG, cond=4.0, columns=(columns - 1, 1) if columns < N else None, seed=3
    ).astype(dtype)
    pairs = random_matching(N, seed=4)
    weight = -RELATIVE_THETA if theta is None else theta
    majoriser = Majoriser(SIG, all_components, weight, scalar=scalar)
    proposal = majoriser.propose(torch.from_numpy(X), torch.from_numpy(G), L, pairs[None])
    trial, decrease, quadratic, moved = X.astype(np.float64), 0.0, 0.0, 0.0
    for pair in pairs:
        Z, P = X[pair].astype(np.float64), G[pair].astype(np.float64) @ X[pair].T
        rows = np.kron(Z @ Z.T, np.eye(2))
        Q = L * (np.eye(4) if scalar else rows)
        weight = 1e-12 * np.abs(Q).max() if theta is None else theta
        step = jorth.solve_plane(
            P, Q, SIG.signs[pair], theta=weight, components="all" if all_components else "identity"
        )
        trial[pair] = step.V @ Z
        decrease += step.decrease
        change = (step.V - np.eye(2)).ravel(order="F")
        quadratic += change @ (L * rows) @ change
        moved += np.linalg.norm(change)
    assert moved > 0.01  # it is not about steps that are nothing; measured: 0.4 and more
    assert proposal.X.dtype == torch.from_numpy(X).dtype
    assert proposal.pairs == len(pairs)
    near = 1e-11 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(proposal.X.numpy(), trial, rtol=near, atol=near)
    assert proposal.decrease == pytest.approx(decrease, rel=near)
    assert proposal.quadratic == pytest.approx(quadratic, rel=10 * near)


def test_the_quadratic_term_of_a_short_step_has_all_its_digits():
    """Beside J X J, the gradient of a function that is stationary at X, 1e-9 asks for a step."""
    X = torch.from_numpy(jorth.random_point(SIG, cond=4.0, seed=3))
    G = torch.from_numpy(SIG.signs[:, None] * X.numpy() * SIG.signs)
    G = G + 1e-9 * torch.from_numpy(np.random.default_rng(5).standard_normal((N, N)))
    proposal = Majoriser(SIG).propose(X, G, L, random_matching(N, seed=4)[None])
    step = proposal.X - X
    assert 1e-12 < step.norm() < 1e-7
    assert proposal.quadratic == pytest.approx(L * float(step.square().sum()), rel=1e-9, abs=0)


def test_a_step_along_which_f_is_concave_does_not_stall():
    """A - mu J is definite, but A is not: the curvature along some steps is not positive.

    It was halved at each of them, until 60 doublings did not reach a step that lowers f.
    """
    sig = Signature(3, 3)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        S = rng.standard_normal((6, 6))
        A = S @ S.T / 6 + 0.2 * np.eye(6) + 5 * np.diag(sig.signs)
        objective = jorth.Quadratic(A, D=np.diag(rng.uniform(0.5, 2.0, 6)))
        result = jorth.minimize(objective, signature=sig, method="j-jobcd", max_iterations=300)
        assert result.status is not jorth.Status.STALLED
        values = result.history["value"]
        assert result.success or values[-1] < values[150] < values[0]


def test_a_point_with_a_higher_value_is_refused():
    """With a curvature of 1 / 2.005 of the true one f rises by 0.005 of the promised decrease."""

    class Distance(AbstractObjective):
        curvature_told = 1.0

        def value_and_gradient(self, X):
            return (X - torch.eye(2)).square().sum() / 2, X - torch.eye(2)

        def curvature(self):
            return self.curvature_told

    c, s = np.cos(1e-2), np.sin(1e-2)
    for ratio in np.linspace(1.99, 2.02, 31):
        objective = Distance()
        objective.curvature_told = 1 / ratio
        values = jorth.minimize(
            objective, np.array([[c, s], [-s, c]]), signature=Signature(2, 0),
            method="j-jobcd", max_iterations=1, gradient_tolerance=0.0,
        ).history["value"]  # fmt: skip
        assert (np.diff(values) <= 0).all()
