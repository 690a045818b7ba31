"""Chains: one method after the other, each from the point where the last one ended."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jorth._distributed import Ranks
from jorth.arrays import describe, to_tensor
from jorth.group import polish
from jorth.objectives import AbstractObjective
from jorth.signature import Signature
from jorth.solvers.loop.budget import Evaluations, Interrupt, Limits
from jorth.solvers.loop.record import Result, drift
from jorth.solvers.loop.run import Callback, Settings
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.status import Status
from jorth.storage.checkpoint import FILE

FINAL = (
    Status.CONVERGED,
    Status.NOT_ATTAINED,
    Status.UNBOUNDED,
    Status.NON_FINITE,
    Status.INTERRUPTED,
)
"""After these no other method is run."""


@dataclass(frozen=True)
class Stage(Limits):
    """A method of a chain with its own limits, beside those of the chain.

    Example: `minimize(..., method=[Stage("gs-jobcd", max_iterations=1), "riemannian-lbfgs"])`.

    Args:
        method: A name or a solver.
        max_iterations: As in `minimize`, but for this stage alone.
        max_time: Likewise.
        max_evaluations: Likewise.
    """

    method: str | AbstractSolver

    def __post_init__(self) -> None:
        super().__post_init__()
        method: object = self.method
        if not isinstance(method, (str, AbstractSolver)):
            found = describe(method)
            raise TypeError(f"method must be the name of a method or a solver, got {found}")

    @property
    def name(self) -> str:
        method = self.method
        return method if isinstance(method, str) else getattr(method, "name", describe(method))

    def within(self, shares: Limits) -> Limits:
        """For each limit the lower one of the stage's own and its share of the chain's."""
        lower = {}
        for name, share in asdict(shares).items():
            given = [limit for limit in (share, getattr(self, name)) if limit is not None]
            lower[name] = min(given, default=None)
        return Limits(**lower)


def run_chain(
    run: Callable[[Any, str | AbstractSolver, Settings], Result],
    stages: Sequence[Stage],
    x0: Any,
    objective: AbstractObjective,
    signature: Signature,
    settings: Settings,
) -> Result:
    """Run the methods in turn by ``run``, and join their records.

    The limits are for all of the chain: a stage may use an equal share of what is left, and what it
    does not use is left to later stages. A chain ends early when a stage meets the stopping
    criteria, or when no method could go on. A point that has drifted off the constraint is polished
    before the next stage, and the message says so. A resumed chain continues in the stage that it
    had reached, whatever its limits are now. Each stage has its own checkpoint folder.
    """
    if not stages:
        raise ValueError(
            "method must be a name, a solver, or a list of at least one of these, got an empty list"
        )
    ranks = objective.ranks
    results: list[Result] = []
    note = ""
    with Interrupt(of_job=ranks is not None) as interrupt:
        interrupt.hold()  # results must not be lost between two stages
        for position, stage in enumerate(stages):
            left = shares(settings.limits, results, objective.samples, len(stages) - position)
            limits = stage.within(left)
            folder = settings.folder
            if folder is not None:
                folder = folder / f"{position + 1}-{stage.name}"
            is_over = folder is not None and _is_over(folder, position, ranks)
            if is_over:
                limits = Limits(max_iterations=0, max_time=0, max_evaluations=0)
            start = x0
            if results:
                start, note = handed_over(results[-1], signature)
            callback = with_offsets(settings.callback, results)
            of_stage = replace(
                settings,
                limits=limits,
                callback=callback,
                checkpoint=folder,
                least_scale=results[-1].gradient_scale if results else settings.least_scale,
            )
            result = run(start, stage.method, of_stage)
            if result.status not in FINAL and _is_interrupted(interrupt, ranks):
                status = Status.INTERRUPTED
                result = replace(result, status=status, message=status.value)
            message = "it was over when the chain was resumed" if is_over else result.message
            results.append(replace(result, message=message + note))
            if result.status in FINAL:
                break
        return join(results)


def join(stages: Sequence[Result]) -> Result:
    """One result of several runs: the last point, the histories joined and the counts added."""
    offsets = [_end_of(stages[:position]) for position in range(len(stages))]
    history = {
        name: np.concatenate(
            [
                stage.history[name] + offset.get(name, 0.0)
                for stage, offset in zip(stages, offsets, strict=True)
            ]
        )
        for name in stages[-1].history
    }
    names = " + ".join(stage.method for stage in stages)
    return replace(totals(stages[-1], stages), history=history, method=names)


def totals(result: Result, runs: Sequence[Result]) -> Result:
    """A result with the iterations, time and evaluations of several runs, which are its stages."""
    return replace(
        result,
        iterations=sum(run.iterations for run in runs),
        time=sum(run.time for run in runs),
        evaluations=sum((run.evaluations for run in runs), Evaluations()),
        stages=tuple(runs),
    )


def best_of(runs: Sequence[Result]) -> Result:
    """The run with the lowest value, as the result of runs from several starts.

    It is not called converged if the last run was interrupted, or found the objective unbounded.
    """
    last = runs[-1]
    if last.status is Status.UNBOUNDED:
        return totals(last, runs)
    best = min(runs, key=lambda run: math.inf if math.isnan(run.value) else run.value)
    if last.status is Status.INTERRUPTED:  # components without a run may hold something better
        best = replace(best, status=last.status, message=last.message)
    return totals(best, runs)


def _is_interrupted(interrupt: Interrupt, ranks: Ranks | None) -> bool:
    """Whether Ctrl-C was pressed in any process after the stage had ended."""
    return interrupt.requested() if ranks is None else ranks.largest([interrupt.requested()])[0] > 0


def _is_over(folder: Path, position: int, ranks: Ranks | None) -> bool:
    """Whether the next stage has already begun from the end of this one, which must not move."""

    def found() -> bool:
        return (folder / FILE).exists() and any(folder.parent.glob(f"{position + 2}-*"))

    return found() if ranks is None else ranks.from_first(found)


def handed_over(stage: Result, signature: Signature) -> tuple[Any, str]:
    """The point of a stage as a feasible start, and a note if it had to be polished."""
    n, columns = stage.x.shape
    if n != columns or stage.residual <= drift(to_tensor(stage.x, "x")):
        return stage.x, ""
    note = f"; started from a polished point (residual {stage.residual:.1g})"
    return polish(stage.x, signature), note


def _end_of(stages: Sequence[Result]) -> dict[str, float]:
    """Where the times and counts of the next stage begin.

    If a limit ended the last stage inside a step, this is beyond its last row.
    """
    done = sum((stage.evaluations for stage in stages), Evaluations())
    return {
        "time": float(sum(stage.time for stage in stages)),
        "iteration": float(sum(stage.iterations for stage in stages)),
        **done.columns(),
    }


def shares(limits: Limits, done: Sequence[Result], samples: int, stages_left: int) -> Limits:
    """An equal share of what is left of each limit."""
    iterations = sum(stage.iterations for stage in done)
    evaluations = sum(stage.evaluations.full_gradients(samples) for stage in done)
    seconds = limits.max_time
    if seconds is not None:
        seconds = max(seconds - sum(stage.time for stage in done), 0) / stages_left
    return Limits(
        max_iterations=_share(limits.max_iterations, iterations, stages_left),
        max_time=seconds,
        max_evaluations=_share(limits.max_evaluations, evaluations, stages_left),
    )


def _share(limit: int | None, used: int, stages_left: int) -> int | None:
    """An equal share of what is left of a count, rounded up."""
    return None if limit is None else -(-max(limit - used, 0) // stages_left)


def with_offsets(callback: Callback | None, done: Sequence[Result]) -> Callback | None:
    """The callback, called with rows that continue those of the earlier stages."""
    if callback is None:
        return None
    offsets = _end_of(done)
    return lambda X, row: callback(
        X, {name: value + offsets.get(name, 0.0) for name, value in row.items()}
    )
