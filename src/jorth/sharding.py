"""Tensors spread over processes (DTensor): the whole matrices (..., n, n) that a process works on.

A tensor that is sharded over a batch dimension keeps its shards, so that each process works on
matrices of its own. Shards of single matrices, by rows or columns, are gathered: each process then
works on the same whole matrices, and writes its own part of them back. A plain tensor is its own
matrices.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor

MODULES = ("torch.distributed.tensor", "torch.distributed._tensor")
"""The module of DTensor, and its name before torch 2.5."""


def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is a DTensor; there are none before their module has been imported."""
    module = _module()
    return module is not None and isinstance(tensor, module.DTensor)


def _module() -> Any:
    """The module of DTensor if it has been imported, else None."""
    imported = (sys.modules.get(name) for name in MODULES)
    return next((module for module in imported if hasattr(module, "DTensor")), None)


def splits_batch(tensor: Tensor) -> bool:
    """Whether processes have matrices of their own."""
    return is_sharded(tensor) and not all(p.is_replicate() for p in _whole(tensor))


def matrices_of(tensor: Tensor, like: Tensor | None = None) -> Tensor:
    """The whole matrices of this process, plain; a collective call where they must be gathered.

    Args:
        tensor: (..., n, n).
        like: The tensor whose matrices are meant, for a gradient; ``tensor`` itself if omitted.
    """
    if not is_sharded(tensor):
        return tensor
    sharded: Any = tensor
    placements = _whole(tensor if like is None else like)
    local: Tensor = sharded.redistribute(placements=placements).to_local()
    return local


def write_matrices(tensor: Tensor, matrices: Tensor) -> None:
    """Write what `matrices_of` gave, changed, back into a tensor; nothing is sent."""
    if is_sharded(tensor):
        _write(tensor, matrices, _whole(tensor))
    else:
        tensor.copy_(matrices)


def write_values(tensor: Tensor, values: Tensor) -> None:
    """Write values of the tensor's shape, the same on all processes; nothing is sent."""
    if is_sharded(tensor):
        _write(tensor, values.to(tensor), _everywhere(tensor))
    else:
        tensor.copy_(values)


def _write(tensor: Any, values: Tensor, placements: list[Any]) -> None:
    """Write this process's part of values that are placed as given."""
    placed = type(tensor).from_local(
        values,
        tensor.device_mesh,
        placements,
        run_check=False,
        shape=tensor.shape,
        stride=tensor.stride(),
    )
    tensor.to_local().copy_(placed.redistribute(placements=tensor.placements).to_local())


def zeros_beside(tensor: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros of a shape (..., k, l), on the processes that have the matrices of ``tensor``."""
    if not is_sharded(tensor):
        return tensor.new_zeros(shape, dtype=dtype)
    sharded: Any = tensor
    zeros: Tensor = _module().zeros(
        shape, dtype=dtype, device_mesh=sharded.device_mesh, placements=_whole(sharded)
    )
    return zeros


def check_layout(tensor: Tensor, name: str) -> None:
    """Raise a ValueError if torch cannot gather a tensor's matrices or split them again."""
    if not is_sharded(tensor):
        return
    sharded: Any = tensor
    try:
        write_matrices(tensor, matrices_of(tensor))
    except (NotImplementedError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"{name} must have placements that torch can gather and split again, got "
            f"{sharded.placements} on {sharded.device_mesh} ({error}); leave it out with "
            "fully_shard(..., ignored_params=...), or shard it over one dimension of the mesh"
        ) from error


def local_part(tensor: Tensor) -> Tensor:
    """The plain tensor of this process, which shares memory with ``tensor``."""
    sharded: Any = tensor
    return sharded.to_local() if is_sharded(tensor) else tensor


def _whole(tensor: Any) -> list[Any]:
    """The placements of the tensor's whole matrices: shards of a batch, or everything everywhere.

    FSDP on top of tensor parallelism has strided shards, which are gathered in any case.
    """
    everywhere = _everywhere(tensor)
    if not all(placement.is_shard() or placement.is_replicate() for placement in tensor.placements):
        return everywhere
    return [
        given if given.is_shard() and given.dim < tensor.ndim - 2 else replicate
        for given, replicate in zip(tensor.placements, everywhere, strict=True)
    ]


def _everywhere(tensor: Any) -> list[Any]:
    return [_module().Replicate() for _ in tensor.placements]
