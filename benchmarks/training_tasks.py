"""What `training.py` trains, and how: five small tasks with J-orthogonal parameters, six methods.

Every task has a signature, the start of its J-orthogonal parameters, the other parameters of the
model, and a loss: of the minibatch of a step, or of all data. All is float32 and follows from the
seed. Points of the hyperboloid have their time last.

A method turns the start of the parameters into a function that gives them as they are now, for the
loss, and into the optimiser that moves them. The other parameters of a model have Adam in every
method, at the same rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

import jorth
from jorth import Signature
from jorth.nn.init import j_orthogonal_

NEAR = 1e-6
"""Distances start at arcosh(1 + NEAR), where the slope of arcosh is still finite."""


def lift(space: Tensor) -> Tensor:
    """The points (..., n) of the hyperboloid over the vectors (..., n - 1)."""
    return torch.cat([space, (1 + space.square().sum(-1, keepdim=True)).sqrt()], -1)


def distances(x: Tensor, y: Tensor) -> Tensor:
    """(...), arcosh of -<x, y> in the Lorentz product."""
    excess = x[..., -1] * y[..., -1] - (x[..., :-1] * y[..., :-1]).sum(-1) - 1
    excess = excess.clamp(min=NEAR)
    return torch.log1p(excess + (excess * (2 + excess)).sqrt())


def activate(h: Tensor) -> Tensor:
    """exp(relu(log h)), both maps at the origin of the hyperboloid."""
    space = h[..., :-1]
    length = space.square().sum(-1, keepdim=True).clamp(min=1e-12).sqrt()
    tangent = F.relu(space * (torch.asinh(length) / length))
    length = tangent.square().sum(-1, keepdim=True).clamp(min=1e-12).sqrt()
    return torch.cat([tangent * (torch.sinh(length) / length), torch.cosh(length)], -1)


def batches(count: int, size: int, steps: int, generator: torch.Generator) -> list[Tensor]:
    """The rows of the minibatch of each step, drawn with replacement."""
    return [torch.randint(count, (size,), generator=generator) for _ in range(steps)]


class Digits:
    """Handwritten digits through isometries of the hyperboloid, relu between them, a linear head.

    1797 images as their first n - 1 principal components; cross-entropy of batches of 128.
    """

    def __init__(self, seed: int, steps: int = 400, *, layers: int = 3, n: int = 33) -> None:
        self.steps = steps
        self.signature = Signature.lorentz(n, time="last")
        data = load_digits()
        x = torch.tensor(data.data, dtype=torch.float32)
        x = x - x.mean(0)
        x = x @ torch.linalg.svd(x, full_matrices=False)[2][: n - 1].T
        self.x = lift(2 * x / x.square().sum(1).mean().sqrt())
        self.y = torch.tensor(data.target)
        self.start = [
            j_orthogonal_(torch.empty(n, n), self.signature, cond=1.0, seed=seed * 100 + layer)
            for layer in range(layers)
        ]
        generator = torch.Generator().manual_seed(seed)
        self.others = [torch.randn(10, n, generator=generator) / n**0.5, torch.zeros(10)]
        generator = torch.Generator().manual_seed(seed + 77)
        self.rows = batches(len(self.x), 128, steps, generator)

    def loss(self, X: Sequence[Tensor], step: int | None, others: Sequence[Tensor]) -> Tensor:
        rows = slice(None) if step is None else self.rows[step]
        h = self.x[rows] @ X[0].mT
        for W in X[1:]:
            h = activate(h) @ W.mT
        weight, bias = others
        return F.cross_entropy(h @ weight.mT + bias, self.y[rows])


class Tree:
    """A binary tree of 63 nodes in the hyperbolic space of dimension 7.

    Every edge is a Lorentz matrix and every node the product along its path, applied to the origin.
    The loss is the mean square relative error of all distances, without minibatches.
    """

    n, depth = 8, 5

    def __init__(self, seed: int, steps: int = 300) -> None:
        self.steps = steps
        self.signature = Signature.lorentz(self.n, time="last")
        nodes = 2 ** (self.depth + 1) - 1
        start = torch.empty(nodes - 1, self.n, self.n)
        self.start = [j_orthogonal_(start, self.signature, cond=2.0, seed=seed)]
        self.others: list[Tensor] = []
        self.first, self.second = torch.triu_indices(nodes, nodes, 1)
        paths = [self.path(node) for node in range(nodes)]
        pairs = zip(self.first.tolist(), self.second.tolist(), strict=True)
        self.lengths = torch.tensor([float(len(paths[a] ^ paths[b])) for a, b in pairs])

    @staticmethod
    def path(node: int) -> set[int]:
        """The node and all above it; the parent of node v is (v - 1) // 2."""
        found = {node}
        while node:
            node = (node - 1) // 2
            found.add(node)
        return found

    def loss(self, X: Sequence[Tensor], step: int | None, others: Sequence[Tensor]) -> Tensor:
        (edges,) = X
        level = torch.eye(self.n)[None]
        levels = [level]
        for depth in range(1, self.depth + 1):
            count = 2**depth
            level = level.repeat_interleave(2, 0) @ edges[count - 2 : 2 * count - 2]
            levels.append(level)
        points = torch.cat(levels)[..., -1]  # the images of the origin
        found = distances(points[self.first], points[self.second])
        return (found / self.lengths - 1).square().mean()


