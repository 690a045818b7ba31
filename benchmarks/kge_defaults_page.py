"""Tables and picture of `kge_defaults.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

Record = dict[str, Any]
METHODS = {"j-jobcd": "J-JOBCD", "vr-j-jobcd": "VR-J-JOBCD", "csdm": "CSDM"}
COLOURS = {"j-jobcd": "C0", "vr-j-jobcd": "C2", "csdm": "C3"}
PRESETS = ("defaults", "first defaults", "best preset", "paper")
FIGURES = ("epochs", "batch", "seconds", "test MRR", "seeds", "Hits@1", "Hits@10", "no anchor")
BUDGETS = ("equal passes", "equal time")


def read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def page(records: list[Record]) -> str:
    """Two tables in markdown: presets, and methods."""
    return "\n".join([*_presets(records), "", *_methods(records)])


def _presets(records: list[Record]) -> Iterator[str]:
    yield from _head(("graph", "settings", *FIGURES, "of the best preset"))
    for graph in graphs(records):
        best = _mean(runs(records, graph, "best preset"), "test", "mrr")
        for stage in PRESETS:
            found = runs(records, graph, stage)
            if not found:
                continue
            share = f"{_mean(found, 'test', 'mrr') / best:.0%}"
            yield _row([graph, stage, *_figures(found), share])


def _methods(records: list[Record]) -> Iterator[str]:
    yield from _head(("graph", "budget", "method", "rate", *FIGURES))
    for graph in graphs(records):
        for stage in BUDGETS:
            for method, name in METHODS.items():
                found = runs(records, graph, stage, method)
                if not found:
                    continue
                setting = f"{found[0]['job']['changes']['relation_lr']:g}"
                yield _row([graph, stage, name, setting, *_figures(found)])


def _figures(found: Sequence[Record]) -> list[str]:
    """Epochs, batch and seconds of one core, then means over the seeds."""
    mrr = [record["test"]["mrr"] for record in found]
    return [
        str(found[0]["epochs"]),
        str(found[0]["batch_size"]),
        f"{median(record['processor_seconds'] for record in found):.0f}",
        f"{fmean(mrr):.3f} ± {stdev(mrr):.3f}" if len(mrr) > 1 else f"{mrr[0]:.3f}",
        str(len(mrr)),
        f"{_mean(found, 'test', 'hits@1'):.3f}",
        f"{_mean(found, 'test', 'hits@10'):.3f}",
        f"{_mean(found, 'test_without_anchor', 'mrr'):.3f}",
    ]


def graphs(records: list[Record]) -> list[str]:
    return list(dict.fromkeys(record["job"]["graph"] for record in records))


def runs(records: list[Record], graph: str, stage: str, method: str | None = None) -> list[Record]:
    """The finished tests of one kind, one for each seed.

    The time is that of J-JOBCD, so that its runs at equal time are those at equal passes.
    """
    if (stage, method) == ("equal time", "j-jobcd"):
        stage = "equal passes"
    jobs = [record for record in records if "test" in record]
    jobs = [r for r in jobs if (r["job"]["graph"], r["job"]["stage"]) == (graph, stage)]
    return [r for r in jobs if method is None or r["job"]["method"] == method]


def _mean(found: Sequence[Record], part: str, metric: str) -> float:
    return fmean(record[part][metric] for record in found)


def _head(names: Sequence[str]) -> Iterator[str]:
    yield _row(names)
    yield "|" + "---|" * len(names)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def draw(records: list[Record], path: Path) -> None:
    """Validation MRR against epochs and seconds: a column per graph, a line per run."""
    from matplotlib.figure import Figure

    names = graphs(records)
    figure = Figure(figsize=(10, 5.5), layout="constrained")
    panels = figure.subplots(2, len(names), sharey="col", squeeze=False)
    for graph, column in zip(names, panels.T, strict=True):
        for panel, stage, across in zip(column, BUDGETS, ("epoch", "time"), strict=True):
            for method, name in METHODS.items():
                for number, run in enumerate(runs(records, graph, stage, method)):
                    label = None if number else f"{name}, tuned"
                    _line(panel, run, across, label, COLOURS[method])
            for number, run in enumerate(runs(records, graph, "defaults")):
                _line(panel, run, across, None if number else "defaults", "black", "--")
        column[0].set(title=graph, xlabel="epochs")
        column[1].set(xlabel="seconds")
    for panel in panels[:, 0]:
        panel.set_ylabel("validation MRR")
    panels[0, 0].legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=160)


def _line(
    panel: Any, run: Record, across: str, label: str | None, colour: str, style: str = "-"
) -> None:
    curve = run["curve"]
    panel.plot(curve[across], curve["mrr"], style, color=colour, linewidth=0.9, label=label)
