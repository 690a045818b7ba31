"""Entities and relations of a model, called by name or by number."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from jorth.arrays import describe, whole_number
from jorth.kge.export import NamedModel
from jorth.kge.model import UltraE
from jorth.kge.settings.config import check_name

LONGEST_NAME = 200
"""How many characters of a name an error message repeats, and compares with others."""
Key = str | int
"""The name of an entity or a relation, or its number."""


@dataclass(frozen=True, eq=False)
class Names:
    """The ``count`` entities or relations of a model, with or without names."""

    kind: str
    count: int
    names: Sequence[str] | None

    def numbers(self, keys: Any, argument: str) -> list[int]:
        """The numbers of one key or of a sequence of keys; errors name the ``argument``."""
        table: dict[str, int] = {}
        several = _list(keys, argument)
        if self.names is not None and any(isinstance(key, str) for key in several):
            table = {name: number for number, name in enumerate(self.names)}
        return [self._number(key, table, argument) for key in several]

    def key(self, number: int) -> Key:
        """The name of a number, or the number itself in a model without names."""
        return number if self.names is None else self.names[number]

    def _number(self, key: Any, table: dict[str, int], argument: str) -> int:
        if isinstance(key, str):
            if self.names is None:
                reason = "a number, as the model has no names (see jorth.kge.NamedModel)"
                raise TypeError(f"{argument} must be {reason}, got {describe(key)}")
            if key not in table and len(key) > LONGEST_NAME:
                raise ValueError(f"{argument}: there is no {self.kind} like {describe(key)}")
            if key not in table:
                check_name(key, self.names, self.kind, f"{argument}: ")
            return table[key]
        if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
            expected = f"the name or the number of a {self.kind}".replace("a e", "an e")
            raise TypeError(f"{argument} must be {expected}, got {describe(key)}")
        number = whole_number(key, argument, 0)
        if number >= self.count:
            raise ValueError(f"{argument} must be from 0 to {self.count - 1}, got {number}")
        return number


def _list(keys: Any, argument: str) -> list[Any]:
    """One key, or a sequence, array, series or tensor (m,) of keys, as a list."""
    keys = _without_index(keys)
    if isinstance(keys, (np.ndarray, Tensor)):
        if keys.ndim > 1 or (isinstance(keys, Tensor) and keys.is_meta):
            expected = "names or numbers in at most one dimension"
            raise TypeError(f"{argument} must be {expected}, got {describe(keys)}")
        keys = keys.tolist()
    return [keys] if is_single(keys) else list(keys)


def _without_index(keys: Any) -> Any:
    """The values of a series; anything else as it is."""
    return np.asarray(keys) if hasattr(keys, "to_numpy") else keys


def is_single(keys: Any) -> bool:
    """Whether it is one key and not a sequence of keys."""
    keys = _without_index(keys)
    if isinstance(keys, (np.ndarray, Tensor)):
        return keys.ndim == 0
    return isinstance(keys, (str, bytes)) or not isinstance(keys, Sequence)


def parts_of(model: Any) -> tuple[UltraE, Names, Names]:
    """The `UltraE` of a model, its entities and its relations."""
    named = isinstance(model, NamedModel)
    plain = model.model if named else model
    if not isinstance(plain, UltraE):
        expected = "a jorth.kge.NamedModel or a jorth.kge.UltraE"
        hint = ""
        if isinstance(model, (str, os.PathLike)):
            hint = "; jorth.kge.load_model reads a folder"
        elif isinstance(getattr(model, "model", None), UltraE):
            hint = "; it is the attribute .model of this"
        raise TypeError(f"model must be {expected}, got {describe(plain)}{hint}")
    entities = Names("entity", plain.n_entities, model.entities if named else None)
    relations = Names("relation", plain.n_relations, model.relations if named else None)
    for names in (entities, relations):
        if names.names is not None and len(names.names) != names.count:
            expected = f"{names.count} names, one per {names.kind}"
            raise ValueError(f"model must have {expected}, got {len(names.names)}")
    return plain, entities, relations
