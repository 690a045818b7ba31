"""The problem in other libraries: on a manifold of pymanopt, and by the dissolving of cdopt."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jorth.bench.speed.dense import Dense, Matrix, PullbackHessian
from jorth.clock import Clock
from jorth.extras import needs
from jorth.group import polish
from jorth.signature import Signature

Records = list[tuple[float, float]]  # seconds and values


class Timed(NamedTuple):
    """A run."""

    records: Records
    seconds: float
    method: str = ""  # what `minimize` calls the method that ran


SMALLEST = 1e-16
"""A step length and gradient norm so small that only the target or the budget ends a run."""
LBFGS_MEMORY = 10


class Ended(Exception):
    """The target is reached, or the budget is spent."""


class Trace:
    """Times and values of a run by the clock of `minimize`, which is paused while it records.

    Args:
        value: f of a feasible point, computed while the clock is paused.
        target: The value that ends the run.
        max_time: The seconds that end the run.
    """

    def __init__(self, value: Callable[[Any], float], target: float, max_time: float) -> None:
        self.records: Records = []
        self.max_time = max_time
        self._value = value
        self._target = target
        self._clock = Clock()
        self._clock.start()

    def record(self, point: Callable[[], Any] | Any) -> None:
        """Record a point, or the one that a function returns; raise Ended if the run is over."""
        self._clock.pause()
        value = self._value(point() if callable(point) else point)
        self.records.append((self._clock.seconds, value))
        if value <= self._target or self._clock.seconds > self.max_time:
            raise Ended
        self._clock.start()


class Countdown:
    """Ends a run before its gradient number ``count`` and costs nothing, for calls timed whole."""

    max_time = 1e9

    def __init__(self, count: int) -> None:
        self._left = count

    def record(self, point: Any) -> None:
        if self._left == 0:
            raise Ended
        self._left -= 1


def run_pymanopt(
    objective: Dense, signature: Signature, trace: Trace | Countdown, method: str, start: Matrix
) -> None:
    """Conjugate gradients ("pymanopt CG") or trust regions ("pymanopt TR") until the trace ends."""
    with needs(method, "pymanopt", extra="bench"):
        from pymanopt.optimizers import ConjugateGradient, TrustRegions

    optimizer = (ConjugateGradient if method == "pymanopt CG" else TrustRegions)(
        verbosity=0,
        max_iterations=10**6,
        max_time=10 * trace.max_time,
        min_gradient_norm=SMALLEST,
        min_step_size=SMALLEST,
    )
    problem = pymanopt_problem(objective, signature, trace)
    with contextlib.suppress(Ended):
        optimizer.run(problem, initial_point=start)


def pymanopt_problem(
    objective: Dense, signature: Signature, trace: Trace | Countdown | None = None
) -> Any:
    """The problem; every gradient is recorded in the trace."""
    import pymanopt

    def gradient(X: Matrix) -> Any:
        if trace is not None:
            trace.record(X)
        return objective.gradient(X)

    manifold = pymanopt_manifold(signature)
    as_numpy = pymanopt.function.numpy(manifold)
    return pymanopt.Problem(
        manifold,
        as_numpy(objective.value),
        euclidean_gradient=as_numpy(gradient),
        riemannian_hessian=as_numpy(PullbackHessian(objective, signature)),
    )


def pymanopt_manifold(signature: Signature) -> Any:
    """O(p, q) with the right-invariant metric: tangent vectors J S X held as S, Cayley retraction.

    It is faster than `jorth.adapters.pymanopt.JOrthogonal`: arguments are not checked, and the
    retraction, which has a pole, costs one solve instead of an exponential.
    """
    from pymanopt.manifolds.manifold import RiemannianSubmanifold

    n = signature.n
    s = signature.signs.astype(float)[:, None]
    identity = np.eye(n)

    class IndefiniteOrthogonal(RiemannianSubmanifold):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(f"O({signature.p},{signature.q})", n * (n - 1) // 2)

        @property
        def typical_dist(self) -> float:
            return float(np.pi * np.sqrt(n))

        def inner_product(self, point: Matrix, a: Matrix, b: Matrix) -> Any:
            return np.tensordot(a, b)

        def norm(self, point: Matrix, a: Matrix) -> Any:
            return np.linalg.norm(a)

        def projection(self, point: Matrix, vector: Matrix) -> Matrix:
            return (vector - vector.T) / 2

        to_tangent_space = projection

        def euclidean_to_riemannian_gradient(self, point: Matrix, gradient: Matrix) -> Any:
            M = s * (gradient @ point.T)
            return (M - M.T) / 2

        def retraction(self, point: Matrix, a: Matrix) -> Any:
            K = s * a / 2
            return np.linalg.solve(identity - K, point + K @ point)

        def transport(self, start: Matrix, end: Matrix, a: Matrix) -> Matrix:
            return a

        def zero_vector(self, point: Matrix) -> Matrix:
            return np.zeros((n, n))

        def random_point(self) -> Matrix:
            return identity.copy()

        def random_tangent_vector(self, point: Matrix) -> Any:
            S = np.tri(n) - np.tri(n).T
            return S / np.linalg.norm(S)

    return IndefiniteOrthogonal()


def run_cdopt(
    objective: Dense, signature: Signature, trace: Trace | Countdown, beta: float
) -> None:
    """SciPy's L-BFGS on the dissolved problem, from the identity until the trace ends.

    Recorded points are polished first, while the clock is paused.
    """
    from scipy.optimize import minimize

    n = signature.n
    problem = cdopt_problem(objective, signature, beta)

    def callback(x: Matrix) -> None:
        trace.record(lambda: _polished(x.reshape(n, n), signature))

    with contextlib.suppress(Ended):
        trace.record(np.eye(n))
        minimize(
            problem.cdf_fun_vec_np,
            np.eye(n).ravel(),
            jac=problem.cdf_grad_vec_np,
            method="L-BFGS-B",
            callback=callback,
            options=dict(maxiter=10**6, maxfun=10**7, ftol=0, gtol=0, maxcor=LBFGS_MEMORY),
        )


def cdopt_problem(objective: Dense, signature: Signature, beta: float) -> Any:
    """The dissolved problem: X^T J X = J with the map A(X) = X (3 I - J X^T J X) / 2."""
    with needs("cdopt L-BFGS", "cdopt"):
        from cdopt.core.problem import problem
        from cdopt.manifold_np import basic_manifold_np

    n = signature.n
    s = signature.signs.astype(float)
    J = np.diag(s)
    identity = np.eye(n)

    class IndefiniteOrthogonal(basic_manifold_np):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("O(p,q)", (n, n), (n, n))

        def C(self, X: Matrix) -> Any:
            return X.T @ (s[:, None] * X) - J

        def A(self, X: Matrix) -> Any:
            return 1.5 * X - 0.5 * X @ (s[:, None] * (X.T @ (s[:, None] * X)))

        def JA_transpose(self, X: Matrix, D: Matrix) -> Any:
            JX = s[:, None] * X
            gram = (X.T @ JX) * s
            turned = JX @ ((D.T @ X) * s) + (JX * s) @ (X.T @ D)
            return D @ (1.5 * identity - 0.5 * gram) - 0.5 * turned

        def JC(self, X: Matrix, Lambda: Matrix) -> Any:
            return 2 * (s[:, None] * X) @ ((Lambda + Lambda.T) / 2)

        def generate_cdf_fun(self, f: Any, beta: float) -> Any:
            return lambda X: f(self.A(X)) + beta / 4 * np.linalg.norm(self.C(X)) ** 2

        def generate_cdf_grad(self, g: Any, beta: float) -> Any:
            return lambda X: self.JA_transpose(X, g(self.A(X))) + beta / 2 * self.JC(X, self.C(X))

        def Init_point(self, Xinit: Any = None) -> Matrix:
            return identity.copy()

    return problem(
        IndefiniteOrthogonal(),
        objective.value,
        obj_grad=objective.gradient,
        obj_hvp=objective.hessian,
        beta=beta,
    )


def _polished(X: Matrix, signature: Signature) -> Matrix | None:
    """The J-orthogonal factor of X; None if there is none, so that the point has no value."""
    try:
        return np.asarray(polish(X.copy(), signature), dtype=np.float64)
    except ValueError:
        return None
