"""A few eigenpairs of A x = lambda J x next to the gap, for sparse and matrix-free A, by `eigsh`.

S = A - mu J is positive definite, so that J x = theta S x, theta = 1 / (lambda - mu), is a definite
problem for ARPACK's Lanczos method, and the eigenpairs next to mu have the largest and the smallest
theta. All is done in y = D x, D^2 the diagonal of S, where a grading of A is no ill condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import (
    check_finite,
    check_signature,
    describe,
    is_sparse,
    to_tensor,
    whole_number,
)
from jorth.linalg.batch import Floats
from jorth.linalg.hsvd import one_sided_jacobi
from jorth.signature import Signature

Map: TypeAlias = Callable[[Floats], Floats]
"""A linear map of columns (n, b)."""

REFINEMENTS = 2
"""Bounds the rounds of inverse iteration: each squares the error, down to rounding."""
EPS = float(np.finfo(np.float64).eps)
SEARCHES = 20
"""Bounds the searches at each end; every one after the first finds a copy that was missed."""
CLUSTER = 1e-7
"""Eigenvalues this near to each other, relative to their distance from mu, count as one."""
ACCURATE = 1e-8
"""Bounds the backward error of a solve by a factorisation whose inertia is believed."""
REMEDIES = "pass a larger tolerance, a shift nearer to the middle of the gap, or A as an array"
SYMMETRIC = 64
"""Bounds |A - A^T| in units of rounding of the largest entry."""


class Operator(Protocol):
    """A `scipy.sparse.linalg.LinearOperator`, as far as it is used here."""

    @property
    def shape(self) -> Any: ...

    def matvec(self, x: Any, /) -> Any: ...

    def matmat(self, X: Any, /) -> Any: ...


@dataclass(frozen=True)
class _Pencil:
    """S y = sigma K y with S positive definite, K = D^-1 J D^-1 and x = D^-1 y.

    Attributes:
        multiply: Products with S = D^-1 (A - mu J) D^-1 / unit.
        solve: Products of S^-1 with a vector.
        shifted: S - sigma K; None without entries.
        form: (n,), the diagonal of K.
        scale: (n,), the diagonal of D.
        mu: The shift.
        unit: lambda = mu + unit sigma; negative if A - mu J is negative definite.
    """

    multiply: Map
    solve: Map
    shifted: Callable[[float], Any] | None
    form: Floats
    scale: Floats
    mu: float
    unit: float


def subset_counts(subset: Any, signature: Signature) -> tuple[int, int]:
    """Return the two counts of a subset, or raise an error unless they fit the signature."""
    check_signature(signature)
    if not isinstance(subset, (tuple, list)) or len(subset) != 2:
        raise TypeError(f"subset must be two counts (positive, negative), got {describe(subset)}")
    positive, negative = (whole_number(subset[i], f"subset[{i}]", 0) for i in range(2))
    if positive > signature.p or negative > signature.q or positive + negative == 0:
        most = f"at most p = {signature.p} positive and q = {signature.q} negative eigenpairs"
        expected = f"{most}, at least 1 in all, for {signature}"
        raise ValueError(f"subset must have {expected}, got {positive} and {negative}")
    return positive, negative


def is_operator(A: object) -> bool:
    """Check whether A multiplies like a `scipy.sparse.linalg.LinearOperator`."""
    return hasattr(A, "matvec") and hasattr(A, "matmat") and hasattr(A, "shape")


def has_no_array(A: object) -> bool:
    """Check whether A is sparse or an operator: one matrix without an array of its entries."""
    return is_operator(A) or is_sparse(A) or (isinstance(A, Tensor) and A.layout != torch.strided)


def read_large(A: Any, signature: Signature) -> tuple[Any, Callable[[Floats], Any]]:
    """Return A as a symmetric csc matrix or a LinearOperator, and a map of results to its kind."""
    n = check_signature(signature).n
    if tuple(A.shape) != (n, n):
        expected = f"shape ({n}, {n}) for {signature} (p + q = {n})"
        raise ValueError(f"A must have {expected}, got shape {tuple(A.shape)}")
    if is_operator(A):
        operator = _checked_operator(A, n)
        return operator, lambda x: x.astype(operator.dtype)
    from scipy.sparse import csc_array

    if isinstance(A, Tensor):
        plain: Any = A.detach().cpu()
        triples = plain.to_sparse_coo().coalesce()
        places = tuple(triples.indices().numpy())
        data = to_tensor(triples.values(), "A")
        entries = csc_array((data.double().numpy(), places), shape=A.shape)
    else:
        entries = csc_array(A)
        data = to_tensor(entries.data, "A")
        entries = csc_array((data.double().numpy(), entries.indices, entries.indptr), A.shape)
    check_finite(data, "A")
    defect = float(abs(entries - entries.T).max())
    if defect > SYMMETRIC * torch.finfo(data.dtype).eps * abs(entries).max():
        raise ValueError(f"A must be symmetric, got max |A - A^T| = {defect:.3g}")

    def wrap(x: Floats) -> Any:
        result = torch.from_numpy(np.ascontiguousarray(x)).to(data.dtype)
        return result.to(A.device) if isinstance(A, Tensor) else result.numpy()

    return (0.5 * entries + 0.5 * entries.T).tocsc(), wrap


def _checked_operator(A: Any, n: int) -> Any:
    """Return A as a LinearOperator that gives finite products, float32 or float64."""
    from scipy.sparse.linalg import LinearOperator

    dtype = np.dtype(np.float64 if getattr(A, "dtype", None) is None else A.dtype)
    if dtype.kind not in "fiu":
        raise TypeError(f"A must hold real numbers, got an operator of dtype {dtype}")
    dtype = np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)

    def multiply(W: Floats) -> Floats:
        product = np.asarray(A.matmat(W.reshape(n, -1)))
        if not np.isfinite(product).all():
            raise ValueError("A must give finite products, got NaN or infinity")
        return product.reshape(W.shape).astype(np.float64)

    W = np.random.default_rng(0).standard_normal((n, 2)) / math.sqrt(n)
    AW = multiply(W)
    defect = abs(W[:, 0] @ AW[:, 1] - W[:, 1] @ AW[:, 0])
    if defect > n * SYMMETRIC * np.finfo(dtype).eps * np.abs(AW).max():
        found = f"|x^T A y - y^T A x| = {defect:.3g} for unit x and y"
        raise ValueError(f"A must be symmetric, got {found}")
    return LinearOperator((n, n), multiply, matmat=multiply, dtype=dtype)


def eigh_subset(
    A: Any,
    signature: Signature,
    counts: tuple[int, int],
    shift: float | None,
    tolerance: float | None,
) -> tuple[Floats, Floats]:
    """Return (eigenvalues (k,), X (n, k)) for the two counts, the positive ones first.

    A is what `read_large` returns. ``tolerance`` bounds the relative error of lambda - mu: by
    ||S^-1 J x - theta x|| / |theta| ||x|| in the norm of S, where S^-1 J is symmetric.
    """
    from scipy.sparse.linalg import splu

    if tolerance is None:
        tolerance = 1e-10 if A.dtype == np.float64 else 1e-3
    signs = signature.signs.astype(np.float64)
    pencil = (_with_products if is_operator(A) else _with_entries)(A, signs, shift)
    Y = _search(pencil, counts, 0.1 * tolerance)
    own = np.repeat([1, -1], counts).astype(np.int8)
    for refinements in range(REFINEMENTS + 1):
        sigma, X = _diagonalise(pencil, Y, own)
        R = pencil.multiply(X) - pencil.form[:, None] * X * sigma
        Z = np.stack([pencil.solve(r) for r in R.T], axis=1)
        errors = np.sqrt(np.abs(np.einsum("ij,ij->j", R, Z) / sigma))
        bad = np.flatnonzero(~(errors <= tolerance))
        if not len(bad):
            for sign in (1, -1) if refinements else ():  # each may have turned to another pair
                nearest = np.sort(np.abs(sigma[own == sign]))
                if len(nearest) and _count_missed(pencil, nearest, nearest, sign):
                    raise RuntimeError(f"eigenpairs were missed: {REMEDIES}")
            return pencil.mu + pencil.unit * sigma, X / pencil.scale[:, None]
        if pencil.shifted is None:
            break
        Y = X / np.sqrt(np.abs(sigma))
        for i in bad:  # inverse iteration; the shift is not exactly an eigenvalue
            z = splu(pencil.shifted((1 + 4 * EPS) * float(sigma[i]))).solve(pencil.form * X[:, i])
            Y[:, i] = z / np.linalg.norm(z)
    worst = bad[np.argmax(errors[bad])]
    raise RuntimeError(
        f"{len(bad)} of {len(own)} eigenpairs have not converged: for lambda = "
        f"{pencil.mu + pencil.unit * sigma[worst]:.6g} the residual bounds the relative error of "
        f"lambda - mu by {errors[worst]:.2g} only, tolerance = {tolerance:.2g}; {REMEDIES}"
    )


def _search(pencil: _Pencil, counts: tuple[int, int], tolerance: float) -> Floats:
    """Return vectors (n, k) near the wanted ones; none is missed as far as that can be told."""
    rng = np.random.default_rng(0)
    Y, theta = np.empty((len(pencil.form), 0)), np.empty(0)
    for sign, k in ((1, counts[0]), (-1, counts[1])):
        missed, before = k, np.full(k, np.inf)
        for _ in range(SEARCHES):
            if not missed:
                break
            start = rng.standard_normal(len(Y))
            new = _outmost(pencil, Y, theta, sign, start, missed, tolerance)
            Y, theta = _ritz(pencil, np.hstack([Y, new]), counts)
            own = np.sort(sign / theta[sign * theta > 0])
            missed = k - len(own)
            if not missed:
                missed, before = _count_missed(pencil, own, before, sign), own
        if missed:
            raise RuntimeError(
                f"{missed} of {sum(counts)} eigenpairs were missed in {SEARCHES} searches; pass "
                "another shift, or A as an array"
            )
    return Y


def _count_missed(pencil: _Pencil, own: Floats, before: Floats, sign: int) -> int:
    """Return how many eigenvalues next to the gap are not among the ascending ``own``.

    S - sigma K has as many negative eigenvalues as there are eigenvalues between 0 and sigma
    (Sylvester). sigma is just below the last of ``own``, in a gap of a relative width of `CLUSTER`.
    Where the inertia is not known, another search of the rest has to find nothing nearer.
    """
    last = len(own) - 1
    while last > 0 and own[last - 1] > (1 - CLUSTER) * own[last]:
        last -= 1
    if pencil.shifted is not None:
        S = pencil.shifted(sign * (1 - 0.5 * CLUSTER) * float(own[last]))
        factors = _symmetric_factors(S)
        if factors is not None:
            b = np.random.default_rng(0).standard_normal(len(pencil.form))
            x = factors.solve(b)
            size = np.linalg.norm(x) * abs(S).sum(axis=0).max()
            if np.linalg.norm(S @ x - b) <= ACCURATE * size:
                return max(0, int((factors.U.diagonal() < 0).sum()) - last)
    return 1 if bool((own < (1 - CLUSTER) * before).any()) else 0


def _outmost(
    pencil: _Pencil, Y: Floats, theta: Floats, sign: int, start: Floats, k: int, tolerance: float
) -> Floats:
    """Return at most k eigenvectors of the largest sign theta, beside those in Y."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n, SY = len(start), pencil.multiply(Y) if Y.size else Y
    S, inverse, rest = (
        LinearOperator((n, n), product, dtype=np.float64)
        for product in (
            pencil.multiply,
            pencil.solve,
            lambda v: pencil.form * v - SY @ (theta * (SY.T @ v)),
        )
    )
    options = dict(which="LA" if sign > 0 else "SA", ncv=min(n - 1, 2 * k + 30), tol=tolerance)
    try:
        _, new = eigsh(rest, k, M=S, Minv=inverse, v0=start, **options)
    except ArpackNoConvergence as error:
        raise RuntimeError(
            f"eigsh has found {len(error.eigenvalues)} of {k} eigenpairs: {REMEDIES}"
        ) from None
    new = new - Y @ (SY.T @ new)
    # of an eigenvector that is in Y only rounding is left
    found: Floats = new[:, np.einsum("ij,ij->j", new, pencil.multiply(new)) > 0.5]
    return found


