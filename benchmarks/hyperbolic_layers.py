"""Hyperbolic layers beside HypLL's, geoopt's and Euclidean ones: accuracy and ms per step, as in
docs/howto/layers.md.

    JORTH_DATA=folder python benchmarks/hyperbolic_layers.py

Digits: two hidden layers of 64. MNIST: three, for the means of 8 x 8 squares of pixels, from a file
mnist.npz of images X and answers y. Brackets: which kind must close next, at every place of a
sequence, by two transformer layers. Learning rates are chosen with other seeds.
"""

import os
import sys
import time
from functools import partial
from pathlib import Path

import geoopt
import numpy as np
import torch
from geoopt.layers.stereographic import Distance2StereographicHyperplanes
from sklearn.datasets import load_digits
from torch import nn

from jorth import Signature
from jorth.nn import (
    HyperbolicMLR,
    JOrthogonalLinear,
    LorentzLinear,
    LorentzResidual,
    LorentzSpace,
    LorentzTransformerLayer,
)
from jorth.optim import ModelOptimizer
from jorth.ultrahyperbolic import lift

try:
    import hypll.nn
    from hypll.manifolds.poincare_ball import Curvature, PoincareBall
    from hypll.optim import RiemannianAdam
    from hypll.tensors import TangentTensor
except ImportError:  # pip install --no-deps hypll
    hypll = None

RATES = 1e-3, 3e-3, 1e-2, 3e-2
TUNING, SEEDS = range(100, 102), range(6)
KINDS, LENGTH, WIDTH = 4, 32, 32  # of brackets
HIDDEN = {"digits": 2, "mnist": 3}  # layers of 64
TRAINED = {"digits": 1198, "mnist": 8000, "brackets": 3000}  # the others are for testing


class Residual(nn.Linear):
    """x + relu(W x + b) for the coordinates of space."""

    def forward(self, x):
        return x[..., -64:] + super().forward(x[..., -64:]).relu()


class Brackets(nn.Module):
    """Causal transformer layers, between vectors of tokens and places, and a head."""

    def __init__(self, layers, head, start, mask):
        super().__init__()
        self.tokens = nn.Embedding(2 * KINDS, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.layers, self.head, self.start = nn.ModuleList(layers), head, start
        self.mask = {mask: torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)}

    def forward(self, x):
        x = self.start(self.tokens(x) + self.places)
        for layer in self.layers:
            x = layer(x, **self.mask)
        return self.head(x)


class HypLL(nn.Module):
    """As in the tutorials of HypLL."""

    def __init__(self, hidden):
        super().__init__()
        self.ball = PoincareBall(Curvature(1.0))
        relu, linear = hypll.nn.HReLU(self.ball), partial(hypll.nn.HLinear, manifold=self.ball)
        layers = [layer for _ in range(hidden) for layer in (linear(64, 64), relu)]
        self.layers = nn.Sequential(*layers, linear(64, 10))

    def forward(self, x):
        vectors = TangentTensor(x[:, 1:], man_dim=1, manifold=self.ball)
        return self.layers(self.ball.expmap(vectors)).tensor


class Mobius(nn.Module):
    """As in the examples of geoopt: products, sums and hyperplanes of the ball."""

    def __init__(self, hidden):
        super().__init__()
        self.ball = ball = geoopt.PoincareBall()
        self.weights = nn.ParameterList(nn.Linear(64, 64).weight.detach() for _ in range(hidden))
        zeros = (geoopt.ManifoldParameter(torch.zeros(64), manifold=ball) for _ in range(hidden))
        self.biases = nn.ParameterList(zeros)
        self.head = Distance2StereographicHyperplanes(64, 10, ball=ball, init_std=0.1)

    def forward(self, x):
        x = self.ball.expmap0(x[:, 1:])
        for weight, bias in zip(self.weights, self.biases, strict=True):
            x = self.ball.mobius_add(self.ball.mobius_matvec(weight, x), bias)
            x = self.ball.mobius_fn_apply(torch.relu, x)
        return 10 * self.head(x)


def adam(network, lr, kind=torch.optim.Adam):
    return kind(network.parameters(), lr=lr)


def jobcd(network, lr):
    """JOBCD with its defaults, and Adam for the head."""
    return ModelOptimizer(network, partial(torch.optim.Adam, lr=lr))