class Align:
    """One Lorentz matrix, n = 51, that takes 2000 points to their noisy images, a tenth of them
    shuffled, as in the alignment of two sets of word vectors.

    The loss is the mean distance, in batches of 128.
    """

    n, points = 51, 2000

    def __init__(self, seed: int, steps: int = 400) -> None:
        self.steps = steps
        generator = torch.Generator().manual_seed(seed)
        self.signature = Signature.lorentz(self.n, time="last")
        space = torch.randn(self.points, self.n - 1, generator=generator)
        self.x = lift(space * (2 / self.n**0.5))
        W = j_orthogonal_(torch.empty(self.n, self.n), self.signature, cond=9.0, seed=seed + 5)
        noise = torch.randn(self.points, self.n - 1, generator=generator) * 0.05
        self.y = lift((self.x @ W.mT)[:, :-1] + noise)
        wrong = torch.rand(self.points, generator=generator) < 0.1
        order = torch.randperm(int(wrong.sum()), generator=generator)
        self.y[wrong] = self.y[wrong][order]
        self.start = [torch.eye(self.n)]
        self.others: list[Tensor] = []
        self.rows = batches(self.points, 128, steps, generator)

    def loss(self, X: Sequence[Tensor], step: int | None, others: Sequence[Tensor]) -> Tensor:
        rows = slice(None) if step is None else self.rows[step]
        return distances(self.x[rows] @ X[0].mT, self.y[rows]).mean()


class Boosts:
    """16 matrices of O(6, 2) with norms from 2 to 1000, from their images of 64 vectors and noise.

    The loss is the mean square error relative to the size of the images, without minibatches.
    """

    n, matrices, vectors, largest = 8, 16, 64, 1e3

    def __init__(self, seed: int, steps: int = 600) -> None:
        self.steps = steps
        generator = torch.Generator().manual_seed(seed)
        self.signature = Signature(self.n - 2, 2)
        top = torch.tensor(self.largest, dtype=torch.float64).log10()
        norms = torch.logspace(0.3, float(top), self.matrices, dtype=torch.float64).tolist()
        planted = [
            jorth.random_point(self.signature, cond=norm**2, seed=seed * 1000 + index)
            for index, norm in enumerate(norms)
        ]
        W = torch.stack([torch.as_tensor(matrix) for matrix in planted])
        draw = partial(torch.randn, generator=generator, dtype=torch.float64)
        source = draw(self.matrices, self.n, self.vectors)
        target = W @ source
        scale = target.square().mean((1, 2), keepdim=True).sqrt()
        target = target + 0.01 * scale * draw(self.matrices, self.n, self.vectors)
        self.source, self.target = source.float(), (target / scale).float()
        self.inverse_scale = (1 / scale).float()
        self.start = [torch.eye(self.n).repeat(self.matrices, 1, 1)]
        self.others: list[Tensor] = []

    def loss(self, X: Sequence[Tensor], step: int | None, others: Sequence[Tensor]) -> Tensor:
        return (X[0] @ self.source * self.inverse_scale - self.target).square().mean()


