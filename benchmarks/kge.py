"""The full graphs WN18RR and FB15k-237: the best recipes, and three methods for the relations.

    python benchmarks/kge.py --device cuda --workers 5 --records docs/report/kge.jsonl
    python benchmarks/kge.py --from docs/report/kge.jsonl --docs docs

needs both graphs in $JORTH_DATA/kg. Stages, in this order:

- clock: seconds per epoch of every method, one run at a time, the first epoch left out.
- best: the preset of the graph, seeds 0 to 4.
- trial: four learning rates of the relations for each method, seed 1000, a few epochs. The best on
  validation is chosen.
- passes: the chosen rates with the preset and fewer epochs, seeds 0 to 4.

Equal time needs no runs of its own where the preset's epochs of J-JOBCD take less time than those
of "passes" of the other methods: the page compares the two.

Test triples are ranked once per run of best and passes, with and without the anchor among the
candidates. Runs that are in the records are not run again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

METHODS = ("j-jobcd", "vr-j-jobcd", "csdm")
RATES = {
    "j-jobcd": (0.001, 0.003, 0.01, 0.03),
    "vr-j-jobcd": (0.001, 0.003, 0.01, 0.03),
    "csdm": (0.001, 0.003, 0.01, 0.03),
}
TRIAL_EPOCHS = {"WN18RR": 10, "FB15k-237": 2}
EPOCHS = {"WN18RR": 40, "FB15k-237": 8}
"""The epochs of "passes", fewer than those of the presets."""
STAGES = ("clock", "best", "trial", "passes")
TUNING_SEED = 1000
SEEDS = range(5)
EVALUATIONS = 10
CLOCKED = 2
"""Epochs over which the speed is measured."""
Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One run; ``epochs`` and ``relation_lr`` are those of the preset if they are 0."""

    graph: str
    stage: str
    method: str = "j-jobcd"
    relation_lr: float = 0.0
    epochs: int = 0
    seed: int = TUNING_SEED


