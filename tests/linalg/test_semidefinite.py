"""Semidefinite and negative pencils: the eigenvalues, or an error where X does not exist."""

import numpy as np
import pytest
import torch

from jorth import Signature, eigh, random_point, residual
from tests.group.strategies import UNIT, dense_j
from tests.linalg.reference import positive_definite
from tests.linalg.test_eigh import MIXED, check, planted

LIGHT = np.array([1.0, 0, 0, 1, 0])
"""z^T J z = 0 for the signature (3, 2)."""


def low_rank(n, rank, seed):
    G = np.random.default_rng(seed).standard_normal((rank, n))
    return G.T @ G


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("middle", [0.0, 20.0, -30.0])
def test_negative_definite(middle, scale):
    A, values = planted(MIXED, 1.0, 10.0, 3, middle)
    found, X = eigh(-scale * A, MIXED)
    assert residual(X, MIXED) <= 20 * MIXED.n * UNIT
    np.testing.assert_allclose(found, -scale * values, rtol=1e-10, atol=1e-11 * scale)
    assert found[MIXED.positive].max() < found[MIXED.negative].min()


def test_a_given_shift_is_used():
    A, values = planted(MIXED, 1.0, 10.0, 3, 20.0)
    np.testing.assert_allclose(eigh(A, MIXED, shift=20.1)[0], values, rtol=1e-11)
    np.testing.assert_allclose(eigh(-A, MIXED, shift=-20.1)[0], -values, rtol=1e-11)
    for shift in (0.0, 30.0):
        with pytest.raises(
            ValueError, match=r"shift must be a mu .* got one with eigenvalues from"
        ):
            eigh(A, MIXED, shift=shift)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("middle", [0.0, 7.0])
@pytest.mark.parametrize("rank", [0, 1, 4, 9])
def test_semidefinite(rank, middle, sign):
    """Null vectors of both signs: the eigenvalue mu is exact where it is known to be 0."""
    A = sign * (low_rank(10, rank, rank) + middle * dense_j(MIXED))
    # rounding may leave a factorisation to the rank 9; a tolerance does not
    values, X = eigh(A, MIXED, tolerance=1e-13 if rank == 9 else None)
    size = np.linalg.norm(X, 2) ** 2
    assert residual(X, MIXED) <= 20 * MIXED.n * UNIT
    defect = X.T @ A @ X - np.diag(MIXED.signs * values)
    assert np.abs(defect).max() <= 60 * 10 * UNIT * (np.linalg.norm(A, 2) + middle) * size
    multiple = values[np.argsort(np.abs(values - sign * middle))[: 10 - rank]]
    if middle == 0:
        assert (multiple == 0).all()
    np.testing.assert_allclose(multiple, sign * middle, rtol=100 * UNIT * size)
    away = np.abs(values - sign * middle)
    assert (np.diff(away[MIXED.positive]) >= 0).all()
    assert (np.diff(away[MIXED.negative]) >= 0).all()


def test_semidefinite_and_graded():
    """The rank is that of the matrix scaled to a unit diagonal."""
    D = np.geomspace(1, 1e-9, 10)
    A = D[:, None] * low_rank(10, 6, 1) * D
    values, X = eigh(A, MIXED, tolerance=1e-13)
    assert residual(X, MIXED) <= 20 * MIXED.n * UNIT
    assert (values == 0).sum() == 4


def test_tolerance():
    A = np.diag([1e-9, 1.0, 2.0, 1e-9, 3.0]) + 1e-9 * np.outer(LIGHT, LIGHT)
    sig = Signature(3, 2)
    assert np.abs(eigh(A, sig)[0]).min() > 1e-10
    # scaled to a unit diagonal A is well conditioned: grading is not deficiency
    assert np.abs(eigh(A, sig, tolerance=1e-6)[0]).min() > 1e-10
    B = low_rank(5, 3, 0) + 1e-9 * np.eye(5)
    assert np.abs(eigh(B, sig)[0]).min() > 1e-10
    assert (eigh(B, sig, tolerance=1e-6)[0] == 0).sum() == 2


