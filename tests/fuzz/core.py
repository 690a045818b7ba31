"""Signature, group, plane, decompositions, ultrahyperbolic, data sets:
right calls and what their answers are."""

from __future__ import annotations

import atexit
import copy
import tempfile
from pathlib import Path

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

import jorth
from jorth import Signature, datasets, plane, ultrahyperbolic
from tests.fuzz.calls import Call
from tests.fuzz.mutations import As
from tests.fuzz.oracles import (
    Exact,
    as_tensor,
    close,
    exact,
    feasible,
    orthonormal,
    rough,
    same_kind,
    signs,
    size,
    turned,
)

SIG = Signature.of([1, -1, 1, 1, -1])
N = SIG.n
J = np.diag(SIG.signs.astype(float))


# -- right arguments


def point(rng, **options):
    return as_tensor(jorth.random_point(SIG, cond=3.0, seed=rng, **options), rng)


def algebra(rng):
    M = rng.standard_normal((N, N))
    return as_tensor(0.1 * J @ (M - M.T), rng)


def near_one(rng, *batch):
    """Elements near the identity, so that all have logarithms, products of two as well."""
    M = rng.standard_normal((*batch, N, N))
    return as_tensor(jorth.exp(0.1 * J @ (M - turned(M)), SIG), rng)


def moving(rng):
    """Two elements, and a tangent vector at the first."""
    X = near_one(rng)
    M = rng.standard_normal((N, N))
    return dict(X=X, Y=near_one(rng), V=np.asarray(X) @ J @ (M - M.T), signature=SIG)


def definite(rng):
    M = rng.standard_normal((N, N))
    return as_tensor(M @ M.T + np.eye(N), rng)


def tall(rng, columns=2):
    """A with A^T J A positive definite: large at the positive signs."""
    A = 0.3 * rng.standard_normal((N, columns))
    A[SIG.positive[:columns]] += 3 * np.eye(columns)
    return as_tensor(A, rng)


def on_sheet(rng):
    """Points of U, in float64."""
    return ultrahyperbolic.lift(rng.standard_normal((3, N)), SIG)


# -- Signature


def has_signs(signature, wanted):
    assert signature.signs.tolist() == [int(sign) for sign in wanted]
    assert (signature.n, signature.p) == (len(wanted), sum(1 for sign in wanted if sign == 1))


def check_signature(result, given):
    has_signs(result, [1] * int(given["p"]) + [-1] * int(given["q"]))


def check_of(result, given):
    signs = given["signs"]
    has_signs(result, signs.tolist() if hasattr(signs, "tolist") else list(signs))


def check_lorentz(result, given):
    space = [1] * (int(given["n"]) - 1)
    has_signs(result, [-1, *space] if given["time"] == "first" else [*space, -1])


# -- group


def check_inverse(result, given):
    same_kind(result, given["X"])
    s = signs(given["signature"])
    assert np.array_equal(exact(result), s[:, None] * turned(exact(given["X"])) * s)


def check_residual(result, given):
    X, s = exact(given["X"]), signs(given["signature"])
    gram = np.diag(s) if given["gram"] is None else exact(given["gram"])
    sound = np.isfinite(X).all(axis=(-2, -1))
    x = np.where(sound[..., None, None], X, 0)
    scale = np.maximum(np.abs(x).max(axis=(-2, -1), initial=1), 1)
    norm = scale * np.linalg.norm((x / scale[..., None, None]).astype(float), 2, axis=(-2, -1))
    violation = np.abs(turned(x) @ (s[:, None] * x) - gram).max(axis=(-2, -1), initial=0)
    wanted = np.where(sound, violation / np.maximum(1, norm * norm), np.nan)
    found = exact(result)
    assert np.array_equal(np.isnan(found), np.isnan(wanted)), (
        "NaN where X is finite, or no NaN where it is not"
    )
    wanted = np.where(sound, wanted, 0)
    close(np.where(sound, found, 0), wanted, 1 + wanted, rough(given["X"]))


def check_log(result, given):
    same_kind(result, given["X"])
    K, s = exact(result), signs(given["signature"])
    found = exact(jorth.exp(result, given["signature"]))
    close(found, exact(given["X"]), size(given["X"]), 10 * rough(given["X"]))
    close(s[:, None] * K, -turned(s[:, None] * K), size(K), rough(given["X"]))


def check_group_distance(result, given):
    """Between the bounds by the singular values of Y X^-1, and zero only where X = Y."""
    s = signs(given["signature"])
    M = (exact(given["Y"]) @ (s[:, None] * turned(exact(given["X"])) * s)).astype(float)
    least = np.linalg.norm(np.log(np.linalg.svd(M, compute_uv=False)), axis=-1)
    found = np.asarray(exact(result), dtype=float)
    tolerance = 10 * rough(given["X"])
    assert (found >= least * (1 - tolerance) - tolerance).all()
    assert (found <= least + 10 * M.shape[-1]).all()


def check_group_transport(result, given):
    """Tangent at Y, and V again when it is moved back."""
    same_kind(result, given["X"])
    X, Y, V, s = (*map(exact, (given["X"], given["Y"], given["V"])), signs(given["signature"]))
    M = turned(Y) @ (s[:, None] * exact(result))
    scale = (size(X) * size(Y)) ** 2 * (size(V) + size(result))
    close(M, -turned(M), scale, 10 * rough(given["X"]))
    there, here, moved = (a.astype(float) for a in np.broadcast_arrays(Y, X, exact(result)))
    back = jorth.transport(there, here, moved, given["signature"])
    close(back, np.broadcast_to(V, back.shape), scale, 10 * rough(given["X"]))


def check_group_mean(result, given):
    same_kind(result, given["Xs"])
    feasible(result, given["signature"])
    X, s = exact(given["Xs"]), signs(given["signature"])
    w = np.ones(len(X)) if given["weights"] is None else exact(given["weights"])
    relative = (s[:, None] * turned(exact(result)) * s @ X).astype(float)[w > 0]
    logs = jorth.log(relative, given["signature"])
    left = np.tensordot((w / w.sum())[w > 0].astype(float), logs, 1)
    close(left, np.zeros_like(left), 1 + size(X) ** 2, 100 * rough(given["Xs"]))


