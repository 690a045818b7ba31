"""The algorithms of the paper exactly as printed, by name.

GS-JOBCD (Algorithm 1) draws one pair of rows in each step, uniformly and with replacement; J-JOBCD
and VR-J-JOBCD (Algorithm 2) draw one matching, with one gradient or its estimate by PAGE. The page
"The paper's algorithms" has the formulas, and says how the defaults differ and why.
"""

from __future__ import annotations

from typing import Any, Literal

from jorth._inputs import check_choice, check_theta, positive_number
from jorth.solvers.jobcd.gauss_seidel import GaussSeidel
from jorth.solvers.jobcd.jacobi import Jacobi
from jorth.solvers.jobcd.variance_reduced import VarianceReduced


def as_printed(
    method: Literal["gs-jobcd", "j-jobcd", "vr-j-jobcd"],
    *,
    theta: float = 1e-5,
    Q: Literal["exact", "scalar"] | None = None,
    sigma: float | None = None,
) -> GaussSeidel | Jacobi | VarianceReduced:
    """Return a solver for ``minimize(method=...)`` that is an algorithm exactly as printed.

    An iteration of GS-JOBCD is n (n - 1) / 2 steps, one of J- and VR-J-JOBCD is one step. Nothing
    is adapted, and f may rise if Q is too small. Where f is concave, as in the paper's eigenvalue
    problem, ``on_unbounded="continue"`` takes H = 0 as its majorant, which is linear.

    Args:
        method: "gs-jobcd", "j-jobcd" or "vr-j-jobcd".
        theta: The proximal weight, an absolute number.
        Q: "exact" is Q_, with the Hessian H of a quadratic f in GS-JOBCD, and H = sigma I
            otherwise, which is the only one that all pairs of a matching can share. "scalar" is
            Q = sigma I. None is the printed default, "exact" for GS-JOBCD and "scalar" for others.
        sigma: The paper's sigma, an absolute number; needed unless f is quadratic and Q exact.

    >>> sig = jorth.Signature(2, 1)
    >>> f, solver = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.as_printed("gs-jobcd")
    >>> result = jorth.minimize(f, jorth.random_point(sig), signature=sig, method=solver)
    >>> round(result.value, 4)
    3.0
    """
    check_choice(method, "method", ("gs-jobcd", "j-jobcd", "vr-j-jobcd"))
    check_theta(theta)
    if Q is not None:
        check_choice(Q, "Q", ("exact", "scalar"))
    scalar = method != "gs-jobcd" if Q is None else Q == "scalar"
    if sigma is not None:
        positive_number(sigma, "sigma")
    elif scalar or method != "gs-jobcd":
        raise ValueError(f"sigma must be a number for {method} with this Q, got None")
    options: dict[str, Any] = dict(
        components="all",
        theta=theta,
        curvature="auto" if sigma is None else sigma,
        majoriser="scalar" if scalar else "rows",
    )
    if method == "gs-jobcd":
        return GaussSeidel(order="random", **options)
    options |= dict(rounds_per_gradient=1, side="left")
    if method == "j-jobcd":
        return Jacobi(**options)
    return VarianceReduced(safety=1.0, **options)
