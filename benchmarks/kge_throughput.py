"""Triples per second of training knowledge graphs, and the parts of a step against their floor.

    python benchmarks/kge_throughput.py --device cuda
    python benchmarks/kge_throughput.py --device cuda --parts
    OMP_NUM_THREADS=1 python benchmarks/kge_throughput.py --limit 20000 --pykeen-limit 400

jorth asks for both ends of every triple, PyKEEN's loop for one of them: a triple is two queries in
the one and one in the other. Both have the same batch, dimension and number of negatives; those of
jorth are shared by a batch, those of PyKEEN (MuRE, where PyKEEN is installed) are not, as that is
all it offers. The first epoch, which compiles and captures, does not count; ranking neither.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import torch

import jorth
from benchmarks import kernels, roofline, work
from jorth.kge import Config, Triples, load_triples, train
from jorth.kge.loss import LeftOut, distance_softmax
from jorth.kge.model import UltraE, squared_arc

RELATIONS = {"momentum": 0.9, "curvature": "per-plane", "metric": "invariant"}


@dataclass(frozen=True)
class Setting:
    """What is measured: queries per step, false answers that they share, and the precision."""

    dataset: str
    batch: int
    negatives: int
    dtype: str

    def __str__(self):
        return f"{self.dataset}, {self.batch} x {self.negatives:,}, {self.dtype}"

    def config(self, arguments):
        return Config(
            p=arguments.dimension - arguments.q,
            q=arguments.q,
            reciprocal=True,
            dtype=self.dtype,
            device=arguments.device,
            method=arguments.method,
            lr=0.01,
            relation_lr=0.003,
            relation_options={} if arguments.method == "csdm" else RELATIONS,
            schedule="linear",
            batch_size=self.batch,
            loss="softmax",
            negatives=self.negatives,
            shared=True,
            sides="both",
            smoothing=0.1,
            regularisation=0.0,
        )


SETTINGS = (
    Setting("WN18RR", 4000, 1000, "float32"),
    Setting("WN18RR", 1000, 10_000, "float64"),
    Setting("FB15k-237", 4000, 2000, "float32"),
)


def graph(setting, arguments, limit):
    """The data set, or its first training triples with all entities."""
    triples = load_triples(Path(arguments.data_dir) / setting.dataset)
    return replace(triples, train=triples.train[:limit], valid=triples.valid[:100])


def jorth_rate(triples: Triples, config: Config, epochs: int) -> float:
    """Training triples per second."""
    history = train(triples, replace(config, epochs=epochs + 1, evaluate_every=epochs + 1)).history
    seconds = float(history["time"][-1] - history["time"][0]) / epochs
    return len(triples.train) / seconds


def pykeen_rate(triples: Triples, setting: Setting, arguments) -> float:
    """Training triples per second of PyKEEN's loop with MuRE and Adam."""
    from pykeen.models import MuRE
    from pykeen.training import SLCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory

    factory = CoreTriplesFactory(
        triples.train, num_entities=len(triples.entities), num_relations=len(triples.relations)
    )
    model = MuRE(
        triples_factory=factory,
        embedding_dim=arguments.dimension,
        loss="crossentropy",
        random_seed=0,
    ).to(arguments.device, getattr(torch, setting.dtype))
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        negative_sampler="basic",
        negative_sampler_kwargs={"num_negs_per_pos": setting.negatives},
    )
    times = []
    for epoch in (1, 2):  # the first one starts workers and caches
        start = kernels.clock(arguments.device)
        loop.train(
            triples_factory=factory,
            num_epochs=epoch,
            batch_size=min(setting.batch, len(triples.train)),
            use_tqdm=False,
            continue_training=epoch > 1,
        )
        times.append(kernels.clock(arguments.device) - start)
    return len(triples.train) / times[-1]


