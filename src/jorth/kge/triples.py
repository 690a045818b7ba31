"""Triples (head, relation, tail) from a folder of tab-separated text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import describe, file_path, generator, real_number

SUFFIXES = (".txt", ".tsv")
HELD_OUT = 0.1
EXPECTED = "expected three names separated by tabs: head, relation, tail"

Line = tuple[int, str, str, str]


@dataclass(frozen=True, eq=False)
class Triples:
    """A knowledge graph in three parts, as numbers (N, 3) of int64: head, relation, tail.

    Entity number i is called ``entities[i]``, relation number i ``relations[i]``. Entities that only ``valid`` or
    ``test`` name have their numbers too: they are evaluated, with the embedding of their start.
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    train: Tensor
    valid: Tensor
    test: Tensor

    @property
    def known(self) -> Tensor:
        """All triples (N, 3): those a filtered ranking must not count as wrong."""
        return torch.cat([self.train, self.valid, self.test])

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{len(getattr(self, part))} {part}" for part in ("train", "valid", "test")
        )
        return f"Triples({len(self.entities)} entities, {len(self.relations)} relations: {parts})"


def load_triples(folder: str | os.PathLike[str], *, seed: int = 0) -> Triples:
    """Read ``train``, ``valid`` and ``test`` (``.txt`` or ``.tsv``), one triple a line, names separated by tabs.

    Names are numbered in alphabetical order. Without a validation file a tenth of the training triples is held out,
    chosen by ``seed``, at least one triple of every relation staying in training.

    Raises:
        FileNotFoundError: No training or test file.
        ValueError: A malformed line, an empty part, a relation that training does not have. It names the file and line.
    """
    root = file_path(folder, "folder")
    files = {part: _find(root, part) for part in ("train", "valid", "test")}
    for part in ("train", "test"):
        if files[part] is None:
            raise FileNotFoundError(
                f"folder {root} must hold {part}.txt or {part}.tsv, got neither"
            )
    lines = {part: _read(path) for part, path in files.items() if path is not None}
    entities = sorted({name for part in lines.values() for _, h, _, t in part for name in (h, t)})
    relations = sorted({r for _, _, r, _ in lines["train"]})
    entity_numbers = {name: number for number, name in enumerate(entities)}
    relation_numbers = {name: number for number, name in enumerate(relations)}
    parts = {
        part: _numbers(lines[part], entity_numbers, relation_numbers, files[part])  # type: ignore[arg-type]
        for part in lines
    }
    if "valid" not in parts:
        parts["train"], parts["valid"] = hold_out(parts["train"], seed=seed)
    return Triples(tuple(entities), tuple(relations), parts["train"], parts["valid"], parts["test"])


def hold_out(train: Tensor, *, share: float = HELD_OUT, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Training triples (N, 3) in two: the rest, and a ``share`` of them held out by ``seed``.

    One triple of every relation stays; the order of the rest is kept.
    """
    check_triples(train, "train")
    share = real_number(
        share, "share", "a number above 0 and below 1", lambda number: 0 < number < 1
    )
    order = generator(seed).permutation(len(train))
    _, first = np.unique(train[:, 1].numpy()[order], return_index=True)
    free = np.delete(order, first)
    count = max(1, round(share * len(train)))
    if len(free) < count:
        raise ValueError(
            f"train has {len(train)} triples, too few to hold {count} out and keep every relation"
        )
    held = np.zeros(len(train), dtype=bool)
    held[free[:count]] = True
    mask = torch.from_numpy(held)
    return train[~mask], train[mask]


def check_triples(value: object, name: str) -> None:
    """A TypeError unless a value is a dense tensor (N, 3) of int64."""
    sound = isinstance(value, Tensor) and not value.is_meta and value.layout == torch.strided
    if not sound or value.dtype != torch.int64 or value.ndim != 2 or value.shape[1] != 3:  # type: ignore[attr-defined]
        raise TypeError(f"{name} must be an int64 tensor (N, 3), got {describe(value)}")


def both_directions(triples: Tensor, relations: int) -> Tensor:
    """Every (h, r, t) and its question from the other end, (t, r + ``relations``, h): (2 N, 3)."""
    h, r, t = triples.unbind(-1)
    return torch.cat([triples, torch.stack([t, r + relations, h], dim=-1)])


def _find(root: Path, part: str) -> Path | None:
    return next((path for suffix in SUFFIXES if (path := root / f"{part}{suffix}").is_file()), None)


def _read(path: Path) -> list[Line]:
    lines = list(_parse(path))
    if not lines:
        raise ValueError(f"{path} is empty: {EXPECTED}")
    return lines


def _parse(path: Path) -> Iterator[Line]:
    """The lines with their numbers; blank ones are left out."""
    with path.open("rb") as handle:
        for number, raw in enumerate(handle, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}: not UTF-8 ({error.reason}); {EXPECTED}"
                ) from None
            if not line.strip():
                continue
            fields = [field.strip() for field in line.split("\t")]
            if len(fields) != 3 or not all(fields):
                raise ValueError(f"{path}, line {number}: {EXPECTED}; got {line[:100]!r}")
            yield number, fields[0], fields[1], fields[2]


def _numbers(
    lines: list[Line], entities: dict[str, int], relations: dict[str, int], path: Path
) -> Tensor:
    for number, _, relation, _ in lines:
        if relation not in relations:
            raise ValueError(
                f"{path}, line {number}: relation {relation!r} is not among the {len(relations)} of training; "
                "nothing can be learnt about it"
            )
    return torch.tensor(
        [(entities[h], relations[r], entities[t]) for _, h, r, t in lines], dtype=torch.int64
    )
