"""The methods of a benchmark: their names in the tables, and what `minimize` takes."""

from __future__ import annotations

from typing import Any

from jorth.bench.matrices.paper import PAPER_METHODS
from jorth.solvers import CSDM, GaussSeidel, Jacobi

Method = Any  # what `minimize` takes as method: a name, a solver, or a list of these

_METHODS: dict[str, Method] = {
    "UMCM": "umcm",
    "ADMM": "admm",
    "CSDM": "csdm",
    "GS-JOBCD": GaussSeidel(),
    "J-JOBCD": Jacobi(),
    "CSDM+GS-JOBCD": ["csdm", GaussSeidel()],
    "GS-JOBCD right": GaussSeidel(side="right"),
    "J-JOBCD right": Jacobi(side="right"),
    "VR-J-JOBCD": "vr-j-jobcd",
    "accelerated GS-JOBCD": "accelerated-gs-jobcd",
    "accelerated J-JOBCD": "accelerated-j-jobcd",
    "CSDM L-BFGS": CSDM(optimizer="lbfgs"),
    "exponential": "exponential",
    "Riemannian SD": "riemannian-sd",
    "Riemannian CG": "riemannian-cg",
    "Riemannian L-BFGS": "riemannian-lbfgs",
    "Riemannian Newton": "riemannian-newton",
    "auto": "auto",
}
METHOD_NAMES = tuple(_METHODS)  # all methods in the order of the tables
_ACCELERATED = ("accelerated GS-JOBCD", "accelerated J-JOBCD")
_RIEMANNIAN = ("Riemannian SD", "Riemannian CG", "Riemannian L-BFGS", "Riemannian Newton")
METHODS_OF_PROBLEM = {
    "race": PAPER_METHODS,
    "trace": (*PAPER_METHODS, "GS-JOBCD right", "J-JOBCD right", "Riemannian L-BFGS"),
    "procrustes": (
        *PAPER_METHODS,
        "VR-J-JOBCD",
        *_ACCELERATED,
        "exponential",
        *_RIEMANNIAN,
        "auto",
    ),
    "probe": (*PAPER_METHODS[:5], "VR-J-JOBCD", "CSDM L-BFGS", "Riemannian L-BFGS"),
}
THETA_METHODS = ("GS-JOBCD", "J-JOBCD", "CSDM+GS-JOBCD")
"""The methods whose steps in the race are bounded by theta."""
PAPER_CSDM = CSDM(optimizer="adam")
"""CSDM with Adam, as in the paper; elsewhere L-BFGS is the default and needs fewer gradients."""
TINY_CURVATURE = 1e-9
"""A curvature, relative to that of f, so small that theta alone bounds the steps of Jacobi."""


def method_of(
    name: str, problem: str, theta: float | None = None, curvature: float = 1.0
) -> Method:
    """The argument ``method`` of `minimize`.

    In the race -tr(X^T D^T D X) is concave, so its linear part majorises it and theta alone, here
    in units of ``curvature``, bounds the steps of the JOBCD methods. On the paper's problems CSDM
    is the paper's version.
    """
    if name == "CSDM" and problem in ("race", "probe"):
        return PAPER_CSDM
    if problem != "race" or name not in THETA_METHODS:
        return _METHODS[name]
    weight = (1.0 if theta is None else theta) * curvature
    sweeps = GaussSeidel(theta=weight)
    if name == "GS-JOBCD":
        return sweeps
    if name == "CSDM+GS-JOBCD":
        return [PAPER_CSDM, sweeps]
    return Jacobi(
        majoriser="scalar",
        rounds_per_gradient=1,
        curvature=TINY_CURVATURE * curvature,
        theta=weight,
    )


def table_name(name: str) -> str:
    """The name in the tables for a name of `minimize` or of the tables, in any case."""
    for known, method in _METHODS.items():
        if name.lower() in (known.lower(), method):
            return known
    raise ValueError(f"solver must be one of {', '.join(METHOD_NAMES)}; got {name!r}")
