"""JOBCD as a torch optimiser."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor
from torch.optim import Optimizer

from jorth.arrays import (
    check_choice,
    check_flag,
    check_signature,
    describe,
    real_number,
    seed_number,
    whole_number,
)
from jorth.optim.direction import (
    CURVATURES,
    Curvature,
    averaged_gradient,
    averages_needed,
    start_averages,
)
from jorth.optim.feasibility import check_feasible
from jorth.optim.guard import left_the_group, may_be_written
from jorth.optim.pairings import MATCHINGS, Matching, choose_rounds, greedy_round, whole_tournament
from jorth.optim.rounds import run_rounds
from jorth.signature import Signature


class JOBCD(Optimizer):
    """J-orthogonal parameters (..., n, n) under block coordinate descent, in an ordinary training loop.

    Each step minimises the majoriser <Y - X, G> + L/2 ||Y - X||^2 of the loss, L = 1 / lr, over pairs of rows, each
    pair exactly, with rotations and boosts: X^T J X = J is kept to rounding, and nothing is ever projected back. All
    matrices of a group are treated as one batch, and with the same pairs.

    A matrix rests in a step when its gradient is not finite, which then enters no average, and when the step would end
    where X^T J X = J is lost in rounding, beyond ||X|| = u^(-1/2) (4e3 in float32, 9e7 in float64), or with a residual
    above u^(1/2); its momentum is dropped then. "not_finite" and "too_far" of a parameter group count these, and the
    first of each gives a RuntimeWarning.

    With momentum or an adaptive curvature the slopes S = skew(J G X^T) are averaged in place of the gradient: S_ij
    belongs to the plane (i, j) at every X, so that no transport is needed.

    Args:
        params: Parameters, named parameters or groups of them; float32 or float64, J-orthogonal. A group may have
            options of its own, the signature included.
        signature: The signs of J; may be left out if every group has one.
        lr: 1 / L. For an adaptive curvature the typical angle (rapidity) of a pair in one step.
        momentum: The decay of the average of slopes, 0 for none; 0.9 is common.
        curvature: "scheduled" is 1 / lr. "per-matrix" and "per-plane" multiply it by the root of the running mean
            square of the slopes: of all slopes of a matrix, or of each one (as Adam does). A gradient that would
            multiply a settled mean square by more than ten enters it, and the momentum, scaled down to that.
        decay: Of the running mean square.
        eps: Added to its root.
        metric: "embedding" is ||Y - X||_F, the paper's; "invariant" is ||Y X^-1 - I||_F, in which steps do not shrink
            where X is large.
        matching: "tournament" goes through all pairs, "random" draws each round (the paper), "greedy" is one
            round of the steepest pairs, shared by the matrices of a group.
        rounds: Rounds of disjoint pairs in one step; None is a whole tournament (one round for "greedy").
        side: "left" changes rows, "right" columns.
        components: "start" stays in the component of the start, "all" may leave it (the paper).
        maximize: Ascend.
        seed: Of the pairings, which depend on it and on the number of the step alone.
    """

    def __init__(
        self,
        params: Any,
        signature: Signature | None = None,
        *,
        lr: float = 1e-2,
        momentum: float = 0.0,
        curvature: Curvature = "scheduled",
        decay: float = 0.999,
        eps: float = 1e-8,
        metric: Literal["embedding", "invariant"] = "embedding",
        matching: Matching = "tournament",
        rounds: int | None = None,
        side: Literal["left", "right"] = "left",
        components: Literal["start", "all"] = "start",
        maximize: bool = False,
        seed: int = 0,
    ) -> None:
        options: dict[str, Any] = dict(
            signature=signature,
            lr=lr,
            momentum=momentum,
            curvature=curvature,
            decay=decay,
            eps=eps,
            metric=metric,
            matching=matching,
            rounds=rounds,
            side=side,
            components=components,
            maximize=maximize,
            seed=seed,
            turn=0,  # steps so far
            not_finite=0,  # how often a matrix rested for its gradient
            too_far=0,  # how often for where the step led
        )
        super().__init__(_listed(params), options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; its parameters must be J-orthogonal for its signature."""
        if not isinstance(param_group, dict) or not isinstance(
            param_group.get("params"), (list, tuple, Tensor)
        ):
            raise TypeError(
                f'param_group must be a dictionary with a list "params", got {describe(param_group)}'
            )
        super().add_param_group(param_group)
        try:
            _check_group(self.param_groups[-1])
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of every group; the loss if a closure is given, which is called first, with gradients enabled."""
        loss = None
        if closure is not None:
            check_closure(closure)
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._step_group(group, {p: p.grad for p in group["params"] if p.grad is not None})
        return loss

    def _step_group(self, group: dict[str, Any], gradients: dict[Tensor, Tensor]) -> None:
        """One step along the given gradients, one batch for each dtype and device."""
        buckets: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
        for p, gradient in gradients.items():
            if gradient.is_sparse:
                raise RuntimeError(
                    "JOBCD does not take sparse gradients, got one: use sparse=False in the layer that makes it"
                )
            if "step" not in self.state[p]:
                self.state[p].update(start_averages(group, p))
            buckets.setdefault((p.dtype, p.device), []).append(p)
        for params in buckets.values():
            self._step_batch(group, params, [gradients[p] for p in params])
        if buckets:
            group["turn"] += 1

    def _step_batch(
        self, group: dict[str, Any], params: list[Tensor], gradients: list[Tensor]
    ) -> None:
        X, G = (
            _stack(params),
            _stack([gradient.to(p.dtype) for p, gradient in zip(params, gradients, strict=True)]),
        )
        G = -G if group["maximize"] else G
        if group["side"] == "right":
            X, G = X.mT, G.mT
        averages = {
            name: _stack([self.state[p][name] for p in params])
            for name in ("step", *averages_needed(group))
        }
        G, finite = averaged_gradient(X, G, group["signature"].vector(X), group, averages)
        if (
            float(group["lr"]) >= sys.float_info.min
        ):  # schedulers begin at 0, where there is no majoriser
            moved = _moved(X, G, group)
            kept = may_be_written(moved, X, group["signature"])[:, None, None]
            moved = torch.where(kept, moved, X)
            if "momentum" in averages:  # or it would lead there again
                averages["momentum"] *= kept
            _unstack(moved.mT if group["side"] == "right" else moved, params)
            _count_rests(group, "too_far", kept, left_the_group(X))
        for name, average in averages.items():
            _unstack(average, [self.state[p][name] for p in params])
        _count_rests(
            group, "not_finite", finite, "a gradient is not finite, or its squared slopes are not"
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As torch's, also of a state without the counts that came later."""
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("not_finite", "too_far"):
                group.setdefault(name, 0)
            for p in group["params"]:
                if "step" in self.state.get(p, {}):
                    one_each = p.new_zeros((*p.shape[:-2], 1, 1))
                    self.state[p]["step"] = one_each + torch.as_tensor(self.state[p]["step"]).to(
                        one_each
                    )

    def state_dict(self) -> dict[str, Any]:
        """As torch's, in plain types: signatures are lists of signs, so that `torch.load` takes it as it is."""
        packed = super().state_dict()
        for group in packed["param_groups"]:
            group["signature"] = group["signature"].signs.tolist()
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As torch's; the signatures must be those of the groups."""
        groups = [
            group | {"signature": Signature.of(group["signature"])}
            for group in state_dict["param_groups"]
        ]
        for own, saved in zip(self.param_groups, groups, strict=False):
            if own["signature"] != saved["signature"]:
                raise ValueError(
                    f"state_dict must be of {own['signature']}, got one of {saved['signature']}"
                )
        super().load_state_dict(state_dict | {"param_groups": groups})


