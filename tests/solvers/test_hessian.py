"""`hessian_check` against second derivatives by autograd and mpmath, and against closed forms."""

import mpmath
import numpy as np
import pytest
import torch

import jorth
from jorth import Objective, Quadratic, Signature, hessian_check
from jorth.datasets import planted_procrustes
from jorth.solvers import hessian as lowest
from jorth.solvers.hessian import Hessian
from jorth.solvers.problem import CountedObjective, as_objective


def symmetric(n, seed):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return (A + A.T) / 2


def skew(x, n):
    """The skew matrix of unit coordinates x, in the order of numpy.triu_indices."""
    S = x.new_zeros(n, n)
    i, j = np.triu_indices(n, 1)
    S = S.index_put((torch.as_tensor(i), torch.as_tensor(j)), x / 2**0.5)
    return S - S.mT


def by_autograd(function, X, sig):
    """The Hessian of S -> f(exp(J S) X) in unit coordinates of S, (d, d)."""
    X = torch.as_tensor(X)
    J = torch.diag(sig.vector(X))
    n = sig.n
    zero = torch.zeros(n * (n - 1) // 2, dtype=X.dtype)
    return torch.autograd.functional.hessian(
        lambda x: function(torch.matrix_exp(J @ skew(x, n)) @ X), zero
    ).numpy()


def ours(objective, X, sig):
    """The matrix of the operator in its own coordinates."""
    hessian = Hessian(CountedObjective(as_objective(objective)), sig, torch.as_tensor(X))
    columns = [hessian.product(unit) for unit in np.eye(hessian.dimension)]
    return np.stack(columns, axis=1) * hessian.objective.unit


def quartic(X):
    return X.pow(4).sum() / 4 + X[0, 0] * X[1, 1] * X[-1, -1]


@pytest.mark.parametrize("sig", [Signature(3, 2), Signature.of([1, -1, 1, -1]), Signature(0, 3)])
@pytest.mark.parametrize("kind", ["quadratic", "autograd", "numpy"])
def test_the_operator_is_the_second_derivative_everywhere(sig, kind):
    n = sig.n
    X = jorth.random_point(sig, cond=4.0, seed=3) if 0 < sig.p < n else jorth.random_point(sig)
    tA, tC, tD = (torch.from_numpy(symmetric(n, seed)) for seed in range(3))

    def form(X):
        return (X * (tA @ X @ tD)).sum() / 2 + (tC * X).sum()

    function = form if kind == "quadratic" else quartic
    objective = {
        "quadratic": Quadratic(tA, tC, tD),
        "autograd": quartic,
        "numpy": Objective(
            lambda X: float(quartic(torch.from_numpy(X))),
            lambda X: torch.func.grad(quartic)(torch.from_numpy(X)).numpy(),
        ),
    }[kind]
    expected = by_autograd(function, X, sig)
    size = np.linalg.norm(expected) + np.linalg.norm(X) ** 4
    error = 1e-8 if kind == "numpy" else 1e-13
    np.testing.assert_allclose(ours(objective, X, sig), expected, atol=error * size)


@pytest.mark.parametrize("flips", [(), (0, 1), (1, 3), (0, 1, 2, 3)])
def test_orthogonal_procrustes_in_closed_form(flips):
    """At X = U E V^T, f = -<C, X> has the eigenvalues (e_i s_i + e_j s_j) / 2."""
    sig = Signature(5, 0)
    U, V = (np.linalg.qr(symmetric(5, seed))[0] for seed in (4, 5))
    s = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    e = np.ones(5)
    e[list(flips)] = -1
    C = U @ np.diag(s) @ V.T
    X = U @ np.diag(e) @ V.T
    check = hessian_check(Quadratic(np.zeros((5, 5)), -C), X, sig)
    i, j = np.triu_indices(5, 1)
    expected = ((e * s)[i] + (e * s)[j]).min() / 2
    assert check.smallest == pytest.approx(expected, abs=1e-13)
    assert check.kind == ("minimum" if expected > 0 else "saddle")
    assert abs(check.smallest - expected) <= check.rounding + check.error


def test_trace_problem_has_null_directions_and_a_weight_removes_them():
    sig = Signature(3, 2)
    A = symmetric(5, 6) @ symmetric(5, 6) + np.eye(5)
    values, W = jorth.eigh(A, sig)
    flat = hessian_check(Quadratic(A), W, sig)
    assert flat.kind == "degenerate"
    assert abs(flat.smallest) <= flat.rounding
    weights = np.empty(5)
    weights[np.argsort(-abs(values))] = [1.0, 2.0, 3.0, 4.0, 5.0]  # the largest get the least
    sorted_ = hessian_check(Quadratic(A, D=np.diag(weights)), W, sig)
    assert sorted_.kind == "minimum"
    assert hessian_check(Quadratic(A, D=np.diag(1 / weights)), W, sig).kind == "saddle"


def mp_smallest(A, C, X, signs):
    """The smallest eigenvalue by second differences of f(exp(J S) X) at 60 digits."""
    n, pairs = len(signs), list(zip(*np.triu_indices(len(signs), 1), strict=True))
    with mpmath.workdps(60):
        A, C, X = (mpmath.matrix(part.tolist()) for part in (A, C, X))
        h = mpmath.mpf(10) ** -15

        def f(*steps):
            """The sum of f at steps of h in some coordinates, ahead and behind."""
            K = mpmath.zeros(n)
            for i, j in (pairs[position] for position in steps):
                K[i, j] += signs[i] * h / mpmath.sqrt(2)
                K[j, i] -= signs[j] * h / mpmath.sqrt(2)
            ends = [mpmath.expm(sign * K) * X for sign in (1, -1)]
            return sum(y * (g / 2 + c) for Y in ends for y, g, c in zip(Y, A * Y, C, strict=True))

        zero, H = f(), mpmath.zeros(len(pairs))
        for i in range(len(pairs)):
            H[i, i] = (f(i) - zero) / h**2
            for j in range(i):
                both = (f(i, j) - zero) / h**2
                H[i, j] = H[j, i] = (both - H[i, i] - H[j, j]) / 2
        return float(min(mpmath.eigsy(H, eigvals_only=True)))


@pytest.mark.parametrize("cond", [3.0, 1e6])
def test_the_error_is_within_the_rounding_that_it_states(cond):
    sig = Signature(2, 1)
    X = jorth.random_point(sig, cond=cond, seed=7)
    A, C = symmetric(3, 8), symmetric(3, 9)
    check = hessian_check(Quadratic(A, C), X, sig)
    expected = mp_smallest(A, C, X, sig.signs.tolist())
    assert abs(check.smallest - expected) <= check.rounding + check.error
    assert check.rounding <= 1e-13 * np.linalg.norm(X) ** 2 * (np.linalg.norm(A) + 1) * 10


def test_a_thin_x_has_no_null_directions_of_its_own():
    """The Hessian in S has the eigenvalues found and a zero for every S that does not move X."""
    sig = Signature(3, 2)
    A = symmetric(5, 10) @ symmetric(5, 10) + np.eye(5)
    x0 = jorth.random_point(sig, columns=(2, 1), cond=4.0, seed=1)
    D = np.diag([1.0, 2.0, 3.0])
    objective = Quadratic(A, D=D)
    result = jorth.minimize(objective, x0, signature=sig, gradient_tolerance=1e-12)
    assert result.success
    tA, tD = torch.from_numpy(A), torch.from_numpy(D)
    full = np.linalg.eigvalsh(by_autograd(lambda X: (X * (tA @ X @ tD)).sum() / 2, result.x, sig))
    found = np.linalg.eigvalsh(ours(objective, result.x, sig))
    assert len(found) == 3 * 5 - 6
    expected = np.sort(np.append(found, np.zeros(1)))
    np.testing.assert_allclose(full, expected, atol=1e-9 * abs(full).max())
    check = hessian_check(objective, result.x, sig)
    assert check.kind == "minimum"
    assert check.smallest == pytest.approx(found[0], rel=1e-9)


def test_iterations_find_what_the_dense_matrix_has(monkeypatch):
    sig = Signature(16, 10)
    source, target, _ = planted_procrustes(60, sig, noise=0.1, seed=11)
    objective = jorth.Procrustes(source, target)
    X = jorth.minimize(objective, signature=sig, gradient_tolerance=1e-11).x
    iterated = hessian_check(objective, X, sig)
    monkeypatch.setattr(lowest, "MOST_PRODUCTS", 60)
    few = hessian_check(objective, X, sig)
    monkeypatch.setattr(lowest, "MOST_DENSE", 1000)
    dense = hessian_check(objective, X, sig)
    assert iterated.products > 50
    assert dense.products > 26 * 25 / 2
    size = 100 * iterated.rounding
    assert dense.smallest - size <= iterated.smallest <= dense.smallest + iterated.error
    assert iterated.error <= 0.01 * abs(iterated.smallest)
    assert iterated.smallest == pytest.approx(dense.smallest, rel=1e-3)
    assert few.products < 70
    assert dense.smallest - size <= few.smallest <= dense.smallest + few.error
    again = hessian_check(objective, X, sig)
    assert again.smallest == dense.smallest
    assert np.array_equal(again.direction, dense.direction)


@pytest.mark.parametrize("offset", [0.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("power", [3, 4])
def test_a_point_near_a_degenerate_one_is_not_called_a_minimum(power, offset):
    """f = sin^3 has an inflection and sin^4 a flat minimum; the Hessian cannot tell them apart."""
    angle = torch.tensor(offset, dtype=torch.float64)
    X = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()]).reshape(2, 2)
    check = hessian_check(lambda X: X[1, 0] ** power, X, Signature(2, 0))
    assert check.kind in ("degenerate", "not critical")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_direction_is_tangent_of_the_kind_of_x_and_f_falls_along_it(dtype):
    sig = Signature.of([1, -1, 1])
    C = torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=dtype))
    X = torch.diag(torch.tensor([-1.0, 1.0, -1.0], dtype=dtype))

    def f(X):
        return -(C * X).sum()

    check = hessian_check(f, X, sig)
    assert check.kind == "saddle"
    assert check.direction.dtype == dtype
    tangency = check.direction.mT @ (sig.vector(X)[:, None] * X)
    torch.testing.assert_close(tangency, -tangency.mT)
    K = (0.1 * check.direction @ torch.linalg.inv(X)).double()
    assert f((torch.matrix_exp(K) @ X.double()).to(dtype)) < f(X) + 0.9 * check.smallest * 0.01 / 2
    assert isinstance(hessian_check(Quadratic(C), X.numpy(), sig).direction, np.ndarray)


