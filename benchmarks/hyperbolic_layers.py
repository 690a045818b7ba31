"""Hyperbolic layers beside HypLL's, geoopt's and Euclidean ones: accuracy and ms per step, as in
docs/howto/layers.md.

    python benchmarks/hyperbolic_layers.py

Digits: two hidden layers of 64. Brackets: which kind must close next, at every place of a sequence,
by two transformer layers. Learning rates are chosen with other seeds.
"""

import time
from functools import partial

import geoopt
import numpy as np
import torch
from geoopt.layers.stereographic import Distance2StereographicHyperplanes
from sklearn.datasets import load_digits
from torch import nn

from jorth import Signature
from jorth.nn import HyperbolicMLR, LorentzLinear, LorentzSpace, LorentzTransformerLayer
from jorth.ultrahyperbolic import lift

try:
    import hypll.nn
    from hypll.manifolds.poincare_ball import Curvature, PoincareBall
    from hypll.optim import RiemannianAdam
    from hypll.tensors import TangentTensor
except ImportError:  # pip install --no-deps hypll
    hypll = None

RATES = 1e-3, 3e-3, 1e-2, 3e-2
TUNING, SEEDS = range(100, 103), range(6)
KINDS, LENGTH, WIDTH = 4, 32, 32  # of brackets


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

    def __init__(self):
        super().__init__()
        self.ball = PoincareBall(Curvature(1.0))
        relu, linear = hypll.nn.HReLU(self.ball), partial(hypll.nn.HLinear, manifold=self.ball)
        layers = linear(64, 64), relu, linear(64, 64), relu, linear(64, 10)
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        vectors = TangentTensor(x[:, 1:], man_dim=1, manifold=self.ball)
        return self.layers(self.ball.expmap(vectors)).tensor


class Mobius(nn.Module):
    """As in the examples of geoopt: products, sums and hyperplanes of the ball."""

    def __init__(self):
        super().__init__()
        self.ball = ball = geoopt.PoincareBall()
        self.weights = nn.ParameterList(nn.Linear(64, 64).weight.detach() for _ in range(2))
        zeros = (geoopt.ManifoldParameter(torch.zeros(64), manifold=ball) for _ in range(2))
        self.biases = nn.ParameterList(zeros)
        self.head = Distance2StereographicHyperplanes(64, 10, ball=ball, init_std=0.1)

    def forward(self, x):
        x = self.ball.expmap0(x[:, 1:])
        for weight, bias in zip(self.weights, self.biases, strict=True):
            x = self.ball.mobius_add(self.ball.mobius_matvec(weight, x), bias)
            x = self.ball.mobius_fn_apply(torch.relu, x)
        return 10 * self.head(x)


def networks(task, seed):
    """Names, networks and optimisers."""
    torch.manual_seed(seed)
    adam, relu, sig = torch.optim.Adam, nn.ReLU(), Signature.lorentz(65)
    if task == "digits":
        plain = nn.Linear(65, 64), relu, nn.Linear(64, 64), relu, nn.Linear(64, 10)
        ours = (LorentzLinear(sig, activation=relu, seed=2 * seed + k) for k in range(2))
        found = {
            "Euclidean": (nn.Sequential(*plain), adam),
            "jorth": (nn.Sequential(*ours, HyperbolicMLR(sig, 10, seed=seed)), adam),
            "geoopt": (Mobius(), geoopt.optim.RiemannianAdam),
        }
        return found if hypll is None else found | {"HypLL": (HypLL(), RiemannianAdam)}
    sig, norm, classes = Signature.lorentz(WIDTH + 1), nn.LayerNorm(WIDTH), KINDS + 1
    options = dict(batch_first=True, norm_first=True, activation="gelu")
    plain = [nn.TransformerEncoderLayer(WIDTH, 4, 64, **options) for _ in range(2)]
    head = nn.Sequential(norm, nn.Linear(WIDTH, classes))
    ours = [LorentzTransformerLayer(sig, 4, hidden=64, seed=2 * seed + k) for k in range(2)]
    our_head = nn.Sequential(LorentzSpace(norm, sig), HyperbolicMLR(sig, classes, seed=seed))
    return {
        "Euclidean": (Brackets(plain, head, nn.Identity(), "src_mask"), adam),
        "jorth": (Brackets(ours, our_head, partial(lift, signature=sig), "attn_mask"), adam),
    }


def data(task, rng):
    """Pixels of norm 1 or so as points, or sequences of brackets, and their answers."""
    if task == "digits":
        digits = load_digits()
        order = torch.from_numpy(rng.permutation(len(digits.target)))
        x = lift(digits.data / 64, Signature.lorentz(65))
        return torch.from_numpy(x).float()[order], torch.from_numpy(digits.target)[order]
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


def run(task, name, rate, seed):
    """Train on two thirds of the data; return the accuracy on the others and the ms of a step."""
    rng = np.random.default_rng(seed)
    x, y = data(task, rng)
    part = len(x) * 2 // 3
    steps, batch = (1000, 128) if task == "digits" else (600, 32)
    network, kind = networks(task, seed)[name]
    optimizer = kind(network.parameters(), lr=rate)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    spent = []
    for _ in range(steps):
        rows = torch.from_numpy(rng.integers(part, size=batch))
        start = time.perf_counter()
        optimizer.zero_grad()
        logits = network(x[rows]).flatten(0, -2)
        nn.functional.cross_entropy(logits, y[rows].flatten()).backward()
        optimizer.step()
        spent.append((time.perf_counter() - start) * 1e3)
        decay.step()
    with torch.no_grad():
        hits = network.eval()(x[part:]).argmax(dim=-1) == y[part:]
    return 100 * hits.double().mean().item(), float(np.quantile(spent, 0.1))


def main():
    """Print a row per task and network."""
    torch.set_num_threads(1)
    print("| task | network | rate | accuracy | ms per step |\n|---|---|---|---|---|")
    for task in ("digits", "brackets"):
        for name in networks(task, 0):
            tuned = [np.mean([run(task, name, r, seed)[0] for seed in TUNING]) for r in RATES]
            rate = RATES[np.argmax(tuned)]
            found, spent = zip(*(run(task, name, rate, seed) for seed in SEEDS), strict=True)
            each = f"{np.mean(found):.1f} ± {np.std(found, ddof=1) / len(found) ** 0.5:.1f}"
            print(f"| {task} | {name} | {rate:g} | {each} | {min(spent):.2f} |", flush=True)


if __name__ == "__main__":
    main()
