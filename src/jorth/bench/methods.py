"""The methods of a benchmark by the names of its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jorth.solvers import CSDM, GaussSeidel, Jacobi

Method = Any
"""What `minimize` takes as method: a name, a solver, or a list of these."""

PAPER = ("UMCM", "ADMM", "CSDM", "GS-JOBCD", "J-JOBCD", "CSDM+GS-JOBCD")
"""The columns of the paper's Table 1, in its order."""
RACE = PAPER
TRACE = (*PAPER, "GS-JOBCD right", "J-JOBCD right", "Riemannian L-BFGS")
PROCRUSTES = (
    *PAPER,
    "VR-J-JOBCD",
    "exponential",
    "Riemannian SD",
    "Riemannian CG",
    "Riemannian L-BFGS",
)
PROBE = (
    "UMCM",
    "ADMM",
    "CSDM",
    "GS-JOBCD",
    "J-JOBCD",
    "VR-J-JOBCD",
    "CSDM L-BFGS",
    "Riemannian L-BFGS",
)
OF_PROBLEM = {"race": RACE, "trace": TRACE, "procrustes": PROCRUSTES, "probe": PROBE}
WITH_THETA = ("GS-JOBCD", "J-JOBCD", "CSDM+GS-JOBCD")
"""The methods whose steps in the race theta bounds."""

TINY = 1e-9
"""A curvature, relative to that of f, that leaves theta alone to bound the steps of Jacobi."""

_WELL_POSED: dict[str, Callable[[], Method]] = {
    "UMCM": lambda: "umcm",
    "ADMM": lambda: "admm",
    "CSDM": lambda: "csdm",
    "GS-JOBCD": GaussSeidel,
    "J-JOBCD": Jacobi,
    "CSDM+GS-JOBCD": lambda: ["csdm", GaussSeidel()],
    "GS-JOBCD right": lambda: GaussSeidel(side="right"),
    "J-JOBCD right": lambda: Jacobi(side="right"),
    "VR-J-JOBCD": lambda: "vr-j-jobcd",
    "CSDM L-BFGS": lambda: CSDM(optimizer="lbfgs"),
    "exponential": lambda: "exponential",
    "Riemannian SD": lambda: "riemannian-sd",
    "Riemannian CG": lambda: "riemannian-cg",
    "Riemannian L-BFGS": lambda: "riemannian-lbfgs",
}
NAMES = tuple(_WELL_POSED)


def method_of(
    name: str, problem: str, theta: float | None = None, curvature: float = 1.0
) -> Method:
    """What `minimize` is to be given.

    In the race -tr(X^T D^T D X) is concave: its linear part majorises it, and theta, here in units of ``curvature``,
    alone bounds the steps of the JOBCD methods. CSDM is the paper's where its problems are run.
    """
    if name == "CSDM" and problem in ("race", "probe"):
        return _papers_csdm()
    if problem != "race" or name not in WITH_THETA:
        return _WELL_POSED[name]()
    weight = (1.0 if theta is None else theta) * curvature
    sweeps = GaussSeidel(theta=weight)
    if name == "GS-JOBCD":
        return sweeps
    if name == "CSDM+GS-JOBCD":
        return [_papers_csdm(), sweeps]
    return Jacobi(
        majoriser="scalar", rounds_per_gradient=1, curvature=TINY * curvature, theta=weight
    )


def _papers_csdm() -> CSDM:
    """CSDM by Adam, as in the paper; L-BFGS, the default elsewhere, needs fewer gradients."""
    return CSDM(optimizer="adam")


def full_name(name: str) -> str:
    """The name of the tables for one in any case; a ValueError lists them."""
    for known in NAMES:
        if known.lower() == name.lower():
            return known
    raise ValueError(f"solver must be one of {', '.join(NAMES)}; got {name!r}")