def _moved(X: Tensor, G: Tensor, group: dict[str, Any]) -> Tensor:
    """The matrices X (b, n, n) after the rounds of a step."""
    L = 1 / float(group["lr"])
    signature = group["signature"]
    everywhere = group["components"] == "all"
    rounds = _rounds(group, X, G, signature.vector(X))
    if group["metric"] == "embedding":
        return run_rounds(X, G, L, rounds, signature, everywhere=everywhere)
    # the increment in float64, so that X is rounded once
    identity = torch.eye(signature.n, dtype=torch.float64, device=X.device).expand_as(X)
    V = run_rounds(
        identity, G.double() @ X.double().mT, L, rounds, signature, everywhere=everywhere
    )
    return (X.double() + (V - identity) @ X.double()).to(X.dtype)


def _count_rests(group: dict[str, Any], name: str, moves: Tensor, reason: str) -> None:
    """Count the matrices that do not move, and warn of the first."""
    rests = moves.numel() - int(moves.sum())
    if rests and not group[name]:
        warnings.warn(
            f"{reason}. {rests} of {moves.numel()} matrices rest in this step; {name!r} of the parameter group counts "
            "how often that happens, and there is no further warning",
            RuntimeWarning,
            stacklevel=2,
        )
    group[name] += rests


def _rounds(group: dict[str, Any], X: Tensor, G: Tensor, signs: Tensor) -> Any:
    n, matching, turn = len(signs), group["matching"], group["turn"]
    if matching == "greedy" and n > 1:
        return greedy_round(X, G, signs, group["seed"], turn)
    count = whole_tournament(n) if group["rounds"] is None else group["rounds"]
    return choose_rounds(n, matching, count, group["seed"], turn)


