"""Linear layers that preserve x^T J y: isometries, isometric embeddings and projections."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth._inputs import HALF
from jorth.nn.declarations import declare
from jorth.nn.init import integer_seed, j_orthogonal_
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import without_autocast


class JOrthogonalLinear(nn.Module):
    """y = W x + b with W^T J W = J, so that <y, y'>_J = <x, x'>_J without a bias.

    With an ``out_signature`` of more signs it is an isometric embedding: W is thin, W^T J_out W =
    J_in, and inner products are preserved as well. With one of fewer signs it is the projection y =
    J_out W^T J_in x + b, W^T J_in W = J_out: the coordinates of the J-orthogonal projection of x
    onto the columns of W. If the two share their ``weight``, the projection undoes the embedding.

    Without a bias it maps points of the pseudo-hyperboloid <x, x>_J = -alpha^2 to points of that of
    J_out, isometrically; W contains every rotation and every boost of the space, where
    `LorentzLinear` is any map. It stays out of autocast, and takes inputs in half precision as
    float32 or float64.

    Train ``weight`` with `jorth.optim.JOBCD` or `jorth.optim.VRJOBCD`, or under a parametrisation
    (`cs_parametrization` for a square weight, `exponential_parametrization`) with any optimiser; a
    plain optimiser would leave the group.

    Args:
        signature: The signs of J_in; inputs have so many features.
        out_signature: The signs of J_out: those of J_in if omitted, else at least or at most as
            many of each kind.
        bias: Whether to add a bias (*batch, out_features), which starts at zero.
        batch: The shape of a batch of independent matrices; inputs are then (..., *batch,
            in_features).
        cond: The condition number of the initial matrices; a thin one is a part of such a matrix.
        seed: The seed of the initial matrices, as in `jorth.nn.init.j_orthogonal_`.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.

    Attributes:
        weight: W (*batch, larger, smaller), where "larger" is the larger number of features.
        signature: The signs of the rows of W: those of J_in or J_out, whichever has more.
        columns: The signs of W^T J W: those of the other one.
        in_signature: The signs of J_in.
        out_signature: The signs of J_out.
        in_features: The number of features of the inputs.
        out_features: The number of features of the outputs.

    >>> layer = jorth.nn.JOrthogonalLinear(jorth.Signature.lorentz(4), cond=10)
    >>> layer(torch.ones(8, 4)).shape
    torch.Size([8, 4])
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(  # one argument per option, as in torch's layers
        self,
        signature: Signature,
        out_signature: Signature | None = None,
        *,
        bias: bool = False,
        batch: tuple[int, ...] = (),
        cond: float = 1.0,
        seed: int | np.random.Generator | torch.Generator = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_signature = signature = _inputs.check_signature(signature)
        self.out_signature = _checked_output(signature, out_signature)
        self.in_features, self.out_features = signature.n, self.out_signature.n
        self.is_projection = self.out_features < self.in_features
        ends = (self.in_signature, self.out_signature)
        self.signature, self.columns = ends if self.is_projection else ends[::-1]
        _inputs.check_flag(bias, "bias")
        self.batch = _inputs.batch_sizes(batch)
        self.cond = cond
        self.seed = integer_seed(seed)
        _inputs.check_dtype(dtype, optional=True)
        _inputs.check_device(device)
        place = {"device": device, "dtype": dtype}
        shape = (*self.batch, self.signature.n, self.columns.n)
        self.weight = nn.Parameter(torch.empty(shape, **place))
        declare(self, "weight", self.signature, columns=self.columns)
        if bias:
            self.bias = nn.Parameter(torch.empty((*self.batch, self.out_features), **place))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters(self.seed)

    def reset_parameters(
        self, seed: int | np.random.Generator | torch.Generator | None = None
    ) -> None:
        """Draw new matrices and set the bias to zero; nothing happens on the device "meta".

        Args:
            seed: That of the new matrices; by default that of the layer, which draws the initial
                ones again, for example after ``to_empty``.
        """
        if self.weight.is_meta:
            return
        seed = self.seed if seed is None else seed
        j_orthogonal_(self.weight, self.signature, columns=self.columns, cond=self.cond, seed=seed)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @property
    def matrix(self) -> Tensor:
        """The matrix of the map (*batch, out_features, in_features): W, or J_out W^T J_in."""
        return self._matrix_of(self.weight)

    def _matrix_of(self, weight: Tensor) -> Tensor:
        if not self.is_projection:
            return weight
        signs, column_signs = self.signature.vector(weight), self.columns.vector(weight)
        return column_signs[:, None] * weight.mT * signs

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., *batch, in_features) to y (..., *batch, out_features)."""
        weight = self.weight  # once: a parametrisation computes it
        self._check_input(x, weight)
        matrix = self._matrix_of(weight)
        with without_autocast(weight):
            x = x.to(weight.dtype)
            if not self.batch:
                return nn.functional.linear(x, matrix, self.bias)
            y = (matrix @ x[..., None])[..., 0]
            return y if self.bias is None else y + self.bias

    def _check_input(self, x: Tensor, weight: Tensor) -> None:
        if not isinstance(x, Tensor) or x.device != weight.device:
            raise TypeError(f"x must be a tensor on {weight.device}, got {_inputs.describe(x)}")
        if x.dtype not in (weight.dtype, *HALF):
            raise TypeError(
                f"x must have the layer's dtype {weight.dtype}, got {_inputs.describe(x)}"
            )
        wanted = (*self.batch, self.in_features)
        if tuple(x.shape[x.ndim - len(wanted) :]) != wanted:
            shape = ", ".join(["...", *map(str, wanted)])
            raise ValueError(f"x must have shape ({shape}), got {_inputs.describe(x)}")

    def extra_repr(self) -> str:
        square = self.in_signature == self.out_signature
        out = "" if square else f"out_signature={self.out_signature}, "
        return f"{self.in_signature}, {out}batch={self.batch}, bias={self.bias is not None}"


def _checked_output(signature: Signature, out_signature: Signature | None) -> Signature:
    """Check that something leads to the outputs, and return their signature."""
    if out_signature is None:
        return signature
    out = _inputs.check_signature(out_signature, "out_signature")
    more = (out.p - signature.p, out.q - signature.q)
    embeds = max(more) > 0 and min(more) >= 0
    projects = min(more) < 0 and max(more) <= 0
    if not (out == signature or embeds or projects):
        kinds = f"at least or at most as many signs of each kind as {signature}, or the same ones"
        raise ValueError(f"out_signature must have {kinds}, got {out}")
    return out
