"""A trained model in a folder: numbers as safetensors, geometry and names as JSON; no pickle."""

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

    if not isinstance(named, NamedModel):
        raise TypeError(f"named must be a jorth.kge.NamedModel, got {describe(named)}")
    model, root = named.model, file_path(folder, "folder")
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
        stream.write(
            save({name: value.detach().cpu().contiguous() for name, value in weights.items()})
        )
    with replacing(root / ABOUT) as stream:
        stream.write(json.dumps(content, ensure_ascii=False, indent=1).encode())


def load_model(folder: str | os.PathLike[str], *, device: Any = None) -> NamedModel:
    """Read what `save_model` wrote.

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
    weights = _read_weights(root / WEIGHTS, _shapes(content))
    with reading(str(root / ABOUT)):
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
    model = model.to("cpu" if device is None else device)
    return NamedModel(model, content["entities"], content["relations"], content["about"])


NUMBER = ((int, float), "a number")
LIST = ((list,), "a list")
FIELDS = {
    "signs": LIST,
    "alpha": NUMBER,
    "delta": NUMBER,
    "reciprocal": ((bool,), "true or false"),
    "about": ((dict,), "an object"),
    "relations": LIST,
    "entities": LIST,
}
"""What ``model.json`` must have: the types of each field, and their name in messages."""


def _read_about(path: Path) -> dict[str, Any]:
    """What ``model.json`` holds, every field of the kind that it must be; `UltraE` sees to their values."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(
            f"{path} must hold an object with names and values, got {type(content).__name__}"
        )
    for name, (kinds, words) in FIELDS.items():
        if type(content.get(name)) not in kinds:
            raise ValueError(
                f"{path}: {name} must be {words}, got {type(content.get(name)).__name__}"
            )
    for name in ("entities", "relations"):
        distinct = {item for item in content[name] if isinstance(item, str)}
        if len(distinct) < len(content[name]):
            raise ValueError(
                f"{path}: {name} must be {len(content[name])} different names, got {len(distinct)}"
            )
    return content


def _shapes(content: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Of the tensors that belong to a ``model.json``."""
    entities, n = len(content["entities"]), len(content["signs"])
    matrices = len(content["relations"]) * (1 + content["reciprocal"])
    return {"points": (entities, n), "bias": (entities,), "relations": (matrices, n, n)}


def _read_weights(path: Path, expected: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """The tensors of a file, which must be these and no others: finite, of one precision."""
    from safetensors import safe_open

    with reading(str(path)), safe_open(path, framework="pt") as handle:
        found = {name: tuple(handle.get_slice(name).get_shape()) for name in handle.keys()}  # noqa: SIM118 - not a dict
        if found != expected:
            raise ValueError(
                f"{ABOUT} beside it asks for tensors of shapes {expected}, got {found}"
            )
        weights = {name: handle.get_tensor(name) for name in expected}
        kinds = {weight.dtype for weight in weights.values()}
        if len(kinds) > 1 or not kinds <= {torch.float32, torch.float64}:
            raise ValueError(
                f"its tensors must be all float64 or all float32, got {', '.join(map(str, kinds))}"
            )
        for name, weight in weights.items():
            if not weight.isfinite().all():
                raise ValueError(f"{name} must be finite, got NaN or infinite entries")
        return weights
