"""What `jorth kge` prints, as tables and as JSON."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from jorth._files import to_json
from jorth.kge.answers import Answer, Explanation, Link
from jorth.kge.graph import read_table
from jorth.kge.ranking import Ranking, Side
from jorth.kge.training import METRICS, Row
from jorth.terminal import number_table, visible


def read_labels(path: Path) -> dict[str, str | float]:
    """Return the labels of entities; numbers if all of them are."""
    table = read_table(path, ("entity", "label"))
    texts = dict(zip(table["entity"], table["label"], strict=True))
    try:
        return {entity: float(label) for entity, label in texts.items()}
    except ValueError:
        return texts


HEADINGS = ("relation", "boost", "translation", "angles", "Rx", "RRx", "SRx", "S")
MEANING = (
    "boost: largest rapidity; translation: what no change of origin removes; angles: mean "
    "angle of the rotations; Rx, RRx, SRx: median distance from x over that of two entities "
    "(RRx = 0: symmetric; SRx = 0: S undoes R); S: the relation that undoes R best"
)


def answers_as_text(answers: Sequence[Answer | Link], asked: str) -> str:
    """Return a table of the answers, which are heads, tails or relations."""
    lines = [f"{'score':>10}  {'probability':>11}  {asked}"]
    lines += [
        f"{score:10.3f}  {probability:11.3g}  {visible(str(key))}"
        for key, score, probability in answers
    ]
    return "\n".join(lines)


def explanations_as_json(explanations: Sequence[Explanation]) -> str:
    """Return a list with one entry per relation, arrays as lists."""

    def plain(items: Any) -> dict[str, Any]:
        return {key: part.tolist() if hasattr(part, "tolist") else part for key, part in items}

    entries = [dataclasses.asdict(one, dict_factory=plain) for one in explanations]
    return to_json(entries, indent=1).decode()


def explanation_table(explanations: Sequence[Explanation]) -> Table:
    """Return a table with one line per relation."""
    rows = []
    for one in explanations:
        largest = float(one.rapidities.max(initial=0.0))
        angles = np.concatenate([one.angles, one.negative_angles])
        mean = f"{angles.mean():.2f}" if len(angles) else "-"
        numbers = (one.from_identity, one.from_involution, one.from_inverse)
        row = [
            str(one.relation),
            f"{largest:.3f}",
            f"{one.translation:.3f}",
            mean,
            *("-" if math.isnan(number) else f"{number:.2f}" for number in numbers),
            "" if one.inverse is None else str(one.inverse),
        ]
        rows.append(row)
    return number_table(HEADINGS, rows, names=(0, len(HEADINGS) - 1), caption=MEANING)


class ProgressBar:
    """A bar over the epochs with loss, validation MRR and times; a callback for `train`.

    Outside a terminal there is a line for each evaluation.
    """

    def __init__(self, epochs: int) -> None:
        self._mrr, self._epochs = "", epochs
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("epoch"),
            BarColumn(20),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=epochs)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __call__(self, row: Row) -> None:
        if not math.isnan(row["mrr"]):
            self._mrr = f"  MRR {row['mrr']:.3f}"
        text = f"loss {row['loss']:.4g}{self._mrr}"
        if not (self._progress.console.is_terminal or math.isnan(row["mrr"])):
            left = row["time"] * (self._epochs / row["epoch"] - 1)
            done = f"epoch {row['epoch']}/{self._epochs}"
            times = f"{row['time']:.3g} s, {left:.3g} s left"
            print(f"{done}  {text}  {times}", file=sys.stderr, flush=True)
        self._progress.update(self._task, completed=row["epoch"], description=text)

    def __exit__(self, *error: Any) -> None:
        self._progress.stop()


FREQUENCIES = "by freq.: the MRR of the most frequent heads and tails of a relation in training"


def ranking_table(
    ranking: Ranking, baseline: Ranking, relations: Sequence[str], title: str
) -> Table:
    """Return a table of both sides together, each side, and the relations with the most triples.

    The last column has the MRR of the baseline, `jorth.kge.Frequencies`.
    """
    headings = ("", "MRR", "Hits@1", "Hits@3", "Hits@10", "mean rank", "triples", "by freq.")
    most = 20
    sides: dict[str, Side] = {"all": "both", "heads": "head", "tails": "tail"}
    rows = [_row(name, ranking, baseline, side) for name, side in sides.items()]
    parts, baselines = ranking.by_relation(relations), baseline.by_relation(relations)
    names = sorted(parts, key=lambda name: -len(parts[name].triples))
    rows += [_row(name, parts[name], baselines[name], "both") for name in names[:most]]
    caption = FREQUENCIES
    if len(names) > most:
        caption += f"\nand {len(names) - most} more relations; --json has all of them"
    table = number_table(headings, rows, title=title, caption=caption)
    table.rows[len(sides) - 1].end_section = True
    return table


def _row(name: str, ranking: Ranking, baseline: Ranking, side: Side) -> list[str]:
    found = ranking.metrics(side)
    cells = [f"{found[key]:.3f}" for key in METRICS]
    count, by_frequency = len(ranking.triples), baseline.metrics(side)["mrr"]
    return [name, *cells, f"{found['mean_rank']:.1f}", str(count), f"{by_frequency:.3f}"]
