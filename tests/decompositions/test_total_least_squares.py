"""Total least squares: the classical problem, rows taken out, backward errors at 60 digits."""

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, hsvd, total_least_squares
from tests.decompositions.reference import TALL_GRID, orthogonal, tall
from tests.group.strategies import UNIT

MIXED = Signature.of([1, -1, 1, 1, -1, 1, -1, 1, 1])


def classical(A, b):
    """-V12 V22^-1 from the singular vectors of [A b]."""
    n = A.shape[1]
    V = np.linalg.svd(np.column_stack([A, b]))[2].T
    return -V[:n, n:] @ np.linalg.inv(V[n:, n:])


def noisy(m, n, d, noise, seed):
    rng = np.random.default_rng(seed)
    A, X = rng.standard_normal((m, n)), rng.standard_normal((n, d))
    b = A @ X + noise * rng.standard_normal((m, d))
    return A + noise * rng.standard_normal((m, n)), b


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("noise", [0.0, 1e-8, 0.1])
def test_one_sign_is_the_classical_problem(d, noise):
    A, b = noisy(15, 4, d, noise, 0)
    wanted = classical(A, b)
    np.testing.assert_allclose(total_least_squares(A, b), wanted, atol=1e-12)
    one = total_least_squares(A, b[:, 0], Signature(15, 0))
    assert one.shape == (4,)
    np.testing.assert_allclose(one, classical(A, b[:, :1])[:, 0], atol=1e-12)


@given(st.data())
def test_rows_taken_out(data):
    """Rows with + and again with -, anywhere, are as if they had never been there."""
    n, d, out = (data.draw(st.integers(1, 4)) for _ in range(3))
    seed = data.draw(st.integers(0, 2**32))
    A, b = noisy(3 * n + d + out, n, d, 0.05, seed)
    order = np.random.default_rng(seed).permutation(len(A) + out)
    signs = np.concatenate([np.ones(len(A)), -np.ones(out)]).astype(int)[order]
    repeated = [np.concatenate([part, part[:out]])[order] for part in (A, b)]
    try:
        kept = total_least_squares(A[out:], b[out:])
    except ValueError:  # a draw without a solution
        return
    found = total_least_squares(*repeated, Signature.of(signs))
    V = np.linalg.svd(np.column_stack([A, b])[out:])
    gap = (V[1][n - 1] ** 2 - V[1][n] ** 2) / np.linalg.norm(np.column_stack(repeated), 2) ** 2
    part = np.linalg.svd(V[2][n:, n:], compute_uv=False)[-1]
    allowed = 100 * len(order) * UNIT / (gap * part**2)
    np.testing.assert_allclose(found, kept, rtol=0, atol=allowed * (1 + np.abs(kept).max()))


def test_it_is_the_least_correction():
    """||[E f]||_F is the smallest singular value, and the corrected system holds exactly."""
    A, b = noisy(12, 3, 1, 0.1, 1)
    x = total_least_squares(A, b[:, 0])
    M, v = np.column_stack([A, b]), np.append(x, -1)
    correction = -np.outer(M @ v, v) / (v @ v)
    np.testing.assert_allclose((M + correction) @ v, 0, atol=1e-13)
    np.testing.assert_allclose(
        np.linalg.norm(correction), np.linalg.svd(M, compute_uv=False)[-1], rtol=1e-12
    )


def test_it_is_in_the_hyperbolic_singular_vectors():
    """`hsvd` of the wide [A b]^T: the column of U with the smallest positive S."""
    M = tall(MIXED, 4, 10.0, 10.0, 2)
    x = total_least_squares(M[:, :3], M[:, 3], MIXED)
    found = hsvd(M.T, MIXED)
    S = np.where(found.S > 0, found.S, np.inf)
    u = found.U[:, np.argmin(S)]
    np.testing.assert_allclose(x, -u[:3] / u[3], rtol=1e-10)


def mp(array):
    return mpmath.matrix(np.asarray(array).tolist())


def exact(M, sig):
    """The smallest eigenvector of M^T J M scaled to (x, -1), and the eigenvalues, at 60 digits."""
    with mpmath.workdps(60):
        product = mp(M).T * mpmath.diag(sig.signs.tolist()) * mp(M)
        values, vectors = mpmath.eigsy((product + product.T) / 2)
        v = vectors[:, 0]
        x = [float(-v[i] / v[M.shape[1] - 1]) for i in range(M.shape[1] - 1)]
        return np.array(x), np.array([float(value) for value in values])


def backward_error(M, sig, x):
    """The least ||dM|| / ||M|| for which (x, -1) is an eigenvector of M^T J M, to first order:
    dM^T J M v + M^T J dM v - t v = -(M^T J M v - rho v), a least-norm problem in (dM, t).
    """
    m, k = M.shape
    v = np.append(x, -1.0) / np.linalg.norm(np.append(x, -1.0))
    with mpmath.workdps(60):
        image = mp(M).T * (mpmath.diag(sig.signs.tolist()) * (mp(M) * mp(v)))
        rho = (mp(v).T * image)[0] / (mp(v).T * mp(v))[0]
        defect = np.array((image - rho * mp(v)).tolist(), dtype=float)[:, 0]
    JMv, MtJ = sig.signs * (M @ v), M.T * sig.signs
    equations = np.einsum("i,jl->jil", JMv, np.eye(k)) + np.einsum("ji,l->jil", MtJ, v)
    # without the part along v, which t takes up
    orthogonal_to_v = np.linalg.svd(v[None])[2][1:]
    least = np.linalg.lstsq(
        orthogonal_to_v @ equations.reshape(k, m * k), -orthogonal_to_v @ defect, rcond=None
    )[0]
    return np.linalg.norm(least) / np.linalg.norm(M)


