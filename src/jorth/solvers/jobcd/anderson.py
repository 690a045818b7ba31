"""Acceleration of GS-JOBCD and J-JOBCD on a quadratic f: sweeps in a frame, and Anderson's method.

An iteration takes X to Y = S(X) by a sweep in the coordinates of a `Frame`, always in the same
order, and then to an extrapolated point if f is lower there than at Y.

Anderson's method works in the Lie algebra. The move of a sweep is K = (T - T^-1) / 2 with T = Y
X^-1, which agrees with log T up to third order and has no pole. Let k_i be the moves of sweeps and
s_i the steps taken, X_{i+1} = cay(s_i) X_i. The next step is

    K - sum_i gamma_i (s_i + k_{i+1} - k_i),   gamma = argmin ||K - sum_i gamma_i (k_{i+1} - k_i)||,

where the move would vanish if it were affine in X (D. G. Anderson, J. ACM 12, 1965; H. F. Walker,
P. Ni, SIAM J. Numer. Anal. 49, 2011).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from jorth.objectives import QuadraticForm
from jorth.signature import Signature
from jorth.solvers.jobcd.sweeps import Matrix, Pairs, StepRule, SweepForm, score, sweep
from jorth.solvers.problem import Problem
from jorth.solvers.riemannian.line_search import LONGEST, boost_norm

if TYPE_CHECKING:
    from jorth.solvers.jobcd.base import PairState


def framed_step(problem: Problem, state: PairState, pairs: Pairs, rule: StepRule) -> None:
    """Sweep over the pairs (t, 2) in a frame, and extrapolate."""
    own, signature = state.acceleration, problem.signature
    if own.frame is None or own.frame.outdated:
        form = problem.objective.quadratic()
        assert form is not None
        X = state.X.double().cpu().numpy().copy() if own.frame is None else own.frame.point
        own.restart()
        own.frame = Frame.at(form, X, signature)
    if own.order is None:
        own.order = problem.rng.permutation(signature.n)
    frame, start = own.frame, own.frame.Z
    frame.Z = start.copy()
    try:  # the part of a sweep that is done before a limit lowers f too
        state.unbounded = sweep(problem, frame.form, frame.Z, own.order[pairs], rule)
        if not state.unbounded:
            step = own.propose(relative_move(frame.Z, start, signature), signature)
            if step is not None:
                beyond = 2 * np.linalg.solve(np.eye(len(step)) - step / 2, start) - start  # cay
                if frame.rise(frame.Z, beyond) < 0:
                    frame.Z = beyond
                else:
                    step = None
            frame.path += own.accept(step)
            frame.iterations += 1
    finally:
        state.X.copy_(torch.from_numpy(frame.point))
        state.exact = False
    score(problem, state)


@dataclass
class Acceleration:
    """What Anderson's method remembers of the last sweeps; matrices are rows of (., n^2) arrays."""

    frame: Frame | None = None
    order: Pairs | None = None
    """The order of the rows in all sweeps."""
    changes: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    """The differences k_{i+1} - k_i, the newest last."""
    sums: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    """s_i + k_{i+1} - k_i."""
    move: Matrix | None = None
    """The move of the last sweep."""
    step: Matrix | None = None
    """The step taken after it."""

    def propose(self, K: Matrix, signature: Signature, memory: int = 5) -> Matrix | None:
        """Return the J-skew step after a sweep with the move K, before the pole of cay, or None."""
        if self.move is not None and self.step is not None:
            change = (K - self.move).reshape(1, -1)
            total = self.step.reshape(1, -1) + change
            self.changes = np.concatenate([self.changes.reshape(-1, K.size), change])[-memory:]
            self.sums = np.concatenate([self.sums.reshape(-1, K.size), total])[-memory:]
        self.move = K
        gram = self.changes @ self.changes.T
        scale = np.sqrt(gram.diagonal())
        if not len(scale) or not scale.min() > 0:
            return None
        slopes = self.changes @ K.reshape(-1) / scale
        # the Gram matrix of the differences, scaled to norm 1, may be singular
        scaled = gram / scale / scale[:, None] + 1e-12 * np.eye(len(scale))
        gamma = np.linalg.solve(scaled, slopes) / scale
        if not math.isfinite(gamma.sum()):
            return None
        step: Matrix = K - (gamma @ self.sums).reshape(K.shape)
        S = torch.from_numpy(step)
        return step if boost_norm(signature.vector(S), S) <= LONGEST else None

    def accept(self, step: Matrix | None) -> float:
        """Remember the step, or the move and nothing else if there is none; return its norm."""
        assert self.move is not None
        if step is None:
            self.changes = self.sums = np.zeros((0, 0))
        self.step = self.move if step is None else step
        return float(np.linalg.norm(self.step))

    def restart(self) -> None:
        """Forget the frame and the sweeps, since the map has changed."""
        self.frame = self.move = self.step = None
        self.changes = self.sums = np.zeros((0, 0))