def config_of(job: Job, device: str) -> Any:
    """The preset of the graph with the settings of a job."""
    from jorth.kge import Config

    changes: dict[str, Any] = {"method": job.method, "seed": job.seed, "device": device}
    if job.relation_lr:
        changes["relation_lr"] = job.relation_lr
    if job.epochs:
        changes["epochs"] = job.epochs
    config = Config.preset(job.graph, **changes)
    every = config.epochs if job.stage == "clock" else max(1, config.epochs // EVALUATIONS)
    return Config.preset(job.graph, **changes, evaluate_every=every)


def run(folder: Path, device: str, job: Job) -> Record:
    """Train, and rank the test triples where the stage is for that."""
    import torch

    import jorth
    from jorth.kge import evaluate, train

    torch.set_num_threads(1)
    triples = load(folder / job.graph)
    config = config_of(job, device)
    started = time.perf_counter()
    try:
        result = train(triples, config)
    except FloatingPointError as error:
        return {"job": asdict(job), "valid": -1.0, "message": str(error)}
    if result.interrupted:
        raise KeyboardInterrupt
    wall = time.perf_counter() - started
    history = result.history
    shown = history["mrr"] == history["mrr"]
    relations = result.model.relations.detach()
    record: Record = {
        "job": asdict(job),
        "seconds": float(history["time"][-1]),
        "wall": wall,
        "seconds_per_epoch": float(history["time"][-1] - history["time"][0])
        / max(1, len(shown) - 1),
        "loss": float(history["loss"][-1]),
        "valid": float(history["mrr"][shown].max()),
        "best_epoch": result.best_epoch,
        "curve": {
            name: history[name][shown].round(5).tolist() for name in ("epoch", "time", "mrr")
        },
        "norm": float(torch.linalg.matrix_norm(relations, 2).max()),
        "residual": float(torch.as_tensor(jorth.residual(relations, config.signature)).max()),
        "message": result.message,
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else device,
    }
    if job.stage in ("best", "passes"):
        test, known = (part.to(device) for part in (triples.test, triples.known))
        for key, out in (("test", False), ("test_without_anchor", True)):
            record[key] = evaluate(result.model, test, known, exclude_anchor=out).metrics()
    return record


@cache
def load(folder: Path) -> Any:
    """A graph, read once per process."""
    from jorth.kge import load_triples

    return load_triples(folder)


def jobs(stage: str, graphs: list[str], records: list[Record]) -> Iterator[Job]:
    """The runs of a stage, longest first."""
    for graph in sorted(graphs, key=EPOCHS.__getitem__):
        if stage == "clock":
            for method in METHODS:
                yield Job(graph, stage, method, RATES[method][1], 1 + CLOCKED)
        elif stage == "best":
            for seed in SEEDS:
                yield Job(graph, stage, seed=seed)
        elif stage == "trial":
            for method in METHODS:
                for rate in RATES[method]:
                    yield Job(graph, stage, method, rate, TRIAL_EPOCHS[graph])
        else:
            for method in METHODS:
                rate = chosen_rate(records, graph, method)
                for seed in SEEDS:
                    yield Job(graph, stage, method, rate, EPOCHS[graph], seed)


def select(records: list[Record], **wanted: Any) -> list[Record]:
    """The records whose jobs have the given fields."""
    return [r for r in records if wanted.items() <= r["job"].items()]


def chosen_rate(records: list[Record], graph: str, method: str) -> float:
    """The learning rate of the relations with the best validation MRR among the trials."""
    tried = select(records, graph=graph, method=method, stage="trial")
    return float(max(tried, key=lambda record: record["valid"])["job"]["relation_lr"])


def seconds_per_epoch(records: list[Record], graph: str, method: str) -> float:
    """As measured with nothing else on the device."""
    (record,) = select(records, graph=graph, method=method, stage="clock")
    return float(record["seconds_per_epoch"])


def run_all(arguments: argparse.Namespace) -> None:
    """All stages; records are written as they come."""
    path: Path = arguments.records
    records = read(path) if path.exists() else []
    work = partial(run, Path(arguments.data_dir), arguments.device)
    context = multiprocessing.get_context("spawn")
    for workers, stages in ((1, STAGES[:1]), (arguments.workers, STAGES[1:])):
        chosen = [stage for stage in stages if stage in arguments.stages]
        if not chosen:
            continue
        with context.Pool(workers) as pool, path.open("a") as stream:
            for stage in chosen:
                done = [record["job"] for record in records]
                wanted = jobs(stage, arguments.graphs, records)
                todo = [job for job in wanted if asdict(job) not in done]
                for record in pool.imap_unordered(work, todo):
                    records.append(record)
                    stream.write(json.dumps(record) + "\n")
                    stream.flush()
                    print(brief(record), flush=True)


def read(path: Path) -> list[Record]:
    """The records in a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def brief(record: Record) -> str:
    job = " ".join(str(value) for value in record["job"].values())
    test = record.get("test", {}).get("mrr", float("nan"))
    seconds = record.get("seconds", float("nan"))
    return f"{job}: valid {record['valid']:.4f}, test {test:.4f}, {seconds:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", nargs="+", choices=tuple(EPOCHS), default=list(EPOCHS))
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--data-dir", default=os.path.join(os.environ.get("JORTH_DATA", "."), "kg"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=1, help="runs at a time")
    parser.add_argument("--records", type=Path, default=Path("kge.jsonl"))
    parser.add_argument("--from", dest="source", type=Path, help="draw these records, run nothing")
    parser.add_argument("--docs", type=Path, help="folder of the tables and the picture")
    arguments = parser.parse_args()
    if arguments.source is None:
        run_all(arguments)
    if arguments.docs is not None:
        from benchmarks.kge_page import write

        write(read(arguments.source or arguments.records), arguments.docs)


if __name__ == "__main__":
    main()
