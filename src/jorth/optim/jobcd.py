"""JOBCD as a torch optimiser: a thin class over the engine in `jorth.kernels`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from jorth.arrays import describe
from jorth.group.slopes import skew_gradient
from jorth.kernels.averages import LARGEST_GROWTH, SlopeAverages
from jorth.kernels.majoriser import Majoriser, finite_matrices
from jorth.kernels.pairings import Matching, numbered_rounds, rounds_in_tournament
from jorth.optim.guard import may_be_written, too_far
from jorth.optim.options import check_closure, check_group, parameter_list
from jorth.plane import greedy_matching
from jorth.signature import Signature

NOT_FINITE = "a gradient is not finite, or its squared slopes are not"


class JOBCD(Optimizer):
    """Block coordinate descent for J-orthogonal parameters (..., n, n), in a training loop.

    Each step minimises the majoriser <Y - X, G> + L/2 ||Y - X||^2 of the loss, L = 1 / lr, over
    pairs of rows, exactly for each pair, by rotations and boosts. X^T J X = J is thus kept to
    rounding, and nothing is ever projected back. All matrices of a group are one batch and share
    their pairs.

    A matrix stays where it is if its gradient is not finite, which then enters no average, or if
    the step would end where X^T J X = J is lost in rounding: beyond ||X|| = u^(-1/2) (4e3 in
    float32, 9e7 in float64), or with a residual above u^(1/2). In the second case its momentum is
    dropped. "not_finite" and "too_far" of a parameter group count the two cases, and the first of
    each gives a RuntimeWarning.

    With momentum or an adaptive curvature the slopes S = skew(J G X^T) are averaged in place of the
    gradient: S_ij belongs to the plane (i, j) at every X, so no transport is needed.

    Args:
        params: Parameters, named parameters or groups of them; float32 or float64, J-orthogonal. A
            group may have options of its own, including the signature.
        signature: The signs of J; may be left out if every group has one.
        lr: 1 / L. With an adaptive curvature, the typical angle (rapidity) of a pair in one step.
        momentum: The decay of the average of slopes, 0 for none; 0.9 is common.
        curvature: "scheduled" is 1 / lr. "per-matrix" and "per-plane" multiply it by the root of
            the running mean square of the slopes: of all slopes of a matrix, or of each one (as
            Adam does). A gradient that would multiply an established mean square by more than ten
            is scaled down to a factor of ten before it enters the averages.
        decay: The decay of the running mean square.
        eps: Added to its root.
        metric: "embedding" is ||Y - X||_F, the paper's; "invariant" is ||Y X^-1 - I||_F, in which
            steps do not shrink where X is large.
        matching: "tournament" goes through all pairs, "random" draws each round (the paper),
            "greedy" is one round of the steepest pairs, shared by the matrices of a group.
        rounds_per_gradient: Rounds of disjoint pairs in one step; None is a complete tournament
            (one round for "greedy").
        side: "left" changes rows, "right" columns.
        components: "start" stays in the component of the start, "all" may leave it (the paper).
        maximize: Ascend.
        seed: Seed for the pairings, which depend on it and on the number of the step alone.
    """

    def __init__(  # one argument per option, as in torch's optimisers
        self,
        params: Any,
        signature: Signature | None = None,
        *,
        lr: float = 1e-2,
        momentum: float = 0.0,
        curvature: Literal["scheduled", "per-matrix", "per-plane"] = "scheduled",
        decay: float = 0.999,
        eps: float = 1e-8,
        metric: Literal["embedding", "invariant"] = "embedding",
        matching: Matching = "tournament",
        rounds_per_gradient: int | None = None,
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
            rounds_per_gradient=rounds_per_gradient,
            side=side,
            components=components,
            maximize=maximize,
            seed=seed,
            turn=0,  # the number of steps so far
            not_finite=0,
            too_far=0,
        )
        super().__init__(parameter_list(params), options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; its parameters must be J-orthogonal for its signature."""
        params = param_group.get("params") if isinstance(param_group, dict) else None
        if not isinstance(params, (list, tuple, Tensor)):
            expected = 'a dictionary with a list "params"'
            raise TypeError(f"param_group must be {expected}, got {describe(param_group)}")
        super().add_param_group(param_group)
        try:
            check_group(self.param_groups[-1])
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step of every group; return the loss if there is a closure, called first."""
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
                raise RuntimeError("JOBCD does not take sparse gradients: use sparse=False")
            if "step" not in self.state[p]:
                zeros = {name: p.new_zeros(shape) for name, shape in _shapes(group, p).items()}
                self.state[p].update(zeros)
            buckets.setdefault((p.dtype, p.device), []).append(p)
        for params in buckets.values():
            self._step_batch(group, params, [gradients[p] for p in params])
        if buckets:
            group["turn"] += 1

    def _step_batch(
        self, group: dict[str, Any], params: list[Tensor], gradients: list[Tensor]
    ) -> None:
        X = _stack(params)
        G = _stack([gradient.to(p.dtype) for p, gradient in zip(params, gradients, strict=True)])
        G = -G if group["maximize"] else G
        if group["side"] == "right":
            X, G = X.mT, G.mT
        state = {name: _stack([self.state[p][name] for p in params]) for name in _shapes(group, X)}
        G, slopes, finite = _averaged(group, X, G, state)
        if float(group["lr"]) >= sys.float_info.min:  # at 0, where schedulers begin, L is infinite
            moved = _moved(group, X, G, slopes)
            accepted = may_be_written(moved, X, group["signature"])[:, None, None]
            moved = torch.where(accepted, moved, X)
            if "momentum" in state:  # it would lead there again
                state["momentum"] *= accepted
            _unstack(moved.mT if group["side"] == "right" else moved, params)
            _count_unmoved(group, "too_far", accepted, too_far(X.dtype))
        for name, average in state.items():
            _unstack(average, [self.state[p][name] for p in params])
        _count_unmoved(group, "not_finite", finite, NOT_FINITE)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As torch's, which leaves "step" on the device and in the dtype it was saved with."""
        super().__setstate__(state)
        for group in self.param_groups:
            for p in group["params"]:
                if "step" in self.state.get(p, {}):
                    self.state[p]["step"] = self.state[p]["step"].to(p)

    def state_dict(self) -> dict[str, Any]:
        """As torch's, with signatures as lists of signs, which `torch.load` accepts."""
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
            expected, found = own["signature"], saved["signature"]
            if expected != found:
                raise ValueError(f"state_dict must be of {expected}, got one of {found}")
        super().load_state_dict(state_dict | {"param_groups": groups})


