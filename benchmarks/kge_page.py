"""The page docs/results/kge_results.md and its picture, from the records of `kge.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.kge import METHODS, Record, chosen_rate, seconds_per_epoch, select
from jorth.bench.core.figures import LINES

NAMES = {"j-jobcd": "J-JOBCD", "vr-j-jobcd": "VR-J-JOBCD", "csdm": "CSDM"}
COLOURS = {name: LINES[name.upper()][0] for name in ("j-jobcd", "vr-j-jobcd", "csdm")}
SEARCH = Path("report") / "kge_search.jsonl"
PICTURE = Path("images") / "kge_results.png"
APPENDIX = Path("results") / "appendix_kge_search.md"
PUBLISHED = (
    ("HyboNet", "[Chen et al. 2022](https://arxiv.org/abs/2105.14686)", 32, 0.489, 0.334),
    ("UltraE", "[Xiong et al. 2022](https://arxiv.org/abs/2206.00449)", 32, 0.488, None),
    ("MuRP", "[Balažević et al. 2019](https://arxiv.org/abs/1905.09791)", 40, 0.477, 0.324),
    ("RotH", "[Chami et al. 2020](https://arxiv.org/abs/2005.00545)", 32, 0.473, 0.314),
)

INTRODUCTION = """\
# Knowledge graphs: results

How well does [`jorth.kge`](../howto/kge.md) do on WN18RR and FB15k-237, and which method should
train the relations? Both graphs are complete, and d = 32.
[Each run is also one command](kge_commands.md).

