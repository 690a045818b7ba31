"""A training step: Adam for entities and biases, and one of three optimisers for the relations.

On a CUDA device the step of J-JOBCD is replayed from a CUDA graph: one launch instead of a hundred.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth.kge.batches import Batch
from jorth.kge.config import Config
from jorth.kge.model import UltraE
from jorth.nn import cs_parametrization
from jorth.optim import JOBCD, VRJOBCD
from jorth.optim.jobcd import codes_of_step, is_one_launch


def largest_relation(config: Config) -> Any:
    """Return the largest norm that a relation may have, as given or as its precision asks for.

    Beyond 1e3 float32 has too few digits of <R x, y>_J.
    """
    default = 1e3 if config.dtype == "float32" else None
    return config.relation_options.get("max_norm", default)


@dataclass
class OptimiserState:
    """What the next step of an optimiser depends on."""

    counters: list[dict[str, Any]]
    """The numbers of each parameter group, such as its step counter."""
    memory: list[dict[str, Any]]
    """For each parameter, what the optimiser remembers of earlier gradients."""

    @classmethod
    def of(cls, optimiser: torch.optim.Optimizer) -> OptimiserState:
        packed = optimiser.state_dict()
        groups = packed["param_groups"]
        counters = [
            {key: value for key, value in group.items() if isinstance(value, (int, float))}
            for group in groups
        ]
        parameters = sum(len(group["params"]) for group in groups)
        return cls(counters, [packed["state"].get(number, {}) for number in range(parameters)])

    def restore(self, optimiser: torch.optim.Optimizer) -> None:
        packed = optimiser.state_dict()
        for group, counters in zip(packed["param_groups"], self.counters, strict=True):
            group.update(counters)
        memory = {number: entry for number, entry in enumerate(self.memory) if entry}
        optimiser.load_state_dict(packed | {"state": memory})


class Optimisers:
    """Both optimisers, stepped together on the loss of a batch.

    With "csdm" the relations of the model become parametrised.
    """

    def __init__(self, model: UltraE, config: Config) -> None:
        self._model = model
        self._config = config
        options: dict[str, Any] = dict(lr=config.relation_lr, **config.relation_options)
        if config.method != "csdm":
            options = {"seed": config.seed} | options | {"max_norm": largest_relation(config)}
        self._entities = torch.optim.Adam(
            [model.points, model.bias, model.loops], lr=config.lr, fused=True
        )
        self._relations: torch.optim.Optimizer
        if config.method == "csdm":
            cs_parametrization(model, "relations", model.signature)
            weights = model.parametrizations["relations"].parameters()  # type: ignore[index, union-attr]
            self._relations = torch.optim.Adam(weights, **options)
        else:
            kind = JOBCD if config.method == "j-jobcd" else VRJOBCD
            self._relations = kind([model.relations], model.signature, **options)
        self._both: tuple[torch.optim.Optimizer, ...] = (self._entities, self._relations)
        if self.stays_on_device:
            self._put_rates_on_device()

    @property
    def stays_on_device(self) -> bool:
        """Return whether a step needs nothing from the host but the pairs of J-JOBCD."""
        X = self._model.relations
        is_jobcd = X.is_cuda and type(self._relations) is JOBCD
        return is_jobcd and is_one_launch(self.relation_group, X)

    @property
    def relation_group(self) -> dict[str, Any]:
        """Return the parameter group of the relations."""
        group: dict[str, Any] = self._relations.param_groups[0]
        return group

    def _put_rates_on_device(self) -> None:
        """Put the rates where a CUDA graph reads them; torch's fused Adam takes float32 alone."""
        device = self._model.points.device
        for optimiser, dtype in zip(self._both, (torch.float32, torch.float64), strict=True):
            for group in optimiser.param_groups:
                group["lr"] = torch.tensor(group["lr"], dtype=dtype, device=device)
        for group in self._entities.param_groups:
            group["capturable"] = True

    def set_rates(self, factor: float) -> None:
        """Set both learning rates to ``factor`` times their initial values."""
        rates = (self._config.lr, self._config.relation_lr)
        for optimiser, rate in zip(self._both, rates, strict=True):
            for group in optimiser.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(factor * rate)
                else:
                    group["lr"] = factor * rate

    def wants_large_batch(self) -> bool:
        """Return whether the next step is a refresh of "vr-j-jobcd"."""
        return isinstance(self._relations, VRJOBCD) and self._relations.wants_large_batch()

    def step(self, loss: Callable[[], Tensor]) -> Tensor:
        """Take one step of both and return the loss before it.

        ``loss`` is called twice where the method takes differences of gradients.
        """

        def closure() -> Tensor:
            for optimiser in self._both:
                optimiser.zero_grad()
            value = loss()
            value.backward()  # type: ignore[no-untyped-call]
            return value.detach()

        relations: Any = self._relations  # torch's stub expects a closure that returns a float
        value: Tensor = relations.step(closure)
        self._entities.step()
        return value

    def states(self) -> list[OptimiserState]:
        """Return the states of both for a checkpoint."""
        return [OptimiserState.of(optimiser) for optimiser in self._both]

    def restore(self, states: list[OptimiserState]) -> None:
        """Continue from the result of `states`, after the model has been restored."""
        for state, optimiser in zip(states, self._both, strict=True):
            state.restore(optimiser)


