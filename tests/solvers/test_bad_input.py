"""Bad input to objectives, solvers and minimize: the error names the argument, what it got and what it expects."""

import numpy as np
import pytest
import scipy.sparse

import jorth
from jorth import GaussSeidel, Jacobi, Signature
from tests.solvers.registry import case


def minimize(**options):
    this = case("procrustes noisy")
    return jorth.minimize(this.objective, **({"signature": this.signature} | options))


SIG = Signature(2, 1)
EYE = np.eye(3)
QUADRATIC = jorth.Quadratic(EYE)
BAD = {
    "no signature": (lambda: jorth.minimize(QUADRATIC), ValueError, "signature must be given"),
    "not a signature": (lambda: jorth.minimize(QUADRATIC, signature=(2, 1)), TypeError, "signature must be a jorth.Signature"),
    "size": (lambda: jorth.minimize(QUADRATIC, signature=Signature(2, 2)), ValueError, r"signature must have 3 signs \(p \+ q = 3\) for this Quadratic, got Signature\(2, 2\)"),
    "infeasible": (lambda: jorth.minimize(QUADRATIC, np.ones((3, 3)), signature=SIG), ValueError, r"x0 must be J-orthogonal for Signature\(2, 1\), got a scaled residual of .* jorth.polish"),
    "x0 NaN": (lambda: jorth.minimize(QUADRATIC, np.full((3, 3), np.nan), signature=SIG), ValueError, "x0 must be finite"),
    "x0 shape": (lambda: jorth.minimize(QUADRATIC, np.eye(4), signature=SIG), ValueError, r"x0 must have shape \(3, k\)"),
    "dtype mix": (lambda: jorth.minimize(QUADRATIC, np.eye(3, dtype=np.float32), signature=SIG), TypeError, "x0 must have the dtype and device of the objective's data"),
    "not callable": (lambda: jorth.minimize(3.0, signature=SIG), TypeError, "objective must be a jorth objective or a function"),
    "not scalar": (lambda: jorth.minimize(lambda X: X, signature=SIG), ValueError, r"objective must return a scalar tensor, got shape \(3, 3\)"),
    "no tensor": (lambda: jorth.minimize(lambda X: 1.0, signature=SIG), TypeError, "objective must return a scalar tensor, got "),
    "no gradient": (lambda: jorth.minimize(lambda X: X.detach().sum(), signature=SIG), ValueError, "objective must return a tensor that depends on X"),
    "method": (lambda: jorth.minimize(QUADRATIC, signature=SIG, method="newton"), ValueError, "method must be one of auto, gs-jobcd, j-jobcd, .*, umcm, .*, riemannian-lbfgs, riemannian-newton, or a solver, got 'newton'"),
    "option": (lambda: jorth.minimize(QUADRATIC, signature=SIG, method="gs-jobcd", sweep=1), TypeError, "gs-jobcd has no option 'sweep'"),
    "option without a method": (lambda: jorth.minimize(QUADRATIC, signature=SIG, side="right"), TypeError, "option 'side' needs a method: method=\"auto\" has no options"),
    "option beside an instance": (lambda: jorth.minimize(QUADRATIC, signature=SIG, method=Jacobi(), theta=1.0), TypeError, "options must be given to the solver itself"),
    "order": (lambda: GaussSeidel(order="best"), ValueError, 'order must be one of "sweep"'),
    "accelerated order": (lambda: GaussSeidel(order="cyclic", accelerate=True), ValueError, "accelerate must be False for other than left sweeps"),
    "accelerated side": (lambda: Jacobi(side="both", accelerate=True), ValueError, "accelerate must be False for other than left tournaments"),
    "accelerated samples": (lambda: jorth.VarianceReduced(accelerate=True), ValueError, "accelerate must be False for vr-j-jobcd"),
    "theta": (lambda: GaussSeidel(theta=-1.0), ValueError, "theta must be None"),
    "curvature": (lambda: Jacobi(curvature=0.0), ValueError, 'curvature must be "auto" or a positive number, got 0.0'),
    "rounds": (lambda: Jacobi(rounds_per_gradient=0), ValueError, "rounds_per_gradient must be None or at least 1"),
    "on_unbounded": (lambda: jorth.minimize(QUADRATIC, signature=SIG, on_unbounded="raise"), ValueError, "on_unbounded must be one of"),
    "vr without samples": (lambda: jorth.minimize(QUADRATIC, signature=SIG, method="vr-j-jobcd"), ValueError, "needs a finite sum"),
    "vr batch": (lambda: minimize(method="vr-j-jobcd", batch=1000), ValueError, "batch must be at most the number of samples 20, got 1000"),
    "vr probability": (lambda: jorth.VarianceReduced(probability=0.0), ValueError, "probability must be None or in"),
    "lbfgs memory": (lambda: jorth.RiemannianLBFGS(memory=0), ValueError, "memory must be None or at least 1, got 0"),
    "lbfgs preconditioner": (lambda: jorth.RiemannianLBFGS(preconditioner="best"), ValueError, 'preconditioner must be one of "auto"'),
    "empty data": (lambda: jorth.FiniteSum(lambda X, b: X.sum(), np.zeros((0, 3))), ValueError, "data must hold the same number of samples, at least 1"),
    "uneven data": (lambda: jorth.FiniteSum(lambda X, b: X.sum(), (np.zeros(2), np.zeros(3))), ValueError, "data must hold the same number of samples"),
    "procrustes rows": (lambda: jorth.Procrustes(np.eye(3), np.eye(4)), ValueError, r"target must have shape \(3, k\) to go with source"),
    "procrustes empty": (lambda: jorth.Procrustes(np.zeros((0, 3)), np.zeros((0, 3))), ValueError, "source must have shape .* m at least 1"),
    "procrustes NaN": (lambda: jorth.Procrustes(np.full((4, 3), np.nan), np.zeros((4, 3))), ValueError, "source must be finite"),
    "procrustes one NaN": (lambda: jorth.Procrustes(np.diag([np.nan, 1.0, 1.0]), np.zeros((3, 3))), ValueError, "source must be finite, got 1 NaN or infinite of 9 entries"),
    "procrustes sparse inf": (lambda: jorth.Procrustes(scipy.sparse.diags_array([1.0, np.inf, 1.0]), np.zeros((3, 3))), ValueError, "source must be finite, got 1 NaN or infinite of 3 entries"),
    "quadratic asymmetric": (lambda: jorth.Quadratic(np.triu(np.ones((3, 3)))), ValueError, "A must be symmetric, got"),
    "quadratic C of a number": (lambda: jorth.Quadratic(np.eye(3), np.array(1.0)), ValueError, r"C must have shape \(3, k\) to go with A"),
    "quadratic C": (lambda: jorth.Quadratic(np.eye(3), np.eye(4)), ValueError, r"C must have shape \(3, k\) to go with A"),
    "objective gradient": (lambda: jorth.minimize(jorth.Objective(lambda X: 0.0, lambda X: X[:2]), signature=SIG), ValueError, r"gradient must return shape \(3, 3\), got \(2, 3\)"),
    "objective value": (lambda: jorth.minimize(jorth.Objective(lambda X: X, lambda X: X), signature=SIG), ValueError, r"value must return a number, got shape \(3, 3\)"),
    "objective parts": (lambda: jorth.Objective(1.0, lambda X: X), TypeError, "value must be a function of X, got "),
    "procrustes, components": (lambda: jorth.procrustes(EYE, EYE, SIG, components="identity"), ValueError, 'components must be one of "all", "start", got'),
    "procrustes, signature": (lambda: jorth.procrustes(EYE, EYE, (2, 1)), TypeError, "signature must be a jorth.Signature, got "),
    "procrustes, source": (lambda: jorth.procrustes(np.eye(4), np.eye(4), SIG), ValueError, r"signature must have one sign per column of source, got Signature\(2, 1\) \(p \+ q = 3\) and a source of shape \(4, 4\)"),
    "procrustes, target rows": (lambda: jorth.procrustes(EYE, np.eye(4), SIG), ValueError, r"target must have shape \(3, k\) to go with source"),
    "procrustes, target columns": (lambda: jorth.procrustes(EYE, np.ones((3, 4)), SIG), ValueError, r"target must have shape \(m, k\) with k at most 3, got a float64 array of shape \(3, 4\)"),
    "procrustes, target NaN": (lambda: jorth.procrustes(EYE, EYE * np.nan, SIG), ValueError, "target must be finite"),
    "procrustes, source bool": (lambda: jorth.procrustes(EYE > 0, EYE, SIG), TypeError, "source must hold real numbers"),
    "procrustes, x0": (lambda: jorth.procrustes(EYE, EYE, SIG, x0=np.ones((3, 3))), ValueError, "x0 must be J-orthogonal"),
    "procrustes, option": (lambda: jorth.procrustes(EYE, EYE, SIG, sweeps=3), TypeError, "minimize has no argument 'sweeps'"),
    "procrustes, tolerance": (lambda: jorth.procrustes(EYE, EYE, SIG, gradient_tolerance=-1.0), ValueError, "gradient_tolerance must be a number of at least 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()
