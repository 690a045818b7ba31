"""JOBCD on thin parameters X (n, k) with X^T J X = diag(+-1): the weights of rectangular layers."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.nn import JOrthogonalLinear
from jorth.optim import JOBCD
from tests.optim.problems import SIG

COLUMNS = Signature.of([-1, 1, 1])
OPTIONS = {
    "default": {"lr": 0.03},
    "random": {"rounds_per_gradient": 7, "lr": 0.03},
    "paper": {"metric": "embedding", "lr": 0.1},
    "all components": {"metric": "embedding", "lr": 0.1, "components": "all"},
}
options = pytest.mark.parametrize("name", OPTIONS)


def thin_point(*batch, columns=COLUMNS, cond=4.0, seed=0, dtype=torch.float64):
    X = torch.empty(*batch, SIG.n, columns.n, dtype=dtype)
    jorth.nn.init.j_orthogonal_(X, SIG, columns=columns, cond=cond, seed=seed)
    return torch.nn.Parameter(X)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def defect(X, columns=COLUMNS):
    """max |X^T J X - J_k| / max(1, ||X||^2) in NumPy."""
    X = X.detach().double().numpy()
    gram = X.swapaxes(-1, -2) @ (SIG.signs[:, None] * X)
    norms = np.linalg.norm(X, 2, axis=(-2, -1), keepdims=True)
    return (np.abs(gram - np.diag(columns.signs)) / np.maximum(1, norms) ** 2).max()


# -- training


@pytest.mark.parametrize("ends", [(COLUMNS, SIG), (SIG, COLUMNS)], ids=["embedding", "projection"])
@pytest.mark.parametrize("name", ["default", "paper"])
def test_a_planted_layer_is_found(name, ends):
    """The loss of the planted weight is zero."""
    planted, layer = (
        JOrthogonalLinear(*ends, cond=cond, seed=seed, dtype=torch.float64)
        for cond, seed in ((2.0, 1), (1.0, 1))
    )
    x = normal(50, layer.in_features)
    y = planted(x).detach()
    optimizer = JOBCD([layer.weight], layer.signature, **OPTIONS[name])
    values = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = (layer(x) - y).square().sum(dim=-1).mean() / 2
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    assert values[-1] < 1e-2 * values[0]
    assert defect(layer.weight) < 100 * SIG.n * 2.0**-53


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@options
def test_columns_stay_orthonormal_over_many_steps(name, dtype):
    X = thin_point(2, dtype=dtype)
    optimizer = JOBCD([X], SIG, **OPTIONS[name])
    target = X.detach().clone()
    for turn in range(200):
        X.grad = (X.detach() - target) + normal(*X.shape, seed=turn, dtype=dtype)
        optimizer.step()
    assert (X.detach() - target).abs().max() > 0.003  # measured: 0.03 and more
    assert defect(X) < 100 * SIG.n * torch.finfo(dtype).eps
