"""A trained model in a folder: numbers as safetensors, geometry and names as JSON, no pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._files import make_folder, read_json, reading, replacing
from jorth._inputs import check_device, describe, file_path
from jorth.kge.model import UltraE
from jorth.signature import Signature

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
    """Write ``model.safetensors`` (the parameters) and ``model.json``, both atomically.

    Args:
        folder: Where the files go; made where it is missing.
        named: The model with the names of its entities and relations.

    Raises:
        TypeError: A name is no string, or ``about`` is not made of what JSON can hold.
        ValueError: The names are not distinct or not as many as the model has, or a parameter is
            not finite. Files that were there are kept.
    """
    from safetensors.torch import save

    if not isinstance(named, NamedModel):
        raise TypeError(f"named must be a jorth.kge.NamedModel, got {describe(named)}")
    if not isinstance(named.model, UltraE):
        raise TypeError(f"named.model must be a jorth.kge.UltraE, got {describe(named.model)}")
    root = file_path(folder, "folder")
    weights = {
        name: part.detach().cpu().contiguous() for name, part in named.model.weights().items()
    }
    _check_weights(weights)
    contents = {ABOUT: _encoded(named), WEIGHTS: save(weights)}
    make_folder(root, "folder")
    with ExitStack() as both:  # neither is replaced before both are written
        for name, content in contents.items():
            stream = both.enter_context(replacing(root / name))
            stream.write(content)
            stream.flush()


def _encoded(named: NamedModel) -> bytes:
    """The content of ``model.json``."""
    model = named.model
    _check_names(named.entities, "entities", model.n_entities)
    _check_names(named.relations, "relations", model.n_relations)
    if not isinstance(named.about, dict):
        raise TypeError(f"about must be a dictionary, got {describe(named.about)}")
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
    try:
        return json.dumps(content, ensure_ascii=False, indent=1).encode()
    except (TypeError, ValueError, RecursionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"names and about must be what JSON can hold: {error}") from None


def load_model(folder: str | os.PathLike[str], *, device: Any = None) -> NamedModel:
    """Read what `save_model` has written.

    Args:
        folder: The folder of the files.
        device: The device of the model; the CPU by default.

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
    with reading(str(path)):
        for name in ("entities", "relations"):
            _check_names(content[name], name, len(content[name]))
    return content


def _check_names(names: Sequence[str], what: str, count: int) -> None:
    """Raise an error unless there are ``count`` different strings."""
    if isinstance(names, str) or not isinstance(names, (Sequence, np.ndarray)):
        raise TypeError(f"{what} must be a sequence of names, got {describe(names)}")
    others = [name for name in names if not isinstance(name, str)]
    if others:
        raise TypeError(f"{what} must be names, strings, got {describe(others[0])} among them")
    if len(names) != count:
        raise ValueError(f"{what} must be {count} names, one each, got {len(names)}")
    distinct = len(set(names))
    if distinct < count:
        raise ValueError(f"{what} must be {count} different names, got {distinct}")


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
        _check_weights(weights)
        return weights


def _check_weights(weights: dict[str, Tensor]) -> None:
    """Raise a ValueError unless the tensors are finite and in one precision."""
    dtypes = {weight.dtype for weight in weights.values()}
    if dtypes not in ({torch.float32}, {torch.float64}):
        found = ", ".join(map(str, dtypes))
        raise ValueError(f"the model's tensors must be all float64 or all float32, got {found}")
    for name, weight in weights.items():
        if not weight.isfinite().all():
            raise ValueError(f"{name} must be finite, got NaN or infinite entries")
