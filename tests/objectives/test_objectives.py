"""Objectives against their definitions: value, gradient, samples, compression, quadratic form."""

import numpy as np
import pytest
import scipy.sparse
import torch

import jorth
from jorth.objectives import AutogradObjective

RNG = np.random.default_rng(0)
N, K = 7, 5


def matrices():
    M, P = RNG.standard_normal((N, N)), RNG.standard_normal((K, K))
    return M + M.T, RNG.standard_normal((N, K)), P + P.T


A, C, D = matrices()
SOURCE, TARGET = RNG.standard_normal((30, N)), RNG.standard_normal((30, K))


def mean_loss(X, batch):
    return (batch[0] @ X - batch[1]).square().sum() / (2 * len(batch[0]))


DEFINITIONS = {
    "quadratic": (
        jorth.Quadratic(A, C, D),
        lambda X: 0.5 * np.trace(X.T @ A @ X @ D) + (C * X).sum(),
    ),
    "quadratic, A only": (jorth.Quadratic(A), lambda X: 0.5 * np.trace(X.T @ A @ X)),
    "procrustes": (
        jorth.Procrustes(SOURCE, TARGET),
        lambda X: 0.5 * np.linalg.norm(SOURCE @ X - TARGET) ** 2 / 30,
    ),
    "sparse procrustes": (
        jorth.Procrustes(scipy.sparse.csr_array(SOURCE), TARGET),
        lambda X: 0.5 * np.linalg.norm(SOURCE @ X - TARGET) ** 2 / 30,
    ),
    "wide procrustes": (  # fewer rows than columns: R is not square
        jorth.Procrustes(SOURCE[:4], TARGET[:4]),
        lambda X: 0.5 * np.linalg.norm(SOURCE[:4] @ X - TARGET[:4]) ** 2 / 4,
    ),
    "finite sum": (
        jorth.FiniteSum(mean_loss, (SOURCE, TARGET)),
        lambda X: 0.5 * np.linalg.norm(SOURCE @ X - TARGET) ** 2 / 30,
    ),
    "autograd": (AutogradObjective(lambda X: X.sin().sum()), lambda X: np.sin(X).sum()),
    "numpy": (jorth.Objective(lambda X: np.sin(X).sum(), np.cos), lambda X: np.sin(X).sum()),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_value_and_gradient(name):
    objective, definition = DEFINITIONS[name]
    X, direction = RNG.standard_normal((2, N, K))
    value, gradient = objective.value_and_gradient(torch.from_numpy(X))
    assert value.item() == pytest.approx(definition(X), rel=1e-13)
    assert objective.value(torch.from_numpy(X)).item() == pytest.approx(definition(X), rel=1e-13)
    slope = (gradient.numpy() * direction).sum()
    # the remainder of the first-order Taylor expansion is of second order: halving h quarters it
    remainder = [
        abs(definition(X + h * direction) - definition(X) - h * slope) for h in (1e-3, 5e-4)
    ]
    assert remainder[1] == pytest.approx(remainder[0] / 4, rel=0.05)


@pytest.mark.parametrize(
    "name", [name for name in DEFINITIONS if "procrustes" in name or name == "finite sum"]
)
def test_sample_gradients_average_to_the_gradient(name):
    objective, _ = DEFINITIONS[name]
    X = torch.from_numpy(RNG.standard_normal((N, K)))
    parts = [objective.sample_gradient(X, torch.tensor([i])) for i in range(objective.samples)]
    full = objective.value_and_gradient(X)[1]
    by_hand = np.outer(SOURCE[2], SOURCE[2] @ X.numpy() - TARGET[2])
    np.testing.assert_allclose(parts[2].numpy(), by_hand, rtol=1e-11)
    torch.testing.assert_close(torch.stack(parts).mean(dim=0), full, rtol=1e-11, atol=1e-12)
    index = torch.tensor([0, 2, 3])
    torch.testing.assert_close(
        objective.sample_gradient(X, index), torch.stack(parts)[index].mean(dim=0)
    )


@pytest.mark.parametrize(
    "name", ["quadratic", "quadratic, A only", "procrustes", "sparse procrustes", "wide procrustes"]
)
def test_quadratic_form_is_the_function(name):
    objective, definition = DEFINITIONS[name]
    form = objective.quadratic()
    X = RNG.standard_normal((N, K))
    weight = np.eye(K) if form.D is None else form.D.numpy()
    linear = 0.0 if form.C is None else (form.C.numpy() * X).sum()
    value = 0.5 * np.trace(X.T @ form.A.numpy() @ X @ weight) + linear + form.constant
    assert value == pytest.approx(definition(X), rel=1e-12)


@pytest.mark.parametrize("name", ["quadratic", "procrustes"])
def test_curvature_is_a_lipschitz_constant_and_is_met(name):
    objective, _ = DEFINITIONS[name]
    form = objective.quadratic()
    weight = torch.eye(K, dtype=torch.float64) if form.D is None else form.D
    hessian = torch.kron(weight, form.A)
    assert objective.curvature() == pytest.approx(
        torch.linalg.eigvalsh(hessian).abs().max().item(), rel=1e-12
    )


def test_compression_in_blocks_of_rows():
    """More rows than one block: as accurate as the residual itself, down to a value of 1e-28."""
    rng = np.random.default_rng(1)
    source = rng.standard_normal((9000, 6)) * np.logspace(0, 4, 6)
    X = jorth.random_point(jorth.Signature(4, 2), seed=1)
    objective = jorth.Procrustes(source, source @ X)
    exact = 0.5 * np.linalg.norm(source @ X - source @ X) ** 2
    assert exact == 0
    assert 0 <= objective.value(torch.from_numpy(X)).item() <= 1e-20
    Y = jorth.random_point(jorth.Signature(4, 2), seed=2)
    direct = 0.5 * np.linalg.norm(source @ (Y - X)) ** 2 / 9000
    assert objective.value(torch.from_numpy(Y)).item() == pytest.approx(direct, rel=1e-12)


@pytest.mark.parametrize("function", [np.sum, np.linalg.norm, lambda X: np.sin(X).sum()])
def test_a_function_of_numpy_is_told_what_to_do(function):
    with pytest.raises(TypeError, match=r"use jorth\.Objective\(value=\.\.\., gradient"):
        AutogradObjective(function).value(torch.ones(3, 3))
