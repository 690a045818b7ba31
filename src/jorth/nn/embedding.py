"""Points of the pseudo-hyperboloid as parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth.nn.init import integer_seed
from jorth.signature import Signature
from jorth.ultrahyperbolic.maps import exp0_at
from jorth.ultrahyperbolic.points import check_q, checked_radius


class LorentzEmbedding(nn.Module):
    """Indices (...) -> points (..., n): exp0(alpha v) for rows v of ``weight``.

    The rows (num_embeddings, n - 1) are free numbers, tangent to U at the origin
    (`jorth.ultrahyperbolic.exp0`), so that any torch optimiser trains them and no point leaves U.
    With q = 1 they are coordinates in R^p, and the point of v has the distance alpha |v| from the
    origin: |v| is its rapidity. In float32 points have digits left up to |v| = 8.

    Args:
        signature: The signs of J, q at least 1.
        num_embeddings: The number of points.
        std: The standard deviation of the initial coordinates.
        padding_idx: A row that is not trained: it is the origin, as in `torch.nn.Embedding`.
        sparse: Whether gradients are sparse, for `torch.optim.SparseAdam` and few rows in a batch.
        learn_radius: Whether to learn the radius of U, by the logarithm ``log_factor`` (1,) of its
            ratio to alpha, 0 at first. All distances are multiplied by it.
        alpha: The radius of U at first.
        seed: The seed of the initial coordinates, an integer or a NumPy generator.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.

    >>> embedding = jorth.nn.LorentzEmbedding(jorth.Signature.lorentz(3), 100)
    >>> embedding(torch.tensor([4, 7])).shape
    torch.Size([2, 3])
    """

    log_factor: Tensor | None

    def __init__(  # one argument per option, as in torch.nn.Embedding
        self,
        signature: Signature,
        num_embeddings: int,
        *,
        std: float = 0.01,
        padding_idx: int | None = None,
        sparse: bool = False,
        learn_radius: bool = False,
        alpha: float = 1.0,
        seed: int | np.random.Generator = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.signature = check_q(signature)
        self.num_embeddings = _inputs.whole_number(num_embeddings, "num_embeddings", 1)
        self.std = _inputs.nonnegative_number(std, "std")
        if padding_idx is not None:
            least, end = -self.num_embeddings, self.num_embeddings
            if not isinstance(padding_idx, int) or not least <= padding_idx < end:
                expected = f"None or an integer from {least} to {end - 1}"
                raise ValueError(
                    f"padding_idx must be {expected}, got {_inputs.describe(padding_idx)}"
                )
        _inputs.check_flag(sparse, "sparse")
        _inputs.check_flag(learn_radius, "learn_radius")
        _inputs.check_device(device)
        _inputs.check_dtype(dtype, optional=True)
        self.padding_idx = padding_idx
        self.sparse = bool(sparse)
        shape = self.num_embeddings, signature.n - 1
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.alpha = checked_radius(alpha, self.weight.dtype)
        factor = self.weight.new_zeros(1) if learn_radius else None
        self.register_parameter("log_factor", None if factor is None else nn.Parameter(factor))
        self.seed = integer_seed(seed)
        self.reset_parameters()

    def reset_parameters(self, seed: int | np.random.Generator | None = None) -> None:
        """Draw new coordinates and reset the radius; nothing happens on the device "meta".

        Args:
            seed: That of the new coordinates; by default that of the layer.
        """
        rng = _inputs.generator(self.seed if seed is None else seed)
        if self.weight.is_meta:
            return
        drawn = self.std * rng.standard_normal(self.weight.shape)
        with torch.no_grad():
            self.weight.copy_(torch.from_numpy(drawn))
            if self.padding_idx is not None:
                self.weight[self.padding_idx] = 0
        if self.log_factor is not None:
            nn.init.zeros_(self.log_factor)

    @property
    def radius(self) -> float | Tensor:
        """The radius of the points, to be passed on as alpha; a number if it is not learned."""
        if self.log_factor is None:
            return self.alpha
        factor: Tensor = self.log_factor.exp().squeeze(0)
        return self.alpha * factor

    def forward(self, index: Tensor) -> Tensor:
        """Return the points (..., n) of indices (...)."""
        if not isinstance(index, Tensor) or index.dtype not in (torch.int64, torch.int32):
            expected = "a tensor of int64 or int32"
            raise TypeError(f"index must be {expected}, got {_inputs.describe(index)}")
        rows = nn.functional.embedding(
            index, self.weight, padding_idx=self.padding_idx, sparse=self.sparse
        )
        return exp0_at(self.radius * rows, self.signature, self.radius)

    def extra_repr(self) -> str:
        learned = self.log_factor is not None
        return f"{self.signature}, {self.num_embeddings}, alpha={self.alpha:g}, " + (
            f"padding_idx={self.padding_idx}, sparse={self.sparse}, learn_radius={learned}"
        )
