"""Rounds on a quadratic form, in plain torch: exact decrease, Y, feasibility."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.plane import random_matching
from jorth.plane.pairs import tournament_rounds
from tests.plane.problems import after, quadratic, value
from tests.planted import near_procrustes

UNIT = 2.0**-53


def absolute(*tensors):
    """(n + n k) u times `value` of these bounds the rounding of f:
    every term of its sums with a positive sign."""
    return [None if tensor is None else tensor.abs() for tensor in tensors]


@pytest.mark.parametrize("all_components", [False, True])
@pytest.mark.parametrize(
    ("k", "with_c", "with_d"), [(9, True, False), (9, False, False), (5, True, True)]
)
def test_one_pair_lowers_f_by_what_it_promises(all_components, k, with_c, with_d):
    _, X, A, C, D = problem = quadratic(9, k, with_c=with_c, with_d=with_d)
    for i, j in ((0, 1), (2, 7), (8, 3)):
        table = np.array([[[i, j]]])
        moved, Y, decrease, _ = after(
            problem, table, device="cpu", theta=0.0, all_components=all_components
        )
        assert decrease > 0
        rounding = (9 + 9 * k) * UNIT * sum(value(*absolute(A, C, D, Z)) for Z in (X, moved))
        assert value(A, C, D, X) - value(A, C, D, moved) == pytest.approx(
            decrease, rel=0, abs=rounding
        )
        torch.testing.assert_close(
            Y, moved @ moved.mT if D is None else moved @ D @ moved.mT, rtol=0, atol=1e-12
        )


def test_uncoupled_pairs_add_up():
    sig, X, A, C, D = quadratic(10, 10)
    A = torch.diag(A.diagonal())
    rounds = random_matching(10, seed=3)[None]
    moved, _, decrease, _ = after((sig, X, A, C, D), rounds, device="cpu", theta=0.0)
    rounding = (10 + 10 * 10) * UNIT * sum(value(*absolute(A, C, D, Z)) for Z in (X, moved))
    assert value(A, C, D, X) - value(A, C, D, moved) == pytest.approx(decrease, rel=0, abs=rounding)
    doubled = after((sig, X, A, C, D), rounds, device="cpu", theta=0.0, factor=2.0)
    assert 0 < doubled[2] < decrease


def test_rounds_stay_on_the_constraint():
    problem = quadratic(11, 11, cond=100.0)
    rounds = tournament_rounds(11, np.arange(11))
    moved, Y, _, _ = after(problem, rounds, device="cpu", factor=4.0)
    assert jorth.residual(moved, problem[0]) <= 10 * 11 * 2.0**-53
    assert (Y - moved @ moved.mT).abs().max() <= 100 * 11 * 2.0**-53 * 100


def test_a_pair_without_minimiser_is_flagged():
    sig, X, A, C, D = quadratic(6, 6, with_c=False)
    flagged = after((sig, X, -A, C, D), tournament_rounds(6, np.arange(2)), device="cpu")
    assert flagged[3]
    assert not after((sig, X, A, C, D), tournament_rounds(6, np.arange(2)), device="cpu")[3]


def test_exact_rounds_solve_procrustes(monkeypatch):
    """As on a device: a few exact rounds an iteration, and every iteration lowers f."""
    from jorth.solvers.jobcd import jacobi

    sig = Signature(4, 3)
    source, target, _ = near_procrustes(30, sig, noise=0.1, seed=1)
    best = jorth.minimize(
        jorth.Procrustes(source, target), signature=sig, method="riemannian-lbfgs"
    ).value
    monkeypatch.setattr(jacobi.Jacobi, "_takes_exact_rounds", lambda self, X: True)
    result = jorth.minimize(
        jorth.Procrustes(source, target),
        signature=sig,
        method="j-jobcd",
        rounds_per_gradient=9,
        max_iterations=60,
        gradient_tolerance=0.0,
    )
    assert result.value <= best * (1 + 1e-4)  # 3e-12 at most, of twelve seeds
    assert (np.diff(result.history["value"]) <= 1e-15).all()
    proposals, rest = divmod(result.evaluations.pair_updates, 9 * 3)
    assert rest == 0
    assert proposals >= max(
        60, result.evaluations.gradient - 1
    )  # where rounds find nothing, none is taken
    assert result.residual <= 100 * 7 * 2.0**-53
