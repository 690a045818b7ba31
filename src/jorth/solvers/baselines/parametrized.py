"""A parametrisation X(w) of the group under one of torch's own optimisers."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from jorth.arrays import (
    check_choice,
    check_count,
    frobenius,
    real_number,
    unit_roundoff,
    whole_number,
)
from jorth.group.elements import scaled_violation
from jorth.solvers.loop.budget import all_finite
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.state import State
from jorth.solvers.loop.status import Status, StopRun

LEARNING_RATES = {"adam": 0.03, "lbfgs": 1.0}
PATIENCE = 20
"""Steps of Adam without a better value, after which its learning rate is halved."""
LINE_SEARCH = 25
"""The evaluations that torch's strong Wolfe search may take."""
RESTARTS = 5


@dataclass(frozen=True, kw_only=True)
class Parametrized(AbstractSolver):
    """Free weights w, X = X(w), and a torch optimiser on w: constraints by construction.

    Args:
        optimizer: "lbfgs" (with a strong Wolfe line search) or "adam" (its learning rate halves when the value comes
            down no further).
        learning_rate: None takes 1 for L-BFGS and 0.03 for Adam.
        memory: The number of pairs that L-BFGS keeps.
        rebase: After so many steps of L-BFGS the form is set up anew at the current point, with an empty memory: near
            its base a form is better conditioned. None never does.
    """

    optimizer: Literal["lbfgs", "adam"] = "lbfgs"
    learning_rate: float | None = None
    memory: int = 20
    rebase: int | None = None

    def __post_init__(self) -> None:
        check_choice(self.optimizer, "optimizer", tuple(sorted(LEARNING_RATES)))
        if self.learning_rate is not None:
            expected = "None or a positive number"
            real_number(
                self.learning_rate, "learning_rate", expected, lambda number: 0 < number < math.inf
            )
        whole_number(self.memory, "memory", 1)
        check_count(self.rebase, "rebase")

    @abstractmethod
    def form(self, problem: Problem, X: Tensor) -> nn.Module:
        """A module without arguments whose output is X at first."""

    def init(self, problem: Problem, X: Tensor) -> State:
        """The state at the start, and the weights there."""
        state: State = super().init(problem, X)
        state.numbers["rate"] = self.learning_rate or LEARNING_RATES[self.optimizer]
        self._set_up(problem, state)
        return state

    def _set_up(self, problem: Problem, state: State) -> None:
        """The form at X, and an optimiser with an empty memory."""
        state.tensors["base"], state.numbers["age"] = state.X.clone(), 0.0
        state.cache["form"] = self.form(problem, state.X)
        self._start_anew(state)

    def _scale(self, state: State) -> float:
        """A power of two that brings a small gradient to about one: torch's L-BFGS has absolute thresholds."""
        size = frobenius(state.gradient)
        return (
            2.0 ** min(-math.frexp(size)[1], 1023)
            if self.optimizer == "lbfgs" and 0 < size < 1
            else 1.0
        )

    def step(self, problem: Problem, state: State) -> None:
        """One step of the optimiser, then value and gradient at the new X."""
        if "form" not in state.cache:
            self._unpack(problem, state)
        if self.optimizer == "lbfgs" and state.numbers["age"] == self.rebase:
            self._set_up(problem, state)
        form, optimizer, scale = (
            state.cache["form"],
            state.cache["optimizer"],
            state.numbers["scale"],
        )
        seen: list[tuple[Tensor, float, Tensor]] = [(state.X.clone(), state.value, state.gradient)]
        best, limit = _Best(state.value, _weights(form)), 1 / unit_roundoff(state.X)

        def closure() -> float:
            optimizer.zero_grad()
            X = form()
            value, gradient = self._evaluate(problem, state, X.detach(), seen)
            if (
                all_finite(value, gradient)
                and value < best.value
                and float(X.detach().norm()) < limit
            ):
                best.value, best.weights = value, _weights(form)
            X.backward(scale * gradient)
            for weight in form.parameters():  # torch's L-BFGS wants them contiguous
                weight.grad = (
                    torch.zeros_like(weight) if weight.grad is None else weight.grad.contiguous()
                )
            return scale * value

        try:
            optimizer.step(closure)
            X, value, gradient = self._point(problem, state, form, seen)
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # there is no form at such weights
            X, value, gradient = state.X, math.nan, state.gradient
        finite, lost = all_finite(value, gradient), self._lost(problem, state, X)
        if self.optimizer == "adam" and lost:
            form.load_state_dict(best.weights)
            state.numbers["rate"] = min(state.numbers["rate"], 1.0)
            self._shorten(state, finite=True)
            return
        if self.optimizer == "lbfgs" and not (finite and value < state.value):
            form.load_state_dict(best.weights)
            if not best.value < state.value:
                self._shorten(state, finite or lost)
                return
            self._start_anew(state)
            X, value, gradient = self._point(problem, state, form, seen)
        elif not finite:
            raise StopRun(Status.NON_FINITE)
        state.X.copy_(X)
        state.value, state.gradient = value, gradient
        state.numbers["age"] += 1
        self._adapt(state)

    def _point(
        self, problem: Problem, state: State, form: nn.Module, seen: Seen
    ) -> tuple[Tensor, float, Tensor]:
        """X, and f and its gradient there."""
        with torch.no_grad():
            X = form()
        return (X, *self._evaluate(problem, state, X, seen))

    def _evaluate(
        self, problem: Problem, state: State, X: Tensor, seen: Seen
    ) -> tuple[float, Tensor]:
        """F and its gradient, NaN where X is none; a point that was evaluated in this step already is looked up."""
        for point, value, gradient in reversed(seen):
            if torch.equal(point, X):
                return value, gradient
        if self._lost(problem, state, X):
            return math.nan, torch.full_like(X, math.nan)
        value, gradient = problem.objective.value_and_gradient(X)
        seen.append((X.clone(), value, gradient))
        return value, gradient

    def _lost(self, problem: Problem, state: State, X: Tensor) -> bool:
        """Whether X^T J X has half of its digits left at most, as after a rotation by 1 / sqrt(u) turns."""
        n, k = X.shape
        base = state.tensors["base"]
        gram = torch.diag(problem.signs) if k == n else base.mT @ (problem.signs[:, None] * base)
        norm = frobenius(X) / math.sqrt(k)
        violation = scaled_violation(X, problem.signs, gram, norm).item()
        return math.isfinite(violation) and violation > math.sqrt(unit_roundoff(X))

    def _shorten(self, state: State, finite: bool) -> None:
        """Shorter first steps with an empty memory; after some in a row there is nothing to gain."""
        state.numbers["restarts"] = state.numbers.get("restarts", 0.0) + 1
        state.stalled = state.numbers["restarts"] > RESTARTS
        if state.stalled and not finite:
            raise StopRun(Status.NON_FINITE)
        state.numbers["rate"] /= 4
        self._start_anew(state)

    def _start_anew(self, state: State) -> None:
        """An optimiser without a memory, and the scale of what it is shown."""
        state.numbers["scale"] = self._scale(state)
        state.cache["optimizer"] = self._fresh_optimizer(state)

    def _adapt(self, state: State) -> None:
        """Halve Adam's learning rate on a plateau; give L-BFGS its full step again."""
        numbers = state.numbers
        if self.optimizer == "lbfgs":
            numbers["restarts"], numbers["rate"] = (
                0.0,
                self.learning_rate or LEARNING_RATES["lbfgs"],
            )
        elif state.value < numbers.get("best", math.inf):
            numbers["best"], numbers["idle"] = state.value, 0.0
        else:
            numbers["idle"] += 1
            if numbers["idle"] >= PATIENCE:
                numbers["idle"], numbers["rate"] = 0.0, numbers["rate"] / 2
        for group in state.cache["optimizer"].param_groups:
            group["lr"] = numbers["rate"]

    def _fresh_optimizer(self, state: State) -> torch.optim.Optimizer:
        weights, rate = list(state.cache["form"].parameters()), state.numbers["rate"]
        if self.optimizer == "adam":
            return torch.optim.Adam(weights, lr=rate)
        return torch.optim.LBFGS(
            weights,
            lr=rate,
            max_iter=1,
            max_eval=LINE_SEARCH,
            history_size=self.memory,
            line_search_fn="strong_wolfe",
            tolerance_grad=0.0,
            tolerance_change=0.0,
        )

    # -- everything that torch holds goes into a checkpoint

    def pack(self, state: State) -> None:
        """Weights and the optimiser's memory as tensors of the state."""
        if "form" not in state.cache:  # as it was loaded
            return
        for name in [name for name in state.tensors if name.startswith(("form.", "optimizer."))]:
            del state.tensors[name]
        for name, tensor in state.cache["form"].state_dict().items():
            state.tensors[f"form.{name}"] = tensor.detach().clone()
        for index, entry in state.cache["optimizer"].state_dict()["state"].items():
            kept = {
                name: value for name, value in entry.items() if name != "al"
            }  # a buffer of L-BFGS
            for name, tensor in _flatten(f"optimizer.{index}", kept):
                state.tensors[name] = tensor

    def _unpack(self, problem: Problem, state: State) -> None:
        form = state.cache["form"] = self.form(problem, state.tensors["base"])
        form.load_state_dict(
            {n.removeprefix("form."): t for n, t in state.tensors.items() if n.startswith("form.")}
        )
        optimizer = state.cache["optimizer"] = self._fresh_optimizer(state)
        kept = {
            n.removeprefix("optimizer."): t
            for n, t in state.tensors.items()
            if n.startswith("optimizer.")
        }
        optimizer.load_state_dict(optimizer.state_dict() | {"state": _unflatten(kept)})


