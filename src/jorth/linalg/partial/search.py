"""The search for the wanted eigenpairs, and the proof that none was missed."""

from __future__ import annotations

from typing import Any

import numpy as np

from jorth.arrays import check_finite, describe, to_tensor
from jorth.linalg.batch import Floats
from jorth.linalg.partial.davidson import Basis, Davidson, Found, NotPositiveDefinite, Sizes
from jorth.linalg.partial.factors import NoDefiniteShift, negative_count, shifted
from jorth.linalg.partial.options import Subset
from jorth.linalg.partial.problem import Problem
from jorth.messages import warn_user

MOST_SEARCHES = 30
"""How often the search goes on after a proof that pairs were missed."""
CLUSTER = 1e-7
"""Eigenvalues as near to each other as this, relatively, count as one in the proof."""


def search(problem: Problem, wanted: Subset) -> Found:
    """The wanted pairs, or an error that says what was reached."""
    sizes = _sizes(problem, wanted)
    rng = np.random.default_rng(wanted.seed)
    basis = Basis(problem.apply, problem.signs, sizes.stored, problem.matrix.unit)
    iteration = Davidson(basis, problem.inverse, sizes, wanted.tolerance)
    try:
        _begin(iteration, problem, wanted, rng)
        for _ in range(MOST_SEARCHES):
            found = iteration.run(wanted.max_iterations)
            _check_converged(found, iteration, wanted)
            missed = _missed(problem, wanted, found)
            if not missed:
                return found
            iteration.explore(_random(problem.signs, rng, 1, 1))
    except NotPositiveDefinite:
        mu = problem.mu * problem.matrix.scale
        raise NoDefiniteShift(
            "A must be positive definite (or negative definite if p, q > 0), or shift such that "
            f"A - shift J is, got z^T (A - shift J) z < 0 for a vector z and shift = {mu:.6g}"
        ) from None
    raise RuntimeError(
        f"the search for {wanted.k} eigenpairs still missed {missed} of them after {MOST_SEARCHES} "
        "attempts; ask for more, or use another seed"
    )


def _sizes(problem: Problem, wanted: Subset) -> Sizes:
    """Small blocks and chains with S^-1, as in Lanczos; all residuals at once without it."""
    k = wanted.k
    counts = {"positive": wanted.positive, "negative": wanted.negative}
    if problem.exact:
        return Sizes(**counts, block=max(2, k // 8), chain=4, extra=5, stored=2 * k + 40)
    return Sizes(**counts, block=k, chain=1, extra=5, stored=4 * k + 20)


def _begin(iteration: Davidson, problem: Problem, wanted: Subset, rng: np.random.Generator) -> None:
    """Fill the basis: the user's start, then random vectors of both types and T J times them."""
    for rows in _start(wanted.start, len(problem.signs)):
        iteration.add(rows[None])
    enough = wanted.k + 2
    few = max(1, iteration.sizes.block // 2)
    a, b = (few, few) if problem.exact else (wanted.positive + 2, wanted.negative + 2)
    new = iteration.basis.add(_random(problem.signs, rng, a, b))
    while iteration.basis.m < enough:
        new = iteration.basis.add(problem.inverse(new * problem.signs))
        if not len(new):
            new = iteration.basis.add(rng.standard_normal((2, len(problem.signs))))


def _start(start: Any, n: int) -> Floats:
    """The rows that the user starts from, (b, n)."""
    if start is None:
        return np.empty((0, n))
    columns = to_tensor(start, "start").detach().cpu().double()
    if columns.ndim != 2 or columns.shape[0] != n:
        raise ValueError(f"start must have shape ({n}, any), got {describe(start)}")
    check_finite(columns, "start")
    return np.ascontiguousarray(columns.numpy().T)


def _random(signs: Floats, rng: np.random.Generator, positive: int, negative: int) -> Floats:
    """Random rows: some with x^T J x > 0, then some with x^T J x < 0, as far as J has both."""
    W = rng.standard_normal((positive + negative, len(signs)))
    if (signs > 0).any() and (signs < 0).any():
        W[:positive, signs < 0] = 0
        W[positive:, signs > 0] = 0
    return W


def _check_converged(found: Found, iteration: Davidson, wanted: Subset) -> None:
    open_ones = int((found.residuals > 1).sum()) + wanted.k - len(found.theta)
    if not open_ones:
        return
    worst = float(found.residuals.max()) * wanted.tolerance
    why = "rounding allows no smaller ones" if iteration.is_stalled else "raise max_iterations"
    raise RuntimeError(
        f"{open_ones} of {wanted.k} eigenpairs have not converged after {iteration.steps} "
        f"iterations: the largest residual is {worst:.3g} and the tolerance {wanted.tolerance:.3g} "
        f"(relative); {why}, or give a preconditioner, a start or a shift nearer to the middle of "
        "the gap"
    )


def _missed(problem: Problem, wanted: Subset, found: Found) -> int:
    """How many eigenpairs next to the gap were not found, as far as that can be told."""
    counts = {1: wanted.positive, -1: wanted.negative}
    wrong = sum(abs(int((sign * found.theta > 0).sum()) - k) for sign, k in counts.items())
    if wrong or not (problem.exact and wanted.verify):
        return wrong
    missed = 0
    for sign, k in counts.items():
        if k:
            own = np.sort(sign / found.theta[sign * found.theta > 0])
            missed += _missed_below(problem, own, sign)
    return missed


def _missed_below(problem: Problem, own: Floats, sign: int) -> int:
    """How many of the eigenvalues 0 < sign (lambda - mu) < sigma are not among ``own``.

    sigma is just below the last of ``own``, in a gap. S - sign sigma J has as many negative
    eigenvalues as there are such lambda: X^T S X = J diag(lambda - mu).
    """
    margin = CLUSTER
    for _ in range(3):
        sigma = _below_cluster(own, margin)
        S = shifted(problem.matrix.entries, problem.signs, problem.mu + sign * sigma)
        counted = negative_count(S)
        if counted is not None:
            return max(0, counted - int((own < sigma).sum()))
        margin *= 30
    warn_user(
        "it could not be proved that no eigenpair was missed: A - sigma J has no accurate "
        "factorisation without pivoting near the last eigenvalue",
        RuntimeWarning,
    )
    return 0


def _below_cluster(own: Floats, margin: float) -> float:
    """A number below the last of the ascending values, and not near any of them."""
    sigma = float(own[-1]) * (1 - margin)
    for value in own[::-1]:
        if abs(value - sigma) < 0.5 * margin * abs(value):
            sigma = float(value) * (1 - margin)
    return sigma