def rates(arguments):
    """One row per setting, printed as it comes."""
    found = []
    with_pykeen = find_spec("pykeen") is not None and not arguments.no_pykeen
    print("| | triples/s | queries/s | MuRE in PyKEEN, triples/s | its queries/s |")
    print("|---|---|---|---|---|")
    for setting in arguments.settings:
        triples = graph(setting, arguments, arguments.limit)
        ours = jorth_rate(triples, setting.config(arguments), arguments.epochs)
        row = {**asdict(setting), "method": arguments.method, "triples_per_second": ours}
        theirs = "not measured | |"
        if with_pykeen:
            few = graph(setting, arguments, arguments.pykeen_limit)
            row["pykeen_triples_per_second"] = rate = pykeen_rate(few, setting, arguments)
            theirs = f"{rate:,.0f} | {rate:,.0f} |"
        print(f"| {setting} | {ours:,.0f} | {2 * ours:,.0f} | {theirs}", flush=True)
        found.append(row)
    return found


# -- the parts of a step


class Step:
    """One step on random queries, in pieces that can be timed by themselves."""

    def __init__(self, setting: Setting, arguments) -> None:
        triples = load_triples(Path(arguments.data_dir) / setting.dataset)
        dtype, device = getattr(torch, setting.dtype), arguments.device
        self.B, self.k, self.n = setting.batch, setting.negatives, arguments.dimension
        self.entities, self.codes = len(triples.entities), 2 * len(triples.relations)
        self.size = torch.empty((), dtype=dtype).element_size()
        self.model = model = UltraE(
            self.entities,
            len(triples.relations),
            signature=jorth.Signature(self.n - arguments.q, arguments.q),
            reciprocal=True,
            spread=0.3,
            dtype=dtype,
            device=device,
        )
        random = torch.Generator(device).manual_seed(0)
        ends = torch.randint(self.entities, (2, self.B), generator=random, device=device)
        self.anchor, self.answer = ends.unbind()
        self.code = torch.randint(self.codes, (self.B,), generator=random, device=device)
        self.candidates = torch.randperm(self.entities, generator=random, device=device)[: self.k]
        first = torch.arange(self.B, device=device)
        column = torch.full((self.entities,), -1, device=device)
        column[self.candidates] = torch.arange(self.k, device=device)
        self.left_out = LeftOut(first, first + 1, self.answer, column)
        self.adam = torch.optim.Adam([model.points, model.bias], lr=1e-4, fused=True)
        self.jobcd = jorth.optim.JOBCD([model.relations], model.signature, lr=1e-4)
        self.whole()
        (x, _), (y, bias), (self.E, self.bias) = (
            (part.detach().requires_grad_() for part in pair) for pair in self.read()
        )
        self.x = x
        self.signed = (model.move(x, self.code) * model.signs).detach().requires_grad_()
        self.truth = (bias - squared_arc((self.signed * y).sum(-1))).detach().requires_grad_()
        self.products = (self.signed @ self.E.mT).detach()

    def read(self):
        return self.model.read(self.anchor, self.answer, self.candidates)

    def read_and_back(self):
        E, bias = zip(*self.read(), strict=True)
        parts = [*E, *bias]
        torch.autograd.grad(parts, (self.model.points, self.model.bias), parts)

    def move_and_back(self):
        moved = self.model.move(self.x, self.code)
        torch.autograd.grad(moved, (self.x, self.model.relations), moved)

    def loss(self, signed, E, bias, truth):
        return distance_softmax(
            signed, E, bias, truth, area=1.0, smoothing=0.1, left_out=self.left_out
        )

    def loss_and_back(self):
        given = (self.signed, self.E, self.bias, self.truth)
        torch.autograd.grad(self.loss(*given), given)

    def three_products(self):
        with torch.no_grad():
            torch.mm(self.signed, self.E.mT, out=self.products)
            torch.mm(self.products, self.E)
            torch.mm(self.products.mT, self.signed)

    def whole(self):
        model = self.model
        self.adam.zero_grad()
        self.jobcd.zero_grad()
        (x, _), (y, y_bias), (E, bias) = self.read()
        signed = model.move(x, self.code) * model.signs
        self.loss(signed, E, bias, y_bias - squared_arc((signed * y).sum(-1))).backward()
        self.jobcd.step()
        self.adam.step()

    def parts(self):
        """Name, call, and the work that it cannot do without."""
        B, k, n, size = self.B, self.k, self.n, self.size
        rows, table, matrices = 2 * B + k, self.entities * (n + 1), self.codes * n * n
        pairs = B * k
        products = work.Work(6 * pairs * n, 4 * pairs * size, pairs * size)
        fused = work.Work(products.flops + 2 * work.ARC * pairs, 6 * pairs * size, pairs * size)
        read = size * (4 * rows * n + table)
        moved = size * (5 * B * n + 3 * matrices)
        yield "gather and lift, and back", self.read_and_back, work.Work(0, read, table * size)
        yield "move, and back", self.move_and_back, work.Work(6 * B * n * n, moved, moved)
        yield "loss and its gradients", self.loss_and_back, fused
        yield "its three products", self.three_products, products
        yield "Adam", self.adam.step, work.Work(0, 7 * table * size, 4 * table * size)
        yield "relations", self.jobcd.step, work.Work(0, 11 * matrices * size, matrices * size)
        total = read + moved + fused.bytes + (7 * table + 11 * matrices) * size
        yield "step, launched one by one", self.whole, work.Work(fused.flops, total, total)


