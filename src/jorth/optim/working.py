"""What a step sees of a parameter: whole matrices in float32 or float64, wherever they come from.

Most parameters are their own working matrices. The matrices of a parameter that is spread over
processes are those of `jorth.sharding`. A parameter in half precision has a master in float32 among
its state: J-orthogonal to the rounding of float32, moved by the steps, and rounded into the
parameter after each.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from jorth import arrays
from jorth.arrays import HALF
from jorth.group.elements import column_signs, finite_thin, residual
from jorth.sharding import local_part, matrices_of, splits_batch, write_matrices, zeros_beside
from jorth.signature import Signature

SCHULZ_STEPS = 10
"""From an error of 0.9 eight of them reach the rounding of float64."""
POLISHED = 1e-12
"""The largest residual of a master in float64, before it is rounded to float32."""
PLAIN = (torch.nn.Parameter, Tensor)
"""The types of parameters that are no shards; others are asked."""


@dataclass
class Working:
    """The matrices X (..., n, k) of a parameter, plain; a step changes them and the state in place.

    Args:
        parameter: The parameter.
        X: Its matrices on this process.
        G: Their gradients.
        state: The state of the optimiser for them.
        own: Whether other processes have other matrices of the parameter.
        started: For a master that has just started, a copy of it.
    """

    parameter: Tensor
    X: Tensor
    G: Tensor
    state: dict[str, Tensor]
    own: bool = False
    started: Tensor | None = None

    @classmethod
    def of(cls, p: Tensor, gradient: Tensor, state: dict[str, Any], sig: Signature) -> Working:
        """The working matrices of p, which start a master where it has none that fits."""
        half = p.dtype in HALF
        if not half and type(p) in PLAIN:
            return cls(p, p, gradient, state)
        started = _renew_master(p, state, sig) if half else None
        local = {name: local_part(value) for name, value in state.items()}
        X = local["master"] if half else matrices_of(p)
        return cls(p, X, matrices_of(gradient, like=p), local, splits_batch(p), started)

    @property
    def kind(self) -> tuple[torch.dtype, torch.device, int, bool]:
        """What may be stacked; greedy pairs, common to all, must be the same on all processes."""
        return self.X.dtype, self.X.device, self.X.shape[-1], self.own

    def write(self) -> None:
        """Write the matrices back into the parameter, where they are not the parameter itself."""
        p, X = self.parameter, self.X
        if X is p:
            return
        if self.started is not None:  # a matrix that has not moved keeps its value in the parameter
            moved = _any_entry(self.started != X)
            X = torch.where(moved, X, matrices_of(p).to(X.dtype))
        write_matrices(p, X.to(p.dtype))


def new_state(p: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Zeros of a shape (..., k, l) for the state of the parameter p (..., n, k)."""
    return zeros_beside(p, shape, working_dtype(p))


def working_dtype(p: Tensor) -> torch.dtype:
    """The dtype of steps and states of a parameter."""
    return torch.float32 if p.dtype in HALF else p.dtype


def without_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """A context in which products are not rounded, though autocast may be on around it."""
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def _renew_master(p: Tensor, state: dict[str, Any], signature: Signature) -> Tensor | None:
    """Start the master of p from p, unless it is there and rounds to p; a copy where it starts.

    What has been written into the parameter by others, a checkpoint say, is thus taken over.
    """
    rounded = matrices_of(p)
    if "master" not in state:
        state["master"] = new_state(p, tuple(p.shape))
    master = local_part(state["master"])
    changed = _any_entry(master.to(p.dtype) != rounded)[..., 0, 0]
    if not bool(changed.any()):
        return None
    name = f"the parameter, {arrays.describe(p)},"
    master[changed] = polished_start(rounded[changed], signature, name)
    return master.clone()


def _any_entry(mask: Tensor) -> Tensor:
    """Whether an entry of each matrix (..., n, k) is true: (..., 1, 1)."""
    return mask.any(dim=-1, keepdim=True).any(dim=-2, keepdim=True)


def polished_start(rounded: Tensor, signature: Signature, name: str) -> Tensor:
    """The J-orthogonal matrices, in float32, whose rounding is given in half precision.

    Where a half-precision matrix came from by rounding, polishing returns to within u ||X||^2 of
    it. Beyond half the digits, a relative distance of u^(1/2), there is no saying what was meant.
    """
    given = finite_thin(rounded.detach().double(), signature, name)
    start = _polished(given, signature)
    gram = torch.diag_embed(column_signs(given, signature))
    feasible = torch.as_tensor(residual(start, signature, gram=gram)) < POLISHED
    distance = torch.linalg.matrix_norm(start - given) / torch.linalg.matrix_norm(given)
    limit = arrays.unit_roundoff(rounded) ** 0.5
    if not bool((feasible.to(distance.device) & (distance <= limit)).all()):
        away = f"{float(distance.max()):.2g} of its norm away"
        nearest = away if bool(feasible.all()) else "out of reach"
        raise ValueError(
            f"{name} must be J-orthogonal for {signature} up to the rounding of {rounded.dtype}, "
            f"got one whose nearest such matrix is {nearest} (at most {limit:.2g})"
        )
    return start.float()


def _polished(X: Tensor, signature: Signature) -> Tensor:
    """Schulz steps X (3 I - J_k X^T J X) / 2 for X (..., n, k), J_k = J or its columns' signs.

    They square the error of J_k X^T J X = I where it is below one, and may diverge elsewhere.
    """
    s, columns = signature.vector(X), column_signs(X, signature)[..., None]
    for _ in range(SCHULZ_STEPS):
        X = 1.5 * X - 0.5 * X @ (columns * (X.mT @ (s[:, None] * X)))
    return X
