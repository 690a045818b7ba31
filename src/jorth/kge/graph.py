"""Knowledge graphs: triples, read from files or generated, split, and their known answers."""

from __future__ import annotations

import codecs
import csv
import gzip
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._files import reading
from jorth._inputs import describe, file_path, generator, real_number, to_array, whole_number
from jorth.extras import needs

PARTS = ("train", "valid", "test")


@dataclass(frozen=True, eq=False)
class Triples:
    """A knowledge graph in three parts, each an int64 tensor (N, 3) of head, relation and tail.

    Arrays, frames and lists of whole numbers become such tensors.

    Entity i is called ``entities[i]``, relation i ``relations[i]``. Entities that occur only in
    ``valid`` or ``test`` are numbered too, and keep their initial embedding. ``valid`` and ``test``
    may be empty. ``notes`` are what `load_triples` has found out about its files, a line each.

    Raises:
        TypeError: A part holds other than whole numbers (N, 3) or is on another device than
            ``train``, or the names are no strings.
        ValueError: A number has no name, two names are equal, or ``train`` is empty.

    >>> train, none = torch.tensor([[0, 0, 1]]), torch.empty(0, 3, dtype=torch.int64)
    >>> jorth.kge.Triples(("ann", "bob"), ("parent",), train, none, none).relations
    ('parent',)
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    train: Tensor
    valid: Tensor
    test: Tensor
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in ("entities", "relations"):
            object.__setattr__(self, kind, distinct_names(getattr(self, kind), kind))
        for part in PARTS:
            triples = to_triples(getattr(self, part), part)
            object.__setattr__(self, part, triples)
            if triples.device != self.train.device:
                found = f"{part} on {triples.device} and train on {self.train.device}"
                raise TypeError(f"train, valid and test must be on one device, got {found}")
            check_numbers(triples, part, len(self.entities), len(self.relations))
        self.require("train")

    def require(self, *parts: str) -> None:
        """Raise a ValueError if one of the ``parts`` has no triples."""
        for part in parts:
            check_some(getattr(self, part), part)

    @property
    def known(self) -> Tensor:
        """All triples (N, 3): those that a filtered ranking must not count as wrong."""
        return torch.cat([self.train, self.valid, self.test])

    @property
    def irreflexive(self) -> Tensor:
        """Which relations (relations,) occur in ``train`` and relate no entity to itself there."""
        h, r, t = self.train.unbind(-1)
        loops = torch.bincount(r[h == t], minlength=len(self.relations))
        return (self.frequencies > 0) & (loops == 0)

    @property
    def frequencies(self) -> Tensor:
        """How often each relation (relations,) occurs in ``train``."""
        return torch.bincount(self.train[:, 1], minlength=len(self.relations))

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(getattr(self, part))} {part}" for part in PARTS)
        return f"Triples({len(self.entities)} entities, {len(self.relations)} relations: {parts})"


def distinct_names(value: object, kind: str, count: int | None = None) -> tuple[str, ...]:
    """Return the names as a tuple, or an error unless they are ``count`` different strings."""
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        raise TypeError(f"{kind} must be a sequence of names, got {describe(value)}")
    others = [name for name in value if not isinstance(name, str)]
    if others:
        raise TypeError(f"{kind} must be names, strings, got {describe(others[0])} among them")
    if count is not None and len(value) != count:
        raise ValueError(f"{kind} must be {count} names, one each, got {len(value)}")
    if len(set(value)) < len(value):
        ((name, repeated),) = Counter(value).most_common(1)
        raise ValueError(f"{kind} must have distinct names, got {name!r} {repeated} times")
    return tuple(value)


class Known:
    """The known answers of queries (anchor, code), according to ``triples`` (N, 3).

    Code r asks for tails, code r + ``relations`` for heads; ``entities`` and ``relations`` are
    their numbers. The index is searched on the device.
    """

    def __init__(self, triples: Tensor, entities: int, relations: int) -> None:
        anchor, code, answer = both_directions(triples, relations).unbind(-1)
        self._entities = entities
        self._codes = 2 * relations
        self._keys = torch.unique(self._query(anchor, code) * entities + answer)
        self.listed = self._keys % entities
        """The answers (M,) of all queries, one query after the other."""

    def answers(self, anchor: Tensor, code: Tensor) -> tuple[Tensor, Tensor]:
        """Return the known answers of the queries (B,) as pairs of a row and an entity."""
        rows, places = expand_spans(*self.spans(anchor, code))
        return rows, self.listed[places]

    def spans(self, anchor: Tensor, code: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the answers of the queries (B,) start and end in ``listed``, (B,) each."""
        least = self._query(anchor, code) * self._entities
        first = torch.searchsorted(self._keys, least)
        return first, torch.searchsorted(self._keys, least + self._entities)

    def _query(self, anchor: Tensor, code: Tensor) -> Tensor:
        return anchor * self._codes + code


