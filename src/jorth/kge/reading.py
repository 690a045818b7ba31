"""Graphs from files: a folder of train, valid and test, or one file, which is split."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch import Tensor

from jorth._inputs import check_flag, file_path
from jorth.kge.graph import PARTS, Triples, hold_out
from jorth.kge.lines import ROLES, Line, Lines, read_lines

SUFFIXES = tuple(kind + packed for packed in ("", ".gz") for kind in (".txt", ".tsv", ".csv"))
NOT_A_HEADER = "--no-header, or header=False in Python, reads it as a triple"


def load_triples(
    path: str | os.PathLike[str], *, seed: int = 0, header: bool | None = None
) -> Triples:
    """Read a graph: a folder of ``train``, ``valid`` and ``test``, or one file, which is split.

    Files end in .txt, .tsv or .csv, and may be packed (.gz) if they hold at most 256 MiB. Each line
    has a triple: three names separated by tabs, in .csv by commas. The first line may have
    headings, such as head, relation, tail or subject, predicate, object; they say which column is
    which, and further columns are left out. Names are numbered in alphabetical order. A line that a
    file has more than once counts once. Without a validation file a tenth of the training triples
    is held out by `hold_out`; of one file, a tenth is held out for test and another for validation.
    ``notes`` of the result say what was found.

    Args:
        path: The folder or the file.
        seed: The seed of what is held out.
        header: Whether the first lines have headings. None finds out: they have well-known names,
            which the file does not use otherwise.

    Raises:
        FileNotFoundError: There is no such folder or file, or no training or no test file in it.
        ValueError: A line is malformed, a part is empty, or a relation does not occur in training.
            The message names the file and the line.
    """
    root = file_path(path, "path")
    if header is not None:
        check_flag(header, "header")
    if root.is_file():
        files = {"train": root}
    elif root.is_dir():
        files = _files_in(root)
    else:
        raise FileNotFoundError(f"path must be a folder or a file of triples, got none at {root}")
    lines = {part: read_lines(file, header) for part, file in files.items()}
    entities = sorted(
        {name for part in lines.values() for _, h, _, t in part.triples for name in (h, t)}
    )
    relations = sorted({r for _, _, r, _ in lines["train"].triples})
    entity_numbers = {name: number for number, name in enumerate(entities)}
    relation_numbers = {name: number for number, name in enumerate(relations)}
    parts = {
        part: _numbers(lines[part].triples, entity_numbers, relation_numbers, file)
        for part, file in files.items()
    }
    notes = [*_about_headings(files, lines)]
    missing = [part for part in ("test", "valid") if part not in parts]
    for part in missing:
        parts["train"], parts[part] = hold_out(parts["train"], seed=seed)
    if missing:
        what = " and ".join(f"{len(parts[part])} {part}" for part in missing)
        notes.append(f"held out of {files['train'].name} with seed {seed}: {what} triples")
    return Triples(tuple(entities), tuple(relations), **parts, notes=tuple(notes))


def _files_in(root: Path) -> dict[str, Path]:
    """The files of a folder by their parts."""
    files: dict[str, Path] = {}
    for part in PARTS:
        places = (root / f"{part}{suffix}" for suffix in SUFFIXES)
        found = (place for place in places if place.is_file())
        chosen = next(found, None)
        if chosen is not None:
            files[part] = chosen
        elif part != "valid":
            expected = f"{part}.txt or {part}.tsv or {part}.csv"
            advice = "one file of triples can be given itself, and is split then"
            raise FileNotFoundError(f"folder {root} must hold {expected}, got none; {advice}")
    return files


def _about_headings(files: dict[str, Path], lines: dict[str, Lines]) -> list[str]:
    """What was taken for headings, in one line for all files that have the same."""
    owners: dict[tuple[str, ...], list[str]] = {}
    for part, found in lines.items():
        if found.headings:
            owners.setdefault(found.headings, []).append(files[part].name)
    return [
        f"the first line of {', '.join(names)} has headings: "
        + ", ".join(f"{role} {name!r}" for role, name in zip(ROLES, headings, strict=True))
        + f" ({NOT_A_HEADER})"
        for headings, names in owners.items()
    ]


def _numbers(
    lines: list[Line], entities: dict[str, int], relations: dict[str, int], path: Path
) -> Tensor:
    for number, _, relation, _ in lines:
        if relation not in relations:
            found = f"relation {relation!r} is not among the {len(relations)} of training"
            raise ValueError(f"{path}, line {number}: {found}")
    distinct = dict.fromkeys((entities[h], relations[r], entities[t]) for _, h, r, t in lines)
    return torch.tensor(list(distinct))
