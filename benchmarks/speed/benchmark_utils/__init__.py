"""What the solvers of `benchmarks/speed` share: the three tasks, and the base of the solvers.

Every solver is given the same: either the torch function, of which it takes derivatives by
autograd, or value, gradient and Hessian products written out in NumPy.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import benchopt.callback
import numpy as np
import torch
from benchopt import BaseSolver
from benchopt.stopping_criterion import NoCriterion

import jorth


class Written:
    """f of a task with its derivatives in NumPy, and as a function of a torch tensor."""

    def value(self, X):
        return float(self(torch.from_numpy(X)))


class Procrustes(Written):
    """||source X - target||^2 / 2m = (||R X - T||^2 + floor) / 2m, by QR."""

    def __init__(self, source, target):
        self.m, n = source.shape
        factor = np.linalg.qr(np.hstack([source, target]), mode="r")
        self.R, self.T = factor[:n, :n], factor[:n, n:]
        self.floor = np.linalg.norm(factor[n:, n:]) ** 2
        self.torch_R, self.torch_T = torch.from_numpy(self.R), torch.from_numpy(self.T)
        self.A = self.R.T @ self.R / self.m
        self.quadratic = jorth.Procrustes(source, target)

    def __call__(self, X):
        return ((self.torch_R @ X - self.torch_T).square().sum() + self.floor) / (2 * self.m)

    def gradient(self, X):
        return self.R.T @ (self.R @ X - self.T) / self.m

    def hessian(self, X, V):
        return self.A @ V


class Trace(Written):
    """tr(X^T A X)."""

    def __init__(self, A):
        self.A = 2 * A
        self.torch_A = torch.from_numpy(A)
        self.quadratic = jorth.HyperbolicEigenvalue(A)

    def __call__(self, X):
        return (X * (self.torch_A @ X)).sum()

    def gradient(self, X):
        return self.A @ X

    def hessian(self, X, V):
        return self.A @ V


class Robust(Written):
    """1/m sum delta^2 (sqrt(1 + |r_i|^2 / delta^2) - 1), r_i = source_i X - target_i."""

    quadratic = None

    def __init__(self, source, target, delta):
        self.source, self.target, self.delta = source, target, delta
        self.torch_source, self.torch_target = torch.from_numpy(source), torch.from_numpy(target)

    def __call__(self, X):
        squares = (self.torch_source @ X - self.torch_target).square().sum(dim=1)
        return ((1 + squares / self.delta**2).sqrt() - 1).mean() * self.delta**2

    def _weights(self, X):
        r = self.source @ X - self.target
        return r, 1 / np.sqrt(1 + np.sum(r * r, axis=1) / self.delta**2)

    def gradient(self, X):
        r, w = self._weights(X)
        return self.source.T @ (w[:, None] * r) / len(r)

    def hessian(self, X, V):
        """With d_i = source_i V, w_i r_i changes by w_i d_i - w_i^3 (r_i . d_i) r_i / delta^2."""
        r, w = self._weights(X)
        d = self.source @ V
        along = w**3 * np.sum(r * d, axis=1) / self.delta**2
        return self.source.T @ (w[:, None] * d - along[:, None] * r) / len(r)


class ByAutograd:
    """The same derivatives from the torch function alone."""

    def __init__(self, function):
        self.function = function

    def value(self, X):
        return float(self.function(torch.from_numpy(X)))

    def gradient(self, X):
        point = torch.from_numpy(X).requires_grad_()
        return torch.autograd.grad(self.function(point), point)[0].numpy()

    def hessian(self, X, V):
        point = torch.from_numpy(X).requires_grad_()
        (slope,) = torch.autograd.grad(self.function(point), point, create_graph=True)
        return torch.autograd.grad((slope * torch.from_numpy(V)).sum(), point)[0].numpy()


@dataclass
class Problem:
    """What a solver gets.

    Attributes:
        function: The task, to be called with a torch tensor.
        dense: value, gradient and hessian in NumPy: written out, or by autograd of ``function``.
        written: Which of the two.
        quadratic: The objective of jorth that knows that f is quadratic, or None.
    """

    function: Any
    dense: Any
    written: bool
    quadratic: Any
    signature: jorth.Signature
    seconds: float


# processor seconds, which other programs on the machine do not lengthen: use one thread
benchopt.callback.time = SimpleNamespace(perf_counter=time.process_time)


class Ended(Exception):
    """The seconds are over."""


class Timed(BaseSolver):
    """A solver scored on the way: ``solve(watch)`` calls ``watch(X)`` with each iterate."""

    sampling_strategy = "callback"
    stopping_criterion = NoCriterion(strategy="callback")

    def set_objective(self, problem):
        """Compile and load on the problem itself, off the clock; `warm_up` would see one only."""
        self.problem = problem
        self.identity = np.eye(problem.signature.n)
        self._until(count=3)

    def get_next(self, stop_val):
        return max(stop_val + 1, math.ceil(1.03 * stop_val))

    def run(self, cb):
        self.record(self.identity)
        cb()
        self._until(cb=cb)
        cb()  # the end, also of a method that has no iterates

    def _until(self, cb=None, count=None):
        """Solve until the seconds are over or, without a callback, for ``count`` iterates."""
        iterates = 0

        def watch(X):
            nonlocal iterates
            self.record(X)
            iterates += 1
            if cb is None:
                over = iterates == count
            else:
                over = not cb() or cb.time_iter >= self.problem.seconds
            if over:
                raise Ended

        with contextlib.suppress(Ended):
            self.solve(watch)

    def record(self, X):
        self.X = X

    def get_result(self):
        return dict(X=self.X)


class Ours(Timed):
    """`jorth.minimize` with a method, on what all solvers are given."""

    method = "auto"

    def objective(self):
        if not self.problem.written:
            return self.problem.function
        dense = self.problem.dense
        return jorth.Objective(value=dense.value, gradient=dense.gradient, hessian=dense.hessian)

    def solve(self, watch):
        ended = False

        def callback(X, row):
            nonlocal ended
            try:
                watch(np.asarray(X))
            except Ended:
                ended = True
            return ended

        result = jorth.minimize(
            self.objective(),
            self.identity,
            signature=self.problem.signature,
            method=self.method,
            gradient_tolerance=1e-13,
            max_time=self.problem.seconds,
            callback=callback,
        )
        if not ended:
            self.record(np.asarray(result.x))
