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
from jorth.signature import Signature


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

    The last call is at the current point, so that the loss, and the gradients of other parameters,
    belong to it. Both calls see the same random numbers of torch; draw what comes from elsewhere
    before the closure. Where other parameters move too, the estimate lags behind them until the
    next refresh.

    Args:
        params: See `JOBCD`.
        signature: See `JOBCD`.
        probability: The probability of a refresh. The theory has b' / (b + b') for batches of b and
            b' = sqrt(b) samples.
        options: The options of `JOBCD`.

    >>> layer = jorth.nn.JOrthogonalLinear(jorth.Signature(2, 1))
    >>> optimizer = jorth.optim.VRJOBCD([layer.weight], layer.signature, probability=0.2)
    >>> optimizer.wants_large_batch()  # the first step is a refresh
    True
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
            group.update(own)

    def wants_large_batch(self) -> bool:
        """Return whether the coming step is a refresh. Asking twice changes nothing.

        Steps are refreshes until there is an estimate, and by chance after that. Another one
        follows a step with a small batch in which a matrix stayed where it was, since the estimate
        may then be wrong though it is finite; not on CUDA, where nobody waits for the counts.
        """
        first = self.param_groups[0]
        if first["stale"] or not any("estimate" in entry for entry in self.state.values()):
            return True
        turn = max(group["turn"] for group in self.param_groups)
        # pairings have streams of their own
        random = np.random.default_rng([first["seed"], turn, 1])
        return bool(random.random() < first["probability"])

    @_disable_dynamo
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step and return the loss before it.

        Args:
            closure: Clears all gradients, computes the loss of the drawn batch and its gradients,
                and returns the loss.
        """
        if closure is None:
            raise TypeError("closure must be a function that computes the loss, got None")
        params = [p for group in self.param_groups for p in group["params"]]
        refresh = self.wants_large_batch()
        unmoved = self._unmoved()
        before = {} if refresh else self._gradients_before(params, closure)
        with torch.enable_grad():
            loss = closure()
        for group in self.param_groups:
            moving = (p for p in group["params"] if p.grad is not None or p in before)
            self._step_group(group, {p: self._estimate(p, before) for p in moving})
        for group in self.param_groups:
            group["stale"] = not refresh and self._unmoved() > unmoved
        return loss

    def _unmoved(self) -> int:
        """Return how often a matrix on the CPU has stayed where it was."""
        states = [state for p, state in self.state.items() if "too_far" in state and not p.is_cuda]
        return int(sum(state["not_finite"] + state["too_far"] for state in states))

    def _gradients_before(
        self, params: list[Tensor], closure: Callable[[], Any]
    ) -> dict[Tensor, Tensor]:
        """Return the gradients of the batch at the points before the last step.

        The points and the state of torch's random numbers are restored.
        """
        known = [p for p in params if "estimate" in self.state.get(p, {})]
        now = {p: p.clone() for p in known}
        devices = list({p.device for p in params if p.is_cuda})
        try:
            for p in known:
                p.copy_(self.state[p]["previous"])
            with torch.enable_grad(), torch.random.fork_rng(devices):
                closure()
            return {p: _gradient(p) for p in known}
        finally:
            for p in known:
                p.copy_(now[p])

    def _estimate(self, p: Tensor, before: dict[Tensor, Tensor]) -> Tensor:
        """Return the estimate of the gradient at p; store it, if finite, with p."""
        state = self.state[p]
        estimate = _gradient(p)
        if p in before:
            difference = state["estimate"] + (estimate - before[p])
            estimate = torch.where(_finite(state["estimate"]), difference, estimate)
        finite = _finite(estimate)
        if "estimate" in state or bool(finite.any()):
            state["estimate"] = torch.where(finite, estimate, state.get("estimate", estimate))
            state["previous"] = torch.where(finite, p, state.get("previous", p))
        return estimate


def _finite(batch: Tensor) -> Tensor:
    """Return which of the matrices (..., n, k) have finite entries only: (..., 1, 1)."""
    return torch.isfinite(batch).all(dim=-1, keepdim=True).all(dim=-2, keepdim=True)


def _gradient(p: Tensor) -> Tensor:
    """Return a copy of the gradient of p, zero if there is none."""
    return torch.zeros_like(p) if p.grad is None else p.grad.to(p.dtype, copy=True)
