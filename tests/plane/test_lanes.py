"""Eight plane problems at once: whatever they call solved is the global minimum, and as accurate as
the solver for one pair; most problems near a minimum are solved."""

import mpmath as mp
import numpy as np
import pytest

from jorth.plane.compiled import lanes
from jorth.plane.compiled.lanes import LANES, solve_boosts, solve_turns
from jorth.plane.compiled.pair import kronecker_step

UNIT = 2.0**-53
FIELDS = (lanes.P11, lanes.P12, lanes.P21, lanes.P22, lanes.Y11, lanes.Y12, lanes.Y22)
FIELDS += (lanes.Y_PLUS, lanes.Y_MINUS, lanes.L1, lanes.L2)


def problems(count, seed, *, slope=1.0, linear=1.0):
    """P, Y with its null lengths and l of random rows; P = L Y + ``linear`` times noise, whose part
    in the directions of the steps is multiplied by ``slope``."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((count, 2, 3))
    Z[:, 1] += rng.choice([0.0, 0.9, 0.99, -0.99], (count, 1)) * Z[:, 0]
    Y = Z @ Z.swapaxes(1, 2)
    null = [((Z[:, 0] + sign * Z[:, 1]) ** 2).sum(axis=1) for sign in (1, -1)]
    diagonal = np.exp(rng.uniform(-3.0, 3.0, (count, 2)))
    P = diagonal[:, :, None] * Y + linear * rng.standard_normal((count, 2, 2))
    P[:, 0, 1] *= slope
    P[:, 1, 0] *= slope
    return np.stack([*P.reshape(-1, 4).T, Y[:, 0, 0], Y[:, 0, 1], Y[:, 1, 1], *null, *diagonal.T])


def by_lanes(numbers, opposite, theta):
    """first, second, decrease and solved of every problem."""
    found = []
    for start in range(0, numbers.shape[1], LANES):
        lane = np.zeros(lanes.SIZE)
        for field, row in zip(FIELDS, numbers[:, start : start + LANES], strict=True):
            lane[field : field + len(row)] = row
        (solve_boosts if opposite else solve_turns)(lane, theta)
        outcome = [lanes.FIRST, lanes.SECOND, lanes.DECREASE, lanes.SOLVED]
        found.append([lane[field : field + LANES] for field in outcome])
    return np.concatenate(found, axis=1)[:, : numbers.shape[1]]


def one_by_one(numbers, opposite, theta):
    """V21, V22, decrease and unbounded of every problem."""
    found = []
    for p11, p12, p21, p22, y11, y12, y22, plus, minus, l1, l2 in numbers.T:
        step = kronecker_step(
            (p11, p12, p21, p22),
            (y11, y12, y22, plus, minus),
            (l1, 0.0, l2),
            theta,
            opposite,
            False,
        )
        found.append(step[2:])
    return np.array(found).T


def value(numbers, V):
    """The surrogate <V - I, P> + 1/2 ||V - I||_Q^2 of each V (count, 2, 2), and its rounding."""
    P, Y = numbers[:4].T.reshape(-1, 2, 2), numbers[[4, 5, 5, 6]].T.reshape(-1, 2, 2)
    A = numbers[9:].T[:, :, None] * np.eye(2)
    E = V - np.eye(2)
    first, second = E * P, (A @ E @ Y) * E / 2
    return (first + second).sum(axis=(1, 2)), UNIT * (np.abs(first) + np.abs(second)).sum((1, 2))


def candidates(opposite):
    """A grid over the component of I."""
    if opposite:
        mu = np.linspace(-12.0, 12.0, 4001)
        cos, sin = np.cosh(mu), np.sinh(mu)
        return np.stack([cos, sin, sin, cos], axis=1).reshape(-1, 2, 2)
    angle = np.linspace(-np.pi, np.pi, 4001)
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([cos, -sin, sin, cos], axis=1).reshape(-1, 2, 2)


@pytest.mark.parametrize("opposite", [True, False])
@pytest.mark.parametrize("theta", [-1e-12, 0.3])
@pytest.mark.parametrize("linear", [1e-3, 1.0, 30.0])
def test_solved_lanes_are_global_minima(opposite, theta, linear):
    numbers = problems(2000, seed=1, linear=linear)
    first, second, decrease, solved = by_lanes(numbers, opposite, theta)
    sine, _, expected, unbounded = one_by_one(numbers, opposite, theta)
    assert not unbounded.any()
    solved = solved == 1.0
    assert solved.sum() > 300
    # the curvature at a minimum may be small: compare values, then V where the minimum is definite
    size = np.abs(numbers[:4]).max(axis=0) + np.abs(numbers[9:]).max(axis=0) * numbers[4:7].max(0)
    size = size * (1 + sine**2)
    close = np.abs(decrease - expected) <= 1e3 * UNIT * size
    assert close[solved].all()
    odd = 0.5 * (first - second) if opposite else second
    even = 1.0 + (0.5 * (first + second) if opposite else first)
    definite = solved & (expected > 1e-4 * size * sine**2)
    assert definite.sum() > 200
    assert (np.abs(odd - sine) <= 1e9 * UNIT * np.abs(sine))[definite].all()
    norm = even**2 - odd**2 if opposite else even**2 + odd**2
    assert (np.abs(norm - 1.0) <= 64 * UNIT * even**2 + 64 * UNIT)[solved].all()


@pytest.mark.parametrize("opposite", [True, False])
def test_nothing_on_a_grid_is_lower(opposite):
    """The surrogate itself, over the whole component of I."""
    numbers = problems(400, seed=2, linear=10.0)
    _, _, decrease, solved = by_lanes(numbers, opposite, 0.0)
    grid = candidates(opposite)
    for at in np.flatnonzero(solved):
        values, rounding = value(np.repeat(numbers[:, at : at + 1], len(grid), axis=1), grid)
        assert (values >= -decrease[at] - 64 * rounding - 1e-13).all()


@pytest.mark.parametrize("opposite", [True, False])
@pytest.mark.parametrize("slope", [1e-3, 1e-9])
def test_short_steps_keep_their_digits(opposite, slope):
    """Close to a minimum every lane is solved, to rounding: against Newton's method in mpmath."""
    numbers = problems(64, seed=3)
    rng = np.random.default_rng(4)
    smallest = (
        0.1
        * numbers[9:].min(axis=0)
        * np.linalg.eigvalsh(numbers[[4, 5, 5, 6]].T.reshape(-1, 2, 2))[:, 0]
    )  # of Q
    numbers[:4] = smallest * rng.uniform(-1.0, 1.0, (4, 64))
    target = slope * smallest * rng.choice([-1.0, 1.0], 64)
    numbers[1] = target - numbers[2] if opposite else numbers[2] - target
    first, second, _, solved = by_lanes(numbers, opposite, 0.0)
    assert solved.all()
    for at, found in enumerate(first if opposite else second):
        with mp.workdps(50):
            exact = exact_step([mp.mpf(x) for x in numbers[:, at].tolist()], opposite)
        # P12 + P21, or P21 - P12, is rounded to 1 / slope of itself
        assert abs(found / exact - 1) < 100 * UNIT / slope


