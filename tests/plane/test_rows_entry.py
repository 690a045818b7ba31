"""`solve_rows`: the plane problem from two rows, against `solve_plane`,
mpmath and what is known of boosts."""

import math

import mpmath as mp
import numpy as np
import pytest
import torch

import jorth
from jorth.plane import solve_plane, solve_rows
from jorth.plane._numba import solve_pair

UNIT = 2.0**-53


def problems(count, m, seed, *, definite=True):
    rng = np.random.default_rng(seed)
    G, Z = rng.standard_normal((2, count, 2, m))
    A = rng.standard_normal((count, 2, 2))
    A = A @ A.swapaxes(1, 2) if definite else A + A.swapaxes(1, 2)
    D = rng.standard_normal((m, m))
    return G, Z, A, D @ D.T, rng.choice([-1, 1], (count, 2))


@pytest.mark.parametrize("components", ["all", "identity"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("definite", [False, True])
def test_the_answer_is_that_of_the_four_by_four_problem(components, weighted, definite):
    G, Z, A, D, signs = problems(400, 5, seed=1, definite=definite)
    Y = Z @ (D if weighted else np.eye(5)) @ Z.swapaxes(1, 2)
    Q = np.einsum("kac,kbd->kabcd", Y, A).reshape(-1, 4, 4)
    P = G @ Z.swapaxes(1, 2)
    plain = solve_plane(P, Q, signs, theta=1e-3, components=components)
    rows = solve_rows(G, Z, A, signs, D=D if weighted else None, theta=1e-3, components=components)
    assert np.array_equal(plain.unbounded, rows.unbounded)
    size = (np.abs(Q).max(axis=(1, 2)) + np.abs(P).max(axis=(1, 2))) * np.linalg.norm(
        plain.V, axis=(1, 2)
    ) ** 2
    assert (np.abs(plain.decrease - rows.decrease) <= 1e3 * UNIT * size).all()
    J = signs[:, :, None] * np.eye(2)
    drift = np.abs(rows.V.swapaxes(1, 2) @ J @ rows.V - J).max(axis=(1, 2))
    assert (drift <= 64 * UNIT * np.linalg.norm(rows.V, axis=(1, 2)) ** 2).all()


@pytest.mark.parametrize("gap", [1e-2, 1e-6, 1e-10, 1e-14])
@pytest.mark.parametrize("seed", range(5))
def test_rows_close_to_the_light_cone(gap, seed):
    """z_j = z_i up to ``gap``: one null form is gap^2 of the other,
    and is lost to Z Z^T below 1e-8.

    With no linear term in V, P = Q vec(I), the surrogate is C u^2 + D / u^2: u^4 = D / C and the
    decrease (sqrt C - sqrt D)^2 are known from the rows, which mpmath adds up and subtracts
    exactly.
    """
    rng = np.random.default_rng(seed)
    z = np.round(rng.standard_normal(6) * 2**20) / 2**20
    Z = np.stack([z, z + gap * rng.standard_normal(6)])
    a, b = 3.0, 0.5  # A = [[a, b], [b, a]], whose products with Z are exact enough: see the bound
    A = np.array([[a, b], [b, a]])
    found = solve_rows(A @ Z, Z, A, np.array([1, -1]), components="identity")
    assert not found.unbounded
    with mp.workdps(80):
        rows = [[mp.mpf(x) for x in row] for row in Z.tolist()]
        out = sum((x + y) ** 2 for x, y in zip(*rows, strict=True)) * (2 * a + 2 * b) / 8
        into = sum((x - y) ** 2 for x, y in zip(*rows, strict=True)) * (2 * a - 2 * b) / 8
        gain = (mp.sqrt(out) - mp.sqrt(into)) ** 2
        u = mp.root(into / out, 4)
        # the rounding of A Z, u |z|, leaves a linear term of u |z| |z_i - z_j|: it moves u by a
        # part of u / gap
        slack = 64 * UNIT * (1 + 1 / gap)
        # the gain is added up from terms 1 / u times as large
        assert abs(found.decrease / gain - 1) < slack**2 + 64 * UNIT / u
        assert abs((found.V[1, 1] - found.V[1, 0]) * u - 1) < slack + UNIT / u**2


def test_a_boost_of_any_length_is_undone():
    """f = ||X||^2 / 2 on O(1, 1): the step back is X^-1.
    `solve_plane` calls it unbounded from cond 1e8 on."""
    for cond in (1e2, 1e6, 1.8e8, 1e12, 1e15):
        mu = math.log(cond) / 2
        X = np.array([[math.cosh(mu), math.sinh(mu)], [math.sinh(mu), math.cosh(mu)]])
        found = solve_rows(X, X, 1.0, np.array([1, -1]), components="identity")
        assert not found.unbounded
        # cosh and sinh are rounded: their difference is e^(-mu) up to u cosh
        assert np.abs(found.V @ X - np.eye(2)).max() <= 8 * UNIT * cond
        assert found.decrease == pytest.approx(np.sum(X * X) / 2 - 1, rel=8 * UNIT * cond)


@pytest.mark.parametrize("d", [7e-15, 1e-15, 1e-16])
@pytest.mark.parametrize("components", ["all", "identity"])
def test_a_nearly_singular_q_still_steps(d, components):
    """The null form is positive by less than rounding: how far to go is unknown,
    that going is right is not."""
    Q = np.kron(np.array([[1.0, 1.0 - d], [1.0 - d, 1.0]]), np.eye(2))
    found = solve_plane(-np.eye(2), Q, np.array([1, -1]), components=components)
    assert not found.unbounded
    assert found.decrease > 997
    assert solve_pair(-np.eye(2), Q, True, 0.0, components == "all")[4] == pytest.approx(
        found.decrease, rel=1e-12
    )
    with mp.workdps(60):  # the decrease is no more than what the step brings
        step = [mp.mpf(float(x)) - y for x, y in zip(found.V.T.ravel(), (1, 0, 0, 1), strict=True)]
        bent = sum(step[i] * mp.mpf(Q[i, j]) * step[j] for i in range(4) for j in range(4)) / 2
        assert found.decrease <= (step[0] + step[3] - bent) * (1 + 1e-12)


def test_kinds_of_input():
    G, Z, A, D, signs = problems(3, 4, seed=2)
    plain = solve_rows(G, Z, A, signs, D=D)
    tensors = solve_rows(*(torch.from_numpy(x) for x in (G, Z, A, signs)), D=torch.from_numpy(D))
    assert isinstance(tensors.V, torch.Tensor)
    assert np.array_equal(tensors.V.numpy(), plain.V)
    single = solve_rows(G[0], Z[0], A[0], signs[0], D=D)
    assert np.allclose(single.V, plain.V[0], rtol=1e-12)
    numbers = solve_rows(G, Z, np.full(3, 2.0), signs)
    assert np.array_equal(numbers.V, solve_rows(G, Z, 2.0, signs).V)
    assert np.array_equal(numbers.V, solve_rows(G, Z, np.tile(2 * np.eye(2), (3, 1, 1)), signs).V)
    small = solve_rows(*(x.astype(np.float32) for x in (G, Z, A)), signs, D=D.astype(np.float32))
    assert small.V.dtype == np.float32
    empty = solve_rows(np.zeros((0, 2, 4)), np.zeros((0, 2, 4)), 1.0, np.zeros((0, 2)))
    assert empty.V.shape == (0, 2, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(Z=np.zeros((3, 3, 4))), r"Z must have shape \(..., 2, m\)"),
        (dict(G=np.zeros((3, 2, 5))), "G must have the shape, dtype and device of Z"),
        (dict(A=np.zeros((3, 3))), r"A must be a number or have shape \(3,\) or \(3, 2, 2\)"),
        (dict(A=np.tile([[1.0, 2.0], [0.0, 1.0]], (3, 1, 1))), "A must be symmetric"),
        (dict(D=np.zeros((3, 3))), r"D must have shape \(4, 4\)"),
        (dict(D=np.triu(np.ones((4, 4)))), "D must be symmetric"),
        (dict(G=np.full((3, 2, 4), np.nan)), "G must be finite"),
        (dict(components="some"), "components must be"),
        (dict(theta=np.zeros(2)), "theta must be a number or have shape"),
    ],
)
def test_bad_input(change, message):
    G, Z, A, D, signs = problems(3, 4, seed=2)
    arguments = dict(G=G, Z=Z, A=A, signs=signs, D=D) | change
    with pytest.raises(ValueError, match=message):
        solve_rows(**arguments)


def test_without_checks_nothing_raises():
    G, Z, A, D, signs = problems(3, 4, seed=2)
    G[1, 0, 0] = np.nan
    A[2] = [[1.0, 2.0], [0.0, 1.0]]
    found = solve_rows(G, Z, A, signs, D=D, check=False)
    assert np.isnan(found.decrease).tolist() == [False, True, True]
    assert np.array_equal(found.V[1:], np.tile(np.eye(2), (2, 1, 1)))


def test_it_is_public():
    assert "solve_rows" in jorth.plane.__all__


# -- errors name the arguments of `solve_rows`


def test_signs_go_with_the_rows():
    rows = np.ones((3, 2, 5))
    with pytest.raises(ValueError, match=r"signs must be \+1 or -1 of shape \(3, 2\), got"):
        solve_rows(rows, rows, 1.0, np.ones(2))
    with pytest.raises(ValueError, match=r"signs must be \+1 or -1 of shape \(3, 2\), got"):
        solve_plane(np.ones((3, 2, 2)), 1.0, np.ones(2))
