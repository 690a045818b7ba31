"""`check_objective`: whether what an objective says about itself is true at a point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from jorth._inputs import check_number, describe, generator, to_tensor, whole_number
from jorth.objectives.autograd import AutogradObjective
from jorth.objectives.base import AbstractObjective, QuadraticForm

STEPS = tuple(10.0**-k for k in range(2, 8))
"""Relative steps of the central differences; the best one counts."""


def check_objective(
    objective: Any, X: Any, *, directions: int = 5, tolerance: float = 1e-6, seed: int = 0
) -> float:
    """Check an objective of your own at a point, before a solver relies on it.

    The gradient is compared with central differences of the value along random directions. What
    else the objective gives is checked too: gradients of samples against the full gradient, the
    quadratic form, the Hessian products and the Lipschitz constant against values and gradients.

    Args:
        objective: A jorth objective, or a function of a tensor X that returns a scalar tensor.
        X: A point (n, k); it need not be J-orthogonal. A random one shows more than the identity.
        directions: The number of random directions.
        tolerance: The largest relative error that is accepted.
        seed: The seed of the directions.

    Returns:
        The largest relative error of a slope, usually below 1e-8.

    Raises:
        ValueError: Something is wrong; the message says what.
    """
    whole_number(directions, "directions", 1)
    check_number(tolerance, "tolerance", 0)
    rng = generator(seed)
    point = to_tensor(X, "X").detach().to(torch.float64)
    if point.ndim != 2 or 0 in point.shape:
        raise ValueError(f"X must be a matrix (n, k), got {describe(X)}")
    function = _as_objective(objective)
    turns = [
        torch.from_numpy(rng.standard_normal(tuple(point.shape))).to(point)
        for _ in range(directions)
    ]
    turns = [turn / turn.norm() for turn in turns]
    value, gradient = _value_and_gradient(function, point)
    error = max(_slope_error(function, point, gradient, turn) for turn in turns)
    checks: list[tuple[str, Callable[[], float]]] = [
        ("gradient differs from the slopes of value", lambda: error),
        ("value differs from that of value_and_gradient", lambda: _value_error(function, point)),
        ("sample_gradient differs from the gradient", lambda: _sample_error(function, point)),
        (
            "quadratic differs from value_and_gradient",
            lambda: _form_error(function, point, value, gradient),
        ),
        (
            "hessian differs from the slopes of the gradient",
            lambda: max(_hessian_error(function, point, turn) for turn in turns),
        ),
        (
            "curvature is too small for the gradients",
            lambda: _curvature_excess(function, point, gradient, turns),
        ),
    ]
    for complaint, measure in checks:
        found = measure()
        if not found <= tolerance:  # also NaN
            name = type(function).__name__
            raise ValueError(f"{name}: {complaint}, relative error {found:.1e}")
    return error


def _as_objective(objective: Any) -> AbstractObjective:
    if isinstance(objective, AbstractObjective):
        return objective
    if callable(objective):
        return AutogradObjective(objective)
    raise TypeError(f"objective must be a jorth objective or a function, got {describe(objective)}")


def _value_and_gradient(function: AbstractObjective, X: Tensor) -> tuple[float, Tensor]:
    before = X.clone()
    value, gradient = function.value_and_gradient(X)
    name = type(function).__name__
    if not torch.equal(before, X):
        raise ValueError(f"{name}: value_and_gradient must not change X")
    if gradient.shape != X.shape:
        found = tuple(gradient.shape)
        raise ValueError(f"{name}: the gradient must have shape {tuple(X.shape)}, got {found}")
    return float(value), gradient.detach().to(X)


def _relative(error: Tensor, scale: Tensor) -> float:
    return float(error.norm() / scale.norm().clamp_min(torch.finfo(torch.float64).tiny))


def _slope_error(function: AbstractObjective, X: Tensor, gradient: Tensor, turn: Tensor) -> float:
    slope = (gradient * turn).sum()
    unit = X.norm().clamp_min(1.0)
    errors = []
    for step in STEPS:
        ahead = function.value(X + step * unit * turn).detach().double()
        behind = function.value(X - step * unit * turn).detach().double()
        measured = (ahead - behind) / (2 * step * unit)
        # where the gradient is nearly zero, rounding of the values is all that is seen
        rounding = 1e-6 * torch.maximum(ahead.abs(), behind.abs()) / unit
        errors.append(_relative(measured - slope, gradient.norm() + rounding))
    return min(errors)


def _value_error(function: AbstractObjective, X: Tensor) -> float:
    alone = function.value(X).detach()
    both = function.value_and_gradient(X)[0].detach()
    return _relative(alone - both, both.abs() + 1e-300)


def _sample_error(function: AbstractObjective, X: Tensor) -> float:
    """Of the mean of all samples, and of differences over the first half of them."""
    if not function.samples:
        return 0.0
    every = torch.arange(function.samples, device=X.device)
    gradient = function.value_and_gradient(X)[1]
    half, other = every[: (len(every) + 1) // 2], 1.1 * X
    mean = function.sample_gradient(X, every)
    single = function.sample_gradient(X, half) - function.sample_gradient(other, half)
    difference = function.sample_difference(X, other, half)
    return max(_relative(mean - gradient, gradient), _relative(difference - single, single))


def _form_error(function: AbstractObjective, X: Tensor, value: float, gradient: Tensor) -> float:
    form = function.quadratic()
    if form is None:
        return 0.0
    given: QuadraticForm = form.like(X)
    outer = given.A @ X if given.D is None else given.A @ X @ given.D
    linear = torch.zeros_like(X) if given.C is None else given.C
    mine = 0.5 * (X * outer).sum() + (X * linear).sum() + given.constant
    size = 0.5 * (X * outer).sum().abs() + (X * linear).sum().abs() + abs(given.constant)
    return max(_relative(mine - value, size), _relative(outer + linear - gradient, gradient))


def _hessian_error(function: AbstractObjective, X: Tensor, turn: Tensor) -> float:
    """Of f''(X)[V]; second derivatives that autograd does not have are not asked for."""
    product = function.hessian(X)
    if product is None or function.twice_by_autograd:
        return 0.0
    found, size = product(turn), function.value_and_gradient(X)[1].norm() / X.norm()
    errors = []
    for step in STEPS:
        turned = step * X.norm().clamp_min(1.0) * turn
        ahead, behind = (function.value_and_gradient(X + sign * turned)[1] for sign in (1, -1))
        measured = (ahead - behind) * (0.5 / turned.norm())
        errors.append(_relative(found - measured, measured.norm() + 1e-6 * size))
    return min(errors)


def _curvature_excess(
    function: AbstractObjective, X: Tensor, gradient: Tensor, turns: list[Tensor]
) -> float:
    """By how much the gradient changes faster than the Lipschitz constant allows."""
    bound = function.curvature()
    if bound is None:
        return 0.0
    rates = [(function.value_and_gradient(X + turn)[1] - gradient).norm() for turn in turns]
    return max(0.0, float(max(rates)) / bound - 1) if bound else float(max(rates))