def _shapes(group: dict[str, Any], X: Tensor) -> dict[str, tuple[int, ...]]:
    """The shapes of the state of parameters X (..., n, n), by name."""
    one_each = (*X.shape[:-2], 1, 1)
    shapes = {"step": one_each}
    if group["momentum"] > 0:
        shapes["momentum"] = tuple(X.shape)
    if group["curvature"] != "scheduled":
        shapes["mean_square"] = one_each if group["curvature"] == "per-matrix" else tuple(X.shape)
    return shapes


def _averaged(
    group: dict[str, Any], X: Tensor, G: Tensor, state: dict[str, Tensor]
) -> tuple[Tensor, Tensor | None, Tensor]:
    """G, the averaged slopes (None without averages), and which gradients are finite (b, 1, 1).

    The averaged slopes D are those of the gradient J D X^-T = J D J X J, which is returned.
    """
    if len(state) == 1:
        finite = finite_matrices(G)
        state["step"] += finite
        return torch.where(finite, G, 0.0), None, finite
    signs = group["signature"].vector(X)
    averages = SlopeAverages(state["step"], state.get("momentum"), state.get("mean_square"))
    D, finite = averages.direction(
        skew_gradient(X, G, signs),
        momentum=group["momentum"],
        decay=group["decay"],
        eps=group["eps"],
        largest_growth=LARGEST_GROWTH,
    )
    return signs[:, None] * (D @ (signs[:, None] * X * signs)), D, finite


def _moved(group: dict[str, Any], X: Tensor, G: Tensor, slopes: Tensor | None) -> Tensor:
    """The matrices X (b, n, n) after the rounds of a step."""
    L = 1 / float(group["lr"])
    majoriser = Majoriser(group["signature"], all_components=group["components"] == "all")
    rounds = _rounds(group, X, G, slopes)
    if group["metric"] == "embedding":
        return majoriser.rounds(X, G, L, rounds).X
    signs = group["signature"].vector(X)
    H = G.double() @ X.double().mT if slopes is None else signs[:, None] * slopes
    return majoriser.relative_rounds(X, H, L, rounds)


def _rounds(
    group: dict[str, Any], X: Tensor, G: Tensor, slopes: Tensor | None
) -> NDArray[np.int64]:
    """The rounds of this step; "greedy" weighs pairs by the root mean square of their slopes."""
    n = X.shape[-1]
    seed, turn = group["seed"], group["turn"]
    if group["matching"] != "greedy" or n < 2:
        count = group["rounds_per_gradient"] or rounds_in_tournament(n)
        return numbered_rounds(n, group["matching"], count, seed, turn)
    S = skew_gradient(X, G, group["signature"].vector(X)) if slopes is None else slopes
    weights = S.square().mean(dim=0).nan_to_num(0.0).sqrt()
    pairs = greedy_matching(weights, seed=np.random.default_rng([seed, turn]))
    matching: NDArray[np.int64] = pairs.cpu().numpy()
    return matching[None]


def _count_unmoved(group: dict[str, Any], name: str, moves: Tensor, reason: str) -> None:
    """Count the matrices that do not move, and warn of the first."""
    unmoved = moves.numel() - int(moves.sum())
    if unmoved and not group[name]:
        warnings.warn(
            f"{reason}. {unmoved} of {moves.numel()} matrices stay where they are; {name!r} of the "
            "parameter group counts how often that happens, and there is no further warning",
            RuntimeWarning,
            stacklevel=2,
        )
    group[name] += unmoved


def _stack(tensors: list[Tensor]) -> Tensor:
    """Tensors (..., n, m) as one batch (b, n, m); a single tensor is not copied."""
    flat = [tensor.reshape(-1, *tensor.shape[-2:]) for tensor in tensors]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def _unstack(batch: Tensor, tensors: list[Tensor]) -> None:
    """Copy a batch back into the tensors that it was stacked from."""
    parts = torch.split(batch, [tensor.shape[:-2].numel() for tensor in tensors])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.reshape(tensor.shape))
