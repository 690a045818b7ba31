"""Bad input to objectives, solvers and minimize: the error names the argument, what it got and what it expects."""

import numpy as np
import pytest

import jorth
from jorth import GaussSeidel, Jacobi, Signature
from tests.solvers.registry import case


def minimize(**options):
    this = case("procrustes noisy")
    return jorth.minimize(this.objective, **({"signature": this.signature} | options))


SIG = Signature(2, 1)
EYE = np.eye(3)
QUADRATIC = jorth.Quadratic(EYE)
BATCH = jorth.Quadratic(np.stack([EYE] * 4), np.ones((4, 3, 3)))
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
    "no gradient": (lambda: jorth.minimize(lambda X: X.detach().sum(), signature=SIG), ValueError, "objective must return a tensor that depends on X"),
    "method": (lambda: jorth.minimize(QUADRATIC, signature=SIG, method="newton"), ValueError, "method must be one of auto, gs-jobcd, j-jobcd, .*, umcm, .*, riemannian-lbfgs, riemannian-newton, or a solver, got 'newton'"),
    "option": (lambda: jorth.minimize(QUADRATIC, signature=SIG, method="gs-jobcd", sweep=1), TypeError, "no option 'sweep'; it has"),
    "option without a method": (lambda: jorth.minimize(QUADRATIC, signature=SIG, side="right"), TypeError, "no option 'side'; give a method"),
    "option beside an instance": (lambda: jorth.minimize(QUADRATIC, signature=SIG, method=Jacobi(), theta=1.0), TypeError, "options must be given to the solver itself"),
    "order": (lambda: GaussSeidel(order="best"), ValueError, 'order must be one of "sweep"'),
    "theta": (lambda: GaussSeidel(theta=-1.0), ValueError, "theta must be None"),
    "curvature": (lambda: Jacobi(curvature=0.0), ValueError, 'curvature must be "auto" or a positive number, got 0.0'),
    "on_unbounded": (lambda: jorth.minimize(QUADRATIC, signature=SIG, on_unbounded="raise"), ValueError, "on_unbounded must be one of"),
    "max_iterations": (lambda: minimize(max_iterations=-1), ValueError, "max_iterations must be at least 0, got -1"),
    "max_iterations, not whole": (lambda: minimize(max_iterations=2.5), TypeError, "max_iterations must be an integer, got 2.5"),
    "max_time": (lambda: minimize(max_time=-1), ValueError, "max_time must be a number of at least 0, got -1"),
    "gradient_tolerance": (lambda: minimize(gradient_tolerance=np.nan), ValueError, "gradient_tolerance must be a number of at least 0"),
    "stop": (lambda: minimize(stop=lambda history: True), TypeError, "stop must be a criterion from jorth.stopping"),
    "stop, combined": (lambda: jorth.stopping.GradientNorm(1.0) | 3, TypeError, r"criterion on both sides of \|, got 3"),
    "seed": (lambda: minimize(seed=-1), TypeError, "seed must be an integer of at least 0"),
    "methods": (lambda: minimize(method=["gs-jobcd", "j-jobcd"]), ValueError, "method must be one of"),
    "option of auto": (lambda: minimize(method="auto", memory=3), TypeError, "no option 'memory'"),
    "batch, not symmetric": (lambda: jorth.Quadratic(np.triu(np.ones((4, 3, 3)))), ValueError, "A must be symmetric"),
    "batch, no signature": (lambda: jorth.minimize(BATCH), ValueError, "signature must be given"),
    "batch, size": (lambda: jorth.minimize(BATCH, signature=Signature(2, 2)), ValueError, r"signature must have 3 signs \(p \+ q = 3\) for this Quadratic"),
    "batch, method": (lambda: jorth.minimize(BATCH, signature=SIG, method="umcm"), ValueError, 'method must be "auto" or "riemannian-newton" for a batch'),
    "batch, callback": (lambda: jorth.minimize(BATCH, signature=SIG, callback=print), ValueError, "callback must be omitted for a batch"),
    "batch, number of starts": (lambda: jorth.minimize(BATCH, np.ones((5, 3, 3)), signature=SIG), ValueError, "x0 must have shape"),
    "batch, start": (lambda: jorth.minimize(BATCH, np.ones((3, 3)), signature=SIG), ValueError, "x0 must be J-orthogonal"),
    "batch, stationarity": (lambda: jorth.block_stationarity(BATCH, np.eye(3), SIG), ValueError, "objective must be one problem"),
    "batch, targets": (lambda: jorth.procrustes(BATCH.A, BATCH.A[:2], SIG), ValueError, "target must have shape"),
    "batch, sources": (lambda: jorth.procrustes(BATCH.A, BATCH.A, Signature(2, 2)), ValueError, "source must have shape"),
    "vr without samples": (lambda: jorth.minimize(QUADRATIC, signature=SIG, method="vr-j-jobcd"), ValueError, "needs a finite sum"),
    "vr batch": (lambda: minimize(method="vr-j-jobcd", batch=1000), ValueError, "batch must be at most the number of samples 20, got 1000"),
    "objective gradient": (lambda: jorth.minimize(jorth.Objective(lambda X: 0.0, lambda X: X[:2]), signature=SIG), ValueError, r"gradient must return shape \(3, 3\), got \(2, 3\)"),
    "procrustes, source": (lambda: jorth.procrustes(np.eye(4), np.eye(4), SIG), ValueError, r"source and target must have 3 columns for Signature\(2, 1\), got shapes \(4, 4\) and \(4, 4\)"),
    "procrustes, x0": (lambda: jorth.procrustes(EYE, EYE, SIG, x0=np.ones((3, 3))), ValueError, "x0 must be J-orthogonal"),
    "procrustes, tolerance": (lambda: jorth.procrustes(EYE, EYE, SIG, gradient_tolerance=-1.0), ValueError, "gradient_tolerance must be a number of at least 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()
