"""A few eigenpairs of A x = lambda J x: against all of them, in every form that A may have."""

import re

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import torch

from jorth import Signature, eigh
from tests.group.strategies import UNIT

N = 324
rng = np.random.default_rng(0)
MIXED = Signature.of(rng.permutation(np.where(np.arange(N) % 3 > 0, 1, -1)))


def grid(side, dimensions=2, seed=0):
    """The Laplacian of a grid plus a small random diagonal: side^dimensions unknowns."""
    line = sp.diags_array(
        [-np.ones(side - 1), 2 * np.ones(side), -np.ones(side - 1)], offsets=[-1, 0, 1]
    )
    A = line
    for _ in range(dimensions - 1):
        A = sp.kronsum(A, line)
    noise = 0.01 * np.random.default_rng(seed).random(side**dimensions)
    return (A + sp.diags_array(noise)).tocsr()


def cut(A, sig, positive, negative):
    """The same pairs from all of them."""
    values, X = eigh(A, sig)
    chosen = [*sig.positive[:positive], *sig.negative[:negative]]
    return values[chosen], X[:, chosen]


def check(A, sig, values, X, counts, tolerance=1e-10):
    """X^T J X = diag(I, -I) and A X = J X diag(lambda), in the order that is promised."""
    positive, negative = counts
    assert values.shape == (positive + negative,)
    assert X.shape == (sig.n, positive + negative)
    J = sig.signs[:, None]
    size = np.linalg.norm(X, 2) ** 2
    wanted = np.diag([1.0] * positive + [-1.0] * negative)
    assert np.abs(X.T @ (J * X) - wanted).max() <= 10 * sig.n * UNIT * size
    norm = abs(A).sum(axis=0).max()
    R = A @ X - J * X * values
    assert np.linalg.norm(R) <= tolerance * norm * np.linalg.norm(X)
    assert (np.diff(values[:positive]) >= 0).all()
    assert (np.diff(values[positive:]) <= 0).all()


FORMS = {
    "csr": lambda A: A,
    "csc": sp.csc_array,
    "coo matrix": sp.coo_matrix,
    "dense": lambda A: A.toarray(),
    "integers": lambda A: sp.csr_array((A * 64).astype(int)) + sp.eye_array(N, dtype=int),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("counts", [(5, 5), (4, 0), (0, 3), (1, 7)])
def test_every_form_of_a(form, counts):
    A = FORMS[form](grid(18))
    values, X = eigh(A, MIXED, subset=counts)
    entries = A @ np.eye(N)
    check(entries, MIXED, values, X, counts)
    np.testing.assert_allclose(values, cut(entries, MIXED, *counts)[0], rtol=1e-11)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.strided])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tensors(layout, dtype):
    A = torch.from_numpy(grid(18).toarray()).to(dtype)
    given = A.to_sparse(layout=layout) if layout != torch.strided else A
    values, X = eigh(given, MIXED, subset=(3, 2))
    assert values.dtype == X.dtype == dtype
    wanted = cut(A.double().numpy(), MIXED, 3, 2)[0]
    rtol = 1e-11 if dtype == torch.float64 else 1e-6
    np.testing.assert_allclose(values.numpy(), wanted, rtol=rtol)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("copies", [2, 9])
def test_multiple_eigenvalues(copies, seed):
    """Every eigenvalue ``copies`` times: the Krylov space of one vector has one copy of each."""
    side = N // copies
    block = grid(side, 1, seed)
    A = sp.kron(sp.eye_array(copies), block).tocsr()
    signs = np.where(np.random.default_rng(seed).permutation(side) % 3 > 0, 1, -1)
    values, X = eigh(A, Signature.of(np.tile(signs, copies)), subset=(8, 7))
    check(A, Signature.of(np.tile(signs, copies)), values, X, (8, 7))
    theta = scipy.linalg.eigh(np.diag(1.0 * signs), block.toarray(), eigvals_only=True)
    nearest = np.sort(np.repeat(1 / theta[theta > 0], copies))[:8]
    below = np.sort(np.repeat(1 / theta[theta < 0], copies))[::-1][:7]
    np.testing.assert_allclose(values, [*nearest, *below], rtol=1e-9)


@pytest.mark.parametrize("span", [4, 8, 12])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_graded(span, share):
    """A = D B D with D over many orders: each lambda to u cond(B) relative to itself.

    Measured: 1e-14.
    """
    rng = np.random.default_rng(span)
    sig = Signature.of(np.where(rng.random(N) < share, 1, -1))
    D = sp.diags_array(rng.permutation(np.geomspace(1, 10.0**-span, N)))
    A = (D @ grid(18) @ D).tocsr()
    values, _ = eigh(A, sig, subset=(4, 4))
    np.testing.assert_allclose(values, cut(A.toarray(), sig, 4, 4)[0], rtol=1e-11)


def test_what_cannot_be_had_is_an_error():
    A = grid(18)
    with pytest.raises(RuntimeError, match=r"bounds the relative error of lambda - mu by .*1e-18"):
        eigh(A, MIXED, subset=(2, 2), tolerance=1e-18)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("shift", [-2.0, 100.0])
def test_shifted_and_negative_pencils(shift, sign):
    """+-A + shift J: the same vectors, the eigenvalues shifted."""
    A = grid(18)
    moved = (sign * A + shift * sp.diags_array(MIXED.signs.astype(float))).tocsr()
    wanted = sign * eigh(A, MIXED, subset=(4, 4))[0] + shift
    with pytest.raises(ValueError, match=r"shift must be a mu .* got 0"):
        eigh(moved, MIXED, subset=(4, 4))
    np.testing.assert_allclose(eigh(moved.toarray(), MIXED, subset=(4, 4))[0], wanted, rtol=1e-9)
    values, X = eigh(moved, MIXED, subset=(4, 4), shift=shift)
    np.testing.assert_allclose(values, wanted, rtol=1e-9)
    check(sign * moved, MIXED, sign * values, X, (4, 4))


@pytest.mark.parametrize("form", ["csr", "dense"])
def test_no_definite_pencil(form):
    indefinite = grid(18) - 4 * sp.eye_array(N)
    with pytest.raises(ValueError, match=r"shift must|A must"):
        eigh(FORMS[form](indefinite.tocsr()), MIXED, subset=(2, 2))
    with pytest.raises(ValueError, match=r"shift|A must"):
        eigh(FORMS[form](grid(18)), MIXED, subset=(2, 2), shift=50.0)


MISTAKES = [
    (dict(subset=(5, 5, 5)), TypeError, "subset must be two counts"),
    (dict(subset=(0, 0)), ValueError, "at least 1 in all"),
    (dict(subset=(217, 5)), ValueError, "at most p = 216 positive and q = 108 negative"),
    (dict(A=grid(17)), ValueError, "A must have shape (324, 324)"),
    (dict(A=grid(18) * 1j), TypeError, "A must hold real numbers"),
    (dict(A=sp.triu(grid(18))), ValueError, "A must be symmetric, got max |A - A^T|"),
    (dict(A=grid(18) * np.nan), ValueError, "A must be finite"),
]


@pytest.mark.parametrize(("given", "kind", "message"), MISTAKES)
def test_mistakes(given, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        eigh(given.get("A", grid(18)), MIXED, subset=given.get("subset", (2, 2)))
