"""Bad input: the error names the argument, what it got and what it expects."""

import numpy as np
import pytest

import jorth
from jorth import Signature
from jorth.plane import solve_plane

SIG = Signature(2, 1)
P, Q, SIGNS = np.zeros((3, 2, 2)), np.stack([np.eye(4)] * 3), np.ones((3, 2))
SKEWED = Q + np.triu(np.ones((4, 4)), 1)
NAN = np.full((3, 2, 2), np.nan)

CASES = {
    # group: p + q different from n, shapes, dtypes, NaN
    "inverse, n differs": (lambda: jorth.inverse(np.eye(4), SIG), ValueError, r"X must have shape \(..., 3, 3\) for Signature\(2, 1\) \(p \+ q = 3\), got a float64 array of shape \(4, 4\)"),
    "inverse, complex": (lambda: jorth.inverse(np.eye(3, dtype=complex), SIG), TypeError, "X must hold real numbers, got a complex128 array"),
    "inverse, a list": (lambda: jorth.inverse([[1.0]], SIG), ValueError, r"X must have shape .*, got list of length 1"),
    "inverse, no signature": (lambda: jorth.inverse(np.eye(3), (2, 1)), TypeError, "signature must be a jorth.Signature, got "),
    "residual, rows differ": (lambda: jorth.residual(np.ones((4, 2)), SIG), ValueError, r"X must have shape \(..., 3, k\)"),
    "residual, gram shape": (lambda: jorth.residual(np.ones((3, 2)), SIG, gram=np.eye(3)), ValueError, r"gram must have shape \(..., 2, 2\), got"),
    "component, NaN": (lambda: jorth.component(np.full((3, 3), np.nan), SIG), ValueError, "X must be finite, got 9 NaN or infinite of 9 entries"),
    "component, singular": (lambda: jorth.component(np.zeros((3, 3)), SIG), ValueError, "X must be J-orthogonal, got a singular diagonal block"),
    "exchange, singular": (lambda: jorth.exchange(np.zeros((3, 3)), SIG), ValueError, "X has no exchange: a singular diagonal block"),
    "random_point, cond below 1": (lambda: jorth.random_point(SIG, cond=0.5), ValueError, "cond must be a finite number of at least 1, got 0.5"),
    "random_point, component": (lambda: jorth.random_point(SIG, component=(1, 0)), ValueError, r"component must be two signs \+1 or -1, got \(1, 0\)"),
    "random_point, empty block": (lambda: jorth.random_point(Signature(3, 0), component=(1, -1)), ValueError, r"component must have \+1 for the empty block, got \(1, -1\)"),
    "random_point, columns": (lambda: jorth.random_point(SIG, columns=(3, 0)), ValueError, r"columns must be \(r, c\) with r <= p = 2, .* got \(3, 0\)"),
    "random_point, integers": (lambda: jorth.random_point(SIG, dtype=np.int64), TypeError, "dtype must be float64 or float32"),
    "random_point, batch": (lambda: jorth.random_point(SIG, batch=3), TypeError, "batch must be a tuple of sizes, got 3"),
    "random_point, no seed": (lambda: jorth.random_point(SIG, seed=None), TypeError, "seed must be an integer of at least 0 or a NumPy generator, got None"),
    "random_point, overflow": (lambda: jorth.random_point(SIG, cond=1e80, dtype=np.float32), ValueError, "cond must be small enough for torch.float32"),
    "exp, overflow": (lambda: jorth.exp(800 * np.array([[0, 1.0], [1, 0]]), Signature(1, 1)), ValueError, "K must be small enough"),
    "cs_decomposition, not feasible": (lambda: jorth.cs_decomposition(np.arange(9.0).reshape(3, 3), SIG), ValueError, r"X must be J-orthogonal for Signature\(2, 1\), got a scaled residual of"),
    "signs of a number": (lambda: Signature.of(5), TypeError, r"signs must be a sequence of \+1 and -1, got int"),
    "lorentz, a fraction": (lambda: Signature.lorentz(2.5), TypeError, "n must be an integer, got float"),
    # solve_plane
    "P shape": (lambda: solve_plane(np.zeros((3, 2)), Q, SIGNS), ValueError, r"P must have shape \(..., 2, 2\), got a float64 array of shape \(3, 2\)"),
    "P NaN": (lambda: solve_plane(NAN, Q, SIGNS), ValueError, "P must be finite, got 12 NaN or infinite of 12 entries"),
    "Q shape": (lambda: solve_plane(P, np.zeros((3, 3, 3)), SIGNS), ValueError, r"Q must be a number or have shape \(3,\) or \(3, 4, 4\), got a float64 array of shape \(3, 3, 3\)"),
    "Q asymmetric": (lambda: solve_plane(P, SKEWED, SIGNS), ValueError, r"Q must be symmetric, got max \|Q - Q\^T\| = 1"),
    "Q slightly asymmetric": (lambda: solve_plane(P, Q + 1e-10 * np.triu(np.ones((4, 4)), 1), SIGNS), ValueError, "Q must be symmetric"),
    "Q dtype": (lambda: solve_plane(P, Q.astype(np.float32), SIGNS), TypeError, r"Q must have the dtype and device of P \(torch.float64, cpu\), got \(torch.float32, cpu\)"),
    "Q a string": (lambda: solve_plane(P, "large", SIGNS), TypeError, "Q must be a number or an array, got "),
    "signs shape": (lambda: solve_plane(P, Q, np.ones(3)), ValueError, r"signs must be \+1 or -1 of shape \(3, 2\), got"),
    "theta shape": (lambda: solve_plane(P, Q, SIGNS, theta=np.ones(2)), ValueError, r"theta must be a number or have shape \(3,\), got"),
    "theta NaN": (lambda: solve_plane(P, Q, SIGNS, theta=float("nan")), ValueError, "theta must be finite"),
    "components": (lambda: solve_plane(P, Q, SIGNS, components="some"), ValueError, "components must be one of \"all\", \"identity\", got 'some'"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call()
