"""VR-JOBCD as a torch optimiser: JOBCD on the PAGE estimate of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._compile import _disable_dynamo

from jorth._inputs import real_number
from jorth.optim.jobcd import JOBCD
from jorth.optim.options import check_closure
from jorth.plane.averages import finite_matrices
from jorth.signature import Signature

REFRESH_STREAM = 1
"""The stream of random numbers that decides on refreshes; pairings have streams of their own."""


class VRJOBCD(JOBCD):
    """`JOBCD` with a variance-reduced gradient, for losses that are means over many samples.

    With probability pr a step is a refresh: the estimate is the gradient over a large batch.
    Otherwise it is the last estimate plus grad f(X_t) - grad f(X_{t-1}) over a small batch, the
    same samples at both points (PAGE). The loop asks which batch to draw, and a step calls the
    closure once or twice:

        for _ in range(steps):
            batch = draw(large if optimizer.wants_large_batch() else small)

            def closure():
                model.zero_grad()
                loss = criterion(model(batch))
                loss.backward()
                return loss

            loss = optimizer.step(closure)

    The last call is at the current point, so that the loss, and the gradients of parameters of
    other optimisers, belong to it. Both calls see the same random numbers of torch (dropout,
    negative samples); draw what comes from elsewhere before the closure. Where other parameters
    move too, the estimate lags behind them until the next refresh.

    Args:
        params: See `JOBCD`.
        signature: See `JOBCD`.
        probability: The probability of a refresh. The theory has b' / (b + b') for batches of b and
            b' = sqrt(b) samples.
        options: The options of `JOBCD`.
    """

    def __init__(
        self,
        params: Any,
        signature: Signature | None = None,
        *,
        probability: float = 0.1,
        **options: Any,
    ) -> None:
        probability = real_number(probability, "probability", "in (0, 1]", lambda x: 0 < x <= 1)
        super().__init__(params, signature, **options)
        own = {"probability": probability, "stale": False}  # saved with the groups
        self.defaults.update(own)
        for group in self.param_groups:
            if "probability" in group:
                found = f"a group with {group['probability']}"
                raise ValueError(f"probability must be one for all groups, got {found}")
            group.update(own)

    def wants_large_batch(self) -> bool:
        """Whether the coming step is a refresh. Asking twice changes nothing.

        Steps are refreshes until there is an estimate, and by chance after that. Another one
        follows a step with a small batch in which a matrix stayed where it was, since the estimate
        may then be wrong though it is finite; on CUDA some steps later, when that is known.
        """
        first = self.param_groups[0]
        if first["stale"] or not any("estimate" in entry for entry in self.state.values()):
            return True
        turn = max(group["turn"] for group in self.param_groups)
        random = np.random.default_rng([first["seed"], turn, REFRESH_STREAM])
        return bool(random.random() < first["probability"])

    @_disable_dynamo
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step and return the loss before it.

        Args:
            closure: Clears all gradients, computes the loss of the drawn batch and its gradients,
                and returns the loss.
        """
        check_closure(closure)
        assert closure is not None
        params = [p for group in self.param_groups for p in group["params"]]
        refresh = self.wants_large_batch()
        unmoved = self._unmoved()  # before the closures, while a device has nothing left to do
        before = {} if refresh else self._gradients_before(params, closure)
        found = [(p, p.grad, p.grad is not None and p.grad._version) for p in params]
        with torch.enable_grad():
            loss = closure()
        self._check_gradients(found)
        for group in self.param_groups:
            estimates = {
                p: self._estimate(p, before)
                for p in group["params"]
                if p.grad is not None or p in before
            }
            self._step_group(group, estimates)
        for group in self.param_groups:
            group["stale"] = not refresh and self._unmoved() > unmoved
        return loss

    def _check_gradients(self, before: list[tuple[Tensor, Tensor | None, int]]) -> None:
        """Check that the closure has computed dense gradients; ``before`` are those it found."""
        if any(p.grad is not None and p.grad.is_sparse for p, _, _ in before):
            raise RuntimeError("VRJOBCD does not take sparse gradients: use sparse=False")
        trained = [entry for entry in before if entry[0].requires_grad]
        if trained and all(
            p.grad is gradient and (gradient is None or gradient._version == version)
            for p, gradient, version in trained
        ):
            raise RuntimeError(
                "closure must clear all gradients and compute the loss and its gradients, got one "
                "that leaves the gradients as they were (as in Lightning's manual optimisation: "
                "call the step of the plain optimiser, self.optimizers().optimizer.step(closure))"
            )

    def _unmoved(self) -> int:
        """How often a matrix has stayed where it was, as far as the host knows."""
        return sum(group["not_finite"] + group["too_far"] for group in self.param_groups)

    def _gradients_before(
        self, params: list[Tensor], closure: Callable[[], Any]
    ) -> dict[Tensor, Tensor]:
        """The gradients of the batch at the points before the last step.

        The points and the state of torch's random numbers are restored.
        """
        known = [p for p in params if "estimate" in self.state.get(p, {})]
        now = {p: p.clone() for p in known}
        try:
            for p in known:
                p.copy_(self.state[p]["previous"])
            with (
                torch.enable_grad(),
                torch.random.fork_rng(list({p.device for p in params if p.is_cuda})),
            ):
                closure()
            return {p: _gradient(p) for p in known}
        finally:
            for p in known:
                p.copy_(now[p])

    def _estimate(self, p: Tensor, before: dict[Tensor, Tensor]) -> Tensor:
        """The estimate of the gradient at p; a finite one is stored, with p, for the next step."""
        state = self.state[p]
        estimate = _gradient(p)
        if p in before:
            difference = state["estimate"] + (estimate - before[p])
            estimate = torch.where(finite_matrices(state["estimate"]), difference, estimate)
        finite = finite_matrices(estimate)
        if "estimate" in state or bool(finite.any()):
            state["estimate"] = torch.where(finite, estimate, state.get("estimate", estimate))
            state["previous"] = torch.where(finite, p, state.get("previous", p))
        return estimate


def _gradient(p: Tensor) -> Tensor:
    """Return a copy of the gradient of p, zero if there is none."""
    return torch.zeros_like(p) if p.grad is None else p.grad.to(p.dtype, copy=True)