PLAIN_STEPS = 2
"""Steps before one is captured: they compile kernels and start what optimisers remember."""


class CapturedStep:
    """A step on a batch, captured in a CUDA graph and replayed on others of the same shape.

    The step may not wait for the device. What changes from step to step, the batch and the pairs of
    J-JOBCD, is copied to where the graph reads it. Batches of another shape than the first take
    plain steps. ``step`` takes a step on a batch and returns the loss before it, and ``group`` is
    the parameter group of the optimiser of the relations.
    """

    def __init__(self, step: Callable[[Batch], Tensor], group: dict[str, Any]) -> None:
        self._step = step
        self._group = group
        self._plain_steps = 0
        self._fails = False
        self._batch: Batch | None = None
        self._captured: _Captured | None = None

    def __call__(self, batch: Batch) -> Tensor:
        """Take a step; the loss that it returns is overwritten by the next one."""
        if self._batch is None:
            candidates = None if batch.candidates is None else batch.candidates.clone()
            self._batch = Batch(batch.queries.clone(), candidates)
        if self._fails or _shapes(batch) != _shapes(self._batch):
            return self._step(batch)
        if self._plain_steps < PLAIN_STEPS:
            self._plain_steps += 1
            return self._step(batch)
        codes = codes_of_step(self._group, batch.queries.device)
        if self._captured is None:
            self._captured = self._try_to_capture(self._batch, codes.clone())
        if self._captured is None:
            return self._step(batch)
        self._batch.queries.copy_(batch.queries)
        if self._batch.candidates is not None and batch.candidates is not None:
            self._batch.candidates.copy_(batch.candidates)
        self._captured.codes.copy_(codes)
        self._captured.graph.replay()
        self._group["turn"] += 1
        return self._captured.loss

    def _try_to_capture(self, batch: Batch, codes: Tensor) -> _Captured | None:
        """Return the captured step, or None and a warning if it cannot be captured."""
        turn, stream = self._group["turn"], torch.cuda.current_stream()
        self._group["codes"] = codes  # where steps read their pairs
        try:
            return _capture(self._step, batch, codes)
        except RuntimeError as error:
            self._fails = True
            torch.cuda.set_stream(stream)  # torch may have left that of the capture
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            text = f"steps cannot be captured in a CUDA graph and are launched one by one: {reason}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            return None
        finally:
            self._group["turn"] = turn  # captured, but not taken yet
            del self._group["codes"]


class _Captured(NamedTuple):
    """A graph, where it reads the pairs, and where it leaves the loss."""

    graph: torch.cuda.CUDAGraph
    codes: Tensor
    loss: Tensor


def _capture(step: Callable[[Batch], Tensor], batch: Batch, codes: Tensor) -> _Captured:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        loss = step(batch)
    return _Captured(graph, codes, loss)


def _shapes(batch: Batch) -> list[torch.Size]:
    return [part.shape for part in (batch.queries, batch.candidates) if part is not None]
