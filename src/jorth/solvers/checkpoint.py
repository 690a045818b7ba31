"""Checkpoints: a folder whose one file is replaced atomically. Arrays as safetensors, the rest as JSON; no pickle."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jorth.ranks import Ranks

FILE = "state.safetensors"
ABOUT = "problem.json"


class CheckpointMismatch(ValueError):
    """The folder holds a checkpoint of another problem, method or start."""


def save(folder: Path, identity: dict[str, str], tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
    """Write the state; a reader sees the old one or the new one, never half of one."""
    from safetensors.torch import save_file

    metadata = {"identity": json.dumps(identity), "numbers": json.dumps(numbers)}
    temporary = folder / f"{FILE}.{os.getpid()}.tmp"
    save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, temporary, metadata)
    with temporary.open("rb+") as handle:
        os.fsync(handle.fileno())
    temporary.replace(folder / FILE)


def prepare(folder: Path, identity: dict[str, str]) -> None:
    """Make the folder and say in words whose it is; an OSError here comes before any work is done."""
    folder.mkdir(parents=True, exist_ok=True)
    _replace(folder / ABOUT, json.dumps(identity, indent=2).encode())


def load(
    folder: Path, identity: dict[str, str], device: torch.device
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The state in the folder, or None when there is none; CheckpointMismatch when it belongs to something else."""
    from safetensors import SafetensorError, safe_open

    path = folder / FILE
    if not path.exists():
        return None
    try:
        opened = safe_open(path, framework="pt", device=str(device))
    except SafetensorError as error:
        raise ValueError(f"checkpoint {path} cannot be read ({error}); remove it to start anew") from error
    with opened as handle:
        metadata = handle.metadata()
        found = json.loads(metadata["identity"])
        for key in identity:
            if found.get(key) != identity[key]:
                raise CheckpointMismatch(
                    f"checkpoint {folder} belongs to another run: {key} is {found.get(key)} there and {identity[key]} "
                    "here; nothing was overwritten"
                )
        # copies in memory of torch's own alignment: BLAS may round differently on other alignments
        tensors = {name: handle.get_tensor(name).clone() for name in handle.keys()}  # noqa: SIM118 - not a dict
    return tensors, json.loads(metadata["numbers"])


def open_folder(
    folder: Path, identity: dict[str, str], device: torch.device, ranks: Ranks | None
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """`load`, then `prepare`. Of several processes the first does it and tells the others."""

    def read() -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        found = load(folder, identity, device if ranks is None else torch.device("cpu"))
        prepare(folder, identity)
        return found

    found = read() if ranks is None else ranks.from_first(read)
    return None if found is None else ({name: tensor.to(device) for name, tensor in found[0].items()}, found[1])


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    temporary.replace(path)