def check_component(result, given):
    X, signature = exact(given["X"]).astype(float), given["signature"]
    blocks = [X[..., index[:, None], index] for index in (signature.positive, signature.negative)]
    wanted = np.stack([np.linalg.slogdet(block)[0] for block in blocks], axis=-1)
    assert np.array_equal(np.asarray(result), wanted)


def check_exchange(result, given):
    """The definition, block by block: X11 times the first block row is (I, -X12), and so on."""
    same_kind(result, given["X"])
    X, Y = exact(given["X"]), exact(result)
    plus, minus = given["signature"].positive, given["signature"].negative
    tolerance = rough(given["X"])
    for rows in (plus, minus):
        own = X[..., rows[:, None], rows]
        inverse = Y[..., rows[:, None], rows]
        if rows is minus:
            inverse = turned(inverse)
        scale = size(own) * size(inverse) * len(rows)
        close(own @ inverse, np.broadcast_to(np.eye(len(rows)), own.shape), scale, tolerance)
    first = Y[..., plus[:, None], plus]
    wanted = -first @ X[..., plus[:, None], minus]
    close(Y[..., plus[:, None], minus], wanted, size(first) * size(X), tolerance)


def check_polish(result, given):
    same_kind(result, given["X"])
    assert result.shape == given["X"].shape
    feasible(result, given["signature"])


def check_random_point(result, given):
    signature, columns = given["signature"], given["columns"]
    r, c = (signature.p, signature.q) if columns is None else columns
    assert tuple(result.shape) == (*given["batch"], signature.n, r + c)
    if columns is None:
        feasible(result, signature)
    else:
        feasible(result, signature, gram=np.diag([1] * r + [-1] * c))
    if columns is None and result.shape[:-2] == () and signature.p and signature.q:
        norm = np.linalg.norm(exact(result).astype(float), 2)
        wanted = np.sqrt(float(given["cond"]))
        assert abs(norm - wanted) <= 1e-6 * wanted, f"norm {norm}, not {wanted}"


def check_exp(result, given):
    same_kind(result, given["K"])
    feasible(result, given["signature"])
    K = exact(given["K"]).astype(float)
    for one, found in zip(
        K.reshape(-1, *K.shape[-2:]), exact(result).reshape(-1, *K.shape[-2:]), strict=True
    ):
        if np.abs(one).sum() < 50:
            wanted = scipy.linalg.expm(one)
            close(found, wanted, size(wanted) * (1 + np.abs(one).sum()), rough(result))


def check_cayley(result, given):
    same_kind(result, given["K"])
    feasible(result, given["signature"])
    X, K = exact(result), exact(given["K"])
    identity = np.eye(K.shape[-1], dtype=Exact)
    scale = (1 + size(K)) * (1 + size(X)) * len(identity)
    close((identity - K / 2) @ X, np.broadcast_to(identity + K / 2, X.shape), scale, rough(result))


# -- decompositions


def composed_cs(U1, U2, mu, V1, V2, signature):
    return jorth.CS(U1=U1, U2=U2, mu=mu, V1=V1, V2=V2, signature=signature).compose()


def cs_arguments(rng):
    cs = jorth.cs_decomposition(point(rng), SIG)
    return dict(U1=cs.U1, U2=cs.U2, mu=cs.mu, V1=cs.V1, V2=cs.V2, signature=SIG)


def cs_form(U1, U2, mu, V1, V2, signature):
    """diag(U1, U2) H(mu) diag(V1, V2)^T in long double."""
    U1, U2, mu, V1, V2 = map(exact, (U1, U2, mu, V1, V2))
    p, n, k = signature.p, signature.n, mu.shape[-1]
    H = np.broadcast_to(np.eye(n, dtype=Exact), (*mu.shape[:-1], n, n)).copy()
    at = np.arange(k)
    H[..., at, at] = H[..., p + at, p + at] = np.cosh(mu)
    H[..., at, p + at] = H[..., p + at, at] = np.sinh(mu)
    left, right = np.zeros_like(H), np.zeros_like(H)
    left[..., :p, :p], left[..., p:, p:] = U1, U2
    right[..., :p, :p], right[..., p:, p:] = V1, V2
    order = np.concatenate([signature.positive, signature.negative])
    X = np.empty_like(H)
    X[..., order[:, None], order] = left @ H @ turned(right)
    return X


def check_compose_cs(result, given):
    same_kind(result, given["mu"])
    wanted = cs_form(**given)
    scale = size(np.cosh(exact(given["mu"]))) * np.prod(
        [1 + size(given[name]) for name in ("U1", "U2", "V1", "V2")]
    )
    close(result, wanted, scale * N, rough(result))


def check_cs(result, given):
    same_kind(result.U1, given["X"])
    for factor in (result.U1, result.U2, result.V1, result.V2):
        orthonormal(factor)
    parts = {name: getattr(result, name) for name in ("U1", "U2", "mu", "V1", "V2")}
    close(
        cs_form(**parts, signature=given["signature"]),
        given["X"],
        1 + size(given["X"]),
        N * rough(given["X"]),
    )


def composed_hsvd(U, S, X, signature):
    return jorth.HSVD(U=U, S=S, X=X, signature=signature).compose()


def hsvd_arguments(rng):
    found = jorth.hsvd(as_tensor(rng.standard_normal((N + 1, N)), rng), SIG)
    return dict(U=found.U, S=found.S, X=found.X, signature=SIG)


def check_compose_hsvd(result, given):
    same_kind(result, given["S"])
    U, S, X, s = exact(given["U"]), exact(given["S"]), exact(given["X"]), signs(given["signature"])
    wanted = (U * (S * s)[..., None, :]) @ turned(X) * s
    close(result, wanted, size(U) * size(S) * size(X) * N, rough(result))


def check_hsvd(result, given):
    G, U, S, X = (exact(part) for part in (given["G"], result.U, result.S, result.X))
    same_kind(result.U, given["G"])
    feasible(result.X, given["signature"])
    assert (S >= 0).all()
    gram, partial = turned(U) @ U, (S > 0)[..., None] * np.eye(S.shape[-1])
    close(gram, partial, 1, rough(given["G"]))
    neglected = rough(given["G"]) + N * float(given["tolerance"] or 0)
    close(G @ X, U * S[..., None, :], size(G) * size(X) * N, neglected)


