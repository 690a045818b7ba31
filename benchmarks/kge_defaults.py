"""`train(graph)` with its defaults on graphs that nobody tuned for. docs/results/kge_defaults.md.

python benchmarks/kge_graphs.py out/graphs --obo hp.obo --countries countryinfo/data
python benchmarks/kge_defaults.py out/graphs --records docs/report/kge_defaults.jsonl --docs docs
python benchmarks/kge_defaults.py --from docs/report/kge_defaults.jsonl --docs docs

On each graph, in this order:

- The processor time per epoch of the three methods: short runs in turns, after compilation.
- Trials with seed 1000: four recipes of J-JOBCD with the epochs of the defaults, and three rates of
  the relations for each method, all in the same time. The best on validation is chosen.
- Tests with the seeds 0, 1, ...: the defaults, the best of all trials of J-JOBCD, the paper's
  settings, and the best of each method at equal passes and at equal time.

Test triples are ranked once per test, with and without the anchor among the candidates. Runs are
made one after the other on one thread. The same command continues what was interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
TUNING_SEED = 1000
RECIPES = (
    dict(regularisation=0.05, lr=0.02),
    dict(regularisation=0.05, lr=0.1),
    dict(regularisation=0.4, lr=0.1),
    dict(reject=True),
)
METHODS = ("j-jobcd", "vr-j-jobcd", "csdm")
RATES = (0.003, 0.01, 0.03)
"""The learning rates of the relations that are tried."""
SHOWN = ("epochs", "batch_size", "negatives", "lr", "relation_lr", "regularisation", "reject")
"""The settings that a record has."""
TIMED_EPOCHS, TIMED_ROUNDS = 6, 3
Record = dict[str, Any]


class Job(NamedTuple):
    """One run."""

    graph: str
    stage: str
    method: str
    seed: int
    changes: dict[str, Any]
    epochs: int = 0
    """The number of epochs in place of the defaults', if it is not 0."""


class Seeds(NamedTuple):
    """The numbers of seeds of the tests."""

    presets: int
    paper: int
    methods: int


class Runner:
    """Runs jobs on graphs in a folder; one with the settings of an earlier one has its record."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: dict[tuple[str, str, str], Record] = {}

    def __call__(self, job: Job) -> Record:
        from jorth.kge import Config, load_triples

        triples = load_triples(self._folder / job.graph)
        preset = "paper" if job.stage == "paper" else "default"
        changes = job.changes | ({"epochs": job.epochs} if job.epochs else {})
        config = Config.preset(preset, method=job.method, seed=job.seed, **changes).fitted(triples)
        kind = job.stage.split(" ")[0]
        ranked = kind not in ("timing", "trial")
        key = job.graph, "test" if ranked else kind, repr(config)
        if key not in self._done:
            timed = kind == "timing"
            measured = timing(triples, config) if timed else run(triples, config, ranked)
            self._done[key] = measured
        return {"job": job._asdict(), **self._done[key]}


def run(triples: Any, config: Any, ranked: bool) -> Record:
    """Train; with ``ranked`` rank the test triples."""
    from jorth.kge import evaluate, train

    start = time.process_time()
    try:
        result = train(triples, config)
    except FloatingPointError as error:
        return {"valid": -1.0, "message": str(error)}
    if result.interrupted:
        raise KeyboardInterrupt
    seconds = time.process_time() - start
    history = result.history
    shown = ~(history["mrr"] != history["mrr"])
    columns = {name: history[name][shown].round(4).tolist() for name in ("epoch", "time", "mrr")}
    record: Record = {
        "settings": {name: getattr(config, name) for name in SHOWN},
        "epochs": len(shown),
        "processor_seconds": round(seconds, 2),
        "queries": int(history["queries"][-1]),
        "loss": round(float(history["loss"][-1]), 4),
        "valid": round(float(history["mrr"][shown].max()), 5),
        "curve": columns,
        "message": result.message,
    }
    for name, without in (("test", False), ("test_without_anchor", True)) if ranked else ():
        found = evaluate(result.model, triples.test, triples.known, exclude_anchor=without)
        record[name] = {metric: round(value, 5) for metric, value in found.metrics().items()}
    return record


def timing(triples: Any, config: Any) -> Record:
    """The processor seconds per epoch of each method, medians over runs in turns."""
    rounds: dict[str, list[float]] = {method: [] for method in METHODS}
    for number in range(1 + TIMED_ROUNDS):
        for method, found in rounds.items():
            seconds = seconds_per_epoch(triples, replace(config, method=method, seed=number))
            if number:  # the first round compiles
                found.append(round(seconds, 5))
    medians = {method: median(found) for method, found in rounds.items()}
    return {"epochs": config.epochs, "seconds_per_epoch": medians}


def seconds_per_epoch(triples: Any, config: Any) -> float:
    """The processor time of an epoch, without the first one and without the evaluation."""
    from jorth.kge import train

    clock: list[float] = []

    def look(_: object) -> None:
        clock.append(time.process_time())

    changes = dict(epochs=TIMED_EPOCHS, evaluate_every=TIMED_EPOCHS)
    train(triples, replace(config, **changes), callback=look)
    return (clock[-2] - clock[0]) / (TIMED_EPOCHS - 2)


def timings(graph: str) -> Iterator[Job]:
    yield Job(graph, "timing", "j-jobcd", TUNING_SEED, {})


def trials(graph: str, records: list[Record], epochs: int) -> Iterator[Job]:
    """Trials of equal time: a slower method has fewer epochs."""
    for changes in RECIPES:
        yield Job(graph, "trial of recipes", "j-jobcd", TUNING_SEED, changes, epochs)
    for method in METHODS:
        count = equal_time(method, timed_on(graph, records), epochs)
        for rate in RATES:
            settings = {"relation_lr": rate}
            yield Job(graph, "trial of methods", method, TUNING_SEED, settings, count)


def tests(graph: str, records: list[Record], seeds: Seeds, epochs: int) -> Iterator[Job]:
    """The runs with the chosen settings, the most important ones first."""
    of_graph = [record for record in records if record["job"]["graph"] == graph]
    tried = [record for record in of_graph if record["job"]["stage"].startswith("trial")]
    recipe = best(r for r in tried if r["job"]["method"] == "j-jobcd")
    for seed in range(seeds.presets):
        yield Job(graph, "defaults", "j-jobcd", seed, {}, epochs)
        yield Job(graph, "best preset", "j-jobcd", seed, recipe["job"]["changes"], epochs)
    for seed in range(seeds.paper):
        yield Job(graph, "paper", "j-jobcd", seed, {}, epochs)
    of_methods = [r for r in tried if r["job"]["stage"] == "trial of methods"]
    chosen = {m: best(r for r in of_methods if r["job"]["method"] == m) for m in METHODS}
    for seed in range(seeds.methods):
        for method, record in chosen.items():
            changes, passes = record["job"]["changes"], equal_passes(chosen["j-jobcd"], record)
            yield Job(graph, "equal passes", method, seed, changes, passes)
            if method != "j-jobcd":  # its time is that of its passes
                count = equal_time(method, timed_on(graph, records), epochs)
                yield Job(graph, "equal time", method, seed, changes, count)


def timed_on(graph: str, records: Iterable[Record]) -> Record:
    (found,) = (r for r in records if (r["job"]["graph"], r["job"]["stage"]) == (graph, "timing"))
    return found


def equal_time(method: str, timed: Record, epochs: int) -> int:
    """The number of epochs with the time of ``epochs``, or of the defaults', of J-JOBCD."""
    seconds: dict[str, float] = timed["seconds_per_epoch"]
    count: int = epochs or timed["epochs"]
    return max(1, round(count * seconds["j-jobcd"] / seconds[method]))


