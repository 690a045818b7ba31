"""Certificates of `jorth.procrustes`: search for false ones, by an oracle that is not ours.

Problems of nine kinds, with planted points, sources of condition up to 1e16, both precisions, alone
and in batches. What is known of the least value: f at the planted point, and at the ends of
Levenberg-Marquardt runs from many starts in every component; for some also of scipy's
`least_squares` on the CS form. All points are made feasible, and f is computed, in long doubles
from the rows as given.

    nice python benchmarks/certificates.py --problems 20000 --first 1000000
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import product

import numpy as np
from scipy.linalg import block_diag, expm, hilbert
from scipy.optimize import least_squares

import jorth
from jorth import Signature

UNIT = 2.0**-53
BATCH, ALONE = 20, 8
"""Problems of one kind and one shape; some are solved alone, the others in one call."""
STARTS, STEPS = 3, 30
"""Starts in each component of a Levenberg-Marquardt run, and its steps."""
SCIPY = 50
"""One in so many problems is also given to scipy."""
MOST = 300
"""Iterations of a run."""
Array = np.ndarray


def graded(rng: np.random.Generator, m: int, n: int, condition: float) -> Array:
    return rng.standard_normal((m, n)) * rng.permutation(np.geomspace(1.0, 1 / condition, n))


def spectrum(rng: np.random.Generator, m: int, n: int, condition: float) -> Array:
    U, V = (np.linalg.qr(rng.standard_normal((k, n)))[0] for k in (max(m, n), n))
    return ((U * np.geomspace(1.0, 1 / condition, n)) @ V)[:m]


def hilbert_like(rng: np.random.Generator, m: int, n: int, condition: float) -> Array:
    return hilbert(max(m, n) + 8)[:m, -n:] ** rng.uniform(0.5, 2)


def triangular(rng: np.random.Generator, m: int, n: int, condition: float) -> Array:
    return np.eye(m, n) - condition ** (1 / n) * np.triu(np.ones((m, n)), 1)


def vandermonde(rng: np.random.Generator, m: int, n: int, condition: float) -> Array:
    return np.vander(1 + rng.standard_normal(m) / condition ** (1 / n), n)


def low_rank(rng: np.random.Generator, m: int, n: int, condition: float) -> Array:
    r = int(rng.integers(1, n))
    return rng.standard_normal((m, r)) @ rng.standard_normal((r, n))


def duplicated(rng: np.random.Generator, m: int, n: int, condition: float) -> Array:
    source = rng.standard_normal((m, n))
    source[:, -1] = source[:, 0] + (source[:, 1] if n > 2 and rng.random() < 0.5 else 0.0)
    return source


def few_rows(rng: np.random.Generator, m: int, n: int, condition: float) -> Array:
    return spectrum(rng, int(rng.integers(1, n)), n, min(condition, 1e3))


def ordinary(rng: np.random.Generator, m: int, n: int, condition: float) -> Array:
    return spectrum(rng, m, n, min(condition, 1e3) ** rng.random())


KINDS: dict[str, Callable[..., Array]] = {
    kind.__name__: kind
    for kind in (
        ordinary, graded, spectrum, hilbert_like, triangular, vandermonde, low_rank, duplicated,
        few_rows,
    )
}  # fmt: skip


def problems(seed: int) -> tuple[str, Signature, Array, Array, Array]:
    """Sources, targets and planted points (BATCH, ...) of one kind, for one signature."""
    rng = np.random.default_rng(seed)
    name = list(KINDS)[seed % len(KINDS)]
    n = int(rng.integers(2, 5))
    p = int(rng.integers(0 if rng.random() < 0.1 else 1, n))
    sig = Signature.of(rng.permutation([1] * p + [-1] * (n - p)))
    m = int(rng.integers(n, 3 * n))
    dtype = rng.choice([np.float32, np.float64])
    shape = int(rng.integers(2**31))
    found = []
    for _ in range(BATCH):
        condition = 10.0 ** (16 * rng.random() ** 2)
        rows = np.random.default_rng(shape) if name == "few_rows" else rng
        source = KINDS[name](rows, m, n, condition) * 10.0 ** rng.uniform(-3, 3)
        X = jorth.random_point(sig, cond=10.0 ** rng.uniform(0, 2), seed=rng)
        target = source @ X
        noise = 10.0 ** rng.uniform(-9, 1) * np.abs(target).mean()
        target = target + noise * rng.standard_normal(target.shape)
        found.append((source.astype(dtype), target.astype(dtype), X))
    sources, targets, points = (np.stack(part) for part in zip(*found, strict=True))
    return name, sig, sources, targets, points


# -- the oracle


def feasible(X: Array, s: Array) -> Array:
    """X (..., n, n) in long doubles, feasible to their rounding."""
    X, J = X.astype(np.longdouble), np.diag(s).astype(np.longdouble)
    for _ in range(4):
        X = X @ (3 * np.eye(len(s)) - J @ X.swapaxes(-2, -1) @ J @ X) / 2
    return X


def values(source: Array, target: Array, X: Array, s: Array) -> Array:
    """f at the feasible points near X; inf where there is none."""
    X = feasible(X, s)
    with np.errstate(all="ignore"):
        J, Y = np.diag(s), X.swapaxes(-2, -1)
        defect = np.maximum(abs(Y @ J @ X - J), abs(X @ J @ Y - J)).max((-2, -1))
        sound = defect <= 1e-17 * (X**2).sum((-2, -1))
        rest = source.astype(np.longdouble) @ X - target.astype(np.longdouble)
        f = (rest**2).sum((-2, -1)) / (2 * len(source))
    return np.where(sound, f, np.inf)


def levenberg_marquardt(source: Array, target: Array, X: Array, s: Array) -> Array:
    """The ends of runs from X (K, n, n) along X (I - J S / 2)^-1 (I + J S / 2), S skew."""
    K, n = X.shape[:2]
    rows, columns = np.triu_indices(n, 1)
    basis = np.zeros((len(rows), n, n))
    basis[np.arange(len(rows)), rows, columns] = s[rows]
    basis[np.arange(len(rows)), columns, rows] = -s[columns]
    damping, eye = np.full(K, 1e-3), np.eye(len(rows))

    def f(X: Array) -> Array:
        return ((source @ X - target) ** 2).sum((1, 2))

    best = f(X)
    for _ in range(STEPS):
        D = ((source @ X)[:, None] @ basis).reshape(K, len(rows), -1)
        normal = D @ D.swapaxes(1, 2)
        size = np.trace(normal, axis1=1, axis2=2) + 1e-200
        g = D @ (source @ X - target).reshape(K, -1, 1)
        step = np.linalg.solve(normal + (damping * size)[:, None, None] * eye, -g)[..., 0]
        half = np.einsum("kd,dij->kij", step, basis) / 2
        trial = X @ np.linalg.solve(np.eye(n) - half, np.eye(n) + half)
        after = f(trial)
        lower = after < best
        X, best = np.where(lower[:, None, None], trial, X), np.where(lower, after, best)
        damping = np.clip(np.where(lower, damping / 10, damping * 5), 1e-14, 1e6)
    return X


def starts(sig: Signature, planted: Array, rng: np.random.Generator) -> Array:
    """Random points in all components, ever further out, and the planted point and neighbours."""
    far = 1.0 if sig.p in (0, sig.n) else 4.0
    flips = np.ones((4, sig.n))
    for row, signs in zip(flips, product((1, -1), repeat=2), strict=True):
        for sign, place in zip(signs, (sig.positive, sig.negative), strict=True):
            row[place[-1:]] = sign
    random = [jorth.random_point(sig, cond=far**k, seed=rng) for k in range(STARTS)]
    points = [X * flip for X in [*random[1:], planted] for flip in flips]
    return np.stack([planted @ random[1], random[0], *points])


def by_scipy(source: Array, target: Array, sig: Signature, rng: np.random.Generator) -> Array:
    """The ends (2, n, n) of scipy's runs on the CS form X = U H(mu) V, U and V block diagonal."""
    p, q = sig.p, sig.q
    k, order = min(p, q), np.concatenate([sig.positive, sig.negative])
    sizes = [p * (p - 1) // 2, q * (q - 1) // 2]

    def point(z: Array, flip: Array) -> Array:
        blocks = []
        for size, n in zip(sizes * 2, (p, q) * 2, strict=True):
            skew = np.zeros((n, n))
            skew[np.triu_indices(n, 1)], z = z[:size], z[size:]
            blocks.append(expm(skew - skew.T))
        H, at = np.eye(p + q), np.arange(k)
        H[at, at] = H[p + at, p + at] = np.cosh(z)
        H[at, p + at] = H[p + at, at] = np.sinh(z)
        X = np.empty_like(H)
        X[np.ix_(order, order)] = block_diag(*blocks[:2]) @ H @ block_diag(*blocks[2:])
        return X * flip

    found = []
    for _ in range(2):
        flip = np.where(rng.random(p + q) < 0.5, -1.0, 1.0)
        z = rng.standard_normal(2 * sum(sizes) + k)
        end = least_squares(
            lambda z, flip=flip: (source @ point(z, flip) - target).ravel(), z, max_nfev=40
        )
        found.append(point(end.x, flip))
    return np.stack(found)


def judge(seed: int, counts: dict[str, Counter[str]]) -> None:
    """What `procrustes` says of a batch of problems, and what the oracle knows."""
    name, sig, sources, targets, points = problems(seed)
    rng, s = np.random.default_rng([seed, 1]), sig.signs.astype(float)
    alone = [
        jorth.procrustes(S, T, sig, max_iterations=MOST)
        for S, T in zip(sources[:ALONE], targets, strict=False)
    ]
    said = ["; certified" in answer.message for answer in alone]
    batch = jorth.procrustes(
        sources[ALONE:], targets[ALONE:], sig, certify=True, max_iterations=MOST
    )
    answers = [(answer.value, answer.bound, answer.gap) for answer in alone]
    answers += zip(batch.value, batch.bound, batch.gap, strict=True)
    said += [None] * len(batch)
    for place, (f, bound, gap) in enumerate(answers):
        S, T = (part[place].astype(float) for part in (sources, targets))
        ends = levenberg_marquardt(S, T, starts(sig, points[place], rng), s)
        if (seed * BATCH + place) % SCIPY == 0:
            ends = np.concatenate([ends, by_scipy(S, T, sig, rng)])
        known = values(S, T, np.concatenate([points[place][None], ends]), s).min()
        at_zero = (T**2).sum() / (2 * len(T))
        certified = gap <= 1e-6 if said[place] is None else said[place]
        slack = 2e-6 * float(f) + UNIT * at_zero
        lower = bool(f > known + slack)
        best = bool(f <= known * (1 + 1e-6) + slack)
        rows = dict(
            problems=True,
            certified=certified,
            above=lower,
            open_best=best and not certified,
            false_certificate=certified and lower,
            false_bound=bool(bound > known * (1 + 4 * UNIT) + UNIT**2 * at_zero),
        )
        for row, value in rows.items():
            counts[name][row] += bool(value)
        if rows["false_certificate"] or rows["false_bound"]:
            print("FALSE", seed, place, name, f, bound, known, flush=True)


def main() -> None:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: dict[str, Counter[str]] = {name: Counter() for name in KINDS}
    with suppress(KeyboardInterrupt):  # Ctrl-C: the table so far
        for seed in range(given.first, given.first + -(-given.problems // BATCH)):
            judge(seed, counts)
    columns = ["problems", "certified", "above", "open_best", "false_certificate", "false_bound"]
    total = sum(counts.values(), Counter())
    print("| source |", " | ".join(columns), "|\n" + "|---" * (len(columns) + 1) + "|")
    for name, row in [*counts.items(), ("all", total)]:
        print(f"| {name} |", " | ".join(str(row[column]) for column in columns), "|")


if __name__ == "__main__":
    main()
