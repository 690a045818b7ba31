"""Short and long training: JOBCD by default after 100, 400 and 2,000 steps, beside tuned others.

    python benchmarks/training_lengths.py --workers 2

Four tasks that played no part in choosing the defaults. Every other method has the rate that is
best for each task and length; three seeds, float32, full batches or batches of 128. Printed: the
mean loss on all data, and that of JOBCD over the best of the others.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import torch
from torch.nn import functional as F

import jorth
from benchmarks.training_tasks import Training, batches
from jorth.nn.init import j_orthogonal_

LENGTHS = (100, 400, 2000)
SEEDS = (20, 21, 22)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
DEFAULT = "JOBCD"
OTHERS = ("geoopt RiemannianAdam on our manifold", "CS form + Adam", "exp form + Adam")


class Task:
    """What `training_tasks` asks of a task, with identities as the start."""

    def __init__(self, seed, signature, count, points=0):
        self.generator, self.signature = torch.Generator().manual_seed(seed), signature
        self.start, self.others = [torch.eye(signature.n).repeat(count, 1, 1)], []
        self.rows = batches(points, 128, LENGTHS[-1], self.generator) if points else []

    def draw(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def planted(self, count, cond, seed):
        X = torch.empty(count, self.signature.n, self.signature.n)
        return j_orthogonal_(X, self.signature, cond=cond, seed=seed)


class Jets(Task):
    """24 Lorentz transforms from what they make of 40 noisy momenta each, of mass 0.1 to 1."""

    def __init__(self, seed):
        super().__init__(seed, jorth.Signature.lorentz(4), 24)
        space = self.draw(24, 40, 3)
        mass = 0.1 + 0.9 * torch.rand(24, 40, 1, generator=self.generator)
        self.p = torch.cat([(mass**2 + space.square().sum(-1, keepdim=True)).sqrt(), space], -1)
        moved = self.p @ self.planted(24, 30.0, seed).mT
        self.scale = moved.square().mean((1, 2), keepdim=True).sqrt()
        self.target = moved / self.scale + 0.05 * self.draw(*moved.shape)

    def loss(self, X, step, others):
        return (self.p @ X[0].mT / self.scale - self.target).square().mean()


class Recurrence(Task):
    """One matrix of O(4, 2) whose first eight powers move 600 points as seen, with noise."""

    def __init__(self, seed):
        super().__init__(seed, jorth.Signature(4, 2), 1, 600)
        W, x = self.planted(1, 1.5, seed)[0], self.draw(600, 6)
        self.x, self.states = x, []
        for _ in range(8):
            x = x @ W.mT
            self.states.append(x + 0.1 * self.draw(*x.shape))  # the noise is of what is seen

    def loss(self, X, step, others):
        rows = slice(None) if step is None else self.rows[step]
        x, total = self.x[rows], 0.0
        for state in self.states:
            x = x @ X[0][0].mT
            total = total + (x - state[rows]).square().mean()
        return total / 8


class Synchronisation(Task):
    """30 frames in O(3, 1) from noisy transforms between 150 pairs of them."""

    def __init__(self, seed):
        super().__init__(seed, jorth.Signature.lorentz(4), 30)
        self.J = self.signature.vector(torch.empty(0))
        frames = self.planted(30, 10.0, seed)
        self.i = torch.randint(30, (150,), generator=self.generator)
        self.j = (self.i + torch.randint(1, 30, (150,), generator=self.generator)) % 30
        self.between = self.relative(frames)
        self.size = self.between.square().mean((1, 2), keepdim=True).sqrt()
        self.between = self.between + 0.05 * self.size * self.draw(150, 4, 4)

    def relative(self, X):
        return self.J[:, None] * X[self.i].mT * self.J @ X[self.j]  # X_i^-1 X_j

    def loss(self, X, step, others):
        return ((self.relative(X[0]) - self.between) / self.size).square().mean()


class Clocks(Task):
    """40 places on a circle and 12 relations in O(6, 2) that shift them, by cross-entropy."""

    def __init__(self, seed):
        super().__init__(seed, jorth.Signature(6, 2), 12, 400)
        self.others = [0.3 * self.draw(40, 8)]

        def draw(high):
            return torch.randint(high, (400,), generator=self.generator)

        self.head, self.relation = draw(40), draw(12)
        self.tail = (self.head + 3 * self.relation + draw(2)) % 40

    def loss(self, X, step, others):
        rows = slice(None) if step is None else self.rows[step]
        places, moved = others[0], X[0][self.relation[rows]]
        images = (moved @ places[self.head[rows], :, None])[..., 0]
        return F.cross_entropy(images @ places.mT, self.tail[rows])


TASKS = {"jets": Jets, "recurrence": Recurrence, "frames": Synchronisation, "clocks": Clocks}


def losses(run):
    """The losses after each length of a run, NaN from where it failed."""
    task, method, rate, seed = run
    torch.set_num_threads(1)
    try:
        training, found = Training(TASKS[task](seed), method, rate), []
        for step in range(LENGTHS[-1]):
            training.step(step)
            if step + 1 in LENGTHS:
                found.append(training.score())
        return run, found
    except (RuntimeError, ValueError) as error:
        print(f"{run}: {error}", file=sys.stderr)
        return run, [math.nan] * len(LENGTHS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    runs = list(product(TASKS, OTHERS, RATES, SEEDS)) + list(
        product(TASKS, [DEFAULT], [0.01], SEEDS)
    )
    found = defaultdict(list)
    with ProcessPoolExecutor(given.workers) as pool:
        for (task, method, rate, _), values in pool.map(losses, runs):
            found[task, method, rate].append(values)
    print("| task | steps | " + " | ".join((DEFAULT + ", default", *OTHERS)) + " | over the best |")
    print("|---" * (len(OTHERS) + 4) + "|")
    for task, (at, length) in product(TASKS, enumerate(LENGTHS)):
        means = {
            key[1:]: sum(values[at] for values in runs) / len(runs)
            for key, runs in found.items()
            if key[0] == task
        }
        ours = means[DEFAULT, 0.01]
        best = {
            name: min((means[name, rate], rate) for rate in RATES if means[name, rate] < math.inf)
            for name in OTHERS
        }
        cells = [f"{value:.3g} ({rate:g})" for value, rate in best.values()]
        ratio = ours / min(value for value, _ in best.values())
        print(f"| {task} | {length} | {ours:.3g} | " + " | ".join(cells) + f" | {ratio:.2f} |")


if __name__ == "__main__":
    main()