def exact_step(numbers, opposite):
    """w = u - 1, or the sine: a root of the derivative of the surrogate, near 0."""
    p11, p12, p21, p22, y11, y12, y22, plus, minus, l1, l2 = numbers
    if opposite:
        out, into = (l1 + l2) * plus / 8, (l1 + l2) * minus / 8
        cross = (y11 - y22) * (l1 - l2) / 4
        tilt = (p11 + p22 + p12 + p21) / 2 - cross
        A, B = tilt - 2 * out, tilt - p12 - p21 - 2 * into
        u = mp.findroot(lambda u: 2 * out * u**4 + A * u**3 - B * u - 2 * into, mp.mpf(1))
        return float(u - 1)
    i, r, ir = p11 + p22, p21 - p12, y12 * (l2 - l1)
    ii, rr = y11 * l1 + y22 * l2, y11 * l2 + y22 * l1

    def slope(angle):
        x, y = mp.cos(angle), mp.sin(angle)
        return r * x - i * y + (1 - x) * y * ii - ir * (y * y + (1 - x) * x) + x * y * rr

    return float(mp.sin(mp.findroot(slope, mp.mpf(0))))


@pytest.mark.parametrize("scale", [1e-290, 1e-150, 1e150, 1e290])
@pytest.mark.parametrize("opposite", [True, False])
def test_scales(opposite, scale):
    """Where squares overflow or vanish a lane may be left unsolved, but not be wrong."""
    numbers = problems(400, seed=5)
    scaled = numbers.copy()
    scaled[:4] *= scale
    scaled[9:] *= scale
    plain, found = by_lanes(numbers, opposite, -1e-12), by_lanes(scaled, opposite, -1e-12)
    both = (plain[3] == 1.0) & (found[3] == 1.0)
    assert ((found[3] == 1.0) <= (plain[3] == 1.0)).all()
    np.testing.assert_allclose(found[1][both], plain[1][both], rtol=1e-7, atol=1e-12)


def test_bad_lanes_are_not_solved():
    """NaN, infinity, no curvature, negative curvature; the other lanes do not mind."""
    numbers = problems(8, seed=6, slope=1e-3, linear=1e-3)
    numbers[0, 0], numbers[4, 1], numbers[1, 2] = np.nan, np.inf, np.inf
    numbers[:, 3], numbers[9:, 4] = 0.0, -1.0
    for opposite in (True, False):
        solved = by_lanes(numbers, opposite, 0.0)[3]
        assert not solved[:4].any()
        assert not opposite or not solved[4]
        alone = by_lanes(numbers[:, 5:], opposite, 0.0)
        np.testing.assert_array_equal(by_lanes(numbers, opposite, 0.0)[:, 5:], alone)