def check_qr(result, given):
    Q, R = result
    same_kind(Q, given["A"])
    feasible(Q, given["signature"])
    A, k = exact(given["A"]), R.shape[-1]
    used = exact(Q)[..., given["signature"].positive[:k]]
    column = np.abs(A).max(axis=-2, keepdims=True)
    close(used @ exact(R), A, column * size(Q) ** 2 * N, rough(given["A"]))
    assert not np.tril(exact(R), -1).any()


def triangle(rng):
    """A Cholesky factor with rows to add and rows to drop, all arrays or all tensors."""
    as_torch = _Always(bool(rng.integers(2)))
    R = np.triu(rng.standard_normal((N, N))) + 5 * np.eye(N)
    rows = dict(add=rng.standard_normal((3, N)), drop=0.3 * rng.standard_normal((2, N)))
    return {name: as_tensor(value, as_torch) for name, value in dict(R=R, **rows).items()}


def check_cholesky_update(result, given):
    same_kind(result, given["R"])
    R, found = exact(given["R"]), exact(result)
    if given["lower"]:
        R, found = turned(R), turned(found)
    assert not np.tril(found, -1).any()
    assert (np.diagonal(found, axis1=-2, axis2=-1) >= 0).all()
    largest = size(R)
    left, right = turned(R) @ R, turned(found) @ found
    for name in ("add", "drop"):
        if given[name] is not None:
            rows = exact(given[name])
            rows = rows[..., None, :] if rows.ndim < R.ndim else rows
            product = turned(rows) @ rows
            largest = max(largest, size(rows))
            left, right = (left + product, right) if name == "add" else (left, right + product)
    close(left, right, largest**2 * N, rough(given["R"]))


def check_lstsq(result, given):
    same_kind(result, given["A"])
    A, b, s = exact(given["A"]), exact(given["b"]), signs(given["signature"])
    x = exact(result)
    if b.ndim < A.ndim:
        b, x = b[..., None], x[..., None]
    column = np.abs(A).max(axis=-2)[..., None]
    scale = column * (size(b) + size(A[..., None] * x[..., None, :, :])) * N
    gradient = turned(A) @ (s[:, None] * (b - A @ x))
    close(
        gradient,
        np.zeros_like(gradient),
        np.broadcast_to(scale, gradient.shape),
        10 * rough(given["A"]),
    )


def check_eigh(result, given):
    values, X = result
    same_kind(X, given["A"])
    feasible(X, given["signature"])
    A, x, s = exact(given["A"]), exact(X), signs(given["signature"])
    wanted = s[:, None] * x * exact(values)[..., None, :]
    close(A @ x, wanted, (size(A) + size(values)) * size(X) ** 2 * N, rough(given["A"]))


def partial_pairs(A, signature, **options):
    return jorth.eigh(A, signature, subset=jorth.Subset(**options))


def check_partial(result, given):
    """Thin X with the signs that were asked for, and eigenpairs of A."""
    values, X = result
    same_kind(X, given["A"])
    A, x, s = exact(given["A"]), exact(X), signs(given["signature"])
    own = np.array([1.0] * int(given["positive"]) + [-1.0] * int(given["negative"]))
    scale = size(X) ** 2 * N
    gram = np.swapaxes(x, -1, -2) @ (s[:, None] * x)
    close(gram, np.broadcast_to(np.diag(own), gram.shape), scale, rough(given["A"]))
    wanted = s[:, None] * x * exact(values)[..., None, :]
    close(A @ x, wanted, (size(A) + size(values)) * scale, rough(given["A"]))


def check_polar(result, given):
    X, S = result
    same_kind(X, given["A"])
    feasible(X, given["signature"])
    A, s = exact(given["A"]), signs(given["signature"])
    JS = s[:, None] * exact(S)
    close(JS, turned(JS), size(S), rough(given["A"]))
    close(exact(X) @ exact(S), A, size(A) * (1 + size(X)) ** 2 * N, rough(given["A"]))


# -- plane


def planes(rng):
    """Two problems with equal and opposite signs."""
    M = rng.standard_normal((2, 4, 4))
    P, Q = rng.standard_normal((2, 2, 2)), M @ turned(M) + np.eye(4)
    as_torch = bool(rng.integers(2))
    arrays = dict(P=P, Q=Q, signs=np.array([[1.0, 1.0], [1.0, -1.0]]))
    return {name: as_tensor(value, _Always(as_torch)) for name, value in arrays.items()}


class _Always:
    """A generator whose coin falls on one side."""

    def __init__(self, side: bool) -> None:
        self.side = side

    def integers(self, _: int) -> bool:
        return self.side


def trial_steps(opposite, all_components):
    """Many V of one plane, the identity first."""
    t = np.linspace(-np.pi, np.pi, 181).astype(Exact) * (4 if opposite else 1)
    t = np.concatenate([[0], t])
    x, y = (np.cosh(t), np.sinh(t)) if opposite else (np.cos(t), np.sin(t))
    proper = np.stack([x, y if opposite else -y, y, x], axis=-1).reshape(-1, 2, 2)
    found = [proper, -proper] if opposite else [proper]
    if all_components:
        found += [V @ np.diag([-1, 1]).astype(Exact) for V in found]
    elif opposite:
        found = [proper]
    return np.concatenate(found)


def surrogate(V, P, Q):
    """<V - I, P> + 1/2 ||V - I||^2_Q for V (m, 2, 2), and the sizes of its terms."""
    D = V - np.eye(2, dtype=Exact)
    d = turned(D).reshape(-1, 4)
    terms = np.abs(D * P).sum(axis=(-2, -1)) + np.abs(d) @ np.abs(Q) @ np.abs(d).T.max(axis=1) / 2
    return (D * P).sum(axis=(-2, -1)) + np.einsum("mi,ij,mj->m", d, Q, d) / 2, terms


def check_solve_plane(result, given):
    same_kind(result.V, given["P"])
    if isinstance(result.V, Tensor) and result.V.is_meta and not given["check"]:
        return  # no data, as documented
    best_steps(result, exact(given["P"]), exact(given["Q"]), given)


