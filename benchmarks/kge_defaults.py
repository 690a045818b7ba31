"""`train(graph)` with its defaults on graphs that nobody tuned for. docs/kge.md.

python benchmarks/kge_graphs.py out/graphs --obo hp.obo
python benchmarks/kge_defaults.py out/graphs --workers 16 --records docs/report/kge_defaults.jsonl
python benchmarks/kge_defaults.py --from docs/report/kge_defaults.jsonl --picture kge_defaults.png

On each graph, in this order:

- Trials with seed 1000, each with the epochs of the defaults: four recipes of J-JOBCD, and two
  rates of the relations for each of the three methods. The best on validation is chosen.
- Tests with the seeds 0, 1, ...: the defaults, the best of all trials of J-JOBCD, the best of each
  method at equal passes and at equal time, and the paper's settings.

Test triples are ranked once per test, with and without the anchor among the candidates.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
METHODS = ("j-jobcd", "vr-j-jobcd", "csdm")
TUNING_SEED = 1000
RECIPES = (
    dict(regularisation=0.05, lr=0.02),
    dict(regularisation=0.05, lr=0.1),
    dict(regularisation=0.4, lr=0.1),
    dict(reject=True),
)
METHOD_SETTINGS = (dict(relation_lr=0.01), dict(relation_lr=0.003))
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


def run(folder: Path, job: Job) -> Record:
    """Train and rank; a test ranks the test triples, a trial does not."""
    import torch

    from jorth.kge import Config, evaluate, load_triples, train

    torch.set_num_threads(1)
    triples = load_triples(folder / job.graph)
    preset = "paper" if job.stage == "paper" else "default"
    changes = job.changes | ({"epochs": job.epochs} if job.epochs else {})
    config = Config.preset(preset, method=job.method, seed=job.seed, **changes).fitted(triples)
    start = time.process_time()
    try:
        result = train(triples, config)
    except FloatingPointError as error:
        return {"job": job._asdict(), "valid": -1.0, "message": str(error)}
    history = result.history
    shown = ~(history["mrr"] != history["mrr"])
    columns = {name: history[name][shown].round(4).tolist() for name in ("epoch", "time", "mrr")}
    record: Record = {
        "job": job._asdict(),
        "epochs": len(shown),
        "batch_size": config.batch_size,
        "negatives": config.negatives,
        "seconds": float(history["time"][-1]),
        "processor_seconds": time.process_time() - start,
        "queries": int(history["queries"][-1]),
        "loss": float(history["loss"][-1]),
        "valid": float(history["mrr"][shown].max()),
        "curve": columns,
        "message": result.message,
    }
    if not job.stage.startswith("trial"):
        ranked = (
            evaluate(result.model, triples.test, triples.known, exclude_anchor=out)
            for out in (False, True)
        )
        record["test"], record["test_without_anchor"] = (r.metrics() for r in ranked)
    return record


def trials(graph: str) -> Iterator[Job]:
    for changes in RECIPES:
        yield Job(graph, "trial of recipes", "j-jobcd", TUNING_SEED, changes)
    for method in METHODS:
        for changes in METHOD_SETTINGS:
            yield Job(graph, "trial of methods", method, TUNING_SEED, changes)


def tests(graph: str, records: list[Record], seeds: int) -> Iterator[Job]:
    """The runs with the chosen settings; the passes and seconds are those of the trials."""
    tried = [record for record in records if record["job"]["graph"] == graph]
    of_methods = [r for r in tried if r["job"]["stage"] == "trial of methods"]
    chosen = {m: best(r for r in of_methods if r["job"]["method"] == m) for m in METHODS}
    recipe = best(r for r in tried if r["job"]["method"] == "j-jobcd")
    own = chosen["j-jobcd"]
    for seed in range(seeds):
        yield Job(graph, "defaults", "j-jobcd", seed, {})
        yield Job(graph, "best preset", "j-jobcd", seed, recipe["job"]["changes"])
        for stage, cost in (("equal time", "processor_seconds"), ("equal passes", "queries")):
            for method, record in chosen.items():
                if stage == "equal time" and record is own:
                    continue  # the same run
                share = (own[cost] / own["epochs"]) / (record[cost] / record["epochs"])
                epochs = max(1, round(share * own["epochs"]))
                yield Job(graph, stage, method, seed, record["job"]["changes"], epochs)
        yield Job(graph, "paper", "j-jobcd", seed, {})


def best(records: Iterable[Record]) -> Record:
    """The first record with the largest validation MRR."""
    return max(records, key=lambda record: record["valid"])


def all_runs(folder: Path, graphs: list[str], seeds: int, workers: int, output: Path) -> None:
    """Trials of all graphs, then tests. Records are added as they come; what has one is not run."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    lines = output.read_text().splitlines() if output.exists() else []
    records: list[Record] = [json.loads(line) for line in lines]
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers) as pool, output.open("a") as stream:
        for stage in (trials, lambda graph: tests(graph, records, seeds)):
            groups = zip(*map(stage, graphs), strict=True)
            done = [record["job"] for record in records]
            jobs = [job for group in groups for job in group if job._asdict() not in done]
            for record in pool.imap_unordered(partial(run, folder), jobs):
                records.append(record)
                stream.write(json.dumps(record) + "\n")
                stream.flush()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="graphs made by kge_graphs.py")
    parser.add_argument("--graphs", nargs="+", default=["umls", "kinships", "hpo-blood"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--records", type=Path, default=Path("kge_defaults.jsonl"))
    parser.add_argument("--from", dest="made", type=Path, help="records of an earlier run")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    if arguments.made is None:
        if arguments.folder is None:
            parser.error("the folder of the graphs is missing")
        given = arguments
        all_runs(given.folder, given.graphs, given.seeds, given.workers, given.records)
    from benchmarks.kge_defaults_page import draw, page, read

    records = read(arguments.made or arguments.records)
    print(page(records))
    if arguments.picture:
        draw(records, arguments.picture)


if __name__ == "__main__":
    main()
