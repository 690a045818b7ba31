"""A problem with a known optimum, as a torch module."""

import numpy as np
import torch

import jorth


class Alignment(torch.nn.Module):
    """The mean over rows of ||source X - target||^2 / 2, for one matrix or a batch of problems."""

    def __init__(self, signature, *, rows=100, batch=(), seed=0, noise=0.1, dtype=torch.float64):
        super().__init__()
        self.signature = signature
        count = int(np.prod(batch))
        problems = [
            jorth.datasets.planted_procrustes(rows, signature, point_condition=4.0, noise=noise, seed=seed + k)
            for k in range(count)
        ]
        for name, at in (("source", 0), ("target", 1)):
            stacked = np.stack([problem[at] for problem in problems]).reshape(*batch, rows, signature.n)
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
