"""Every solver and every problem, with known optima: the tests cross them."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
import torch

import jorth
from jorth import GaussSeidel, Jacobi, Signature
from tests.planted import near_identity, near_procrustes

SOLVERS = {
    "gs sweep": GaussSeidel(),
    "gs random": GaussSeidel(order="random"),
    "gs cyclic": GaussSeidel(order="cyclic"),
    "gs right": GaussSeidel(side="right"),
    "gs theta": GaussSeidel(theta=1e-3),
    "j tournament": Jacobi(),
    "j right": Jacobi(side="right"),
    "j random": Jacobi(rounds_per_gradient=1),
    "accelerated gs": GaussSeidel(accelerate=True),
    "accelerated j": Jacobi(accelerate=True),
    "umcm": jorth.UMCM(),
    "admm": jorth.ADMM(),
    "csdm": jorth.CSDM(),
    "exponential": jorth.Exponential(),
    "exponential adam": jorth.Exponential(optimizer="adam"),
    "sd": jorth.RiemannianSD(),
    "cg": jorth.RiemannianCG(),
    "lbfgs": jorth.RiemannianLBFGS(),
    "newton": jorth.RiemannianNewton(),
    "vr": jorth.VarianceReduced(),
    "vr right": jorth.VarianceReduced(side="right"),
}


@dataclass
class Case:
    """An objective with its optimal value; gaps are relative to f(start) - optimum."""

    objective: Any
    signature: Signature
    optimum: float
    x0: Any = None
    finite_sum: bool = False
    dear: bool = False
    tolerance: float = 1e-9
    options: dict = field(default_factory=dict)


def _trace(n=8, p=5):
    sig = Signature(p, n - p)
    M = np.random.default_rng(3).standard_normal((n, n))
    A = M @ M.T / n + 0.2 * np.eye(n)
    eigenvalues = 1 / scipy.linalg.eigh(np.diag(sig.signs.astype(float)), A, eigvals_only=True)
    return A, sig, float(np.abs(eigenvalues).sum())


def _data(noise=0.0, n=6, p=3, signs=None, m=20):
    sig = Signature(p, n - p) if signs is None else Signature.of(signs)
    source, target, _ = near_procrustes(m, sig, source_condition=3.0, noise=noise, seed=1)
    return source, target, sig


def _noisy_optimum(source, target, sig):
    """The best polished value over methods: all must agree on it."""
    objective = jorth.Procrustes(source, target)
    options = dict(signature=sig, gradient_tolerance=1e-11, max_time=20)
    methods = (GaussSeidel(), GaussSeidel(side="right"), Jacobi())
    values = [jorth.minimize(objective, method=m, **options).value for m in methods]
    assert max(values) - min(values) <= 1e-12
    return min(values)


def _mean_loss(X, batch):
    source, target = batch
    return (source @ X - target).square().sum() / (2 * len(source))


@cache
def case(name):
    if name.startswith("procrustes"):
        signs = [1, -1, -1, 1, 1, -1, 1] if "unsorted" in name else None
        source, target, sig = _data(noise=0.1 if "noisy" in name else 0.0, signs=signs)
        optimum = _noisy_optimum(source, target, sig) if "noisy" in name else 0.0
        return Case(jorth.Procrustes(source, target), sig, optimum, finite_sum=True)
    if name == "trace":
        A, sig, optimum = _trace()
        return Case(jorth.Quadratic(2 * A), sig, optimum)
    if name == "general quadratic":
        rng = np.random.default_rng(4)
        M, N = rng.standard_normal((2, 6, 6))
        sig = Signature(4, 2)
        A, D = M @ M.T + np.eye(6), N @ N.T + np.eye(6)
        planted = near_identity(sig, cond=4.0, seed=2)
        # f = 1/2 ||A^(1/2) (X - X*) D^(1/2)||^2: zero at X*, up to the constant
        C = -A @ planted @ D
        constant = 0.5 * np.trace(planted.T @ A @ planted @ D)
        return Case(jorth.Quadratic(A, C, D), sig, -constant)
    source, target, sig = _data()
    if name == "finite sum":
        objective = jorth.FiniteSum(_mean_loss, tuple(map(torch.from_numpy, (source, target))))
        return Case(objective, sig, 0.0, finite_sum=True, dear=True)
    if name == "autograd":
        S, T = torch.from_numpy(source), torch.from_numpy(target)
        return Case(lambda X: _mean_loss(X, (S, T)), sig, 0.0, dear=True)
    if name == "numpy":
        m = len(source)
        objective = jorth.Objective(
            value=lambda X: 0.5 * np.linalg.norm(source @ X - target) ** 2 / m,
            gradient=lambda X: source.T @ (source @ X - target) / m,
        )
        return Case(objective, sig, 0.0, dear=True)
    raise KeyError(name)


PROBLEMS = [
    *("procrustes", "procrustes unsorted", "procrustes noisy", "trace", "general quadratic"),
    *("finite sum", "autograd", "numpy"),
]
