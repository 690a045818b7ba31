"""What the benchmarks `hevp` and `probe` share: the data, the score, and the base of the solvers.

Each of them imports this file through its `benchmark_utils`.
"""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import benchopt.callback
import numpy as np
import torch
from benchopt import BaseDataset, BaseSolver
from benchopt.stopping_criterion import NoCriterion

import jorth
from jorth import datasets
from jorth.stopping import NormAbove

LEFT = 1e6
"""A run ends at this ||X||_2: in the race it has left for infinity."""


class Size(BaseDataset):
    """A data set of m rows, n columns and a signature (p, n - p), as in "w1a-2470-290-145".

    ``rows`` of a name, m and n gives the matrix, or None where it is not at hand.
    """

    def get_data(self):
        name, m, n, p = self.size.rsplit("-", 3)
        data = self.rows(name, int(m), int(n))
        return dict(D=data, signature=jorth.Signature(int(p), int(n) - int(p)))


def generated(name, m, n):
    return np.random.default_rng(0).standard_normal((m, n))


def handwritten(name, m, n):
    """Return digits of scikit-learn in random order, n of the columns that are not all zero."""
    D = datasets.digits()
    rng = np.random.default_rng(0)
    used = np.flatnonzero(D.any(axis=0))
    return np.ascontiguousarray(D[rng.permutation(len(D))[:m]][:, rng.permutation(used)[:n]])


def of_the_paper(name, m, n):
    """Return a data set of the paper from the folder JORTH_DATA; None where it is not there.

    Rows and columns are drawn at random. mnist has fewer than 780 columns that are not zero, so its
    first rows and columns are taken.
    """
    try:
        try:
            return datasets.load(name, m, n, seed=0)
        except ValueError:
            return datasets.load(name, m, n, subset="first")
    except (FileNotFoundError, ImportError, ValueError):
        return None


def as_numpy(X):
    return torch.as_tensor(X).cpu().double().numpy()


def on_device(array, device):
    """Return the array, as a tensor of the device unless that is the CPU."""
    return array if device == "cpu" else torch.as_tensor(array, device=device)


def score(value, X, signature):
    """Return the columns that every result has, computed from X alone."""
    s = signature.signs.astype(float)
    norm = np.linalg.norm(X, 2)
    error = np.abs(X.T @ (s[:, None] * X) - np.diag(s))
    return dict(
        value=float(value),
        violation=float(error.sum()),  # as in the paper
        residual=float(error.max() / norm**2),
        norm=float(norm),
    )


def count_processor_seconds():
    """Let benchopt count what other programs on the machine do not lengthen; use one thread."""
    benchopt.callback.time = SimpleNamespace(perf_counter=time.process_time)


class Minimizer(BaseSolver):
    """A solver that calls `jorth.minimize`; a file in `solvers/` gives its name and its
    method, a property where it depends on the problem."""

    sampling_strategy = "callback"
    stopping_criterion = NoCriterion(strategy="callback")
    parameters = {}

    def set_objective(self, problem):
        """Compile for the problem off the clock; `warm_up` would see the first problem only."""
        self.problem = problem
        if problem.device == "cpu":
            count_processor_seconds()
        for method in self.stages():
            self._minimize(method, problem.x0, max_iterations=1, max_time=1.0)

    def stages(self):
        """Return the methods to run one after the other, each on an equal share of the time."""
        return [self.method]

    def get_next(self, stop_val):
        return max(stop_val + 1, math.ceil(1.2 * stop_val))

    def run(self, cb):
        self.X = self.problem.x0
        cb()
        stages = self.stages()
        for number, method in enumerate(stages, start=1):
            end = number * self.problem.seconds / len(stages)

            def watch(X, row, end=end):
                self.X = X
                return not cb() or cb.time_iter >= end

            self.X = self._minimize(method, self.X, callback=watch).x
            cb()  # the end of the stage

    def _minimize(self, method, X, **limits):
        problem = self.problem
        return jorth.minimize(
            problem.objective,
            X,
            signature=problem.signature,
            method=method,
            gradient_tolerance=0.0,
            stop=NormAbove(LEFT),
            seed=problem.seed,
            on_unbounded="continue",
            **limits,
        )

    def get_result(self):
        return dict(X=self.X)


class Printed(Minimizer):
    """An algorithm of the paper as printed, by `jorth.as_printed`.

    The paper gives neither theta nor sigma. ``theta`` is in units of the curvature of f, as its
    meaning would depend on the units of the data otherwise, and sigma is that curvature. On the
    well-posed problem any small theta does.
    """

    def printed(self, name, Q=None):
        f = self.problem.objective
        L = f.curvature()
        theta = self.theta if f.sense == "max" else 1e-5
        return jorth.as_printed(name, theta=theta * L, sigma=L, Q=Q)


class Problem:
    """What a solver gets: the objective, the start, and its seconds."""

    def __init__(self, objective, signature, x0, seconds, seed, device):
        self.objective = objective
        self.signature = signature
        self.x0 = on_device(x0, device)
        self.seconds = seconds
        self.seed = seed
        self.device = device
