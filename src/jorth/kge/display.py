"""A training run on the terminal: a progress bar, then tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jorth.kge.ranking import Ranking, Side
from jorth.kge.training import METRICS, Row
from jorth.tables import NumberTable

MAX_RELATIONS = 20
HEADINGS = ("MRR", "Hits@1", "Hits@3", "Hits@10", "mean rank", "triples")


class ProgressBar:
    """A bar over the epochs with the last loss and validation MRR; a callback for `train`."""

    def __init__(self, epochs: int) -> None:
        self._mrr = ""
        self._progress = Progress(
            TextColumn("epoch"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("", total=epochs)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __call__(self, row: Row) -> None:
        if not math.isnan(row["mrr"]):
            self._mrr = f"  MRR {row['mrr']:.3f}"
        text = f"loss {row['loss']:.4g}{self._mrr}"
        self._progress.update(self._task, completed=row["epoch"], description=text)

    def __exit__(self, *error: Any) -> None:
        self._progress.stop()


def ranking_table(ranking: Ranking, relations: Sequence[str], title: str) -> NumberTable:
    """Both sides together, each side, and the relations with the most triples."""
    table = NumberTable(("", *HEADINGS), title=title)
    sides: dict[str, Side] = {"all": "both", "heads": "head", "tails": "tail"}
    for name, side in sides.items():
        _add(table, name, ranking, side)
    table.add_section()
    parts = sorted(ranking.by_relation(relations).items(), key=lambda item: -len(item[1].triples))
    for name, part in parts[:MAX_RELATIONS]:
        _add(table, name, part, "both")
    if len(parts) > MAX_RELATIONS:
        table.caption = f"and {len(parts) - MAX_RELATIONS} more relations; --json has all of them"
    return table


def _add(table: NumberTable, name: str, ranking: Ranking, side: Side) -> None:
    found = ranking.metrics(side)
    cells = [f"{found[key]:.3f}" for key in METRICS]
    mean_rank = f"{found['mean_rank']:.1f}"
    table.add(name, *cells, mean_rank, str(len(ranking.triples)))
