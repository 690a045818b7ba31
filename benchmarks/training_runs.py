"""One run of `training.py`: a task trained by a method at one rate, scored on all data on the way.

The clock stands still while it is scored, and starts after two steps on a copy, so that compiled
kernels are there.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import jorth
from benchmarks.training_methods import HEAD_RATE, METHODS
from benchmarks.training_tasks import TASKS

POINTS = 40
WARM = 2


class Run(NamedTuple):
    """What is run."""

    task: str
    method: str
    lr: float
    seed: int


class Training:
    """The parameters and optimisers of a run."""

    def __init__(self, task: Any, method: str, lr: float) -> None:
        self.task = task
        self.current, optimizer = METHODS[method].make(task.start, task.signature, lr)
        self.others = [nn.Parameter(other.clone()) for other in task.others]
        self.optimizers = [optimizer]
        if self.others:
            self.optimizers.append(torch.optim.Adam(self.others, lr=HEAD_RATE))

    def step(self, step: int) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        self.task.loss(self.current(), step, self.others).backward()
        for optimizer in self.optimizers:
            optimizer.step()

    @torch.no_grad()
    def score(self) -> float:
        """The loss on all data."""
        return float(self.task.loss(self.current(), None, self.others))

    @torch.no_grad()
    def matrices(self) -> list[Tensor]:
        return [x.detach() for x in self.current()]


def train_and_score(task: Any, method: str, lr: float, lengths: Sequence[int]) -> list[float]:
    """The losses on all data after so many steps of one run."""
    training, found = Training(task, method, lr), []
    for step in range(max(lengths)):
        training.step(step)
        if step + 1 in lengths:
            found.append(training.score())
    return found


def scored_steps(steps: int) -> list[int]:
    """Numbers of steps after which to score: close together at first, ``steps`` the last."""
    return sorted({0, *(math.ceil(steps * (k / POINTS) ** 2) for k in range(1, POINTS + 1))})


def blank(run: Run, failed: str | None = None) -> dict[str, Any]:
    """The record of a run that has not begun."""
    return run._asdict() | {"failed": failed, "steps": [], "loss": [], "ms": []}


def measure(run: Run, steps: int | None = None) -> dict[str, Any]:
    """The record of a run, ready for JSON; "failed" says why a run has no end, else it is None."""
    torch.set_num_threads(1)
    record = blank(run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rates too large: what becomes of them is recorded
        try:
            _train(run, record, steps)
        except Exception as error:  # a run that fails is a line of the table
            record["failed"] = f"{type(error).__name__}: {error}"[:200]
    return record


def _train(run: Run, record: dict[str, Any], steps: int | None) -> None:
    task = TASKS[run.task](run.seed) if steps is None else TASKS[run.task](run.seed, steps)
    warm = Training(task, run.method, run.lr)
    for step in range(min(WARM, task.steps)):
        warm.step(step)
    warm.score()
    training, seconds, done = Training(task, run.method, run.lr), 0.0, 0
    for count in scored_steps(task.steps):
        start = time.perf_counter()
        for step in range(done, count):
            training.step(step)
        seconds += time.perf_counter() - start
        done = count
        _note(record, count, training.score(), seconds)
        if not all(torch.isfinite(x).all() for x in training.matrices()):
            record["failed"] = f"a parameter is not finite after step {count}"
            return
    if record["loss"][-1] is None:
        record["failed"] = "the loss is not finite"
        return
    X = training.matrices()
    record["ms_per_step"] = _short(1e3 * seconds / task.steps)
    record["residual"] = _short(_largest([jorth.residual(x, task.signature) for x in X]))
    record["norm"] = _short(_largest([torch.linalg.matrix_norm(x, 2) for x in X]))


def _note(record: dict[str, Any], count: int, loss: float, seconds: float) -> None:
    record["steps"].append(count)
    record["loss"].append(_short(loss) if math.isfinite(loss) else None)
    record["ms"].append(_short(1e3 * seconds))


def _largest(values: Sequence[Any]) -> float:
    return max(float(torch.as_tensor(value).max()) for value in values)


def _short(value: float) -> float:
    """Four digits, so that the records stay small."""
    return float(f"{value:.4g}")