def best_steps(result, P, Q, given):
    """Assert that no trial step is better than the answer, for P and Q in long double."""
    V, decrease, unbounded = result
    shape, theta, s = P.shape[:-2], exact(given["theta"]), exact(given["signs"])
    if Q.shape != (*shape, 4, 4):
        Q = np.broadcast_to(Q, shape)[..., None, None] * np.eye(4, dtype=Exact)
    Q = Q + np.broadcast_to(theta, shape)[..., None, None] * np.eye(4, dtype=Exact)
    assert tuple(V.shape) == (*shape, 2, 2)
    V, decrease, unbounded = exact(V), exact(decrease), np.asarray(unbounded)
    tolerance = rough(result.V)
    for at in np.ndindex(*shape):
        if not given["check"] and not np.isin(s[at], [1, -1]).all():
            continue  # garbage in, as documented
        if not (np.isfinite(P[at]).all() and np.isfinite(Q[at]).all()) or size(
            Q[at] - Q[at].T
        ) > 1e-12 * size(Q[at]):
            assert not given["check"]
            assert np.isnan(decrease[at])
            continue
        form = np.diag(s[at])
        assert np.isfinite(V[at]).all()
        close(V[at].T @ form @ V[at], form, 1 + size(V[at]) ** 2, tolerance)
        assert decrease[at] >= 0
        (value,), (terms,) = surrogate(V[at][None], P[at], Q[at])
        lost = size(Q[at]) * Exact(
            np.finfo(np.float64).smallest_normal
        )  # squares of steps below 1e-154 are zero
        assert abs(value + decrease[at]) <= tolerance * max(terms, decrease[at]) + lost, (
            "the decrease is another"
        )
        if unbounded[at]:
            continue
        trials, sizes = surrogate(
            trial_steps(s[at][0] != s[at][1], given["components"] == "all"), P[at], Q[at]
        )
        better = trials < value - tolerance * np.maximum(sizes, terms)
        assert not better.any(), f"a step gives {trials[better].min():.6g}, the answer {value:.6g}"


def row_planes(rng):
    """Two problems by their rows."""
    M, W = rng.standard_normal((2, 2, 2)), rng.standard_normal((N, N))
    arrays = dict(
        G=rng.standard_normal((2, 2, N)),
        Z=rng.standard_normal((2, 2, N)),
        A=M @ turned(M) + np.eye(2),
        D=W @ W.T + np.eye(N),
        signs=np.array([[1.0, 1.0], [1.0, -1.0]]),
    )
    side = _Always(bool(rng.integers(2)))
    return {name: as_tensor(value, side) for name, value in arrays.items()}


def check_solve_rows(result, given):
    """What `solve_plane` has to answer for P = G Z^T and Q = (Z D Z^T) (x) A."""
    same_kind(result.V, given["Z"])
    Z, G, A = exact(given["Z"]), exact(given["G"]), exact(given["A"])
    if A.shape != (*Z.shape[:-2], 2, 2):
        A = np.broadcast_to(A, Z.shape[:-2])[..., None, None] * np.eye(2, dtype=Exact)
    Y = Z @ turned(Z if given["D"] is None else Z @ exact(given["D"]))
    Q = np.einsum("...ac,...bd->...abcd", Y, A).reshape(*Y.shape[:-2], 4, 4)
    best_steps(result, G @ turned(Z), Q, given)


def check_circle(result, given):
    a, b, c, d, e = np.broadcast_arrays(*(exact(given[name]) for name in "abcde"))
    x, y, value = (exact(part) for part in result)
    tolerance = rough(*given.values())
    angles = np.linspace(0, 2 * np.pi, 181).astype(Exact)
    for at in np.ndindex(*a.shape):
        coefficients = [f[at] for f in (a, b, c, d, e)]
        if not np.isfinite(coefficients).all():
            assert np.isnan([x[at], y[at], value[at]]).all(), "not NaN"
            continue
        scale = np.abs(coefficients).max()

        def f(x, y, k=coefficients):
            return k[0] * x + k[1] * y + k[2] * x * x + k[3] * x * y + k[4] * y * y

        close(np.hypot(x[at], y[at]), 1, 1, tolerance)
        best = f(x[at], y[at])
        if np.isfinite(value[at]):
            close(value[at], best, scale, tolerance)
        assert best <= f(np.cos(angles), np.sin(angles)).min() + tolerance * scale


def check_lightcone(result, given):
    A, B, C, D = np.broadcast_arrays(*(exact(given[name]) for name in "ABCD"))
    u, value = exact(result.u), exact(result.value)
    unbounded = np.asarray(result.unbounded)
    tolerance = rough(*given.values())
    trials = np.exp(np.linspace(-20, 20, 401)).astype(Exact)
    trials = trials if given["positive"] else np.concatenate([trials, -trials])
    for at in np.ndindex(*A.shape):
        k = [f[at] for f in (A, B, C, D)]
        if not np.isfinite(k).all():
            assert not np.isfinite(value[at]), "finite"
            continue
        assert np.isfinite(u[at])
        assert u[at] != 0

        def terms(u, k=k):
            return np.stack([k[0] * u, k[1] / u, k[2] * u * u, k[3] / u / u])

        if unbounded[at]:
            assert u[at] == 1
            continue
        own = terms(u[at])
        allowed = tolerance * np.maximum(np.abs(own).max(), np.abs(terms(trials)).max(axis=0))
        assert (own.sum() <= terms(trials).sum(axis=0) + allowed).all()


def pairs_arguments(rng):
    V = plane.solve_plane(**planes(rng)).V
    X, pairs = rng.standard_normal((N, N)), np.array([[0, 3], [4, 2]])
    return dict(X=as_tensor(X, _Always(isinstance(V, Tensor))), pairs=pairs, V=V)


def applied(apply):
    """A call that gives back X as it was before, since X is changed in place."""

    def function(X, pairs, V):
        before = copy.deepcopy(X) if isinstance(X, (np.ndarray, Tensor)) else None
        apply(X, pairs, V)
        return before

    return function


def check_applied(rows):
    def check(before, given):
        wanted, V = exact(before), exact(given["V"])
        wanted = wanted if rows else turned(wanted)
        if not size(wanted) * size(V) < 1e30:
            return  # may not be finite, as documented
        for k, (i, j) in enumerate(np.asarray(given["pairs"]).astype(int).tolist()):
            pair = wanted[..., [i, j], :]
            step = V[..., k, :, :] if rows else turned(V[..., k, :, :])
            wanted[..., [i, j], :] = step @ pair
        found = exact(given["X"]) if rows else turned(exact(given["X"]))
        close(found, wanted, size(before) * (1 + size(V)), 10 * rough(given["X"]))

    return check