Seen = list[tuple[Tensor, float, Tensor]]
"""Points with their values and gradients."""


@dataclass
class _Best:
    """The lowest value that a step has seen, and the weights there."""

    value: float
    weights: dict[str, Tensor]


def _weights(form: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in form.state_dict().items()}


def _flatten(path: str, entry: Any) -> list[tuple[str, Tensor]]:
    """Nested dicts and lists of tensors and numbers as named tensors; the kind of each node is part of its name."""
    if entry is None:
        return []
    if isinstance(entry, Tensor):
        return [(f"{path}:tensor", entry.detach().clone())]
    if isinstance(entry, dict):
        return [pair for name, value in entry.items() for pair in _flatten(f"{path}.{name}", value)]
    if isinstance(entry, list) and not entry:
        return [(f"{path}:empty", torch.zeros(0))]
    if isinstance(entry, list):
        return [pair for at, value in enumerate(entry) for pair in _flatten(f"{path}.{at}", value)]
    kind = "int" if isinstance(entry, int) else "float"
    return [
        (
            f"{path}:{kind}",
            torch.tensor(entry, dtype=torch.int64 if kind == "int" else torch.float64),
        )
    ]


def _unflatten(tensors: dict[str, Tensor]) -> dict[int, Any]:
    """The nested state again: names that are all digits make lists, below the index of the weight."""
    nested: dict[str, Any] = {}
    for name, tensor in tensors.items():
        path, kind = name.rsplit(":", 1)
        *parents, leaf = path.split(".")
        node = nested
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = (
            [] if kind == "empty" else tensor.clone() if kind == "tensor" else tensor.item()
        )
    return {
        int(index): {name: _lists(value) for name, value in entry.items()}
        for index, entry in nested.items()
    }


def _lists(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    return [node[str(at)] for at in range(len(node))]