@pytest.mark.parametrize(("cond", "closeness"), TALL_GRID)
def test_backward_stable(cond, closeness):
    """A few m u at any condition, measured below 0.5 m u; and the vector is that of the smallest
    eigenvalue, to what this backward error can do over the gap."""
    for seed in range(3):
        M = tall(MIXED, 4, cond, closeness, seed)
        try:
            x = total_least_squares(M[:, :3], M[:, 3], MIXED)
        except ValueError:  # the smallest eigenvalues are equal to rounding
            values = exact(M, MIXED)[1]
            assert values[1] - values[0] <= 1e3 * MIXED.n * UNIT * np.linalg.norm(M, 2) ** 2
            continue
        assert backward_error(M, MIXED, x) <= 4 * MIXED.n * UNIT
        wanted, values = exact(M, MIXED)
        angle = 20 * MIXED.n * UNIT * np.linalg.norm(M, 2) ** 2 / (values[1] - values[0])
        size = 1 + np.linalg.norm(wanted) ** 2
        if angle * size < 0.1:
            assert np.linalg.norm(x - wanted) <= angle * size


def test_the_product_is_not():
    """What `backward_error` reads for an eigenvalue solver on M^T J M: the median of eleven."""
    found = []
    for seed in range(11):
        M = tall(MIXED, 4, 1e8, 1e2, seed)
        v = np.linalg.eigh((M.T * MIXED.signs) @ M)[1][:, 0]
        found.append(backward_error(M, MIXED, -v[:3] / v[3]))
    assert np.median(found) > 100 * MIXED.n * UNIT


def test_what_is_kept_may_fit_exactly():
    """Outliers taken out again: M^T J M is singular, M is not."""
    rng = np.random.default_rng(3)
    A, X = rng.standard_normal((20, 4)), rng.standard_normal((4, 2))
    b = A @ X
    b[:5] += rng.standard_normal((5, 2))
    sig = Signature.of([1] * 20 + [-1] * 5)
    found = total_least_squares(np.vstack([A, A[:5]]), np.vstack([b, b[:5]]), sig)
    np.testing.assert_allclose(found, X, atol=1e-12)


def test_all_rows_but_as_many_as_unknowns_taken_out():
    """M^T J M is singular to rounding, which is relative to M and not to each of its directions."""
    for seed in range(20):
        A, b = noisy(4, 2, 2, 0.1, seed)
        taken = np.vstack([A, A[:2]]), np.vstack([b, b[:2]])
        found = total_least_squares(*taken, Signature(4, 2))
        exact = np.linalg.solve(A[2:], b[2:])
        loss = np.linalg.cond(np.hstack([A, b])) * np.linalg.cond(A[2:]) ** 2
        np.testing.assert_allclose(found, exact, atol=1e-13 * loss * np.abs(exact).max())


def test_close_singular_values_have_a_solution():
    """1 and 1 - 1e-9 differ by far more than rounding; so x is known to 10 m u 9 / 2e-9."""
    rng = np.random.default_rng(7)
    V = orthogonal(3, rng)
    v = np.array([0.6, 0.0, 0.8])  # the last vector, with a part in b
    V = np.linalg.qr(np.column_stack([v, V[:, :2]]))[0][:, ::-1]
    M = orthogonal(9, rng)[:, :3] * [3.0, 1.0, 1 - 1e-9] @ V.T
    found = total_least_squares(M[:, :2], M[:, 2])
    np.testing.assert_allclose(found, [-0.75, 0.0], atol=10 * 9 * UNIT * 9 / 2e-9)


def test_a_square_system_is_solved():
    A, b = noisy(4, 4, 2, 0.1, 4)
    np.testing.assert_allclose(total_least_squares(A, b), np.linalg.solve(A, b), atol=1e-11)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_no_overflow(scale):
    A, b = noisy(9, 3, 2, 0.1, 5)
    np.testing.assert_allclose(
        total_least_squares(scale * A, scale * b), total_least_squares(A, b), rtol=1e-12
    )


def test_batches_torch_and_float32():
    pairs = [noisy(9, 3, 2, 0.1, seed) for seed in range(6)]
    A, b = (np.stack(part).reshape(2, 3, 9, -1) for part in zip(*pairs, strict=True))
    found = total_least_squares(torch.from_numpy(A), torch.from_numpy(b))
    assert found.shape == (2, 3, 3, 2)
    np.testing.assert_allclose(found[1, 2].numpy(), classical(*pairs[5]), atol=1e-12)
    single = total_least_squares(A[0, 0].astype(np.float32), b[0, 0, :, 0].astype(np.float32))
    assert (single.dtype, single.shape) == (np.float32, (3,))
    np.testing.assert_allclose(single, classical(A[0, 0], b[0, 0, :, :1])[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        (np.eye(3)[:, :2] * [2.0, 1.0], [0, 0, 9.0], "nongeneric problem"),
        (np.array([[1.0, 1], [2, 2], [3, 3], [5, 5]]), [1.0, 0, 0, 0], "nongeneric problem"),
        (np.ones((4, 2)) * np.arange(4)[:, None], np.arange(4.0), "must have one solution"),
        (np.zeros((4, 2)), np.zeros(4), "must have one solution"),
        (orthogonal(3, np.random.default_rng(6))[:, :2], [0, 0, 0.0], None),
    ],
    ids=["nongeneric", "dependent columns", "consistent", "zero", "zero right-hand side"],
)
def test_problems_without_a_solution(A, b, message):
    if message is None:
        np.testing.assert_array_equal(total_least_squares(A, np.array(b)), 0)
        return
    with pytest.raises(ValueError, match=message):
        total_least_squares(A, np.array(b))
