"""JOBCD as a torch optimiser: groups of J-orthogonal parameters, stepped as one batch each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor
from torch._compile import _disable_dynamo
from torch.optim import Optimizer

from jorth._inputs import describe
from jorth._triton import runs_triton
from jorth.optim.counting import UnmovedCounts
from jorth.optim.guard import too_far
from jorth.optim.options import (
    RATES,
    check_closure,
    check_group,
    check_options,
    check_rates,
    check_width,
    options_of,
    parameter_list,
)
from jorth.optim.steps import angle_step, embedding_step, state_shapes
from jorth.plane.pairs import Matching
from jorth.signature import Signature

NOT_FINITE = "a gradient is not finite, or its slopes are not"
MOST_ROWS = 64
"""The largest matrix that one Triton program takes through a whole step."""
LARGEST_ANGLE = 3.0
"""Half tangents, which Triton takes, have poles at pi."""


class JOBCD(Optimizer):
    """Block coordinate descent for J-orthogonal parameters (..., n, n), in a training loop.

    Each step turns every plane of two rows, and of two columns, by an angle of its own: a rotation
    where their signs agree, a boost where they do not. X^T J X = J is thus kept to rounding. Where
    rounding has added up over many steps, to ||X^T J X - J||_F = 8 u ||X||_F^2, a Newton step
    X (3 I - J X^T J X) / 2 takes it away; nothing else is ever projected back. All matrices of a
    group are one batch and share their pairs.

    By default lr is an angle (a rapidity, for boosts), whatever the sizes of gradients and of X:
    the angle of a plane whose slopes agree from step to step; where they are noise it is less, as
    in Adam. It is multiplied by a gain, which starts at 0.1 and learns, for rotations and boosts
    of each matrix: it grows while steps go on in their direction and shrinks while they turn back.
    An lr from 0.003 to 0.03 thus leads to much the same end.

    The slopes S = skew(J G X^T) are averaged, not the gradient: S_ij belongs to the plane (i, j) at
    every X, so no transport is needed.

    A matrix stays where it is if its gradient is not finite, which then enters no average. A step
    that would end beyond ||X|| = ``max_norm`` is taken without its boosts (in the embedding metric,
    not at all), and one that would end with a residual above u^(1/2) not at all. "not_finite" and
    "too_far" of a parameter group count the two cases, and the first of each gives a
    RuntimeWarning. No step waits for a CUDA device: there both come some steps later, and
    `state_dict` brings the counts up to date.

    Parameters may be thin, (..., n, k) with X^T J X = diag(+-1), which turns of rows preserve.

    Args:
        params: Parameters, named parameters or groups of them; J-orthogonal. A group may have
            options of its own, including the signature. They are plain tensors in float32 or
            float64: keep half precision to autocast, and leave them out of sharding (FSDP).
        signature: The signs of J; may be left out if every group has one.
        lr: The angle of a step, in radians, before the gain. With curvature="scheduled" it is 1 / L
            for the curvature L of the loss.
        momentum: The decay of the average of slopes, 0 for none.
        curvature: "per-plane" divides averaged slopes by the root of their running mean square in
            each plane (as Adam does), "per-matrix" by that of all slopes of a matrix; "scheduled"
            does not, and has no gain. A gradient that would multiply an established mean square by
            more than ten is scaled down to a factor of ten before it enters the averages.
        decay: The decay of the running mean square.
        eps: Added to its root, relative to the root mean square over the matrix.
        gain_rate: How fast the gain learns; 0 keeps it at its value, which is 1 if it has always
            been 0.
        max_angle: The largest angle of a plane in one step.
        weight_decay: The rate of decay: a step shrinks rapidities by the share lr * weight_decay.
        decay_towards: "compact" decays boosts alone, towards the maximal compact subgroup (the
            orthogonal matrices among the J-orthogonal), "identity" rotations as well.
        max_norm: The largest ||X||_F that a step may lead to; None is u^(-1/2) / 4, 1e3 in float32
            and 2e7 in float64. One rounding of X changes X^T J X by 1/8 there.
        metric: "invariant" measures ||log Y X^-1||, so that steps do not shrink where X is large.
            "embedding" is the paper's: the majoriser <Y - X, G> + L/2 ||Y - X||_F^2, L = 1 / lr, is
            minimised exactly for each pair. There lr is 1 / L also with an adaptive curvature, and
            there is no gain.
        matching: "tournament" goes through all pairs, "random" draws each round (the paper),
            "greedy" is one round of the steepest pairs, shared by the matrices of a group.
        rounds_per_gradient: Rounds of disjoint pairs in one step; None is a complete tournament
            (one round for "greedy").
        side: "left" changes rows, "right" columns, "both" rows and columns; None is "both" in the
            invariant metric and "left" in the other. Of thin matrices "both" changes rows alone.
        components: "start" stays in the component of the start; "all" may leave it (the paper, with
            metric="embedding").
        maximize: Ascend.
        seed: Seed for the pairings, which depend on it and on the number of the step alone.
        foreach: Of no effect, as ``fused``: all matrices of a group are one batch in any case.
        fused: See ``foreach``.
        capturable: False; pairs are drawn on the host.
        differentiable: False; there are no derivatives of steps.
    """

    def __init__(  # one argument per option, as in torch's optimisers
        self,
        params: Any,
        signature: Signature | None = None,
        *,
        lr: float | Tensor = 1e-2,
        momentum: float = 0.9,
        curvature: Literal["per-plane", "per-matrix", "scheduled"] = "per-plane",
        decay: float = 0.99,
        eps: float = 1e-5,
        gain_rate: float = 0.05,
        max_angle: float = 0.5,
        weight_decay: float = 0.0,
        decay_towards: Literal["compact", "identity"] = "compact",
        max_norm: float | None = None,
        metric: Literal["invariant", "embedding"] = "invariant",
        matching: Matching = "tournament",
        rounds_per_gradient: int | None = None,
        side: Literal["left", "right", "both"] | None = None,
        components: Literal["start", "all"] = "start",
        maximize: bool = False,
        seed: int = 0,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        if capturable or differentiable:
            name = "capturable" if capturable else "differentiable"
            raise ValueError(f"{name} must be False for {type(self).__name__}, got True")
        options: dict[str, Any] = dict(
            signature=signature,
            lr=lr,
            momentum=momentum,
            curvature=curvature,
            decay=decay,
            eps=eps,
            gain_rate=gain_rate,
            max_angle=max_angle,
            weight_decay=weight_decay,
            decay_towards=decay_towards,
            max_norm=max_norm,
            metric=metric,
            matching=matching,
            rounds_per_gradient=rounds_per_gradient,
            side=side,
            components=components,
            maximize=maximize,
            seed=seed,
            foreach=foreach,
            fused=fused,
            capturable=capturable,
            differentiable=differentiable,
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
        super().add_param_group(dict(param_group))
        try:
            with torch.device("cpu"):  # the default may be "meta"
                check_group(self.param_groups[-1])
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise
        self._note_checked(self.param_groups[-1])

    @_disable_dynamo  # as torch's optimisers do: Dynamo cannot trace what Numba compiles
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
        """One step along the given gradients, one batch for each dtype, device and width."""
        square = self._check_changes(group)
        buckets: dict[Any, list[Tensor]] = {}
        for position, (p, gradient) in enumerate(gradients.items()):
            if gradient.is_sparse:
                kind = type(self).__name__
                raise RuntimeError(f"{kind} does not take sparse gradients: use sparse=False")
            if p.shape[-2:] != square:
                check_width(group, p, f"parameter {position} of the group")
            self._complete_state(group, p)
            if p.numel():
                batch = (runs_compiled(group, p), p.dtype, p.device, p.shape[-1])
                buckets.setdefault(batch, []).append(p)
        for (compiled, *_), params in buckets.items():
            self._step_batch(group, params, [gradients[p] for p in params], compiled)
        if gradients:
            group["turn"] += 1

    def _check_changes(self, group: dict[str, Any]) -> tuple[int, int]:
        """Check the options of a group that have changed since the last step; returns (n, n)."""
        for name, bound in RATES.items():  # what schedulers change
            if not (type(group[name]) is float and 0 <= group[name] < bound):
                check_rates(group)
        checked: dict[int, tuple[Any, tuple[int, int]]] = self.__dict__.get("_checked", {})
        options, square = checked.get(id(group), (None, (0, 0)))
        if options != options_of(group):
            check_options(group)
            square = self._note_checked(group)
        return square

    def _note_checked(self, group: dict[str, Any]) -> tuple[int, int]:
        n: int = group["signature"].n
        square = (n, n)
        self.__dict__.setdefault("_checked", {})[id(group)] = (options_of(group), square)
        return square

    def _step_batch(
        self, group: dict[str, Any], params: list[Tensor], gradients: list[Tensor], compiled: bool
    ) -> None:
        states = [self.state[p] for p in params]
        if compiled:
            from jorth.optim._step_numba import compiled_steps

            finite, beyond = compiled_steps(group, params, gradients, states)
            unmoved = [len(finite) - int(finite.sum()), int(beyond.sum())]
            _count_unmoved(group, unmoved, len(finite), params[0].dtype)
            return
        X = _stack(params, params)
        G = _stack([gradient.to(X.dtype) for gradient in gradients], params)
        counts = self._counts_of(params[0])
        names = ["step", *state_shapes(group, params[0])]
        state = {name: _stack([own[name] for own in states], params) for name in names}
        if X.is_cuda and is_one_launch(group, X):
            from jorth.optim._step_triton import one_launch

            one_launch(group, X, G, state, counts.totals)  # all in place
        else:
            take_step = angle_step if group["metric"] == "invariant" else embedding_step
            with torch.autocast(X.device.type, enabled=False):
                outcome = take_step(group, X, -G if group["maximize"] else G, state)
            state["step"] += outcome.finite.to(X.dtype)[:, None, None]
            counts.add(outcome.finite, outcome.too_far)
            X = outcome.X
        _unstack(X, params, params)
        for name, average in state.items():
            _unstack(average, [own[name] for own in states], params)
        _count_unmoved(group, counts.news(), len(X), X.dtype)
        counts.ask()

    def _counts_of(self, p: Tensor) -> UnmovedCounts:
        """The counts of the batch that begins with this parameter, on its device."""
        counts: dict[Tensor, UnmovedCounts] = self.__dict__.setdefault("_counts", {})
        if p not in counts or counts[p].totals.device != p.device:
            counts[p] = UnmovedCounts(p.device)
        return counts[p]

    def _collect_counts(self) -> None:
        """Bring "not_finite" and "too_far" of all groups up to date; waits for devices."""
        counts: dict[Tensor, UnmovedCounts] = self.__dict__.get("_counts", {})
        for group in self.param_groups:
            for p in group["params"]:
                if p in counts:
                    total = p.shape[:-2].numel()
                    _count_unmoved(group, counts[p].latest(), total, p.dtype)

    def _complete_state(self, group: dict[str, Any], p: Tensor) -> None:
        """Start what the options of the group need by now and the state does not have."""
        state, shapes = self.state[p], state_shapes(group, p)
        shapes["step"] = (*p.shape[:-2], 1, 1)
        for name, shape in shapes.items():
            if name not in state or state[name].shape != shape:
                state[name] = p.new_zeros(shape)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As torch's, with all numbers of the state as tensors like their parameter."""
        super().__setstate__(state)
        for p, entries in self.state.items():
            for name, value in entries.items():
                if isinstance(value, (Tensor, float, int)):
                    value = torch.as_tensor(value, dtype=p.dtype, device=p.device)
                    counter = name == "step" and value.ndim == 0
                    entries[name] = value.repeat(*p.shape[:-2], 1, 1) if counter else value

    def state_dict(self) -> dict[str, Any]:
        """As torch's, with signatures as lists of signs, which `torch.load` accepts."""
        self._collect_counts()
        packed = super().state_dict()
        for group in packed["param_groups"]:
            group["signature"] = group["signature"].signs.tolist()
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As torch's; the signatures must be those of the groups, which fill in what is missing."""
        self._collect_counts()
        groups = [dict(group) for group in state_dict["param_groups"]]
        for own, saved in zip(self.param_groups, groups, strict=False):
            if "signature" not in saved:
                expected = f"one of {type(self).__name__}"
                raise ValueError(f"state_dict must be {expected}, got one without a signature")
            saved["signature"] = Signature.of(saved["signature"])
            if own["signature"] != saved["signature"]:
                expected, found = own["signature"], saved["signature"]
                raise ValueError(f"state_dict must be of {expected}, got one of {found}")
            saved.update({name: own[name] for name in own.keys() - saved.keys()})
        super().load_state_dict(state_dict | {"param_groups": groups})


