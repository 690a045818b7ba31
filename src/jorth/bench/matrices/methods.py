"""The methods of a benchmark: their names in the tables, and what `minimize` takes."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

from jorth.bench.matrices.paper import PAPER_METHODS
from jorth.solvers import CSDM, AbstractSolver, GaussSeidel, Jacobi

Method = Any  # what `minimize` takes as method: a name or a solver, or `minimize_in_turn` as a list

_METHODS: dict[str, Method] = {
    "UMCM": "umcm",
    "ADMM": "admm",
    "CSDM": "csdm",
    "GS-JOBCD": GaussSeidel(),
    "J-JOBCD": Jacobi(),
    "CSDM+GS-JOBCD": [("csdm", {}), (GaussSeidel(), {})],
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
    if name not in _METHODS:
        return own_solver(name)
    if name == "CSDM" and problem in ("race", "probe"):
        return PAPER_CSDM
    if problem != "race" or name not in THETA_METHODS:
        return _METHODS[name]
    weight = (1.0 if theta is None else theta) * curvature
    sweeps = GaussSeidel(theta=weight)
    if name == "GS-JOBCD":
        return sweeps
    if name == "CSDM+GS-JOBCD":
        return [(PAPER_CSDM, {}), (sweeps, {})]
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
    if is_own(name):
        own_solver(name)
        return name
    known = ", ".join(METHOD_NAMES)
    raise ValueError(f"solver must be one of {known}, or module:Class; got {name!r}")


def is_own(name: str) -> bool:
    """Whether a name stands for a solver of the user's, as module:Class."""
    return ":" in name


def own_solver(name: str) -> AbstractSolver:
    """A solver of the user's: the attribute of a module, a class or an instance."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
        solver = found() if isinstance(found, type) else found
    except Exception as error:  # what is in a module of the user's may raise anything
        raise ValueError(f"solver {name} cannot be loaded ({error})") from error
    if not isinstance(solver, AbstractSolver):
        got = type(solver).__name__
        raise ValueError(f"solver {name} must be a jorth.solvers.AbstractSolver, got {got}")
    return solver


def in_order(names: Collection[str]) -> list[str]:
    """Names of methods in the order of the tables; solvers of the user's come last."""
    own = sorted(str(name) for name in names if name not in _METHODS)
    return [*(name for name in METHOD_NAMES if name in names), *own]
