"""Problems for the kernels, on any device, and what the kernels and plain torch make of them."""

import numpy as np
import torch

import jorth
from jorth import Signature
from jorth.plane import solve_plane
from jorth.plane.rounds import QuadraticRounds
from tests.linalg.reference import positive_definite
from tests.plane.reference import kronecker, step_by_torch


def quadratic(n, k, *, dtype=torch.float64, with_c=True, with_d=False, cond=4.0, seed=0):
    """A signature in no order, X (n, k), and A, C, D."""
    rng = np.random.default_rng(seed)
    sig = Signature.of(rng.permutation([1] * (n // 2) + [-1] * (n - n // 2)))
    X = torch.from_numpy(jorth.random_point(sig, cond=cond, seed=seed)[:, :k].copy())
    A, D = (torch.from_numpy(positive_definite(size, 20.0, seed)) for size in (n, k))
    C = torch.from_numpy(rng.standard_normal((n, k)))
    A, C, D, X = (tensor.to(dtype) for tensor in (A, C, D, X))
    return sig, X, A, C if with_c else None, D if with_d else None


def value(A, C, D, X):
    product = A @ X if D is None else A @ X @ D
    return float((X * product).sum() / 2 + (0.0 if C is None else (C * X).sum()))


def after(problem, pairs, *, device, factor=1.0, theta=-1e-12, all_components=False, compiled=True):
    """X, Y, the decrease and the flag after rounds on a device,
    by the kernels or in plain torch."""
    sig, X, A, C, D = problem
    A, C, D = (None if tensor is None else tensor.to(device) for tensor in (A, C, D))
    rounds = QuadraticRounds(
        A,
        C,
        D,
        X.shape[1],
        torch.from_numpy(sig.signs.copy()),
        all_components=all_components,
        theta=theta,
    )
    rounds._compiled = rounds._compiled and compiled
    rounds.start(X.to(device))
    rounds.run(pairs, factor)
    return rounds.X.cpu(), rounds.Y.cpu(), rounds.decrease.item(), bool(rounds.unbounded)


def random_steps(count, seed=0):
    """P (m, 2, 2), positive definite 2x2 Y and A over many orders of magnitude,
    and signs (m, 2)."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-6, 6, (3, count, 1, 1))
    P = rng.standard_normal((count, 2, 2))
    roots = rng.standard_normal((2, count, 2, 2))
    Y, A = roots @ np.swapaxes(roots, -1, -2)
    return scale[0] * P, scale[1] * Y, scale[2] * A, rng.choice([-1, 1], (count, 2))


def step_by_triton(device, P, Y, A, signs, *, theta=0.0, components="identity"):
    """`step_by_torch` by Triton; V as the columns of the application see it."""
    from jorth.plane._triton import solve_pairs

    m = len(P)
    P, Y, A, signs = (torch.from_numpy(np.array(part)) for part in (P, Y, A, signs))
    parts = [P[:, 0, 0], P[:, 0, 1], P[:, 1, 0], P[:, 1, 1], Y[:, 0, 0], Y[:, 0, 1], Y[:, 1, 1]]
    parts += [Y[:, 0, 0] + 2 * Y[:, 0, 1] + Y[:, 1, 1], Y[:, 0, 0] - 2 * Y[:, 0, 1] + Y[:, 1, 1]]
    coefficients = torch.stack([*parts, A[:, 0, 0], A[:, 0, 1], A[:, 1, 1]]).contiguous().to(device)
    first = torch.arange(0, 2 * m, 2, dtype=torch.int32, device=device)
    shift, mix = (torch.empty(2 * m, dtype=torch.float64, device=device) for _ in range(2))
    factors = torch.empty((6, m), dtype=torch.float64, device=device)
    gained = torch.zeros(m, dtype=torch.float64, device=device)
    flags = torch.zeros(m, dtype=torch.int32, device=device)
    settings = torch.tensor([1.0, theta], dtype=torch.float64, device=device)
    lanes = 32 if torch.device(device).type == "cuda" else 4096
    solve_pairs[(-(-m // lanes),)](
        coefficients, first, first + 1, signs.reshape(-1).to(torch.int8).to(device), settings,
        factors, shift, mix, gained, flags, m,
        EPS=2.0**-52, LANES=lanes, num_warps=1,
    )  # fmt: skip
    V = torch.stack([1 + shift[::2], mix[::2], mix[1::2], 1 + shift[1::2]], dim=1).reshape(m, 2, 2)
    return V.cpu().numpy(), gained.cpu().numpy(), flags.cpu().numpy() != 0


def check_steps(step, components, theta=0.0):
    """The steps of an engine are as good as the reference's,
    and the same where the minimum is sharp."""
    P, Y, A, signs = random_steps(4096)
    V, decrease, unbounded = step(P, Y, A, signs, theta=theta, components=components)
    reference = step_by_torch(P, Y, A, signs, theta=theta, components=components)
    assert not unbounded.any()
    size = np.abs(reference.V).max(axis=(1, 2))
    largest = [np.abs(part).max(axis=(1, 2)) for part in (P, Y, A)]
    scale = largest[0] * size + (largest[1] * largest[2] + theta) * size**2
    assert (np.abs(decrease - reference.decrease) <= 1e-13 * scale).all()
    off = np.abs(V - reference.V).max(axis=(1, 2)) / size
    # V is as well determined as the minimum is sharp: Q has condition up to 1e8,
    # and a tie may fall either way
    assert (off > 1e-9).mean() < 2e-3
    J = signs[:, :, None] * np.eye(2)
    assert (np.abs(V.swapaxes(1, 2) @ J @ V - J).max(axis=(1, 2)) <= 64 * 2.0**-53 * size**2).all()
    assert (decrease > 0).mean() > 0.9


def check_edges(step, components):
    """Zero, NaN, infinity, no minimiser, and a start that is the minimum."""
    eye, hyperbolic, equal = np.eye(2), [1, -1], [1, 1]
    cases = [
        (0 * eye, eye, eye, hyperbolic),  # at the minimum: V = I is not better than itself
        (0 * eye, 0 * eye, 0 * eye, hyperbolic),
        (0 * eye, 0 * eye, 0 * eye, equal),
        (np.full((2, 2), np.nan), eye, eye, hyperbolic),
        (eye, eye, -eye, hyperbolic),  # falls for ever
        (eye, eye, -eye, equal),
        (1e-150 * eye, 1e-150 * eye, eye, equal),
    ]
    P, Y, A, signs = (np.array([case[t] for case in cases], dtype=float) for t in range(4))
    V, decrease, unbounded = step(P, Y, A, signs, components=components)
    options = {"components": components, "check": False}
    reference = solve_plane(P, kronecker(Y, A), signs, **options)
    np.testing.assert_allclose(V, reference.V, rtol=0, atol=1e-14)
    np.testing.assert_allclose(decrease, reference.decrease, rtol=1e-12, atol=0)
    assert unbounded.tolist() == reference.unbounded.tolist()
    assert unbounded[4]


def check_nearly_null_rows(device):
    """A boost by 2^12 is undone by one step: the short null direction is 2^-48 of the long one."""
    sig, X = Signature.of([1, -1, 1, 1]), torch.eye(4, dtype=torch.float64)
    X[:2, :2] = 2.0**11 - 2.0**-13 + 2.0**-12 * torch.eye(2, dtype=torch.float64)
    problem = sig, X, torch.eye(4, dtype=torch.float64), None, None
    moved, _, decrease, _ = after(problem, np.array([[[0, 1], [2, 3]]]), device=device, theta=0.0)
    torch.testing.assert_close(moved, torch.eye(4, dtype=torch.float64), rtol=0, atol=1e-8)
    assert abs(decrease - (float(X.square().sum()) / 2 - 2)) <= 1e-12 * decrease
