"""The preconditioner: the inverse curvature of a convex quadratic.

For f = 1/2 tr(X^T A X) + <C, X> the curvature in S is S -> (J A J S X X^T + X X^T S J A J) / 2, up
to a term that vanishes with the gradient. This operator is inverted exactly: with
J X^T A X J = U diag(l) U^T and W = J X J U it is Z -> (l_i + l_j) Z_ij / 2 in S = W Z W^T, a
Sylvester equation solved by one eigendecomposition. A preconditioner need not be accurate to the
last digit, so it is computed in single precision if that resolves the smallest l.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from jorth.linalg.eigh import find_shift, is_definite
from jorth.objectives import QuadraticForm
from jorth.objectives.quadratic import is_semidefinite
from jorth.signature import Signature
from jorth.solvers.problem import NOT_SAVED

FAR = 4e4
"""The ||X||_F^2 - n beyond which the model is useless, as the pole cuts its steps to nothing."""
STALE = 0.05
"""The relative change of X after which the preconditioner is computed again."""
RESOLVED = 1e-5
"""The least ratio of the smallest to the largest l for which single precision is used."""
FLAT = 1e-8
"""An l below this share of the largest counts as zero."""


def definite_form(
    form: QuadraticForm, signature: Signature, *, strictly: bool = True
) -> QuadraticForm | None:
    """Return f up to a constant with a positive definite A, and D where given; None if none is.

    On X^T J X = J, tr(X^T J X D) is constant, so that A may be replaced by A - mu J; for a square X
    so is tr(X^T A X J), and D may be replaced by D - nu J. Both may change their signs. Unless
    ``strictly``, semidefinite up to rounding is enough.
    """
    compact = signature.p == 0 or signature.q == 0

    def definite(M: Tensor, *, shifts: bool) -> Tensor | None:
        array = M.double().cpu().numpy()
        if is_definite(array):
            return M
        if not shifts or compact:
            return None
        found = find_shift(array, signature.signs)
        shifted = M - found.shift * torch.diag(signature.vector(M))
        fits = found.definite or not (strictly or not is_semidefinite(shifted))
        return shifted if fits else None

    for sign in (1,) if form.D is None else (1, -1):
        D = form.D
        if D is not None:
            D = definite(sign * D, shifts=len(D) == signature.n)
        if (D is None) == (form.D is None):
            A = definite(sign * form.A, shifts=True)
            if A is not None:
                return QuadraticForm(A, form.C, D, form.constant)
    return None


@dataclass
class Preconditioner:
    """The inverse curvature at a point ``made_at``, from which a resumed run computes it again."""

    made_at: Tensor | None = None
    double: bool = False
    """Whether single precision was once not enough; then it is not tried again."""
    basis: tuple[Tensor, Tensor] | None = field(default=None, metadata=NOT_SAVED)
    """W (n, n) and l (n,) for A / scale; None if f is not a convex quadratic, or X is far out."""
    scale: float = field(default=0.0, metadata=NOT_SAVED)
    """The largest entry of A; 0 before the first basis is asked for."""

    def renew(self, form: QuadraticForm, signs: Tensor, X: Tensor) -> bool:
        """Compute the basis if it is missing or stale; return whether it has changed."""
        if form.D is not None or X.shape[0] != X.shape[1]:
            return False
        made_at = self.made_at
        changed = made_at is None or bool((X - made_at).norm() > STALE * X.norm())
        if changed or made_at is None:
            made_at = self.made_at = X.clone()
        if changed or not self.scale:
            A = form.A.to(made_at)
            self.scale = float(A.abs().max())
            self.basis = self._eigenbasis(A / self.scale, made_at, signs)
        return changed

    def apply(self, r: Tensor) -> Tensor:
        """The inverse curvature times a skew r."""
        assert self.basis is not None
        W, eigenvalues = self.basis
        size = float(r.abs().max()) or 1.0
        Z = (W.mT @ (r / size).to(W) @ W).div_(eigenvalues[:, None] + eigenvalues)
        S = W @ Z @ W.mT
        return (S - S.mT).to(r).mul_(size / self.scale)

    def _eigenbasis(self, A: Tensor, X: Tensor, s: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return W and l; None if the smallest l is not large enough beside the largest."""
        if float(X.square().sum()) > len(X) + FAR or not bool(A.isfinite().all()):
            return None
        for dtype, least in ((torch.float32, RESOLVED), (X.dtype, -FLAT))[self.double :]:
            x, J = X.to(dtype), s.to(dtype)[:, None]
            B = J * (x.mT @ A.to(dtype) @ x) * J[:, 0]
            eigenvalues, U = torch.linalg.eigh((B + B.mT) / 2)
            largest = float(eigenvalues[-1])
            if largest > 0 and float(eigenvalues[0]) > least * largest:
                return (J * x * J[:, 0]) @ U, eigenvalues.clamp(min=FLAT * largest)
            self.double = True
        return None