def relative_move(Y: Matrix, X: Matrix, signature: Signature) -> Matrix:
    """Return K = (T - J T^T J) / 2 for T = Y X^-1 = Y J X^T J, for J-orthogonal X and Y."""
    signs = signature.signs.astype(np.float64)
    T = (Y * signs) @ X.T * signs
    K: Matrix = (T - signs[:, None] * T.T * signs) / 2
    return K


# -- the frame


@dataclass
class Frame:
    """Coordinates Z (n, n) with X = W Z in which the planes of a quadratic f hardly interact.

    With W J-orthogonal, f is the same kind of function of Z, with W^T A W and W^T C, and plane
    steps on Z are as exact as those on X. Along K = T J with T skew, f(exp(K) X) has the second
    derivative <T, A T B>, B = J X X^T J (D is left out here), and a term of the gradient. Planes
    would not interact by the former if W diagonalised both A and B, which is impossible in general.
    The frame that diagonalises their geometric mean A # B treats both alike. B depends on X, so the
    frame is renewed when X has moved far.
    """

    W: Matrix
    Z: Matrix
    A: Matrix
    C: Matrix
    """(n, 0) if it is zero."""
    D: Matrix | None
    iterations: int = 0
    """The number of iterations in this frame."""
    path: float = 0.0
    """The sum of the norms of their steps."""

    @classmethod
    def at(cls, form: QuadraticForm, X: Matrix, signature: Signature) -> Frame:
        """Return the frame that diagonalises A # B at X, or X itself if rounding allows none.

        In the coordinates V with W = X V it is (X^T A X)^(1/2). Where A is not definite, the
        absolute value with small eigenvalues raised takes its place: any J-orthogonal frame is
        allowed.
        """
        A, C, D = SweepForm.of(form, "left", len(X))
        signs = signature.signs.astype(np.float64)
        M = X.T @ (A @ X)
        V = _diagonaliser(M, signs)
        if V is None:
            return cls(np.eye(len(X)), X, A, C, D)
        W = X @ V
        A = V.T @ (M @ V)
        Z = np.ascontiguousarray(signs[:, None] * V.T * signs)
        return cls(W, Z, (A + A.T) / 2, W.T @ C, D)

    @property
    def form(self) -> SweepForm:
        """f as a function of Z."""
        return SweepForm(self.A, self.C, self.D)

    @property
    def point(self) -> Matrix:
        """X."""
        return self.W @ self.Z

    @property
    def outdated(self) -> bool:
        """Check that X has moved far: paths of 0.3 to 0.8 sqrt(n) take equally many sweeps."""
        return self.iterations >= 2 and self.path > 0.4 * math.sqrt(len(self.Z))

    def rise(self, start: Matrix, end: Matrix) -> float:
        """Return f(end) - f(start), formed from end - start, so that values do not cancel."""
        slope = self.A @ ((start + end) / 2)
        if self.D is not None:
            slope = slope @ self.D
        if self.C.size:
            slope += self.C
        return float((end - start).reshape(-1) @ slope.reshape(-1))


def _diagonaliser(M: Matrix, signs: Matrix) -> Matrix | None:
    """Return V with V^T J V = J and V^T G V diagonal for G = |M|^(1/2); None if it is too large.

    With |M| = Q diag(w) Q^T, H = diag(w^(-1/4)) Q^T and H J H^T = U diag(t) U^T it is
    H^T U |t|^(-1/2). Small w are raised.
    """
    size = float(abs(M).max())
    if not 0 < size < math.inf:
        return None
    w, Q = np.linalg.eigh((M + M.T) / (2 * size))
    H = (Q / (w**2 + (1e-7 * abs(w).max()) ** 2) ** 0.125).T
    pencil = (H * signs) @ H.T
    t, U = np.linalg.eigh((pencil + pencil.T) / 2)
    order = signs.argsort(kind="stable").argsort()  # negative t at the places of the minus signs
    t, U = t[order], U[:, order]
    if not float((t * signs).min()) > 0:
        return None
    V = H.T @ (U / abs(t) ** 0.5)
    # one step of Newton's method for V^T J V = J, of which rounding leaves cond(G) u
    V = V + V @ (np.eye(len(V)) - signs[:, None] * (V.T @ (signs[:, None] * V))) / 2
    # beyond a mean square of 1e4 the frame X V would cost digits of X
    return V if float(np.linalg.norm(V)) ** 2 <= 1e4 * len(V) else None