def disjoint(pairs, n):
    assert pairs.shape == (n // 2, 2)
    assert len(np.unique(pairs)) == pairs.size
    assert pairs.min() >= 0
    assert pairs.max() < n


def check_random_pairs(result, given):
    assert result.shape == (given["count"], 2)
    assert (result[:, 0] != result[:, 1]).all()
    assert result.size == 0 or (result.min() >= 0 and result.max() < given["n"])


def every_pair_once(pairs, n):
    assert sorted(map(tuple, np.sort(pairs.reshape(-1, 2), axis=1).tolist())) == [
        (i, j) for i in range(n) for j in range(i + 1, n)
    ]


def check_tournament(result, given):
    for matching in result:
        disjoint(matching, int(given["n"]))
    every_pair_once(result, int(given["n"]))


def check_greedy(result, given):
    weights, pairs = exact(given["weights"]), np.asarray(result)
    disjoint(pairs, len(weights))
    free, found = np.maximum(weights, weights.T), weights[pairs[:, 0], pairs[:, 1]]
    found = np.sort(np.maximum(found, weights[pairs[:, 1], pairs[:, 0]]))[::-1]
    np.fill_diagonal(free, -np.inf)
    off = free[~np.eye(len(free), dtype=bool)]
    if (
        len(np.unique(off)) == off.size // 2 and np.isfinite(off).all()
    ):  # no ties: there is one answer
        for weight in found:
            i, j = np.unravel_index(np.argmax(free), free.shape)
            assert free[i, j] == weight
            free[[i, j]], free[:, [i, j]] = -np.inf, -np.inf


# -- ultrahyperbolic


def check_lift(result, given):
    same_kind(result, given["x"])
    y, x, signature = exact(result), exact(given["x"]), given["signature"]
    assert np.array_equal(y[..., signature.positive], x[..., signature.positive])
    on_U(y, signature, exact(given["alpha"]), rough(result))


def on_U(y, signature, alpha, tolerance):
    form = (y * y * signs(signature)).sum(axis=-1)
    close(
        form,
        np.broadcast_to(-alpha * alpha, form.shape),
        alpha * alpha + (y * y).sum(axis=-1),
        tolerance,
    )


def check_inner(result, given):
    x, y = exact(given["x"]), exact(given["y"])
    terms = x * y * signs(given["signature"])
    close(result, terms.sum(axis=-1), np.abs(terms).sum(axis=-1), rough(given["x"], given["y"]))


def check_membership(result, given):
    x, alpha = exact(given["x"]), exact(given["alpha"])
    form, squares = (x * x * signs(given["signature"])).sum(axis=-1), (x * x).sum(axis=-1)
    wanted = np.abs(form + alpha * alpha) / np.maximum(alpha * alpha, squares)
    close(result, wanted, 1, rough(given["x"]))


def check_distance(result, given):
    """alpha acosh|g| or alpha acos|g|: its rounding in x and y is sqrt(u) where |g| is near 1."""
    x, y, s, alpha = (
        exact(given["x"]),
        exact(given["y"]),
        signs(given["signature"]),
        exact(given["alpha"]),
    )
    form = (x * y * s).sum(axis=-1)
    difference = x - np.where(form <= 0, 1, -1)[..., None] * y
    e = (difference * difference * s).sum(axis=-1) / (2 * alpha * alpha)
    half = np.sqrt(np.abs(e) / 2)
    wanted = (
        2
        * alpha
        * np.where(e >= 0, np.arcsinh(half), np.arcsin(np.minimum(half, np.sqrt(Exact(0.5)))))
    )
    noise = np.abs(difference).max(axis=-1) / alpha
    close(result, wanted, wanted + alpha * np.sqrt(noise), 10 * rough(given["x"], given["y"]))


def entire(w):
    """cosh and sinhc of the root of w, and a bound of the derivative of the second."""
    root = np.sqrt(np.abs(w))
    safe = np.where(root > 0, root, 1)
    c = np.where(w >= 0, np.cosh(np.where(w >= 0, root, 0)), np.cos(root))
    s = np.where(w >= 0, np.sinh(np.where(w >= 0, root, 0)), np.sin(root)) / safe
    s = np.where(root > 0, s, 1)
    return c, s, np.where(root > 1, (np.abs(c) + np.abs(s)) / np.maximum(root, 1) ** 2, 1)


def lengths(x):
    return np.sqrt((x * x).sum(axis=-1, keepdims=True))


def check_exp_map(result, given):
    """C(w) x + S(w) v, and what rounding in w moves."""
    assert isinstance(result, Tensor) == isinstance(given["x"], Tensor)
    x, v = np.broadcast_arrays(exact(given["x"]), exact(given["v"]))
    s, alpha = signs(given["signature"]), exact(given["alpha"])
    c, sine, slope = entire((v * v * s).sum(axis=-1, keepdims=True) / (alpha * alpha))
    moved = (np.abs(sine) * lengths(x) + slope * lengths(v)) * (lengths(v) / alpha) ** 2
    scale = np.abs(c) * lengths(x) + np.abs(sine) * lengths(v) + moved
    close(result, c * x + sine * v, scale, 10 * rough(given["x"], given["v"]))


def gap(given):
    """sigma, D = y - sigma x and delta = <D, D> / (2 alpha^2), as `jorth.ultrahyperbolic.maps`."""
    x, y = np.broadcast_arrays(exact(given["x"]), exact(given["y"]))
    s, alpha = signs(given["signature"]), exact(given["alpha"])
    tiny = np.finfo(Exact).smallest_normal
    scaled = [a / np.maximum(np.abs(a).max(axis=-1, keepdims=True), tiny) for a in (x, y)]
    sigma = np.where((scaled[0] * scaled[1]).sum(axis=-1, keepdims=True) >= 0, 1, -1)
    D = y - sigma * x
    delta = (D * D * s).sum(axis=-1, keepdims=True) / (2 * alpha * alpha)
    return x, y, sigma, D, delta


def check_log_map(result, given):
    assert isinstance(result, Tensor) == isinstance(given["x"], Tensor)
    x, _, sigma, D, delta = gap(given)
    e, f = np.where(sigma > 0, (delta, 2 + delta), (-2 - delta, -delta))
    assert (f > 0).all(), "no geodesic"
    half = np.sqrt(np.abs(e) / 2)
    arc = 2 * np.where(e >= 0, np.arcsinh(half), np.arctan2(half, np.sqrt(f / 2)))
    sine = np.sqrt(np.abs(e * f))
    factor = np.where(sine > 0, arc / np.where(sine > 0, sine, 1), 1)
    wanted = factor * (D - sigma * delta * x)
    moved = (lengths(D) / exact(given["alpha"])) ** 2
    scale = factor * (lengths(D) + np.abs(delta) * lengths(x))
    scale = scale + (lengths(wanted) * (2 + 1 / f) + factor * lengths(x)) * moved
    close(result, wanted, scale, 10 * rough(given["x"], given["y"]))


def check_transport(result, given):
    assert isinstance(result, Tensor) == isinstance(given["x"], Tensor)
    x, y, sigma, D, delta = gap(given)
    s, alpha, v = signs(given["signature"]), exact(given["alpha"]), exact(given["v"])
    f = np.where(sigma > 0, 2 + delta, -delta)
    assert (f > 0).all(), "no geodesic"
    step = (x + y) / (alpha * alpha * f)
    wanted = v + (D * s * v).sum(axis=-1, keepdims=True) * step
    moved = (lengths(D) / alpha) ** 2
    scale = lengths(v) * (1 + lengths(D) * lengths(step) * (1 + moved / f))
    close(result, wanted, scale, 10 * rough(given["x"], given["y"], given["v"]))


def check_project(result, given):
    assert isinstance(result, Tensor) == isinstance(given["x"], Tensor)
    x, v, alpha = exact(given["x"]), exact(given["v"]), exact(given["alpha"])
    unit = x / alpha
    wanted = v + (unit * signs(given["signature"]) * v).sum(axis=-1, keepdims=True) * unit
    close(result, wanted, lengths(v) * (1 + lengths(unit) ** 2), rough(given["x"], given["v"]))


def check_centroid(result, given):
    """A multiple of the sum that lies on U; how far rounding moves it, its own tests say."""
    same_kind(result, given["points"])
    x, alpha, s = exact(given["points"]), exact(given["alpha"]), signs(given["signature"])
    w = np.ones(x.shape[-2]) if given["weights"] is None else exact(given["weights"])
    total = (w[..., None] * x).sum(axis=-2)
    c = exact(result)
    on_sheet = np.abs((x * x * s).sum(axis=-1) / (alpha * alpha) + 1).max(initial=0) < 1e-9
    if on_sheet and size(x / alpha) < 100 and size(total) > 1e-3 * size(w):
        on_U(c, given["signature"], alpha, 1e3 * rough(result))
        cosine = (c * total).sum(axis=-1) / (lengths(c) * lengths(total))[..., 0]
        close(np.abs(cosine), np.ones_like(cosine), 1, rough(result))


def check_frechet_mean(result, given):
    """The logarithms cancel at the mean."""
    assert isinstance(result, Tensor) == isinstance(given["points"], Tensor)
    x, c, alpha = exact(given["points"]), exact(result), float(given["alpha"])
    w = np.ones(x.shape[-2]) if given["weights"] is None else exact(given["weights"])
    w = w / w.sum(axis=-1, keepdims=True)
    ends = [a.astype(float) for a in np.broadcast_arrays(c[..., None, :], x)]
    v = ultrahyperbolic.log(*ends, given["signature"], alpha=alpha)
    left = (w[..., None] * v).sum(axis=-2)
    scale = size(v) + size(x) + size(c)
    close(left, np.zeros_like(left), scale, 100 * rough(result))


def check_base(result, given):
    x = exact(result)
    assert (x != 0).sum() == 1
    assert x[given["signature"].negative[0]] == exact(given["alpha"]).astype(float)


def near_pair(rng, alpha=1.0):
    """Two clouds of U around its origin: joined by geodesics, and with timelike sums."""
    t = np.eye(N)[SIG.negative[0]]
    return [
        ultrahyperbolic.lift(alpha * (t + 0.2 * rng.uniform(-1, 1, (3, N))), SIG, alpha=alpha)
        for _ in range(2)
    ]


# -- data sets


def check_shape(*names):
    def check(result, given):
        assert result.shape == tuple(int(given[name]) for name in names)
        assert result.dtype == np.float64

    return check


def check_graded(result, given):
    check_shape("m", "n")(result, given)
    lengths = np.linalg.norm(result, axis=0)
    assert lengths[-1] <= 20 * float(given["smallest"]) * max(1.0, lengths[0]) or len(lengths) == 1


def check_positive_definite(result, given):
    check_shape("n", "n")(result, given)
    values = np.linalg.eigvalsh(result)
    wanted = (
        np.geomspace(1.0 / float(given["cond"]), 1.0, int(given["n"]))
        if given["n"] > 1
        else np.ones(1)
    )
    close(values, wanted, 1, 1e-12)


def check_planted(result, given):
    feasible(result.X, given["signature"])
    assert result.source.shape == (given["m"], given["signature"].n)
    error = exact(result.target) - exact(result.source) @ exact(result.X)
    scale = size(result.source) * size(result.X)
    close(error, np.zeros_like(error), 50 * float(given["noise"]) + 1e-12 * scale, 1)


def check_digits_trace(result, given):
    assert result.A.shape == (64, 64)
    assert (np.linalg.eigvalsh(result.A) > 0).all()
    values = scipy.linalg.eigvals(result.A, np.diag(given["signature"].signs.astype(float)))
    close(result.optimum, np.abs(values).sum(), size(result.optimum), 1e-6)


def data_folder() -> Path:
    """A folder with one small data set."""
    folder = tempfile.TemporaryDirectory(prefix="jorth-fuzz-")
    atexit.register(folder.cleanup)
    np.savez(Path(folder.name) / "cifar.npz", X=np.arange(1.0, 31.0).reshape(6, 5))
    return Path(folder.name)


DATA = data_folder()


def check_load(result, given):
    m, n = given["m"] or 6, given["n"] or 5
    assert result.shape == (m, n)
    entries = result.toarray() if given["sparse"] else result
    assert entries.dtype == np.float64
    assert np.isin(entries, np.arange(1.0, 31.0)).all()


CALLS = [
    Call("jorth.Signature", Signature, lambda rng: dict(p=2, q=3), check_signature),
    Call(
        "jorth.Signature of",
        Signature.of,
        lambda rng: dict(signs=SIG.signs.astype(float)),
        check_of,
    ),
    Call(
        "jorth.Signature lorentz",
        Signature.lorentz,
        lambda rng: dict(n=4, time="first"),
        check_lorentz,
    ),
    Call(
        "jorth.inverse", jorth.inverse, lambda rng: dict(X=point(rng), signature=SIG), check_inverse
    ),
    Call(
        "jorth.residual",
        jorth.residual,
        lambda rng: dict(X=point(rng), signature=SIG, gram=As("array", J)),
        check_residual,
        non_finite=True,
    ),
    Call(
        "jorth.component",
        jorth.component,
        lambda rng: dict(X=point(rng), signature=SIG),
        check_component,
    ),
    Call(
        "jorth.exchange",
        jorth.exchange,
        lambda rng: dict(X=point(rng), signature=SIG),
        check_exchange,
    ),
    Call(
        "jorth.polish",
        jorth.polish,
        lambda rng: dict(X=point(rng) + 1e-3, signature=SIG),
        check_polish,
    ),
    Call("jorth.exp", jorth.exp, lambda rng: dict(K=algebra(rng), signature=SIG), check_exp),
    Call(
        "jorth.cayley", jorth.cayley, lambda rng: dict(K=algebra(rng), signature=SIG), check_cayley
    ),
    Call("jorth.log", jorth.log, lambda rng: dict(X=near_one(rng), signature=SIG), check_log),
    Call(
        "jorth.distance",
        jorth.distance,
        lambda rng: dict(X=near_one(rng), Y=near_one(rng), signature=SIG),
        check_group_distance,
    ),
    Call("jorth.transport", jorth.transport, moving, check_group_transport),
    Call(
        "jorth.mean",
        jorth.mean,
        lambda rng: dict(
            Xs=near_one(rng, 3), signature=SIG, weights=as_tensor(rng.uniform(0.5, 1, 3), rng)
        ),
        check_group_mean,
    ),
    Call(
        "jorth.random_point",
        jorth.random_point,
        lambda rng: dict(
            signature=SIG,
            cond=10.0,
            component=(1, -1),
            columns=(2, 1),
            batch=(2,) if rng.integers(2) else (),
            seed=3,
            dtype=As("other", np.float64),
            device=As("other", None),
        ),
        check_random_point,
    ),
    Call(
        "jorth.cs_decomposition",
        jorth.cs_decomposition,
        lambda rng: dict(X=point(rng), signature=SIG),
        check_cs,
    ),
    Call("jorth.CS compose", composed_cs, cs_arguments, check_compose_cs),
    Call(
        "jorth.hsvd",
        jorth.hsvd,
        lambda rng: dict(
            G=as_tensor(rng.standard_normal((N + 1, N)), rng),
            signature=SIG,
            tolerance=As("number", None),
        ),
        check_hsvd,
    ),
    Call(
        "jorth.hsvd wide",
        jorth.hsvd,
        lambda rng: dict(
            G=as_tensor(rng.standard_normal((N - 2, N)), rng), signature=SIG, tolerance=1e-14
        ),
        check_hsvd,
    ),
    Call("jorth.HSVD compose", composed_hsvd, hsvd_arguments, check_compose_hsvd),
    Call(
        "jorth.hyperbolic_qr",
        jorth.hyperbolic_qr,
        lambda rng: dict(A=tall(rng), signature=SIG),
        check_qr,
    ),
    Call(
        "jorth.cholesky_update",
        jorth.cholesky_update,
        lambda rng: triangle(rng) | dict(lower=False),
        check_cholesky_update,
    ),
    Call(
        "jorth.indefinite_lstsq",
        jorth.indefinite_lstsq,
        lambda rng: (lambda A: dict(A=A, b=A[..., 0] + 1, signature=SIG))(tall(rng)),
        check_lstsq,
    ),
    Call("jorth.eigh", jorth.eigh, lambda rng: dict(A=definite(rng), signature=SIG), check_eigh),
    Call(
        "jorth.eigh with a shift",
        jorth.eigh,
        lambda rng: dict(A=definite(rng), signature=SIG, shift=0.1, tolerance=1e-12),
        check_eigh,
    ),
    Call(
        "jorth.Subset",
        partial_pairs,
        lambda rng: dict(
            A=definite(rng),
            signature=SIG,
            positive=2,
            negative=1,
            tolerance=1e-10,
            max_iterations=100,
            seed=1,
            verify=True,
        ),
        check_partial,
    ),
    Call(
        "jorth.polar", jorth.polar, lambda rng: dict(A=1.5 * point(rng), signature=SIG), check_polar
    ),
    Call(
        "jorth.solve_plane",
        jorth.solve_plane,
        lambda rng: planes(rng) | dict(theta=0.1, components="all", check=True),
        check_solve_plane,
    ),
    Call(
        "jorth.solve_plane unchecked",
        jorth.solve_plane,
        lambda rng: planes(rng) | dict(theta=0.1, components="identity", check=False),
        check_solve_plane,
        non_finite=True,
    ),
    Call(
        "jorth.plane.solve_rows",
        plane.solve_rows,
        lambda rng: row_planes(rng) | dict(theta=0.1, components="all", check=True),
        check_solve_rows,
    ),
    Call(
        "jorth.plane.minimize_circle",
        plane.minimize_circle,
        lambda rng: {name: float(rng.standard_normal()) for name in "abcde"},
        check_circle,
        non_finite=True,
    ),
    Call(
        "jorth.plane.minimize_circle arrays",
        plane.minimize_circle,
        lambda rng: {name: rng.standard_normal(3) for name in "abcde"},
        check_circle,
        non_finite=True,
    ),
    Call(
        "jorth.plane.minimize_lightcone",
        plane.minimize_lightcone,
        lambda rng: (
            {name: float(rng.uniform(0.1, 2)) for name in "ABCD"}
            | dict(positive=bool(rng.integers(2)))
        ),
        check_lightcone,
        non_finite=True,
    ),
    Call(
        "jorth.plane.minimize_lightcone arrays",
        plane.minimize_lightcone,
        lambda rng: (
            {name: rng.uniform(0.1, 2, size=3) for name in "ABCD"}
            | dict(positive=bool(rng.integers(2)))
        ),
        check_lightcone,
        non_finite=True,
    ),
    Call(
        "jorth.plane.apply_rows",
        applied(plane.apply_rows),
        pairs_arguments,
        check_applied(True),
        changes=("X",),
        non_finite=True,
    ),
    Call(
        "jorth.plane.apply_columns",
        applied(plane.apply_columns),
        pairs_arguments,
        check_applied(False),
        changes=("X",),
        non_finite=True,
    ),
    Call(
        "jorth.plane.random_matching",
        plane.random_matching,
        lambda rng: dict(n=7, seed=1),
        lambda result, given: disjoint(result, int(given["n"])),
    ),
    Call(
        "jorth.plane.random_pairs",
        plane.random_pairs,
        lambda rng: dict(n=5, count=4, seed=1),
        check_random_pairs,
    ),
    Call(
        "jorth.plane.all_pairs",
        plane.all_pairs,
        lambda rng: dict(n=6, seed=1),
        lambda result, given: every_pair_once(result, int(given["n"])),
    ),
    Call(
        "jorth.plane.tournament", plane.tournament, lambda rng: dict(n=5, seed=1), check_tournament
    ),
    Call(
        "jorth.plane.greedy_matching",
        plane.greedy_matching,
        lambda rng: dict(weights=as_tensor(rng.standard_normal((5, 5)), rng), seed=1),
        check_greedy,
    ),
    Call(
        "jorth.ultrahyperbolic.lift",
        ultrahyperbolic.lift,
        lambda rng: dict(x=as_tensor(rng.standard_normal((3, N)), rng), signature=SIG, alpha=1.5),
        check_lift,
    ),
    Call(
        "jorth.ultrahyperbolic.inner",
        ultrahyperbolic.inner,
        lambda rng: dict(
            x=rng.standard_normal((3, N)), y=rng.standard_normal((3, N)), signature=SIG
        ),
        check_inner,
    ),
    Call(
        "jorth.ultrahyperbolic.membership",
        ultrahyperbolic.membership,
        lambda rng: dict(x=as_tensor(on_sheet(rng), rng), signature=SIG, alpha=1.0),
        check_membership,
    ),
    Call(
        "jorth.ultrahyperbolic.distance",
        ultrahyperbolic.distance,
        lambda rng: dict(x=on_sheet(rng), y=on_sheet(rng), signature=SIG, alpha=1.0),
        check_distance,
    ),
    Call(
        "jorth.ultrahyperbolic.exp",
        ultrahyperbolic.exp,
        lambda rng: dict(
            x=on_sheet(rng), v=0.5 * rng.standard_normal((3, N)), signature=SIG, alpha=1.0
        ),
        check_exp_map,
    ),
    Call(
        "jorth.ultrahyperbolic.log",
        ultrahyperbolic.log,
        lambda rng: dict(zip("xy", near_pair(rng), strict=True)) | dict(signature=SIG, alpha=1.0),
        check_log_map,
    ),
    Call(
        "jorth.ultrahyperbolic.transport",
        ultrahyperbolic.transport,
        lambda rng: (
            dict(zip("xy", near_pair(rng), strict=True))
            | dict(v=rng.standard_normal((3, N)), signature=SIG, alpha=1.0)
        ),
        check_transport,
    ),
    Call(
        "jorth.ultrahyperbolic.project_tangent",
        ultrahyperbolic.project_tangent,
        lambda rng: dict(x=on_sheet(rng), v=rng.standard_normal((3, N)), signature=SIG, alpha=1.0),
        check_project,
    ),
    Call(
        "jorth.ultrahyperbolic.frechet_mean",
        ultrahyperbolic.frechet_mean,
        lambda rng: dict(
            points=near_pair(rng, 1.5)[0],
            signature=SIG,
            weights=rng.uniform(0.5, 1.0, 3),
            alpha=1.5,
        ),
        check_frechet_mean,
    ),
    Call(
        "jorth.ultrahyperbolic.centroid",
        ultrahyperbolic.centroid,
        lambda rng: dict(
            points=near_pair(rng, 1.5)[0],
            signature=SIG,
            weights=rng.uniform(0.5, 1.0, 3),
            alpha=1.5,
        ),
        check_centroid,
    ),
    Call(
        "jorth.ultrahyperbolic.origin",
        ultrahyperbolic.origin,
        lambda rng: dict(
            signature=SIG, alpha=1.5, dtype=As("other", torch.float64), device=As("other", "cpu")
        ),
        check_base,
    ),
    Call(
        "jorth.datasets.randn",
        datasets.randn,
        lambda rng: dict(m=4, n=3, seed=1),
        check_shape("m", "n"),
    ),
    Call(
        "jorth.datasets.graded",
        datasets.graded,
        lambda rng: dict(m=6, n=4, smallest=1e-6, seed=1),
        check_graded,
    ),
    Call(
        "jorth.datasets.positive_definite",
        datasets.positive_definite,
        lambda rng: dict(n=4, cond=100.0, seed=1),
        check_positive_definite,
    ),
    Call(
        "jorth.datasets.planted_procrustes",
        datasets.planted_procrustes,
        lambda rng: dict(
            m=9, signature=SIG, source_condition=4.0, point_condition=5.0, noise=0.1, seed=1
        ),
        check_planted,
    ),
    Call(
        "jorth.datasets.digits_trace",
        datasets.digits_trace,
        lambda rng: dict(signature=Signature(40, 24), ridge=0.05),
        check_digits_trace,
    ),
    Call(
        "jorth.datasets.load",
        datasets.load,
        lambda rng: dict(
            name="cifar",
            m=4,
            n=3,
            subset="random",
            seed=1,
            sparse=bool(rng.integers(2)),
            folder=DATA,
        ),
        check_load,
        raises=(FileNotFoundError,),
    ),
]

WITHOUT = {
    "jorth.PlaneSolution": "a result; solve_plane makes it",
    "jorth.plane.PlaneSolution": "a result; solve_plane makes it",
    "jorth.plane.solve_plane": "jorth.solve_plane",
    "jorth.PolishError": "an error class",
    "jorth.OtherTimeWarning": "a warning class",
    "jorth.datasets.DataSet": "an entry of the registry",
    "jorth.datasets.REGISTRY": "a table",
    "jorth.datasets.DownloadError": "an error class",
    "jorth.datasets.PlantedProcrustes": "a result; planted_procrustes makes it",
    "jorth.datasets.TraceProblem": "a result; digits_trace makes it",
    "jorth.datasets.digits": "takes no arguments",
    "jorth.datasets.fetch": "needs a server, which tests/datasets/test_download.py has",
}
