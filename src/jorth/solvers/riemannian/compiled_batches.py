"""One quadratic problem after the other to its end by Newton's method, compiled."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jorth.solvers.riemannian.compiled_algebra import (
    assign,
    cholesky,
    compiled,
    inner,
    multiply,
    norm,
)
from jorth.solvers.riemannian.compiled_newton import (
    DENSE,
    EPS,
    MOVED,
    Form,
    Work,
    all_finite,
    direct,
    evaluate,
    moved,
    prepare,
    renew_basis,
    search,
    workspace,
)

UNFINISHED, CONVERGED, MAX_ITERATIONS, STALLED, UNBOUNDED, NON_FINITE = range(-1, 5)
"""How a problem ended, as in `jorth.solvers.batches`."""
LARGEST_EXPONENT = 1000
"""Of the scale of a problem, so that its inverse is finite."""
PATIENCE = 20
"""Iterations without a smaller gradient norm after which a problem has stalled."""


class Batch(NamedTuple):
    """Problems and their answers; X, the starts, becomes the points. A and C may be shared."""

    A: np.ndarray
    C: np.ndarray
    """(B, n, n) or (1, n, n), or (1, n, 0) if it is zero."""
    signs: np.ndarray
    X: np.ndarray
    value: np.ndarray
    norm: np.ndarray
    iterations: np.ndarray
    status: np.ndarray


class Rule(NamedTuple):
    """When a problem ends; ``stop`` (1,) is set by another thread to end all of them."""

    tolerance: float
    max_iterations: int
    stop: np.ndarray


@compiled
def _criticality(form: Form, X: np.ndarray, work: Work) -> tuple[float, float]:
    """||skew(J G X^T)||_F and ||A X X^T||_F + ||C X^T||_F."""
    n, s, P, Q = len(X), form.signs, work.scratch, work.other
    multiply(work.AX, X.T, P)
    size = norm(P)
    if form.C.shape[1] > 0:
        multiply(form.C, X.T, Q)
        size += norm(Q)
        for i in range(n):
            for j in range(n):
                P[i, j] += Q[i, j]
    total = 0.0
    for i in range(n):
        for j in range(i):
            entry = s[i] * P[i, j] - s[j] * P[j, i]
            total += entry * entry
    return math.sqrt(0.5 * total), size


@compiled
def _bounded(form: Form, H: np.ndarray) -> bool:
    """Whether f is bounded below: one sign only, or A positive definite, without C semidefinite."""
    n = len(form.signs)
    if abs(form.signs.sum()) == n:
        return True
    assign(1.0, form.A, H)
    if form.C.shape[1] == 0:
        shift = 1e-13 * norm(form.A)
        for i in range(n):
            H[i, i] += shift
    return cholesky(H)


@compiled
def _solve(form: Form, X: np.ndarray, rule: Rule, work: Work) -> tuple[float, float, int, int]:
    """Iterate X to its end; returns f, the gradient norm, the iterations and how it ended."""
    n = len(X)
    far = max(2.0 / EPS, 100.0 * inner(X, X))  # beyond u^(-1/2) feasibility has no digits left
    made_at = np.empty((n, n) if n > DENSE else (0, 0))
    least, patience, value = np.inf, PATIENCE, np.nan
    iteration = 0
    while True:
        evaluate(form, X, work)
        before, value = value, 0.5 * inner(X, work.AX)
        if form.C.shape[1] > 0:
            value += inner(form.C, X)
        found, size = _criticality(form, X, work)
        if not math.isfinite(value + found + size):
            return value, found, iteration, NON_FINITE
        patience = PATIENCE if found < least else patience - 1
        least = min(least, found)
        if found <= rule.tolerance * size:
            return value, found, iteration, CONVERGED
        if iteration == rule.max_iterations:
            return value, found, iteration, MAX_ITERATIONS
        if rule.stop[0] != 0:
            return value, found, iteration, UNFINISHED
        if inner(X, X) > far and value < before:
            bounded = _bounded(form, work.other)
            return value, found, iteration, STALLED if bounded else UNBOUNDED
        prepare(form, X, work)
        if n > DENSE and (iteration == 0 or moved(X, made_at)):
            assign(1.0, X, made_at)
            renew_basis(work)
        direct(form, work, work.U)
        ending, _ = search(form, X, work)
        if ending != MOVED:
            return value, found, iteration, STALLED if ending == 1 else NON_FINITE
        if patience == 0 and value >= before:
            return value, found, iteration, STALLED
        iteration += 1


@compiled
def _scale(A: np.ndarray, C: np.ndarray) -> float:
    """A power of two near the largest entry; 1 for zero, NaN if one is not finite."""
    if not (all_finite(A) and all_finite(C)):
        return np.nan
    largest = 0.0
    for i in range(len(A)):
        for j in range(len(A)):
            largest = max(largest, abs(A[i, j]))
        for j in range(C.shape[1]):
            largest = max(largest, abs(C[i, j]))
    exponent = math.frexp(largest)[1] if largest > 0.0 else 0
    return math.ldexp(1.0, max(-LARGEST_EXPONENT, min(exponent, LARGEST_EXPONENT)))


@compiled
def solve_range(batch: Batch, rule: Rule, start: int, end: int) -> None:
    """Solve the problems from ``start`` to ``end`` - 1; what is not finite is left as it is."""
    n = len(batch.signs)
    work = workspace(n)
    A, C, X = np.empty((n, n)), np.empty((n, batch.C.shape[2])), np.empty((n, n))
    form = Form(A, C, np.empty((0, 0)), batch.signs)
    for b in range(start, end):
        own_a, own_c = b if len(batch.A) > 1 else 0, b if len(batch.C) > 1 else 0
        assign(1.0, batch.X[b], X)
        scale = _scale(batch.A[own_a], batch.C[own_c])
        batch.iterations[b] = 0
        if not (math.isfinite(scale) and all_finite(X)):
            batch.value[b], batch.norm[b], batch.status[b] = np.nan, np.nan, NON_FINITE
            continue
        assign(1.0 / scale, batch.A[own_a], A)
        assign(1.0 / scale, batch.C[own_c], C)
        value, size, batch.iterations[b], batch.status[b] = _solve(form, X, rule, work)
        batch.value[b], batch.norm[b] = value * scale, size * scale
        assign(1.0, X, batch.X[b])