def _ritz(pencil: _Pencil, V: Floats, counts: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return the Ritz vectors in the span of V with the outmost theta, orthonormal in S."""
    from scipy.linalg import eigh

    V = V / np.sqrt(np.einsum("ij,ij->j", V, pencil.multiply(V)))
    theta, Z = eigh(V.T @ (pencil.form[:, None] * V), V.T @ pencil.multiply(V))
    above = np.flatnonzero(theta > 0)[::-1][: counts[0]]
    chosen = np.concatenate([above, np.flatnonzero(theta < 0)[: counts[1]]])
    return V @ Z[:, chosen], theta[chosen]


def _diagonalise(pencil: _Pencil, Y: Floats, own: Any) -> tuple[Floats, Floats]:
    """Return (sigma, X) with X^T K X = diag(own), X^T S X = own sigma in the span of Y."""
    from scipy.linalg import cholesky

    X = Y / np.sqrt(np.abs(np.einsum("ij,ij->j", Y, pencil.form[:, None] * Y)))
    try:
        R = cholesky(X.T @ pencil.multiply(X))
        _, lengths, turn = one_sided_jacobi(R, own)
    except ValueError:
        raise RuntimeError(f"eigenvectors that were found are dependent: {REMEDIES}") from None
    order = np.lexsort((lengths, -own))
    X = X @ turn[:, order]
    for _ in range(2):  # Schulz steps: orthonormal to rounding
        X = 1.5 * X - 0.5 * X @ (own[:, None] * (X.T @ (pencil.form[:, None] * X)))
    return own * lengths[order] ** 2, X


def _with_entries(A: Any, signs: Floats, shift: float | None) -> _Pencil:
    """Return the pencil of a sparse A (csc), with a shift that is given or found."""
    from scipy.sparse import diags_array

    unit = _power_of_two(float(abs(A).max()))
    try:
        mu, factors = _definite_shift(A / unit, signs, shift, unit)
    except ValueError as refused:
        unit = -unit
        try:
            mu, factors = _definite_shift(A / unit, signs, shift, unit)
        except ValueError:
            raise refused from None
    S = A / unit - mu * diags_array(signs)
    d = np.exp2(np.round(0.5 * np.log2(S.diagonal())))
    inverse = diags_array(1 / d)
    S, form = (inverse @ S @ inverse).tocsc(), signs / d**2

    return _Pencil(
        multiply=lambda W: S @ W,
        solve=lambda b: np.asarray(d * factors.solve(d * b)),
        shifted=lambda sigma: (S - sigma * diags_array(form)).tocsc(),
        form=form,
        scale=d,
        mu=mu * unit,
        unit=unit,
    )


def _symmetric_factors(S: Any) -> Any:
    """Return SuperLU's P S P^T = L D L^T with pivots from the diagonal, or None if one is zero."""
    from scipy.sparse.linalg import splu

    options = {"SymmetricMode": True}
    try:
        lu = splu(S, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError:  # exactly singular
        return None
    return lu if np.array_equal(lu.perm_r, lu.perm_c) else None


def _definite_shift(A: Any, signs: Floats, shift: float | None, unit: float) -> tuple[float, Any]:
    """Return (mu, factors of A - mu J) with A - mu J positive definite, or raise a ValueError.

    mu is ``shift`` / unit, or 0 if that will do. Else every z bounds it by z^T (A - mu J) z > 0:
    first the unit vectors, then one with a negative form from the most negative pivot of a trial.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import spsolve_triangular

    diagonal, J = A.diagonal(), diags_array(signs)
    radii = np.asarray(abs(A).sum(axis=0)).ravel() - np.abs(diagonal)
    far = 2 * float(np.min(diagonal - radii)) - float(np.max(diagonal + radii))  # Gershgorin
    low = float(np.max(-diagonal[signs < 0], initial=-np.inf))
    high = float(np.min(diagonal[signs > 0], initial=np.inf))
    low, high = (far if low == -np.inf else low), (-far if high == np.inf else high)
    mu = (0.0 if low < 0 < high else 0.5 * (low + high)) if shift is None else shift / unit
    while low < mu < high:
        factors = _symmetric_factors((A - mu * J).tocsc())
        if factors is None and shift is None:  # mu is an eigenvalue, or a pivot is zero
            mu += 0.01 * (high - mu)
            factors = _symmetric_factors((A - mu * J).tocsc())
        if factors is None:
            break
        pivots = factors.U.diagonal()
        if (pivots > 0).all():
            return mu, factors
        e = np.zeros(len(signs))
        e[np.argmin(pivots)] = 1.0
        y = spsolve_triangular(factors.L.T.tocsr(), e, lower=False, unit_diagonal=True)
        z = np.asarray(y[factors.perm_c])
        value, form = float(z @ (A @ z)), float(signs @ z**2)
        if shift is not None or form == 0 or value > mu * form:
            break
        low, high = (value / form, high) if form < 0 else (low, value / form)
        mu = 0.5 * (low + high)
    if shift is not None:
        raise ValueError(f"shift must make A - shift J definite, got {shift:.6g}")
    raise ValueError(
        "A must form a definite pencil with J: A - mu J positive definite for some mu, got none to "
        f"working precision: it would have to be above {low * unit:.6g} and below {high * unit:.6g}"
    )


def _with_products(A: Any, signs: Floats, shift: float | None) -> _Pencil:
    """Return the pencil of an operator A, whose inverse is by conjugate gradients."""
    from scipy.sparse.linalg import LinearOperator, cg

    n, mu = len(signs), 0.0 if shift is None else shift
    accuracy = 1e-14 if A.dtype == np.float64 else 1e-6
    probe = np.random.default_rng(0).standard_normal(n)
    product = A.matvec(probe) - mu * signs * probe
    unit = math.copysign(_power_of_two(float(np.abs(product).max())), float(probe @ product))
    if unit < 0 and np.all(signs == signs[0]):  # J = I: these would be those at the other end
        unit = -unit

    def multiply(W: Floats) -> Floats:
        AW = A.matvec(W) if W.ndim == 1 else A.matmat(W)
        return np.asarray(AW - mu * (signs * W.T).T) / unit

    def curvature(v: Floats) -> Floats:
        Sv = multiply(v)
        if v @ Sv < 0:
            raise ValueError(
                "A must be positive definite (or negative definite if p, q > 0), or shift such "
                f"that A - shift J is, got another A - shift J and shift = {mu:.6g}"
            )
        return Sv

    def solve(b: Floats) -> Floats:
        S = LinearOperator((n, n), curvature, dtype=np.float64)
        x, failed = cg(S, b, rtol=accuracy, maxiter=10 * n)
        if failed:
            raise RuntimeError(
                f"conjugate gradients have not converged in {10 * n} iterations; pass the entries "
                "of A, or a shift nearer to the middle of the gap"
            )
        return np.asarray(x)

    return _Pencil(multiply, solve, None, signs, np.ones(n), mu, unit)


def _power_of_two(size: float) -> float:
    """Return the largest power of two up to ``size``, or 1 for 0."""
    return math.ldexp(1.0, math.frexp(size)[1] - 1) if size > 0 else 1.0
