"""UltraE on WN18RR and FB15k-237: triples a second, and the filtered MRR reached in a given time.
docs/kge.md.

python benchmarks/kge.py --dataset WN18RR --device cuda --time-limit 360 --output wn18rr.json
python benchmarks/kge.py --dataset WN18RR --device cuda --throughput

The first epochs measure the speed; the number of epochs is then what fits into the time limit, and
the learning rates fall to zero at its end. The validation triples choose the model, the test
triples are ranked once, at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path

import torch

import jorth
from jorth.kge import Config, evaluate, load_triples, train

ADAPTIVE = {"momentum": 0.9, "curvature": "per-plane", "metric": "invariant"}
EVALUATIONS = 12


def settings(arguments: argparse.Namespace) -> Config:
    options = {} if arguments.method == "csdm" else dict(ADAPTIVE)
    if arguments.rounds and arguments.method != "csdm":
        options["rounds_per_gradient"] = arguments.rounds
    return Config(
        p=arguments.dimension - arguments.q,
        q=arguments.q,
        alpha=arguments.alpha,
        reciprocal=not arguments.shared_inverse,
        dtype=arguments.dtype,
        device=arguments.device,
        method=arguments.method,
        lr=arguments.lr,
        relation_lr=arguments.relation_lr,
        relation_options=options,
        relation_device=arguments.relation_device,
        schedule="linear",
        warmup=1,
        batch_size=arguments.batch_size,
        large_batch=8 * arguments.batch_size,
        loss=arguments.loss,
        negatives="all" if arguments.negatives == 0 else arguments.negatives,
        shared=True,
        sides="both",
        reject=arguments.reject,
        regularisation=arguments.regularisation,
        spread=arguments.spread,
        seed=arguments.seed,
    )


def measure(triples: jorth.kge.Triples, config: Config, epochs: int) -> float:
    """Seconds an epoch; the first, in which everything is compiled and cached, is not counted."""
    history = train(triples, replace(config, epochs=epochs + 1, evaluate_every=epochs + 1)).history
    return float(history["time"][-1] - history["time"][0]) / epochs


def show(row: dict[str, float]) -> None:
    if row["mrr"] == row["mrr"]:
        print(
            f"epoch {row['epoch']:4.0f}  {row['time']:7.1f} s  "
            f"{row['queries'] / row['time']:9.0f} queries/s  "
            f"loss {row['loss']:.4f}  valid MRR {row['mrr']:.4f}  Hits@10 {row['hits@10']:.4f}",
            flush=True,
        )


def run(arguments: argparse.Namespace) -> dict[str, object]:
    triples = load_triples(Path(arguments.data_dir) / arguments.dataset)
    config = settings(arguments)
    device = torch.cuda.get_device_name() if config.device.startswith("cuda") else "cpu"
    print(f"{triples}\n{config}\n{device}, torch {torch.__version__}", flush=True)
    seconds = measure(triples, config, arguments.measured)
    queries = 2 * len(triples.train)
    record: dict[str, object] = {
        "dataset": arguments.dataset,
        "device": device,
        "torch": torch.__version__,
    }
    record |= {"seconds_an_epoch": seconds, "triples_a_second": len(triples.train) / seconds}
    print(
        f"{seconds:.2f} s an epoch: {len(triples.train) / seconds:.0f} triples/s, "
        f"{queries / seconds:.0f} queries/s"
    )
    if arguments.throughput:
        return record | {"config": asdict(config)}
    epochs = arguments.epochs or max(1, int(arguments.time_limit / seconds))
    config = replace(config, epochs=epochs, evaluate_every=max(1, epochs // EVALUATIONS))
    if not arguments.epochs:
        config = replace(config, max_time=1.2 * arguments.time_limit)
    result = train(triples, config, callback=show, checkpoint=arguments.checkpoint)
    started = time.perf_counter()
    test = evaluate(result.model, triples.test.to(config.device), triples.known.to(config.device))
    norms = torch.linalg.matrix_norm(result.model.relations.detach(), ord=2)
    residual = torch.as_tensor(jorth.residual(result.model.relations.detach(), config.signature))
    print(
        f"{result.message}; best epoch {result.best_epoch}; ranking of test "
        f"{time.perf_counter() - started:.1f} s"
    )
    print(f"relations: norms up to {float(norms.max()):.1f}, residual {float(residual.max()):.1e}")
    for side in ("both", "head", "tail"):
        print(
            f"test {side}: "
            + "  ".join(f"{name} {value:.4f}" for name, value in test.metrics(side).items())
        )
    return record | {
        "config": asdict(config),
        "history": {name: column.tolist() for name, column in result.history.items()},
        "best_epoch": result.best_epoch,
        "test": {side: test.metrics(side) for side in ("both", "head", "tail")},
        "relations": {
            name: part.metrics() for name, part in test.by_relation(triples.relations).items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="WN18RR")
    parser.add_argument("--data-dir", default=os.path.join(os.environ.get("JORTH_DATA", "."), "kg"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds of training")
    parser.add_argument("--epochs", type=int, default=0, help="in place of the time limit")
    parser.add_argument("--throughput", action="store_true", help="measure the speed only")
    parser.add_argument(
        "--measured", type=int, default=1, help="epochs over which the speed is measured"
    )
    parser.add_argument("--method", default="j-jobcd", choices=("j-jobcd", "vr-j-jobcd", "csdm"))
    parser.add_argument("--dimension", type=int, default=32)
    parser.add_argument("--q", type=int, default=1)
    parser.add_argument("--alpha", type=float, default=1.0, help="radius: the larger, the flatter")
    parser.add_argument(
        "--shared-inverse", action="store_true", help="R^-1 for heads, no matrix of their own"
    )
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument(
        "--negatives", type=int, default=0, help="shared by a batch; 0: all entities"
    )
    parser.add_argument(
        "--reject", action="store_true", help="leave known answers out of the negatives"
    )
    parser.add_argument(
        "--loss", default="softmax", choices=("softmax", "logistic", "self-adversarial")
    )
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--relation-lr", type=float, default=0.003)
    parser.add_argument("--relation-device", default=None, help="cpu: compiled steps beside a GPU")
    parser.add_argument(
        "--rounds", type=int, default=0, help="rounds of pairs a step; 0: a whole tournament"
    )
    parser.add_argument("--regularisation", type=float, default=0.0)
    parser.add_argument("--spread", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", default=None)
    parser.add_argument("--output", default=None, help="JSON file")
    arguments = parser.parse_args()
    record = run(arguments)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
