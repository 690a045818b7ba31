"""A trained model in a folder: numbers as safetensors, geometry and names as JSON; no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from jorth.kge.model import UltraE
from jorth.matrix_files import replacing
from jorth.signature import Signature

WEIGHTS = "model.safetensors"
ABOUT = "model.json"


@dataclass(frozen=True, eq=False)
class NamedModel:
    """A model, what its numbers are called, and whatever else is to be kept with it (as JSON can hold it)."""

    model: UltraE
    entities: Sequence[str]
    relations: Sequence[str]
    about: dict[str, Any] = field(default_factory=dict)


def save_model(folder: str | os.PathLike[str], named: NamedModel) -> None:
    """Write ``model.safetensors`` (points, bias, relations) and ``model.json``; each file is replaced whole."""
    from safetensors.torch import save

    model, root = named.model, Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    weights = {name: getattr(model, name) for name in ("points", "bias", "relations")}
    content = {
        "model": "UltraE",
        "signs": model.signature.signs.tolist(),
        "alpha": model.alpha,
        "delta": model.delta,
        "reciprocal": model.reciprocal,
        "about": named.about,
        "relations": list(named.relations),
        "entities": list(named.entities),
    }
    with replacing(root / WEIGHTS) as stream:
        stream.write(save({name: value.detach().cpu().contiguous() for name, value in weights.items()}))
    with replacing(root / ABOUT) as stream:
        stream.write(json.dumps(content, ensure_ascii=False, indent=1).encode())


def load_model(folder: str | os.PathLike[str], *, device: Any = None) -> NamedModel:
    """Read what `save_model` wrote."""
    from safetensors.torch import load_file

    root = Path(folder)
    for name in (WEIGHTS, ABOUT):
        if not (root / name).is_file():
            raise FileNotFoundError(f"folder {root} must hold {WEIGHTS} and {ABOUT}, got no {name}")
    content = json.loads((root / ABOUT).read_text(encoding="utf-8"))
    weights = load_file(root / WEIGHTS)
    model = UltraE(
        len(content["entities"]),
        len(content["relations"]),
        signature=Signature.of(content["signs"]),
        alpha=content["alpha"],
        delta=content["delta"],
        reciprocal=content["reciprocal"],
        rotate=False,
        dtype=weights["points"].dtype,
    )
    model.load_state_dict(weights)
    return NamedModel(
        model.to(torch.device(device or "cpu")), content["entities"], content["relations"], content["about"]
    )