@pytest.mark.parametrize("share", [-1.0, 0.0, 1e8, np.nan])
def test_a_wrong_hessian_decides_nothing(share):
    """f = ||X||_F^2 / 2 is least at the identity, with an eigenvalue of 2 for each boost."""
    sig = Signature(1, 2)

    def objective(share):
        return Objective(
            lambda X: float((X * X).sum()) / 2 + float(X[1, 2]),
            lambda X: X + np.outer([0, 1, 0], [0, 0, 1]),
            hessian=lambda X, V: share * V,
        )

    x = jorth.minimize(objective(1.0), np.eye(3), signature=sig, gradient_tolerance=1e-12).x
    right, found = (hessian_check(objective(each), x, sig) for each in (1.0, share))
    assert right.kind == found.kind == "minimum"
    assert found.smallest == pytest.approx(right.smallest, rel=1e-6)


def test_wrong_arguments():
    sig, objective = Signature(2, 1), Quadratic(np.eye(3))
    with pytest.raises(ValueError, match="X must be J-orthogonal"):
        hessian_check(objective, 2 * np.eye(3), sig)
    with pytest.raises(ValueError, match="k from 1 to 3"):
        hessian_check(lambda X: X.sum(), np.ones((3, 4)), sig)
    probe = jorth.StructuralProbe(np.ones((3, 3)) + np.eye(3), signature=Signature(2, 1))
    with pytest.raises(ValueError, match="signature must be the objective's"):
        hessian_check(probe, np.eye(3), Signature(1, 2))
