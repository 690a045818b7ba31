"""A trained model in a folder: numbers as safetensors, geometry and names as JSON, no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jorth.arrays import check_device, describe, file_path
from jorth.kge.model import UltraE
from jorth.signature import Signature
from jorth.storage.atomic import replacing
from jorth.storage.matrices import reading
from jorth.storage.texts import read_json

WEIGHTS = "model.safetensors"
ABOUT = "model.json"
FIELDS: dict[str, tuple[type, ...]] = {
    "signs": (list,),
    "alpha": (int, float),
    "delta": (int, float),
    "reciprocal": (bool,),
    "scaling": (str,),
    "learn_scale": (bool,),
    "reverse_weight": (int, float),
    "about": (dict,),
    "relations": (list,),
    "entities": (list,),
}
"""The fields of ``model.json`` and their types."""
LATER = {"scaling": "none", "learn_scale": False, "reverse_weight": 0.0}
"""Fields that older files do not have."""


@dataclass(frozen=True, eq=False)
class NamedModel:
    """A model with the names of its entities and relations, and further JSON data about it."""

    model: UltraE
    entities: Sequence[str]
    relations: Sequence[str]
    about: dict[str, Any] = field(default_factory=dict)


def save_model(folder: str | os.PathLike[str], named: NamedModel) -> None:
    """Write ``model.safetensors`` (the parameters) and ``model.json``, both atomically."""
    from safetensors.torch import save

    if not isinstance(named, NamedModel):
        raise TypeError(f"named must be a jorth.kge.NamedModel, got {describe(named)}")
    root = file_path(folder, "folder")
    root.mkdir(parents=True, exist_ok=True)
    model = named.model
    content = {
        "model": "UltraE",
        "signs": model.signature.signs.tolist(),
        "alpha": model.alpha,
        "delta": model.delta,
        "reciprocal": model.reciprocal,
        "scaling": model.scaling,
        "learn_scale": model.log_scale is not None,
        "reverse_weight": model.reverse_weight,
        "about": named.about,
        "relations": list(named.relations),
        "entities": list(named.entities),
    }
    with replacing(root / WEIGHTS) as stream:
        weights = model.weights().items()
        stream.write(save({name: part.detach().cpu().contiguous() for name, part in weights}))
    with replacing(root / ABOUT) as stream:
        stream.write(json.dumps(content, ensure_ascii=False, indent=1).encode())


def load_model(folder: str | os.PathLike[str], *, device: Any = None) -> NamedModel:
    """Read what `save_model` has written.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged, or the two do not belong together. The message names it.
    """
    root = file_path(folder, "folder")
    check_device(device)
    for name in (WEIGHTS, ABOUT):
        if not (root / name).is_file():
            raise FileNotFoundError(f"folder {root} must hold {WEIGHTS} and {ABOUT}, got no {name}")
    content = _read_about(root / ABOUT)
    weights = _read_weights(root / WEIGHTS, content)
    with reading(str(root / ABOUT)):
        model = UltraE(
            len(content["entities"]),
            len(content["relations"]),
            signature=Signature.of(content["signs"]),
            alpha=content["alpha"],
            delta=content["delta"],
            reciprocal=content["reciprocal"],
            scaling=content["scaling"],
            learn_scale=content["learn_scale"],
            reverse_weight=content["reverse_weight"],
            rotate=False,
            dtype=weights["points"].dtype,
        )
    model.load_state_dict(weights)
    model = model.to("cpu" if device is None else device)
    return NamedModel(model, content["entities"], content["relations"], content["about"])


def _read_about(path: Path) -> dict[str, Any]:
    """The content of ``model.json`` with fields of the right types; `UltraE` checks the values."""
    content = read_json(path)
    if not isinstance(content, dict):
        found = type(content).__name__
        raise ValueError(f"{path} must hold an object with names and values, got {found}")
    content = {**LATER, **content}
    for name, kinds in FIELDS.items():
        if type(content.get(name)) not in kinds:
            found = type(content.get(name)).__name__
            raise ValueError(f"{path}: {name} must be of type {kinds[-1].__name__}, got {found}")
    for name in ("entities", "relations"):
        count = len(content[name])
        distinct = len({item for item in content[name] if isinstance(item, str)})
        if distinct < count:
            raise ValueError(f"{path}: {name} must be {count} different names, got {distinct}")
    return content


def _read_weights(path: Path, content: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors that ``model.json`` calls for, finite and in one precision."""
    from safetensors.torch import load_file

    entities = len(content["entities"])
    n = len(content["signs"])
    matrices = len(content["relations"]) * (1 + content["reciprocal"])
    expected: dict[str, tuple[int, ...]]
    expected = {"points": (entities, n), "bias": (entities,), "relations": (matrices, n, n)}
    widths = {"curvature": 1, "diagonal": content["signs"].count(1)}
    if content["scaling"] in widths:
        expected["log_factors"] = (2 * len(content["relations"]), widths[content["scaling"]])
    if content["learn_scale"]:
        expected["log_scale"] = ()
    with reading(str(path)):
        weights: dict[str, Tensor] = load_file(path)
        shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
        if shapes != expected:
            raise ValueError(f"{ABOUT} asks for tensors of shapes {expected}, got {shapes}")
        dtypes = {weight.dtype for weight in weights.values()}
        if dtypes not in ({torch.float32}, {torch.float64}):
            found = ", ".join(map(str, dtypes))
            raise ValueError(f"its tensors must be all float64 or all float32, got {found}")
        for name, weight in weights.items():
            if not weight.isfinite().all():
                raise ValueError(f"{name} must be finite, got NaN or infinite entries")
        return weights