- The best recipes reach the best published figures of this size ([table](#published-figures)).
- They train the relations with J-JOBCD. CSDM is as good after equal passes, but takes 7 to 9
  times as long on the GPU.
- All figures below are filtered, count both ends of a triple, and give ties their average rank.
- **Standard protocol:** every entity is a candidate.
- **Without anchor:** the entity of the query is not a candidate. Most published figures are of
  this kind.

![Validation MRR of three methods against epochs and seconds](../images/kge_results.png)

To make the page: `python benchmarks/kge.py --device cuda --workers 5 --docs docs`.

## Published figures

Test MRR of models of about the same size:
"""
RECIPES = """\
## The best recipes

These are the presets WN18RR and FB15k-237 of `jorth kge train --preset`, with five runs at a time
on one GPU.
"""
PROTOCOLS = """
Most published figures leave the entity of the query out of the candidates ("without anchor"
above). The WN18RR scripts of HyboNet and UltraE also reject negatives that are validation or test
triples, which leaks information. Here negatives are rejected with training triples only, if at
all.
"""
METHODS_TEXT = """\
## Three methods for the relations

All methods have the same recipe. The learning rate of the relations was tuned with the same four
trials for each. The first three rows have equal passes over the data. The last row is J-JOBCD
with the preset.

Seconds are epochs times seconds per epoch, without ranking, measured with nothing else on the
GPU. A step of J-JOBCD is replayed from a CUDA graph. Steps of the other two are not, which
explains most of the difference in time.
"""
SEARCHED = """\
# Knowledge graphs: the search for the presets

These are all runs that led to the presets of [the results](kge_results.md). All have seed 1000,
and validation MRR decided.

- They start from lr 0.05, relation_lr 0.01, smoothing 0.1, batches of 1000, a linear schedule to
  zero, and float64. "Changes" lists the differences from that.
- "Averaged" takes the mean of entities and biases over the last epochs. The two numbers are
  validation and test MRR.
- "Reverse" ranks with `reverse_weight = 0.6`, and uses the average if there is one.
- {ended} runs finished and {failed} did not. They ran in four batches on one GPU, four to nine at
  a time.
"""


def write(records: list[Record], docs: Path) -> None:
    """The page with its tables, the page of the search, and the picture."""
    search = [json.loads(line) for line in (docs / SEARCH).read_text().splitlines()]
    graphs = list(dict.fromkeys(record["job"]["graph"] for record in records))
    parts = [
        INTRODUCTION,
        *published_table(records),
        PROTOCOLS,
        RECIPES,
        *best_tables(records, graphs),
        METHODS_TEXT,
        *methods_tables(records, graphs),
        "Learning rates that were tried, in short runs with seed 1000:\n",
        *trials_table(records, graphs),
        "\n[The search for the presets](appendix_kge_search.md) lists all other runs.",
    ]
    (docs / "results" / "kge_results.md").write_text("\n".join(parts) + "\n")
    ended = sum("failed" not in run for run in search)
    text = SEARCHED.format(ended=ended, failed=len(search) - ended)
    (docs / APPENDIX).write_text("\n".join([text, *search_table(search)]) + "\n")
    draw(records, graphs, docs / PICTURE)


def best_tables(records: list[Record], graphs: list[str]) -> Iterator[str]:
    """A table for each graph: a row for each seed and their means."""
    for graph in graphs:
        yield f"{graph}:\n"
        yield (
            "| seed | valid MRR | test MRR | Hits@1 | Hits@3 | Hits@10 "
            "| test MRR without anchor | seconds |"
        )
        yield "|---|---|---|---|---|---|---|---|"
        runs = sorted(select(records, graph=graph, stage="best"), key=lambda r: r["job"]["seed"])
        rows = [_best_cells(run) for run in runs]
        for run, cells in zip(runs, rows, strict=True):
            yield f"| {run['job']['seed']} | {' | '.join(map(_number, cells))} |"
        if len(runs) > 1:
            means = [f"**{_number(fmean(column))}**" for column in zip(*rows, strict=True)]
            means[1] += f" ± {stdev(cells[1] for cells in rows):.4f}"
            yield f"| mean | {' | '.join(means)} |"
        yield ""


def _best_cells(run: Record) -> list[float]:
    test = run.get("test", {})
    return [
        run["valid"],
        *(test.get(name, 0.0) for name in ("mrr", "hits@1", "hits@3", "hits@10")),
        run.get("test_without_anchor", {}).get("mrr", 0.0),
        run.get("seconds", 0.0),
    ]


def _number(value: float) -> str:
    return f"{value:.4f}" if value < 1 else f"{value:.0f}"


def published_table(records: list[Record]) -> Iterator[str]:
    yield "| model | source | d | WN18RR | FB15k-237 |"
    yield "|---|---|---|---|---|"
    for name, source, d, *figures in PUBLISHED:
        texts = ["-" if figure is None else f"{figure:.3f}" for figure in figures]
        yield f"| {name} | {source} | {d} | {' | '.join(texts)} |"
    for key, label in (("test", "standard"), ("test_without_anchor", "without anchor")):
        texts = []
        for graph in ("WN18RR", "FB15k-237"):
            runs = [r for r in select(records, graph=graph, stage="best") if key in r]
            texts.append(f"{fmean(r[key]['mrr'] for r in runs):.3f}" if runs else "-")
        yield f"| jorth | {label} protocol, mean of the seeds | 32 | {' | '.join(texts)} |"


def methods_tables(records: list[Record], graphs: list[str]) -> Iterator[str]:
    """A table for each graph: the methods with equal passes, and the preset."""
    for graph in graphs:
        yield f"{graph}:\n"
        yield (
            "| method | relation_lr | epochs | seconds per epoch | seconds "
            "| test MRR, mean [least, largest] | without anchor | valid |"
        )
        yield "|---|---|---|---|---|---|---|---|"
        for method in METHODS:
            yield _method_row(records, select(records, graph=graph, method=method, stage="passes"))
        yield _method_row(records, select(records, graph=graph, stage="best"))
        yield ""


def _method_row(records: list[Record], runs: list[Record]) -> str:
    job = runs[0]["job"]
    graph, method = job["graph"], job["method"]
    clock = seconds_per_epoch(records, graph, method)
    epochs = job["epochs"] or runs[0]["curve"]["epoch"][-1]
    rate = f"{job['relation_lr']:g}" if job["relation_lr"] else "preset"
    head = f"| {NAMES[method]} | {rate} | {epochs:.0f} | {clock:.2f} "
    done = [run for run in runs if "test" in run]
    if not done:
        return f"{head}| | no run finished | | |"
    found = [run["test"]["mrr"] for run in done]
    without = fmean(run["test_without_anchor"]["mrr"] for run in done)
    failed = f", {len(runs) - len(done)} of {len(runs)} failed" if len(done) < len(runs) else ""
    spread = f"{fmean(found):.4f} [{min(found):.4f}, {max(found):.4f}]{failed}"
    valid = fmean(run["valid"] for run in done)
    return f"{head}| {epochs * clock:.0f} | {spread} | {without:.4f} | {valid:.4f} |"


def trials_table(records: list[Record], graphs: list[str]) -> Iterator[str]:
    yield "| graph | method | relation_lr: validation MRR (chosen in bold) |"
    yield "|---|---|---|"
    for graph in graphs:
        for method in METHODS:
            runs = select(records, graph=graph, method=method, stage="trial")
            if not runs:
                continue
            chosen = chosen_rate(records, graph, method)
            texts = []
            for run in sorted(runs, key=lambda r: r["job"]["relation_lr"]):
                text = "failed" if run["valid"] < 0 else f"{run['valid']:.4f}"
                rate = run["job"]["relation_lr"]
                texts.append(f"{rate:g}: " + (f"**{text}**" if rate == chosen else text))
            yield f"| {graph} | {NAMES[method]} | {', '.join(texts)} |"


def search_table(search: list[Record]) -> Iterator[str]:
    yield "| graph | epochs | changes | valid | test | without anchor | averaged | reverse |"
    yield "|---|---|---|---|---|---|---|---|"
    for run in search:
        changes = ", ".join(f"{name} {_plain(value)}" for name, value in run["changes"].items())
        head = f"| {run['graph']} | {run['epochs']} | {changes or 'none'} |"
        if "failed" in run:
            yield f"{head} {run['failed']} | | | | |"
            continue
        figures = [f"{run[name]:.4f}" for name in ("valid", "test", "test_without_anchor")]
        pairs = [run.get(name) for name in ("averaged", "reverse_weight_0.6")]
        figures += ["" if pair is None else f"{pair[0]:.4f}, {pair[1]:.4f}" for pair in pairs]
        yield f"{head} {' | '.join(figures)} |"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def draw(records: list[Record], graphs: list[str], path: Path) -> None:
    """Validation MRR against epochs and seconds, a line for each run; the presets dashed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(graphs), 6), layout="constrained")
    panels = figure.subplots(2, len(graphs), squeeze=False, sharey="col")
    for graph, (above, below) in zip(graphs, panels.T, strict=True):
        for method in METHODS:
            for run in select(records, graph=graph, method=method, stage="passes"):
                _lines(records, run, (above, below), linestyle="-")
            above.plot([], [], color=COLOURS[method], label=NAMES[method])
        for run in select(records, graph=graph, stage="best"):
            _lines(records, run, (below,), linestyle="--")
        above.plot([], [], color=COLOURS["j-jobcd"], linestyle="--", label="J-JOBCD, preset")
        above.set(title=f"{graph}, equal passes", xlabel="epochs")
        below.set(title=f"{graph}, against time", xlabel="seconds", xscale="log")
        for panel in (above, below):
            panel.grid(alpha=0.3)
    for row in panels:
        row[0].set_ylabel("validation MRR")
    panels[0][0].legend(loc="lower right", frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def _lines(records: list[Record], run: Record, panels: tuple[Any, ...], linestyle: str) -> None:
    """The run in the last panel against the seconds of its epochs, in one before it by epochs."""
    job, curve = run["job"], run["curve"]
    look = dict(color=COLOURS[job["method"]], alpha=0.6, linewidth=1, linestyle=linestyle)
    clock = seconds_per_epoch(records, job["graph"], job["method"])
    for panel in panels[:-1]:
        panel.plot(curve["epoch"], curve["mrr"], **look)
    panels[-1].plot([clock * epoch for epoch in curve["epoch"]], curve["mrr"], **look)
