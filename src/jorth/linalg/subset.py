"""A few eigenpairs of A x = lambda J x next to the gap, for sparse A, by `eigsh`.

S = A - mu J is positive definite, and the eigenpairs next to mu have the largest and the smallest
theta of J x = theta S x, theta = 1 / (lambda - mu). All is done in y = D x, D^2 the diagonal of S,
where a grading of A does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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

CLUSTER = 1e-7
"""Eigenvalues this near to each other, relative to their distance from mu, count as one."""
REMEDIES = "pass a larger tolerance, a shift nearer to the middle of the gap, or A as an array"


@dataclass(frozen=True)
class _Pencil:
    """S y = sigma K y with S positive definite, K = D^-1 J D^-1 and x = D^-1 y.

    Attributes:
        S: D^-1 (A - mu J) D^-1 / unit, sparse (n, n).
        solve: Products of S^-1 with a vector.
        form: (n,), the diagonal of K.
        scale: (n,), the diagonal of D.
        mu: The shift.
        unit: lambda = mu + unit sigma; negative if A - mu J is negative definite.
    """

    S: Any
    solve: Callable[[Floats], Floats]
    form: Floats
    scale: Floats
    mu: float
    unit: float

    def shifted(self, sigma: float) -> Any:
        """Return S - sigma K."""
        from scipy.sparse import diags_array

        return (self.S - sigma * diags_array(self.form)).tocsc()


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


def is_sparse_matrix(A: object) -> bool:
    """Check whether A is a sparse matrix of scipy or torch."""
    return is_sparse(A) or (isinstance(A, Tensor) and A.layout != torch.strided)


def read_sparse(A: Any, signature: Signature) -> tuple[Any, Callable[[Floats], Any]]:
    """Return A as a symmetric csc matrix in float64, and a map of results to its kind."""
    from scipy.sparse import csc_array

    n = check_signature(signature).n
    if tuple(A.shape) != (n, n):
        expected = f"shape ({n}, {n}) for {signature} (p + q = {n})"
        raise ValueError(f"A must have {expected}, got shape {tuple(A.shape)}")
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
    if defect > 64 * torch.finfo(data.dtype).eps * abs(entries).max():
        raise ValueError(f"A must be symmetric, got max |A - A^T| = {defect:.3g}")

    def wrap(x: Floats) -> Any:
        result = torch.from_numpy(np.ascontiguousarray(x)).to(data.dtype)
        return result.to(A.device) if isinstance(A, Tensor) else result.numpy()

    return (0.5 * entries + 0.5 * entries.T).tocsc(), wrap


def eigh_subset(
    A: Any,
    signature: Signature,
    counts: tuple[int, int],
    shift: float | None,
    tolerance: float | None,
    *,
    refinements: int = 2,
) -> tuple[Floats, Floats]:
    """Return (eigenvalues (k,), X (n, k)) for the two counts, the positive ones first.

    A is what `read_sparse` returns. ``tolerance`` bounds the relative error of lambda - mu. Each of
    the refinements, by inverse iteration, squares the error, down to rounding.
    """
    from scipy.sparse.linalg import splu

    tolerance = 1e-10 if tolerance is None else tolerance
    pencil = _definite_pencil(A, signature.signs.astype(np.float64), shift or 0.0)
    Y = _search(pencil, counts, 0.1 * tolerance)
    own = np.repeat([1, -1], counts).astype(np.int8)
    for refinement in range(refinements + 1):
        sigma, X = _diagonalise(pencil, Y, own)
        R = pencil.S @ X - pencil.form[:, None] * X * sigma
        Z = np.stack([pencil.solve(r) for r in R.T], axis=1)
        errors = np.sqrt(np.abs(np.einsum("ij,ij->j", R, Z) / sigma))
        bad = np.flatnonzero(~(errors <= tolerance))
        if not len(bad):
            for sign in (1, -1) if refinement else ():  # each may have turned to another pair
                nearest = np.sort(np.abs(sigma[own == sign]))
                if len(nearest) and _count_missed(pencil, nearest, nearest, sign):
                    raise RuntimeError(f"eigenpairs were missed: {REMEDIES}")
            return pencil.mu + pencil.unit * sigma, X / pencil.scale[:, None]
        Y = X / np.sqrt(np.abs(sigma))
        for i in bad:  # inverse iteration; the shift is not exactly an eigenvalue
            z = splu(pencil.shifted((1 + 2.0**-50) * float(sigma[i]))).solve(pencil.form * X[:, i])
            Y[:, i] = z / np.linalg.norm(z)
    worst = bad[np.argmax(errors[bad])]
    raise RuntimeError(
        f"{len(bad)} of {len(own)} eigenpairs have not converged: for lambda = "
        f"{pencil.mu + pencil.unit * sigma[worst]:.6g} the residual bounds the relative error of "
        f"lambda - mu by {errors[worst]:.2g} only, tolerance = {tolerance:.2g}; {REMEDIES}"
    )


def _search(
    pencil: _Pencil, counts: tuple[int, int], tolerance: float, *, searches: int = 20
) -> Floats:
    """Return vectors (n, k) near the wanted ones; none is missed as far as that can be told.

    Every one of the searches at each end, after the first, finds a copy that was missed. The
    vectors are Ritz vectors, orthonormal in S, with the outmost theta.
    """
    from scipy.linalg import eigh
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    rng, n, S = np.random.default_rng(0), len(pencil.form), pencil.S
    inverse = LinearOperator((n, n), pencil.solve, dtype=np.float64)
    Y, theta = np.empty((n, 0)), np.empty(0)
    for sign, k in ((1, counts[0]), (-1, counts[1])):
        missed, before = k, np.full(k, np.inf)
        for _ in range(searches):
            if not missed:
                break
            SY = S @ Y

            def deflated(v: Floats, SY: Floats = SY, theta: Floats = theta) -> Floats:
                return np.asarray(pencil.form * v - SY @ (theta * (SY.T @ v)))

            rest = LinearOperator((n, n), deflated, dtype=np.float64)
            start, which = rng.standard_normal(n), "LA" if sign > 0 else "SA"
            options = dict(which=which, ncv=min(n - 1, 2 * missed + 30), tol=tolerance)
            try:
                _, new = eigsh(rest, missed, M=S, Minv=inverse, v0=start, **options)
            except ArpackNoConvergence as error:
                found = f"{len(error.eigenvalues)} of {missed} eigenpairs"
                raise RuntimeError(f"eigsh has found {found}: {REMEDIES}") from None
            new = new - Y @ (SY.T @ new)
            # of an eigenvector that is in Y only rounding is left
            new = new[:, np.einsum("ij,ij->j", new, S @ new) > 0.5]
            V = np.hstack([Y, new])
            V = V / np.sqrt(np.einsum("ij,ij->j", V, S @ V))
            theta, Z = eigh(V.T @ (pencil.form[:, None] * V), V.T @ (S @ V))
            above, below = np.flatnonzero(theta > 0)[::-1], np.flatnonzero(theta < 0)
            chosen = np.concatenate([above[: counts[0]], below[: counts[1]]])
            Y, theta = V @ Z[:, chosen], theta[chosen]
            own = np.sort(sign / theta[sign * theta > 0])
            missed = k - len(own)
            if not missed:
                missed, before = _count_missed(pencil, own, before, sign), own
        if missed:
            raise RuntimeError(
                f"{missed} of {sum(counts)} eigenpairs were missed in {searches} searches; pass "
                "another shift, or A as an array"
            )
    return Y


def _count_missed(pencil: _Pencil, own: Floats, before: Floats, sign: int) -> int:
    """Return how many eigenvalues next to the gap are not among the ascending ``own``.

    By Sylvester's law S - sigma K has as many negative eigenvalues as lie between 0 and sigma,
    which is just below the last of ``own``, in a gap of relative width `CLUSTER`. Where the inertia
    is not known, another search of the rest has to find nothing nearer.
    """
    last = len(own) - 1
    while last > 0 and own[last - 1] > (1 - CLUSTER) * own[last]:
        last -= 1
    S = pencil.shifted(sign * (1 - 0.5 * CLUSTER) * float(own[last]))
    factors = _symmetric_factors(S)
    if factors is not None:
        b = np.random.default_rng(0).standard_normal(len(pencil.form))
        x = factors.solve(b)
        size = np.linalg.norm(x) * abs(S).sum(axis=0).max()
        if np.linalg.norm(S @ x - b) <= 1e-8 * size:  # the inertia is believed
            return max(0, int((factors.U.diagonal() < 0).sum()) - last)
    return 1 if bool((own < (1 - CLUSTER) * before).any()) else 0


def _diagonalise(pencil: _Pencil, Y: Floats, own: Any) -> tuple[Floats, Floats]:
    """Return (sigma, X) with X^T K X = diag(own), X^T S X = own sigma in the span of Y."""
    from scipy.linalg import cholesky

    X = Y / np.sqrt(np.abs(np.einsum("ij,ij->j", Y, pencil.form[:, None] * Y)))
    try:
        R = cholesky(X.T @ (pencil.S @ X))
        _, lengths, turn = one_sided_jacobi(R, own)
    except ValueError:
        raise RuntimeError(f"eigenvectors that were found are dependent: {REMEDIES}") from None
    order = np.lexsort((lengths, -own))
    X = X @ turn[:, order]
    for _ in range(2):  # Schulz steps: orthonormal to rounding
        X = 1.5 * X - 0.5 * X @ (own[:, None] * (X.T @ (pencil.form[:, None] * X)))
    return own * lengths[order] ** 2, X


def _definite_pencil(A: Any, signs: Floats, shift: float) -> _Pencil:
    """Return the pencil of a sparse A (csc), or raise a ValueError."""
    from scipy.sparse import diags_array

    largest = math.ldexp(1.0, math.frexp(float(abs(A).max()))[1])
    for unit in (largest, -largest):
        S = (A / unit - shift / unit * diags_array(signs)).tocsc()
        factors = _symmetric_factors(S)
        if factors is not None and (factors.U.diagonal() > 0).all():
            break
    else:
        raise ValueError(
            f"shift must be a mu for which A - mu J is definite, got {shift:.6g} (0 by default)"
        )
    d = np.exp2(np.round(0.5 * np.log2(S.diagonal())))
    inverse = diags_array(1 / d)

    def solve(b: Floats) -> Floats:
        return np.asarray(d * factors.solve(d * b))

    return _Pencil((inverse @ S @ inverse).tocsc(), solve, signs / d**2, d, shift, unit)


def _symmetric_factors(S: Any) -> Any:
    """Return SuperLU's P S P^T = L D L^T with pivots from the diagonal, or None if one is zero."""
    from scipy.sparse.linalg import splu

    options = {"SymmetricMode": True}
    try:
        lu = splu(S, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError:  # exactly singular
        return None
    return lu if np.array_equal(lu.perm_r, lu.perm_c) else None