def networks(task, seed):
    """Names, networks, and what makes their optimisers."""
    torch.manual_seed(seed)
    if task in HIDDEN:
        sig, relu, hidden = Signature.lorentz(65), nn.ReLU(), HIDDEN[task]
        seeds = range(seed * hidden, seed * hidden + hidden)
        plain = [layer for k in seeds for layer in (nn.Linear(65 - (k > seeds[0]), 64), relu)]
        general = [LorentzLinear(sig, activation=relu, seed=k) for k in seeds]
        isometries, others = (
            [nn.Sequential(JOrthogonalLinear(sig, seed=k), LorentzSpace(relu, sig)) for k in seeds]
            for _ in range(2)
        )
        residual = [LorentzResidual(layer, sig, gate=1.0) for layer in others]
        heads = [HyperbolicMLR(sig, 10, seed=seed) for _ in range(3)]
        found = {
            "Euclidean": (nn.Sequential(*plain, nn.Linear(64, 10)), adam),
            "`LorentzLinear`": (nn.Sequential(*general, heads[0]), adam),
            "geoopt": (Mobius(hidden), partial(adam, kind=geoopt.optim.RiemannianAdam)),
        }
        if hypll is not None:
            found["HypLL"] = HypLL(hidden), partial(adam, kind=RiemannianAdam)
        blocks = nn.Sequential(*(Residual(64, 64) for _ in seeds), nn.Linear(64, 10))
        return found | {
            "`JOrthogonalLinear`": (nn.Sequential(*isometries, heads[1]), jobcd),
            "`JOrthogonalLinear`, residual": (nn.Sequential(*residual, heads[2]), jobcd),
            "Euclidean, residual": (blocks, adam),
        }
    sig, norm, classes = Signature.lorentz(WIDTH + 1), nn.LayerNorm(WIDTH), KINDS + 1
    options = dict(batch_first=True, norm_first=True, activation="gelu")
    plain = [nn.TransformerEncoderLayer(WIDTH, 4, 64, **options) for _ in range(2)]
    head = nn.Sequential(norm, nn.Linear(WIDTH, classes))
    ours = [LorentzTransformerLayer(sig, 4, hidden=64, seed=2 * seed + k) for k in range(2)]
    our_head = nn.Sequential(LorentzSpace(norm, sig), HyperbolicMLR(sig, classes, seed=seed))
    start = partial(lift, signature=sig)
    return {
        "Euclidean": (Brackets(plain, head, nn.Identity(), "src_mask"), adam),
        "`LorentzTransformerLayer`": (Brackets(ours, our_head, start, "attn_mask"), adam),
    }


def data(task, rng):
    """Pixels of norm 1 or so as points, or sequences of brackets, and their answers."""
    if task in HIDDEN:
        if task == "digits":
            images, y = load_digits(return_X_y=True)
        else:
            with np.load(Path(os.environ["JORTH_DATA"], "mnist.npz")) as file:
                images, y = file["X"].reshape(-1, 28, 28)[:, 2:26, 2:26], file["y"].astype(int)
            images = images.reshape(-1, 8, 3, 8, 3).mean((2, 4)).reshape(-1, 64) / 16
        order = torch.from_numpy(rng.permutation(len(y)))
        x = lift(images / 64, Signature.lorentz(65))
        return torch.from_numpy(x).float()[order], torch.from_numpy(y)[order]
    x, y = np.zeros((2, 4500, LENGTH), dtype=np.int64)
    for sequence, answers in zip(x, y, strict=True):
        stack = []
        for j in range(LENGTH):
            if not stack or rng.random() < 0.5:
                stack.append(rng.integers(KINDS))
                sequence[j] = stack[-1]
            else:
                sequence[j] = KINDS + stack.pop()
            answers[j] = stack[-1] if stack else KINDS
    return torch.from_numpy(x), torch.from_numpy(y)


def training(task, name, rate, seed):
    """Yield after every step the network, the rows kept for testing, and the step's ms."""
    rng, part = np.random.default_rng(seed), TRAINED[task]
    x, y = data(task, rng)
    steps, batch = (1000, 128) if task in HIDDEN else (600, 32)
    network, make = networks(task, seed)[name]
    optimizer = make(network, rate)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        rows = torch.from_numpy(rng.integers(part, size=batch))
        start = time.process_time()
        optimizer.zero_grad()
        logits = network(x[rows]).flatten(0, -2)
        nn.functional.cross_entropy(logits, y[rows].flatten()).backward()
        optimizer.step()
        spent = time.process_time() - start
        decay.step()
        yield network, (x[part:], y[part:]), 1e3 * spent


def accuracy(run):
    """The percentage of right answers on what a network was not trained on."""
    *_, (network, (x, y), _) = run
    with torch.no_grad():
        return 100 * (network.eval()(x).argmax(dim=-1) == y).double().mean().item()


def main():
    """Print a row per task and network."""
    torch.set_num_threads(1)
    print("| task | network | rate | accuracy | ms per step |\n|---|---|---|---|---|")
    for task in sys.argv[1:] or (*HIDDEN, "brackets"):
        names = list(networks(task, 0))
        turns = zip(*(training(task, name, 1e-3, 0) for name in names), strict=True)
        spent = [[ms for *_, ms in turn] for turn, _ in zip(turns, range(200), strict=False)]
        for name, ms in zip(names, np.median(spent, axis=0), strict=True):
            tuned = [np.mean([accuracy(training(task, name, r, s)) for s in TUNING]) for r in RATES]
            rate = RATES[np.argmax(tuned)]
            found = [accuracy(training(task, name, rate, seed)) for seed in SEEDS]
            each = f"{np.mean(found):.1f} ± {np.std(found, ddof=1) / len(found) ** 0.5:.1f}"
            print(f"| {task} | {name} | {rate:g} | {each} | {ms:.2f} |", flush=True)


if __name__ == "__main__":
    main()