TASKS = {
    "digits": Digits,
    "tree": Tree,
    "align": Align,
    "deep": partial(Digits, layers=10, n=17),
    "boosts": Boosts,
}
"""For each name what makes the task from a seed and, if they are to be fewer, its steps."""


# -- methods

DEFAULT_RATE = 0.01
"""That of `jorth.optim.JOBCD`."""
HEAD_RATE = 0.01
NEAR_DEFAULT = (0.001, 0.003, 0.01, 0.03, 0.1)
WIDE = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)

Trained = tuple[Callable[[], Sequence[Tensor]], torch.optim.Optimizer]


@dataclass(frozen=True)
class Method:
    """How parameters are trained, at which rates, and the colour and style of its line."""

    make: Callable[[Sequence[Tensor], Signature, float], Trained]
    rates: tuple[float, ...] = WIDE
    feasible: bool = True
    line: tuple[str, Any] = ("#888888", "-")


def by_jobcd(start: Sequence[Tensor], signature: Signature, lr: float, **options: Any) -> Trained:
    X = [nn.Parameter(x.clone()) for x in start]
    return lambda: X, jorth.optim.JOBCD(X, signature, lr=lr, **options)


def by_geoopt(start: Sequence[Tensor], signature: Signature, lr: float, **options: Any) -> Trained:
    import geoopt

    from jorth.adapters.geoopt import JOrthogonal

    manifold = JOrthogonal(signature)
    X = [geoopt.ManifoldParameter(x.clone(), manifold=manifold) for x in start]
    return lambda: X, geoopt.optim.RiemannianAdam(X, lr=lr, **options)


def by_parametrization(
    register: Callable[[nn.Module, str, Signature], Any],
    start: Sequence[Tensor],
    signature: Signature,
    lr: float,
    **options: Any,
) -> Trained:
    modules = nn.ModuleList()
    for x in start:
        module = nn.Module()
        module.weight = nn.Parameter(x.clone())
        register(module, "weight", signature)
        modules.append(module)
    return (
        lambda: [module.weight for module in modules],
        torch.optim.Adam(modules.parameters(), lr=lr, **options),
    )


def by_adam(start: Sequence[Tensor], signature: Signature, lr: float) -> Trained:
    X = [nn.Parameter(x.clone()) for x in start]
    return lambda: X, torch.optim.Adam(X, lr=lr)


PAPER = partial(by_jobcd, metric="embedding")
CS = partial(by_parametrization, jorth.nn.cs_parametrization)
EXPONENTIAL = partial(by_parametrization, jorth.nn.exponential_parametrization)

METHODS = {
    "JOBCD": Method(by_jobcd, NEAR_DEFAULT, line=("#0072B2", "-")),
    "JOBCD, embedding metric": Method(PAPER, (*WIDE, 3.0, 10.0), line=("#882255", ":")),
    "geoopt RiemannianAdam on our manifold": Method(by_geoopt, line=("#D55E00", "-")),
    "CS form + Adam": Method(CS, line=("#009E73", "-")),
    "exp form + Adam": Method(EXPONENTIAL, line=("#CC79A7", "-")),
    "Adam, unconstrained": Method(by_adam, feasible=False, line=("#888888", ":")),
}


class Training:
    """The parameters and optimisers of a run."""

    def __init__(self, task: Any, method: str, lr: float) -> None:
        self.task = task
        self.current, optimizer = METHODS[method].make(task.start, task.signature, lr)
        self.others = [nn.Parameter(other.clone()) for other in task.others]
        self.optimizers = [optimizer]
        if self.others:
            self.optimizers.append(torch.optim.Adam(self.others, lr=HEAD_RATE))

    def step(self, step: int) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        self.task.loss(self.current(), step, self.others).backward()
        for optimizer in self.optimizers:
            optimizer.step()

    @torch.no_grad()
    def score(self) -> float:
        """The loss on all data."""
        return float(self.task.loss(self.current(), None, self.others))