DEGENERATE = {
    "one light-like null vector": np.outer(LIGHT, LIGHT) + np.diag([0.0, 2, 3, 0, 4]),
    "with others": np.outer(LIGHT, LIGHT) + np.diag([0.0, 2, 0, 0, 0]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("shift", [0.0, 1.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_no_x_diagonalises_a_jordan_block(name, shift, sign):
    sig = Signature(3, 2)
    A = DEGENERATE[name] + shift * dense_j(sig)
    with pytest.raises(ValueError, match="no J-orthogonal X diagonalises A"):
        eigh(sign * A, sig)


@pytest.mark.parametrize(("weakest", "shift"), [(1.0, 0.0), (1e-6, 0.0), (1.0, 1.5)])
@pytest.mark.parametrize("seed", range(5))
def test_a_form_that_is_rounding_counts_as_zero(seed, weakest, shift):
    """The Jordan block in other coordinates: z^T J z comes out as some u / weakest, not as 0."""
    sig = Signature(3, 2)
    Y = random_point(sig, cond=3.0, seed=seed)
    A = Y.T @ (weakest * np.outer(LIGHT, LIGHT) + np.diag([0.0, 2, 3, 0, 4])) @ Y
    A += shift * dense_j(sig)
    with pytest.raises(ValueError, match="no J-orthogonal X diagonalises A"):
        eigh((A + A.T) / 2, sig, tolerance=1e-14)


@pytest.mark.parametrize("form", [1e-2, 1e-5])
def test_a_form_that_is_small_but_real_does_not(form):
    """The null vector z = (1, 0, 0, 1 - form, 0) has z^T J z = 2 form: ||X||^2 = 1 / form."""
    sig = Signature(3, 2)
    z, v = np.array([1.0, 0, 0, 1 - form, 0]), np.array([1 - form, 0, 0, -1.0, 0])
    values, X = eigh(np.outer(v, v) + np.diag([0.0, 2, 3, 0, 4]), sig, tolerance=1e-14)
    assert (values == 0).sum() == 1
    null = X[:, values == 0][:, 0]
    np.testing.assert_allclose(null / null[0], z, atol=1e-12)
    np.testing.assert_allclose(sig.signs @ null**2, 1, rtol=1e-9)


@pytest.mark.parametrize("kind", [1, -1])
@pytest.mark.parametrize("middle", [0.0, 3.0])
def test_float32(kind, middle):
    """What is semidefinite to the rounding of float32 counts as that."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(0, 10))
        sig = Signature.of(rng.permutation([1, -1] + [1] * (n // 3) + [-1] * (n - n // 3)))
        n = sig.n
        exact = low_rank(n, int(rng.integers(0, n)), seed) + middle * dense_j(sig)
        A = (kind * exact).astype(np.float32)
        values, X = eigh(A, sig)
        size = np.linalg.norm(X, 2) ** 2 * max(np.linalg.norm(A, 2), 1)
        defect = X.T.astype(float) @ A @ X - np.diag(sig.signs * values)
        assert np.abs(defect).max() <= 20 * n * 2.0**-24 * size  # measured: below 2


def test_batches_of_all_kinds():
    sig = Signature(3, 2)
    good = [
        positive_definite(5, 10.0, 0),
        -positive_definite(5, 10.0, 1),
        low_rank(5, 2, 0),
        planted(sig, 1.0, 5.0, 0)[0],
    ]
    A = torch.from_numpy(np.stack(good)).reshape(2, 2, 5, 5)
    values, X = eigh(A, sig)
    for k, one in enumerate(good):
        np.testing.assert_array_equal(values[k // 2, k % 2], eigh(one, sig)[0])
        np.testing.assert_array_equal(X[k // 2, k % 2], eigh(one, sig)[1])
    A[1, 0] = torch.from_numpy(DEGENERATE["with others"])
    with pytest.raises(ValueError, match=r"diagonalises .*\(matrix \[1, 0\] of the batch\)"):
        eigh(A, sig)
    A[1, 0] = torch.diag(torch.tensor([1.0, 2.0, 3.0, -1.0, -4.0]))
    with pytest.raises(ValueError, match=r"definite pencil .*\(matrix \[1, 0\] of the batch\)"):
        eigh(A, sig)


@pytest.mark.parametrize(
    "sig", [Signature(3, 2), Signature(5, 0), Signature.of([-1, 1, 1, -1, 1])], ids=repr
)
def test_many_matrices_are_those_one_by_one(sig):
    """A compiled loop for the definite ones, and the others in between."""
    many = [positive_definite(5, 10.0 ** (k % 9), k) for k in range(30)]
    grade = np.geomspace(1, 1e-9, 5)
    many += [1e-250 * many[0], 1e250 * many[1], grade[:, None] * many[2] * grade]
    many += [-many[3], low_rank(5, 2, 0), np.zeros((5, 5)), 7 * dense_j(sig) + many[4]]
    A = torch.from_numpy(np.stack(many))
    A = (A + A.mT) / 2
    values, X = eigh(A, sig)
    assert (residual(X, sig) <= 20 * 5 * UNIT).all()
    for k, one in enumerate(A.numpy()):
        expected, Y = eigh(one, sig)
        cond = 10.0 ** (k % 9) if k < 30 else 1e3
        np.testing.assert_allclose(values[k], expected, rtol=100 * UNIT * cond, atol=0)
        size = np.abs(one).max()
        defect = X[k].numpy().T @ one @ X[k].numpy() - np.diag(sig.signs * values[k].numpy())
        assert np.abs(defect).max() <= 300 * UNIT * size * np.linalg.norm(Y, 2) ** 2
    if sig.q:
        both = sig.signs * (1.0 + np.arange(5) % 2)  # lambda = 1 and 2 at both signs
        A[35] = torch.from_numpy(np.diag(both))
        with pytest.raises(ValueError, match=r"\(matrix \[35\] of the batch\)"):
            eigh(A, sig)


@pytest.mark.parametrize("gap", [1e-6, 1e-9, 1e-12, 0.0])
def test_tiny_gaps(gap):
    """Whether it counts as definite or as semidefinite, the answer is backward stable."""
    sig = Signature(3, 2)
    A, expected = planted(sig, gap, 3.0, 1)
    expected.sort()
    values, X = check_pencil(A, sig)
    bound = 60 * 5 * UNIT * np.linalg.norm(A, 2) * np.linalg.norm(X, 2) ** 2
    assert np.abs(np.sort(values) - expected).max() <= bound


def check_pencil(A, sig):
    """`check`, without the gap."""
    values, X = eigh(A, sig)
    assert residual(X, sig) <= 20 * sig.n * UNIT
    defect = X.T @ A @ X - np.diag(sig.signs * values)
    assert np.abs(defect).max() <= 60 * 5 * UNIT * np.linalg.norm(A, 2) * np.linalg.norm(X, 2) ** 2
    return values, X


def test_positive_definite_stays_as_it_was():
    check(positive_definite(10, 1e12, 0), MIXED)
