"""A problem with a known optimum, as a torch module; the options that tests go through."""

import numpy as np
import torch

import jorth
from jorth import Signature
from jorth.optim import JOBCD
from tests.planted import near_procrustes


class Alignment(torch.nn.Module):
    """The mean over rows of ||source X - target||^2 / 2, for one matrix or a batch of problems."""

    def __init__(self, signature, *, rows=100, batch=(), seed=0, noise=0.1, dtype=torch.float64):
        super().__init__()
        self.signature = signature
        count = int(np.prod(batch))
        problems = [
            near_procrustes(rows, signature, source_condition=3.0, noise=noise, seed=seed + k)
            for k in range(count)
        ]
        for name, at in (("source", 0), ("target", 1)):
            stacked = np.stack([problem[at] for problem in problems]).reshape(
                *batch, rows, signature.n
            )
            self.register_buffer(name, torch.tensor(stacked, dtype=dtype))
        self.weight = torch.nn.Parameter(torch.eye(signature.n, dtype=dtype).repeat(*batch, 1, 1))

    def forward(self, index=slice(None)):
        difference = self.source[..., index, :] @ self.weight - self.target[..., index, :]
        return difference.square().sum(dim=-1).mean(dim=-1).sum() / 2

    def curvature(self):
        """The largest eigenvalue of source^T source / m over the batch."""
        gram = self.source.mT @ self.source / self.source.shape[-2]
        return float(torch.linalg.eigvalsh(gram).max())


def train(model, optimizer, steps, index=slice(None)):
    """Full-batch steps; the values before each."""
    values = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = model(index)
        value.backward()
        optimizer.step()
        values.append(value.item())
    return values


SIG = Signature.of([1, -1, 1, 1, -1])
PAPER = {"metric": "embedding"}
STRATEGIES = {
    "default": {"lr": 0.03},
    "random": {"rounds_per_gradient": 7, "lr": 0.03},
    "no gain": {"lr": 0.002, "gain_rate": 0.0},
    "paper": PAPER,
    "paper, one round": PAPER | {"rounds_per_gradient": 1, "components": "all"},
    "paper, three rounds": PAPER | {"rounds_per_gradient": 3},
}
ENGINES = ("compiled", "plain")


def use_engine(engine, monkeypatch):
    """Have parameters on the CPU take the step compiled, or that of the reference in torch."""
    if engine == "plain":
        monkeypatch.setattr("jorth.optim.jobcd.runs_compiled", lambda p: False)


def optimizer_of(model, **options):
    return JOBCD(
        [model.weight], model.signature, **(PAPER | {"lr": 1 / model.curvature()} | options)
    )


def random_batch(dtype=torch.float64, count=5, cond=30.0, signature=SIG):
    X = jorth.random_point(signature, cond=cond, batch=(count,), dtype=dtype)
    return X, torch.randn(
        X.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    ).to(dtype)