def expand_spans(first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows i and the places j of all j from first[i] (B,) to below last[i] (B,)."""
    count = last - first
    rows = torch.repeat_interleave(torch.arange(len(first), device=first.device), count)
    within = torch.arange(len(rows), device=rows.device) - (count.cumsum(0) - count)[rows]
    return rows, first[rows] + within


def both_directions(triples: Tensor, relations: int) -> Tensor:
    """Return all triples (h, r, t), then all from the other end: (t, r + ``relations``, h)."""
    h, r, t = triples.unbind(-1)
    return torch.cat([triples, torch.stack([t, r + relations, h], dim=-1)])


def to_triples(value: object, name: str) -> Tensor:
    """Return an int64 tensor (N, 3) from a tensor, an array, a frame or lists, or a TypeError."""
    if isinstance(value, Triples):
        found = f"{describe(value)}; take one of its parts, such as graph.test"
        raise TypeError(f"{name} must be an int64 tensor (N, 3), got {found}")
    triples = index_tensor(value, name)
    if triples.shape == (0,):  # an empty list
        triples = triples.reshape(0, 3)
    if triples.dtype != torch.int64 or triples.shape[1:] != (3,):
        raise TypeError(f"{name} must be an int64 tensor (N, 3), got {describe(value)}")
    return triples


def check_some(triples: Tensor, name: str) -> None:
    """Raise a ValueError if there are no triples."""
    if len(triples) == 0:
        raise ValueError(f"{name} must hold at least one triple, got none")


def check_numbers(triples: Tensor, name: str, entities: int, relations: int) -> None:
    """Raise a ValueError unless heads, tails and relations are numbers of the graph."""
    if len(triples) == 0:
        return
    check_indices(triples[:, ::2], f"entities of {name}", entities, triples.device)
    check_indices(triples[:, 1], f"relations of {name}", relations, triples.device)


def check_per_relation(value: object, name: str, relations: int) -> None:
    """Check that it is a tensor of flags with an entry per relation, or of counts."""
    kind = torch.int64 if name == "frequencies" else torch.bool
    if not isinstance(value, Tensor) or value.dtype != kind or value.shape != (relations,):
        expected = f"a {kind} tensor ({relations},)"
        raise TypeError(f"{name} must be {expected}, got {describe(value)}")


def hold_out(train: Tensor, *, share: float = 0.1, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Split training triples (N, 3) into those that stay and a random ``share``, in their order.

    Identical triples go to the same side, so that nothing held out is also trained on; a triple and
    its reverse (t, r, h) may part. At least one triple of every relation stays. No more than the
    share is held out, rounded, and at least one triple.
    """
    train = to_triples(train, "train")
    share = real_number(share, "share", "a number above 0 and below 1", lambda x: 0 < x < 1)
    distinct: dict[tuple[int, ...], int] = {}
    own = [distinct.setdefault(tuple(triple), len(distinct)) for triple in train.tolist()]
    copies = np.bincount(own, minlength=len(distinct))
    order = generator(seed).permutation(len(distinct))
    relations = np.array([relation for _, relation, _ in distinct], dtype=np.int64)
    _, first = np.unique(relations[order], return_index=True)
    free = np.delete(order, first)
    count = max(1, round(share * len(train)))
    if copies[free].sum() < count:
        found = f"{len(train)} triples, too few to hold {count} out and keep every relation"
        raise ValueError(f"train has {found}")
    fits = np.cumsum(copies[free]) <= count
    fits[0] = True
    validation = np.zeros(len(distinct), dtype=bool)
    validation[free[fits]] = True
    mask = torch.from_numpy(validation[own]).to(train.device)
    return train[~mask], train[mask]


def hierarchy_with_cycles(
    *, branching: int = 3, depth: int = 4, share: float = 0.1, seed: int = 0
) -> Triples:
    """Return a tree in which the nodes of every level also form a cycle.

    ``parent`` leads from a node to its parent, ``ancestor`` to everything above the parent,
    ``next`` to the neighbour on the cycle of its level, and ``second_next`` to the one after that.
    Validation and test each hold a ``share`` of the triples of ``ancestor`` and ``second_next``,
    drawn by ``seed``; all of these follow from ``parent`` and ``next``.

    Args:
        branching: The number of children of every node.
        depth: The number of levels below the root.
        share: The share of the derived triples in validation, and in test.
        seed: The seed of the draw.

    >>> len(jorth.kge.hierarchy_with_cycles(branching=3, depth=2).entities)
    13
    """
    branching = whole_number(branching, "branching", 3)
    largest = 2**24  # leaves: the triples of a larger tree would take gigabytes
    depth = min(whole_number(depth, "depth", 2), largest)
    if branching**depth > largest:
        expected = f"at most {largest}"
        raise ValueError(f"branching ** depth must be {expected}, got {branching} ** {depth}")
    share = real_number(share, "share", "between 0 and 0.5", lambda x: 0 < x < 0.5)
    levels = [["0"]]
    for _ in range(depth):
        levels.append([f"{name}.{child}" for name in levels[-1] for child in range(branching)])
    entities = sorted(name for level in levels for name in level)
    numbers = {name: number for number, name in enumerate(entities)}
    named = list(_tree_triples(levels, branching))
    relations = ("ancestor", "next", "parent", "second_next")
    codes = {name: code for code, name in enumerate(relations)}
    coded = torch.tensor([(numbers[h], codes[r], numbers[t]) for h, r, t in named])
    inferred = np.flatnonzero([r in ("ancestor", "second_next") for _, r, _ in named])
    count = max(1, round(share * len(inferred)))
    drawn = generator(seed).permutation(inferred)[: 2 * count]
    train = torch.ones(len(named), dtype=torch.bool)
    train[drawn] = False
    parts = coded[train], coded[drawn[:count]], coded[drawn[count:]]
    return Triples(tuple(entities), relations, *parts)


def _tree_triples(levels: list[list[str]], branching: int) -> Iterator[tuple[str, str, str]]:
    for depth, level in enumerate(levels[1:], start=1):
        for place, name in enumerate(level):
            for up in range(1, depth + 1):
                above = levels[depth - up][place // branching**up]
                yield name, "parent" if up == 1 else "ancestor", above
            yield name, "next", level[(place + 1) % len(level)]
            yield name, "second_next", level[(place + 2) % len(level)]


ROLES = ("head", "relation", "tail")
STATEMENT = r'^(<[^>]*>|_:\S+)\s+(<[^>]*>)\s+(<[^>]*>|_:\S+|".*\S)\s*\.\s*(?:#.*)?$'
"""A line of N-Triples: names in angle brackets, blank nodes, literals in quotes."""
LEAST_LINES = 20
"""Lines from which on names in the first one alone are noticed."""
HEADINGS = (ROLES, ("subject", "predicate", "object"), ("source", "type", "target"))
"""First lines of files that are no triples."""


def load_triples(path: str | os.PathLike[str], *, seed: int = 0) -> Triples:
    """Read a graph: a folder of ``train``, ``valid`` and ``test``, or one file, which is split.

    pandas reads the files, UTF-8 or UTF-16 text that ends in .txt, .tsv, .csv or .nt (N-Triples)
    and may be packed (.gz). Each line has a triple: head, relation and tail separated by tabs, in
    .csv by commas. The first line has headings if it is the same in all files, or: head, relation,
    tail; subject, predicate, object; source, type, target.
    Names are numbered in alphabetical order. A line that a file has more than once counts once.
    Without a validation file a tenth of the training triples is held out by `hold_out`; of one
    file, a tenth is held out for test and another for validation. ``notes`` of the result say what
    was found.

    Args:
        path: The folder or the file.
        seed: The seed of what is held out.

    Raises:
        FileNotFoundError: There is no such folder or file, or no training or no test file in it.
        ValueError: A line is malformed, a part is empty, or a relation does not occur in training.
            The message names the file and the line.

    >>> triples = [(f"child{k}", "parent", "ann") for k in range(10)]
    >>> np.savetxt("family.csv", triples, fmt="%s", delimiter=",")
    >>> len(jorth.kge.load_triples("family.csv").train)
    8
    """
    root = file_path(path, "path")
    if not root.exists():
        raise FileNotFoundError(f"path must be a folder or a file of triples, got none at {root}")
    files = {"train": root} if root.is_file() else _files_in(root)
    tables: dict[str, Any] = {}
    notes = []
    for part, file in files.items():
        tables[part] = read_table(file, ROLES)
    starts = {part: tuple(table.iloc[0]) for part, table in tables.items()}
    same = len(files) > 1 and len(set(starts.values())) == 1
    for part, table in tables.items():
        line, names = f"the first line of {files[part].name}", ", ".join(starts[part])
        if same or tuple(name.lower() for name in starts[part]) in HEADINGS:
            notes.append(f"{line} has headings: {names}")
            table = table.iloc[1:]
        elif len(table) >= LEAST_LINES and not table.iloc[1:].isin(starts[part]).any(axis=None):
            notes.append(f"{line}, {names}, has names of its own; remove it if they are headings")
        tables[part] = table.drop_duplicates()
    ends = [table[role] for table in tables.values() for role in ("head", "tail")]
    entities = sorted(set().union(*ends))
    relations = sorted(set(tables["train"]["relation"]))
    numbers = [{name: k for k, name in enumerate(names)} for names in (entities, relations)]
    parts: dict[str, Tensor] = {}
    for part, table in tables.items():
        for line, name in table["relation"].items():
            if name not in numbers[1]:
                found = f"relation {name!r} is not among the {len(relations)} of training"
                raise ValueError(f"{files[part]}, line {line}: {found}")
        codes = [table[role].map(numbers[role == "relation"]) for role in ROLES]
        parts[part] = torch.from_numpy(np.stack(codes, axis=1).astype(np.int64))
    missing = [part for part in ("test", "valid") if part not in parts]
    for part in missing:
        parts["train"], parts[part] = hold_out(parts["train"], seed=seed)
    if missing:
        what = " and ".join(f"{len(parts[part])} {part}" for part in missing)
        notes.append(f"held out of {files['train'].name} with seed {seed}: {what} triples")
    return Triples(tuple(entities), tuple(relations), **parts, notes=tuple(notes))


def _files_in(root: Path) -> dict[str, Path]:
    """Return the files of a folder by their parts."""
    files: dict[str, Path] = {}
    for part in PARTS:
        kinds = ("txt", "tsv", "csv", "nt", "txt.gz", "tsv.gz", "csv.gz", "nt.gz")
        found = [file for kind in kinds if (file := root / f"{part}.{kind}").is_file()]
        if found:
            files[part] = found[0]
        elif part != "valid":
            expected = f"{part}.txt, {part}.tsv, {part}.csv or {part}.nt"
            advice = "one file of triples can be given itself, and is split then"
            raise FileNotFoundError(f"folder {root} must hold {expected}, got none; {advice}")
    return files


def read_table(path: Path, columns: tuple[str, ...]) -> Any:
    """Return a frame of pandas with the texts in a file, whose index are the numbers of lines.

    Tabs separate the fields, in .csv commas; .nt has N-Triples. Blank lines are skipped.
    """
    with needs(f"the file {path.name}", "pandas"):
        import pandas
    name = path.name.lower().removesuffix(".gz")
    is_csv, is_nt = name.endswith(".csv"), name.endswith(".nt")
    with reading(str(path)):
        with (gzip.open if path.name.lower().endswith(".gz") else open)(path, "rb") as stream:
            is_utf16 = stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        table = pandas.read_csv(
            path, sep="," if is_csv else "\x01" if is_nt else "\t", header=None, dtype=str,
            quoting=csv.QUOTE_MINIMAL if is_csv else csv.QUOTE_NONE, skip_blank_lines=False,
            encoding="utf-16" if is_utf16 else "utf-8-sig", lineterminator="\n",
            keep_default_na=False,
        ).fillna("")  # fmt: skip
    if is_nt:
        lines = table[0].str.strip()
        lines = lines[~lines.str.startswith("#")]
        table = lines.str.extract(STATEMENT).replace(r"^<(.*)>$", r"\1", regex=True)
        table[0] = table[0].fillna(lines)  # for the message of a line that is none
        table = table.fillna("")
    table = table.apply(lambda column: column.str.strip())
    table.index += 1
    table = table[(table != "").any(axis=1)]
    if table.shape[1] != len(columns) or not len(table):
        kind = f"lines of {', '.join(columns)} separated by {'commas' if is_csv else 'tabs'}"
        found = f"{len(table)} lines of {table.shape[1]} fields"
        raise ValueError(f"{path} must have {kind}, got {found}")
    table.columns = list(columns)
    incomplete = (table == "").any(axis=1)
    if incomplete.any():
        line = incomplete.idxmax()
        found = " | ".join(table.loc[line])[:100]
        raise ValueError(f"{path}, line {line}: expected {', '.join(columns)}, got {found!r}")
    return table


def index_tensor(value: object, name: str, device: torch.device | None = None) -> Tensor:
    """Return a tensor as it is; whole numbers in lists, arrays and frames as an int64 one."""
    if isinstance(value, Tensor):
        return value
    array = to_array(value, name)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must hold whole numbers, got {describe(value)}")
    return torch.from_numpy(array.astype(np.int64)).to(device or "cpu")


def check_indices(value: Any, name: str, below: int, device: torch.device) -> Tensor:
    """Check that a tensor on a device holds whole numbers from 0 to ``below`` - 1."""
    integers = isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32)
    if not integers or value.device != device:
        raise TypeError(f"{name} must be an int64 tensor on {device}, got {describe(value)}")
    least, largest = (int(value.min()), int(value.max())) if value.numel() else (0, 0)
    if least < 0 or largest >= below:
        raise ValueError(f"{name} must be from 0 to {below - 1}, got {least} to {largest}")
    found: Tensor = value
    return found