def runs_compiled(group: dict[str, Any], p: Tensor) -> bool:
    """Whether a parameter of the group is for `_step_numba.compiled_steps`.

    It is not for subclasses of tensors, and "greedy" needs the angles of all matrices at once.
    """
    return (
        group["metric"] == "invariant"
        and group["matching"] != "greedy"
        and p.device.type == "cpu"
        and type(p) in (Tensor, torch.nn.Parameter)
    )


def is_one_launch(group: dict[str, Any], X: Tensor) -> bool:
    """Whether a step of this group is for `_step_triton.one_launch`, for matrices X (b, n, k)."""
    return (
        runs_triton(X.device)
        and X.numel() > 0
        and X.is_contiguous()
        and 2 <= X.shape[-2] == X.shape[-1] <= MOST_ROWS
        and X.dtype in (torch.float32, torch.float64)
        and group["metric"] == "invariant"
        and group["curvature"] != "scheduled"
        and group["matching"] != "greedy"
        and group["weight_decay"] == 0
        and group["max_angle"] <= LARGEST_ANGLE
    )


def _count_unmoved(
    group: dict[str, Any], unmoved: list[int], total: int, dtype: torch.dtype
) -> None:
    """Count the matrices that do not move as they would, and warn of the first of each kind.

    Args:
        group: The parameter group.
        unmoved: How many of them had no finite gradient, and how many would have gone too far.
        total: The number of matrices.
        dtype: Their dtype.
    """
    for name, number in zip(("not_finite", "too_far"), unmoved, strict=True):
        if number and not group[name]:
            stay = "stay where they are"
            if name == "too_far" and group["metric"] == "invariant":
                stay = "turn without their boosts, or stay where they are"
            reason = NOT_FINITE if name == "not_finite" else too_far(dtype, group["max_norm"])
            which = f"{number} of {total} matrices {stay}"
            if number > total:  # of several steps, as counts come late from a device
                which = f"In {number} cases during the last steps, some of {total} matrices {stay}"
            warnings.warn(
                f"{reason}. {which}; {name!r} of the parameter group "
                "counts how often that happens, and there is no further warning",
                RuntimeWarning,
                stacklevel=2,
            )
        group[name] += number


def _stack(tensors: list[Tensor], params: list[Tensor]) -> Tensor:
    """Tensors that begin with the batches of the parameters as one batch; one is not copied."""
    flat = [
        tensor.reshape(-1, *tensor.shape[p.ndim - 2 :])
        for tensor, p in zip(tensors, params, strict=True)
    ]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def _unstack(batch: Tensor, tensors: list[Tensor], params: list[Tensor]) -> None:
    """Copy a batch back into the tensors that it was stacked from."""
    if len(tensors) == 1 and batch.data_ptr() == tensors[0].data_ptr():
        return  # it has changed in place
    parts = torch.split(batch, [p.shape[:-2].numel() for p in params])
    for tensor, part in zip(tensors, parts, strict=True):
        tensor.copy_(part.reshape(tensor.shape))