def equal_passes(own: Record, other: Record) -> int:
    """The number of epochs of the other run's method with the passes of J-JOBCD's own."""
    epochs: float = own["queries"] * other["epochs"] / other["queries"]
    return max(1, round(epochs))


def best(records: Iterable[Record]) -> Record:
    """The first record with the largest validation MRR."""
    return max(records, key=lambda record: record["valid"])


def all_runs(runner: Runner, graphs: list[str], seeds: Seeds, output: Path, epochs: int) -> None:
    """Timings, trials and tests. Records are added as they come; what has one is not run."""
    import torch

    torch.set_num_threads(1)
    lines = output.read_text().splitlines() if output.exists() else []
    records: list[Record] = [json.loads(line) for line in lines]
    stages: tuple[Callable[[str], Iterator[Job]], ...] = (
        timings,
        lambda graph: trials(graph, records, epochs),
        lambda graph: tests(graph, records, seeds, epochs),
    )
    with output.open("a") as stream:
        for stage in stages:
            done = [record["job"] for record in records]
            groups = zip(*map(stage, graphs), strict=True)
            jobs = [job for group in groups for job in group if job._asdict() not in done]
            for job in jobs:
                record = runner(job)
                records.append(record)
                stream.write(json.dumps(record) + "\n")
                stream.flush()
                print(job, f"{record.get('processor_seconds', 0):.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="graphs made by kge_graphs.py")
    parser.add_argument("--graphs", nargs="+", default=["hpo-eye", "countries"])
    parser.add_argument("--seeds", type=int, nargs=3, default=Seeds(5, 2, 3), metavar="N")
    parser.add_argument("--epochs", type=int, default=0, help="for a quick try")
    parser.add_argument("--records", type=Path, default=Path("kge_defaults.jsonl"))
    parser.add_argument("--from", dest="made", type=Path, help="records of an earlier run")
    parser.add_argument("--docs", type=Path, help="where the page and its picture go")
    given = parser.parse_args()
    if given.made is None:
        if given.folder is None:
            parser.error("the folder of the graphs is missing")
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[name] = "1"
        seeds = Seeds(*given.seeds)
        all_runs(Runner(given.folder), given.graphs, seeds, given.records, given.epochs)
    if given.docs is not None:
        from benchmarks.kge_defaults_page import read, write

        write(read(given.made or given.records), given.docs)


if __name__ == "__main__":
    main()
