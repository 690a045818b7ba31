"""An objective of your own, as a template: robust alignment by the pseudo-Huber loss.

    python examples/own_objective.py

f(X) = 1/m sum_i sqrt(1 + |r_i|^2) - 1 with the residuals r_i = s_i X - t_i. A plain torch function
would do (see below); a class may say more about f, and solvers make use of it.
"""

import torch

import jorth
from jorth.objectives import AbstractObjective, check_objective


class RobustAlignment(AbstractObjective):
    """Only `value_and_gradient` must be there; the rest is optional."""

    def __init__(self, source: torch.Tensor, target: torch.Tensor) -> None:
        self.source = source
        self.target = target
        self.samples = len(source)  # f is a mean over that many terms

    def value_and_gradient(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        every = slice(None)
        residuals, lengths = self._residuals(X, every)
        return (lengths - 1).mean(), self._gradient(residuals, lengths, every)

    def sample_gradient(self, X: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """The mean gradient of some terms, for methods that draw samples."""
        return self._gradient(*self._residuals(X, index), index)

    def curvature(self) -> float:
        """A Lipschitz constant of the gradient: ||source||^2 / m, as sqrt(1 + x^2)'' <= 1."""
        return float(torch.linalg.matrix_norm(self.source, 2) ** 2 / len(self.source))

    def bounded_below(self) -> bool:
        return True

    def shape(self) -> tuple[int, int]:
        """The shape of X."""
        return self.source.shape[1], self.target.shape[1]

    def data(self) -> torch.Tensor:
        """A tensor with the dtype and device of the data."""
        return self.source

    def _residuals(self, X, rows):
        residuals = self.source[rows] @ X - self.target[rows]
        return residuals, (1 + residuals.square().sum(1)).sqrt()

    def _gradient(self, residuals, lengths, rows):
        return self.source[rows].T @ (residuals / lengths[:, None]) / len(lengths)


if __name__ == "__main__":
    signature = jorth.Signature(4, 2)
    source, target, _ = jorth.datasets.planted_procrustes(
        60, signature, source_condition=3.0, point_condition=3.0, seed=1
    )
    objective = RobustAlignment(torch.from_numpy(source), torch.from_numpy(target))
    error = check_objective(objective, jorth.random_point(signature, cond=3.0, seed=2))
    print(f"largest relative error of a slope: {error:.1e}")
    for method in ("riemannian-lbfgs", "j-jobcd", "vr-j-jobcd"):
        result = jorth.minimize(objective, signature=signature, method=method, max_iterations=300)
        print(f"{method:<18} f = {result.value:.2e}, {result.status.name}")

    def same(X):
        """The same f as a function; its gradient comes from autograd."""
        rest = objective.source @ X - objective.target
        return ((1 + rest.square().sum(1)).sqrt() - 1).mean()

    again = jorth.minimize(same, signature=signature)
    assert abs(again.value - jorth.minimize(objective, signature=signature).value) < 1e-8
