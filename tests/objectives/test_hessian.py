"""Products f''(X)[V]: exact where they can be, differences of gradients elsewhere, never wrong."""

import numpy as np
import pytest
import torch
from torch.autograd.function import once_differentiable

import jorth
from jorth.objectives import check_objective
from jorth.objectives.base import difference, is_derivative
from jorth.solvers.problem import as_objective

EPS = np.finfo(float).eps


def cubic(X):
    """f = 1/3 sum X^3 + 1/2 (sum X)^2, with f''(X)[V] = 2 X V + (sum V) 1 1^T."""
    return X.pow(3).sum() / 3 + X.sum().square() / 2


def cubic_product(X, V):
    return 2 * X * V + V.sum()


class OnceOnly(torch.autograd.Function):
    """sum X^3 / 3 with a slope that torch takes for a constant when it differentiates again."""

    @staticmethod
    def forward(ctx, X):
        ctx.save_for_backward(X)
        return X.pow(3).sum() / 3

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        (X,) = ctx.saved_tensors
        return gradient * X.square()


def point_and_turn(seed=0, shape=(5, 3)):
    rng = np.random.default_rng(seed)
    return (torch.from_numpy(rng.standard_normal(shape)) for _ in range(2))


def bound(X, V):
    """Rounding of f''(X)[V]: twenty operations on terms of these sizes."""
    return 20 * X.numel() * EPS * (2 * X.norm() * V.norm() + X.numel() * V.norm())


def test_autograd_products_are_exact():
    X, V = point_and_turn()
    found = as_objective(cubic).hessian(X)(V)
    assert (found - cubic_product(X, V)).norm() <= bound(X, V)


def test_products_of_a_finite_sum_are_those_of_its_mean():
    X, V = point_and_turn(1)
    weights = torch.tensor([0.5, 1.0, 1.5, 3.0])
    mean = jorth.FiniteSum(lambda X, batch: batch.mean() * cubic(X), weights.double())
    assert (mean.hessian(X)(V) - 1.5 * cubic_product(X, V)).norm() <= 2 * bound(X, V)


@pytest.mark.parametrize("k", [3, 5])
def test_products_of_quadratics(k):
    rng = np.random.default_rng(2)
    M, N = rng.standard_normal((5, 5)), rng.standard_normal((k, k))
    A, D, C = M + M.T, N + N.T, rng.standard_normal((5, k))
    X, V = point_and_turn(3, (5, k))
    for dtype, unit in ((torch.float64, EPS), (torch.float32, 2.0**-23)):
        exact = A @ V.numpy() @ D
        found = jorth.Quadratic(*(torch.from_numpy(part).to(dtype) for part in (A, C, D)))
        product = found.hessian(X.to(dtype))(V.to(dtype))
        assert product.dtype is dtype
        size = np.linalg.norm(A) * np.linalg.norm(D) * V.norm()
        assert np.linalg.norm(product.double().numpy() - exact) <= 30 * unit * size
    S, T = rng.standard_normal((9, 5)), rng.standard_normal((9, k))
    product = jorth.Procrustes(S, T).hessian(X)(V)
    expected = S.T @ S @ V.numpy() / 9
    size = np.linalg.norm(S) ** 2 * V.norm()
    assert np.linalg.norm(product.numpy() - expected) <= 100 * EPS * size


def test_numpy_functions_by_differences_or_by_their_own_products():
    X, V = point_and_turn(4)
    asked = []

    def gradient(X):
        asked.append(X)
        return X**2 + X.sum()

    def value(X):
        return (X**3).sum() / 3 + X.sum() ** 2 / 2

    plain = jorth.Objective(value, gradient)
    assert plain.hessian(X) is None
    found = difference(lambda Y: plain.value_and_gradient(Y)[1], X, V)
    error = (found - cubic_product(X, V)).norm()
    assert len(asked) == 2
    # h^2 of a third derivative, and u / h of the gradients; h is u^(1/3) ||X||
    assert error <= 100 * EPS ** (2 / 3) * (X.norm() ** 2 + X.numel() * V.norm())
    own = jorth.Objective(value, gradient, hessian=lambda X, V: 2 * X * V + V.sum())
    asked.clear()
    assert (own.hessian(X)(V) - cubic_product(X, V)).norm() <= bound(X, V)
    assert not asked
    wrong = jorth.Objective(value, gradient, hessian=lambda X, V: V)
    with pytest.raises(ValueError, match="hessian differs from the slopes of the gradient"):
        check_objective(wrong, X)
    assert check_objective(own, X) < 1e-6
    with pytest.raises(ValueError, match=r"hessian must return shape \(5, 3\), got \(3, 5\)"):
        jorth.Objective(value, gradient, hessian=lambda X, V: V.T).hessian(X)(V)
    with pytest.raises(TypeError, match="hessian must be a function of X and V, got"):
        jorth.Objective(value, gradient, hessian=3)


@pytest.mark.parametrize(
    "function",
    [
        lambda X: OnceOnly.apply(X),  # silently zero
        lambda X: OnceOnly.apply(X) + X.sum().square(),  # silently a part
        lambda X: OnceOnly.apply(X).square(),  # an error of torch
    ],
    ids=["alone", "in a sum", "in a square"],
)
def test_functions_without_second_derivatives_fall_back_on_differences(function):
    """torch itself would answer with zeros, with a part of the product, or with an error."""
    X, _ = point_and_turn(5)
    objective = as_objective(function)

    def gradient(Y):
        return objective.value_and_gradient(Y)[1]

    assert not is_derivative(gradient, objective.hessian(X), X)
    assert is_derivative(gradient, lambda V: difference(gradient, X, V), X)