def _stack(tensors: list[Tensor]) -> Tensor:
    """Tensors (..., n, m) as one batch (b, n, m); a view if there is one only."""
    flat = [tensor.reshape(-1, *tensor.shape[-2:]) for tensor in tensors]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def _unstack(batch: Tensor, tensors: list[Tensor]) -> None:
    """Copy a batch back into the tensors that it was stacked from."""
    for tensor, part in zip(
        tensors, torch.split(batch, [t.shape[:-2].numel() for t in tensors]), strict=True
    ):
        tensor.copy_(part.reshape(tensor.shape))


def _listed(params: Any) -> Any:
    """Parameters as torch takes them, which refuses all others by name."""
    if isinstance(params, Tensor):
        return params
    try:
        listed = list(params)
    except (TypeError, RuntimeError):
        raise TypeError(
            f"params must be a list of parameters or of groups, got {describe(params)}"
        ) from None
    if not listed:
        raise ValueError(f"params must hold at least one parameter, got {describe(params)}")
    return listed


def check_closure(closure: object) -> None:
    """A TypeError for what cannot be called."""
    if not callable(closure):
        raise TypeError(
            f"closure must be a function that computes the loss and its gradients, got {describe(closure)}"
        )


def _number(value: Any, name: str, below: float) -> float:
    """A number in [0, below), or a tensor of one, as torch has it."""
    if (
        isinstance(value, Tensor)
        and value.numel() == 1
        and not value.is_meta
        and not value.is_complex()
    ):
        value = value.item()
    return real_number(value, name, f"a number in [0, {below})", lambda number: 0 <= number < below)


def _check_group(group: dict[str, Any]) -> None:
    signature = check_signature(group["signature"])
    for name, choices in (
        ("curvature", CURVATURES),
        ("metric", ("embedding", "invariant")),
        ("matching", MATCHINGS),
        ("side", ("left", "right")),
        ("components", ("start", "all")),
    ):
        check_choice(group[name], name, choices)
    for name, below in (("momentum", 1), ("decay", 1), ("eps", math.inf)):
        group[name] = _number(group[name], name, below)
    _number(group["lr"], "lr", math.inf)  # stays a tensor if it is one, for schedulers
    check_flag(group["maximize"], "maximize")
    group["seed"] = seed_number(group["seed"])
    if group["rounds"] is not None:
        whole_number(group["rounds"], "rounds", 1)
        if group["matching"] == "greedy" and group["rounds"] != 1:
            raise ValueError(
                f'rounds must be None or 1 for matching="greedy", got {group["rounds"]}'
            )
    for position, p in enumerate(group["params"]):
        check_feasible(p.detach(), signature, f"params[{position}]")