def parts(arguments):
    """Every part of a step beside the time that the machine needs for its bytes or operations."""
    device = arguments.device
    copy = [(size, roofline.copy_rate(size, device)) for size in roofline.COPIED[device]]
    product = {
        name: roofline.product_rate(roofline.MULTIPLIED[device], getattr(torch, name), device)
        for name in ("float32", "float64")
    }
    print(f"copies: {[f'{size >> 20} MiB {rate / 1e9:,.0f} GB/s' for size, rate in copy]}")
    print(f"products: {[f'{name} {rate / 1e9:,.0f} Gflop/s' for name, rate in product.items()]}")
    found = []
    for setting in arguments.settings:
        print(f"\n{setting}\n\n| part | microseconds | floor | bound by |\n|---|---|---|---|")
        for name, call, least in Step(setting, arguments).parts():
            row = least._asdict() | {"dtype": setting.dtype}
            floor = roofline.roof(row, {"copy": copy, "product": product})
            loops = 20 if device == "cuda" else 1
            took = kernels.seconds(call, device, loops=loops)
            bound = "bytes" if floor[0] > floor[1] else "operations"
            print(f"| {name} | {1e6 * took:.0f} | {1e6 * max(floor):.0f} | {bound} |", flush=True)
            found.append({**asdict(setting), "part": name, "seconds": took, "floor": max(floor)})
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--data-dir", default=os.path.join(os.environ.get("JORTH_DATA", "."), "kg"))
    parser.add_argument("--dimension", type=int, default=32)
    parser.add_argument("--q", type=int, default=1)
    parser.add_argument("--method", default="j-jobcd", choices=["j-jobcd", "vr-j-jobcd", "csdm"])
    parser.add_argument("--epochs", type=int, help="that count, by default 10 on CUDA, else 2")
    parser.add_argument("--limit", type=int, help="training triples of jorth, by default all")
    parser.add_argument("--pykeen-limit", type=int, default=8000, help="training triples of PyKEEN")
    parser.add_argument("--no-pykeen", action="store_true")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of settings, from 0")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--parts", action="store_true", help="the parts of a step")
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    chosen = range(len(SETTINGS)) if arguments.only is None else arguments.only
    arguments.settings = [SETTINGS[number] for number in chosen]
    arguments.epochs = arguments.epochs or (10 if arguments.device == "cuda" else 2)
    since = time.perf_counter()
    found = (parts if arguments.parts else rates)(arguments)
    if arguments.json:
        name = torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"
        record = {"device": name, "torch": torch.__version__, "rows": found}
        arguments.json.write_text(json.dumps(record, indent=1))
    print(f"\n{time.perf_counter() - since:.0f} s, torch {torch.__version__}")


if __name__ == "__main__":
    main()
