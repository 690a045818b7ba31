"""UltraE with the settings of the JOBCD paper: which method for the relations is best?

    JORTH_DATA=... python benchmarks/paper/ultrae.py --records out/ultrae.jsonl
    python benchmarks/paper/ultrae.py --records out/ultrae.jsonl --table

p = q = 18, alpha = 1, delta = 5, k = 50 negatives, logistic loss, Adam with 5e-4 on entities and
biases. Every method tries each learning rate on the first seed; the best MRR on held-out triples
decides, and that rate runs on three seeds. Test triples are ranked by the model that did best on
the held-out ones. What the paper does not say is ours: 16 triples in a step, one end of each
corrupted, 600 passes over the training triples. A run that exists in the records is not made again,
so that the command can be interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from torch.nn.utils import parametrize

from jorth import Signature, kge, optim
from jorth.nn import cs_parametrization

GRAPHS = ("WN18RR-mini", "FB15k-237-mini")  # the paper has subsets of WN18RR and of FB15K
SIGNATURE = Signature(18, 18)
PRINTED = dict(metric="embedding", components="all", rounds_per_gradient=1)
JOBCD_RATES = (1e-1, 3e-1, 1.0, 3e-2)  # in the order in which they are tried
ADAGRAD_RATES = (1e-1, 1e-2, 1.0, 1e-3)
ADAM_RATES = (1e-3, 1e-2, 1e-4, 1e-1)


class ReducedCS(nn.Module):
    """What UltraE optimises of the CS form: X = diag(G(a), G(b)) H(mu) diag(F(c), F(d)).

    G is block-diagonal with 2 x 2 rotations, F with 2 x 2 reflections: 5 n / 2 numbers in place of
    n (n - 1) / 2. p = q must be even.
    """

    def forward(self, a: Tensor, b: Tensor, mu: Tensor, c: Tensor, d: Tensor) -> Tensor:
        left = _both(_givens(a, 1), _givens(b, 1))
        cosh, sinh = torch.diag_embed(mu.cosh()), torch.diag_embed(mu.sinh())
        boost = torch.cat([torch.cat([cosh, sinh], -1), torch.cat([sinh, cosh], -1)], -2)
        return left @ boost @ _both(_givens(c, -1), _givens(d, -1))

    def right_inverse(self, X: Tensor) -> tuple[Tensor, ...]:
        """Start at random angles and mu = 0; X only gives the size."""
        matrices, n = X.shape[0], X.shape[1]
        angles = [2 * math.pi * torch.rand(matrices, n // 4, dtype=X.dtype) for _ in range(4)]
        return (*angles[:2], X.new_zeros(matrices, n // 2), *angles[2:])


def _givens(angle: Tensor, sign: int) -> Tensor:
    """Return block-diagonal matrices (m, 2k, 2k) of rotations, or of reflections for sign -1."""
    c, s = angle.cos(), angle.sin()
    blocks = torch.stack([torch.stack([c, -sign * s], -1), torch.stack([s, sign * c], -1)], -2)
    m, k = angle.shape
    full = angle.new_zeros(m, k, 2, k, 2)
    index = torch.arange(k)
    full[:, index, :, index, :] = blocks.transpose(0, 1)
    return full.reshape(m, 2 * k, 2 * k)


def _both(A: Tensor, B: Tensor) -> Tensor:
    zero = torch.zeros_like(A)
    return torch.cat([torch.cat([A, zero], -1), torch.cat([zero, B], -1)], -2)


def jobcd(model, rate, seed, samples, **options):
    return optim.JOBCD([model.relations], model.signature, lr=rate, seed=seed, **options)


def vr_jobcd(model, rate, seed, samples):
    """PAGE with b = N, b' = ceil(sqrt N), p = b' / (b + b')."""
    small = math.ceil(math.sqrt(samples))
    options = dict(lr=rate, seed=seed, probability=small / (samples + small)) | PRINTED
    return optim.VRJOBCD([model.relations], model.signature, **options)


def csdm(kind, reduced):
    def make(model, rate, seed, samples):
        if reduced:
            parametrize.register_parametrization(model, "relations", ReducedCS())
        else:
            cs_parametrization(model, "relations", model.signature)
        return kind(model.parametrizations["relations"].parameters(), lr=rate)

    return make


METHODS = {
    "J-JOBCD as printed": (partial(jobcd, **PRINTED), JOBCD_RATES),
    "CSDM reduced, Adagrad (the paper's)": (csdm(torch.optim.Adagrad, True), ADAGRAD_RATES),
    "CSDM full, Adam": (csdm(torch.optim.Adam, False), ADAM_RATES),
    "VR-J-JOBCD as printed": (vr_jobcd, JOBCD_RATES),
    "CSDM reduced, Adam": (csdm(torch.optim.Adam, True), ADAM_RATES),
    "CSDM full, Adagrad": (csdm(torch.optim.Adagrad, False), ADAGRAD_RATES),
    "JOBCD, our defaults": (jobcd, (1e-2, 3e-2)),
}


@dataclass(frozen=True)
class Run:
    """One training run."""

    graph: str
    method: str
    rate: float
    seed: int
    passes: int


class Batches:
    """Triples in random order, and for each the ids (B, 1 + k) of its answer and k false ones."""

    def __init__(self, model, triples: Tensor, negatives: int, seed: int) -> None:
        self.model, self.triples, self.negatives = model, triples, negatives
        self.generator = torch.Generator().manual_seed(seed)
        self.order = torch.empty(0, dtype=torch.long)

    def draw(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return anchors, codes and candidates; one end of each triple, at random, is asked for."""
        if len(self.order) < size:
            fresh = torch.randperm(len(self.triples), generator=self.generator)
            self.order = torch.cat([self.order, fresh])
        chosen, self.order = self.triples[self.order[:size]], self.order[size:]
        head, relation, tail = chosen.unbind(1)
        asks_tail = torch.rand(size, generator=self.generator) < 0.5
        entities = self.model.n_entities
        others = torch.randint(entities - 1, (size, self.negatives), generator=self.generator)
        anchor, answer = torch.where(asks_tail, head, tail), torch.where(asks_tail, tail, head)
        others += others >= answer[:, None]
        code = relation + self.model.n_relations * ~asks_tail
        return anchor, code, torch.cat([answer[:, None], others], dim=1)

    def loss(self, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the mean of -log s(true) - sum log(1 - s(false))."""
        anchor, code, ids = batch
        model = self.model
        moved = model.apply_relations(model.embeddings(anchor), code)
        scores = model.score_points(
            moved, model.bias[anchor], model.embeddings(ids), model.bias[ids]
        )
        return -(logsigmoid(scores[:, 0]) + logsigmoid(-scores[:, 1:]).sum(1)).mean()


def train(run: Run, triples, *, signature=SIGNATURE, negatives=50) -> dict:
    """Train and return the record: losses, and MRR on held-out (and test) triples."""
    torch.manual_seed(run.seed)
    sizes = len(triples.entities), len(triples.relations)
    model = kge.UltraE(*sizes, signature=signature, start="separate", seed=run.seed)
    samples = len(triples.train)
    entities = torch.optim.Adam([model.points, model.bias], lr=5e-4)
    relations = METHODS[run.method][0](model, run.rate, run.seed, samples)
    batches = Batches(model, triples.train, negatives, run.seed)
    small = math.ceil(math.sqrt(samples)) if isinstance(relations, optim.VRJOBCD) else 16
    best, losses, spent, part, began = (0.0, None), [], 0, [], time.perf_counter()
    reports = 20
    while spent < run.passes * samples:
        large = isinstance(relations, optim.VRJOBCD) and relations.wants_large_batch()
        size = samples if large else small
        batch = batches.draw(size)

        def closure(batch=batch):
            entities.zero_grad()
            relations.zero_grad()
            loss = batches.loss(batch)
            loss.backward()
            return loss

        part.append(relations.step(closure).item())
        entities.step()
        before, spent = spent, spent + size
        share = run.passes * samples / reports
        if spent // share > before // share:
            losses.append(sum(part) / len(part))
            part = []
            mrr = kge.evaluate(model, triples.valid, triples.known).mrr
            if mrr > best[0]:
                state = {name: value.clone() for name, value in model.state_dict().items()}
                best = (mrr, state)
    record = asdict(run) | dict(losses=losses, valid=best[0], seconds=time.perf_counter() - began)
    record["norm"] = float(torch.linalg.matrix_norm(model.relations.detach(), 2).max())
    if best[1] is not None:
        model.load_state_dict(best[1])
        record |= kge.evaluate(model, triples.test, triples.known).metrics()
    return record


def everything(path: Path, graphs, methods, seeds, passes: int, trials: int) -> None:
    """Make the runs that the records lack: trials first, then tests at the best rates."""
    records = read(path)
    folder = Path(os.environ.get("JORTH_DATA", ".")) / "kg"

    def once(run: Run) -> dict:
        for record in records:
            if all(record[name] == value for name, value in asdict(run).items()):
                return record
        triples = kge.load_triples(folder / run.graph, seed=run.seed)
        record = train(run, triples)
        records.append(record)
        with path.open("a") as lines:
            lines.write(json.dumps(record) + "\n")
        score = f"held-out MRR {record['valid']:.3f}, {record['seconds']:.0f} s"
        print(f"{run.graph:15} {run.method:36} {run.rate:g} seed {run.seed}: {score}", flush=True)
        return record

    for graph in graphs:
        for method in methods:
            rates = METHODS[method][1][:trials]
            tried = [once(Run(graph, method, rate, seeds[0], passes)) for rate in rates]
            rate = max(tried, key=lambda trial: trial["valid"])["rate"]
            for seed in seeds[1:]:
                once(Run(graph, method, rate, seed, passes))


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(records: list[dict]) -> str:
    """Return the tests as Markdown: medians over the seeds, least and largest in brackets."""
    lines = ["| graph | method | rate | loss | test MRR | Hits@10 | s |", "|---" * 7 + "|"]
    for graph, method in dict.fromkeys((r["graph"], r["method"]) for r in records):
        runs = [r for r in records if (r["graph"], r["method"]) == (graph, method)]
        rate = max(runs, key=lambda r: (r["seed"] == runs[0]["seed"], r["valid"]))["rate"]
        rows = [r for r in runs if r["rate"] == rate]

        def spread(values, digits=3):
            low, high = min(values), max(values)
            return f"{median(values):.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"

        ranks = (spread([r.get(name, 0.0) for r in rows]) for name in ("mrr", "hits@10"))
        cells = [f"{rate:g}", spread([r["losses"][-1] for r in rows], 2), *ranks]
        seconds = median(r["seconds"] for r in rows)
        lines.append(f"| {graph} | {method} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, default=Path("out/ultrae.jsonl"))
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=(3, 4, 5))
    parser.add_argument("--passes", type=int, default=600)
    parser.add_argument("--trials", type=int, default=2, help="learning rates tried, up to 4")
    parser.add_argument("--table", action="store_true", help="print the table of the records alone")
    args = parser.parse_args()
    torch.set_num_threads(1)  # a step is too small for more
    if not args.table:
        args.records.parent.mkdir(parents=True, exist_ok=True)
        everything(args.records, args.graphs, args.methods, args.seeds, args.passes, args.trials)
    print(table(read(args.records)))


if __name__ == "__main__":
    main()
