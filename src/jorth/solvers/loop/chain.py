"""Chains: one method after the other, each from the point of the one before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jorth.arrays import describe, real_number, to_tensor, unit_roundoff, whole_number
from jorth.group import polish
from jorth.ranks import Ranks
from jorth.signature import Signature
from jorth.solvers.loop.budget import Evaluations
from jorth.solvers.loop.interrupt import Interrupt
from jorth.solvers.loop.problem import FEASIBLE
from jorth.solvers.loop.result import Result
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.status import Status
from jorth.storage.checkpoint import FILE

ADDITIVE = ("time", "iteration", *Evaluations().columns())
"""The columns of a history that go on counting from stage to stage."""
FINAL = (Status.CONVERGED, Status.UNBOUNDED, Status.NON_FINITE, Status.INTERRUPTED)
"""After these another method is not wanted, or of no use."""


@dataclass(frozen=True)
class Stage:
    """A method of a chain with limits of its own: `minimize(..., method=[Stage("gs-jobcd", max_iterations=1), ...])`.

    The limits of the chain hold besides. What a stage leaves of them goes to those after it.

    Args:
        method: A name or a solver.
        max_iterations: As in `minimize`, for this stage alone; so are the others.
        max_time: Seconds of solving.
        max_evaluations: Gradients.
    """

    method: str | AbstractSolver
    max_iterations: int | None = None
    max_time: float | None = None
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        for name, count in (
            ("max_iterations", self.max_iterations),
            ("max_evaluations", self.max_evaluations),
        ):
            if count is not None:
                whole_number(count, name, 0, instead="None or ")
        if self.max_time is not None:
            real_number(
                self.max_time,
                "max_time",
                "None or a number of at least 0",
                lambda number: number >= 0,
            )

    def within(self, shares: dict[str, float | None]) -> dict[str, float | None]:
        """The lower of each limit of the chain and its own."""
        both = {name: (share, getattr(self, name)) for name, share in shares.items()}
        return {
            name: min((limit for limit in pair if limit is not None), default=None)
            for name, pair in both.items()
        }


def run_chain(
    run: Callable[..., Result],
    stages: Sequence[Stage],
    x0: Any,
    *,
    signature: Signature,
    samples: int,
    limits: dict[str, float | None],
    callback: Callable[[Any, dict[str, float]], object] | None,
    checkpoint: str | Path | None,
    ranks: Ranks | None = None,
) -> Result:
    """Run the methods in turn and join their records.

    Limits are for the chain as a whole: a stage may use an equal share of what is left, and what it leaves goes to
    those after it. A chain ends early when a stage meets the stopping criteria, or when no method could go on. A point
    that has drifted off the constraint is polished before it is handed on, and the message says so. A resumed chain
    goes on in the stage that it had come to, whatever its limits are now.

    Args:
        run: `minimize` with the problem filled in: run(x0, method=..., max_time=..., callback=..., checkpoint=...).
        stages: At least one.
        x0: The start of the first.
        signature: The signs of J.
        samples: The number of terms of a finite sum, in which its evaluations are counted.
        limits: max_iterations, max_time, max_evaluations; None is no limit.
        callback: As in `minimize`; its rows count on through the stages.
        checkpoint: A folder; each stage keeps its own below it.
        ranks: The processes that run it together; the first of them reads the folder.
    """
    if not stages:
        raise ValueError(
            "method must be a name, a solver, or a list of at least one of these, got an empty list"
        )
    results: list[Result] = []
    note = ""
    with Interrupt(of_job=ranks is not None) as interrupt:
        interrupt.hold()  # between two stages: there are results to bring home
        for position, stage in enumerate(stages):
            done = _totals(results, samples)
            shares = {
                name: _share(name, limit, done[name], len(stages) - position)
                for name, limit in limits.items()
            }
            shares, method = stage.within(shares), stage.method
            name = method if isinstance(method, str) else getattr(method, "name", describe(method))
            folder = None if checkpoint is None else Path(checkpoint) / f"{position + 1}-{name}"
            over = folder is not None and _is_over(folder, position, ranks)
            if over:
                shares = dict.fromkeys(limits, 0)
            start = x0
            if results:
                start, note = _handed_over(results[-1], signature)
            counting_on = _counting_on(callback, done)
            result = run(start, method=method, callback=counting_on, checkpoint=folder, **shares)
            if result.status not in FINAL and _is_asked(interrupt, ranks):
                result = replace(
                    result, status=Status.INTERRUPTED, message=Status.INTERRUPTED.value
                )
            message = "it was over when the chain was resumed" if over else result.message
            results.append(replace(result, message=message + note))
            if result.status in FINAL:
                break
        return join(results)


def join(stages: Sequence[Result]) -> Result:
    """One record of several runs: the point of the last, the histories end to end, the counts added up."""
    last, before = stages[-1], _totals(stages[:-1])
    offsets = [_totals(stages[:at])["columns"] for at in range(len(stages))]
    history = {
        name: np.concatenate(
            [
                stage.history[name] + offset.get(name, 0.0)
                for stage, offset in zip(stages, offsets, strict=True)
            ]
        )
        for name in last.history
    }
    counts = {
        name: sum(stage.evaluations.as_dict()[name] for stage in stages)
        for name in Evaluations().as_dict()
    }
    return replace(
        last,
        iterations=last.iterations + before["max_iterations"],
        time=last.time + before["max_time"],
        evaluations=Evaluations(**counts),
        history=history,
        stages=tuple(stages),
    )


def _is_asked(interrupt: Interrupt, ranks: Ranks | None) -> bool:
    """Whether Ctrl-C was pressed, in one process or another, when no stage could take note of it any more."""
    return interrupt.requested() if ranks is None else ranks.largest([interrupt.requested()])[0] > 0


def _is_over(folder: Path, position: int, ranks: Ranks | None) -> bool:
    """Whether the stage of that folder has ended and the next has begun from its point: it must not move on then."""

    def found() -> bool:
        return (folder / FILE).exists() and any(folder.parent.glob(f"{position + 2}-*"))

    return found() if ranks is None else ranks.from_first(found)


def _handed_over(stage: Result, signature: Signature) -> tuple[Any, str]:
    """The point of a stage as a start: feasible, and a word if it had to be polished for that."""
    n, columns = stage.x.shape
    if n != columns or stage.residual <= FEASIBLE * n * unit_roundoff(to_tensor(stage.x, "x")):
        return stage.x, ""
    return polish(
        stage.x, signature
    ), f"; started from a polished point (residual {stage.residual:.1g})"


def _totals(stages: Sequence[Result], samples: int = 0) -> dict[str, Any]:
    """What the stages have used of each limit, and where the columns of the next begin.

    That is beyond the last row of a stage which a limit has cut short inside a step.
    """
    evaluations = [stage.evaluations for stage in stages]
    ends = [
        {"time": stage.time, "iteration": stage.iterations, **stage.evaluations.columns()}
        for stage in stages
    ]
    columns = {name: float(sum(end[name] for end in ends)) for name in ADDITIVE}
    return {
        "max_iterations": sum(stage.iterations for stage in stages),
        "max_time": sum(stage.time for stage in stages),
        "max_evaluations": sum(
            e.sample_gradient // samples if samples else e.gradient for e in evaluations
        ),
        "columns": columns,
    }


def _share(name: str, limit: float | None, used: float, stages_left: int) -> float | None:
    """An equal share of what is left; counts are rounded up."""
    if limit is None:
        return None
    left = max(limit - used, 0)
    return left / stages_left if name == "max_time" else -(-left // stages_left)


def _counting_on(
    callback: Callable[[Any, dict[str, float]], object] | None, done: dict[str, Any]
) -> Callable[[Any, dict[str, float]], object] | None:
    """The callback with rows that start where the stages before ended."""
    if callback is None:
        return None
    offsets = done["columns"]
    return lambda X, row: callback(
        X, {name: value + offsets.get(name, 0.0) for name, value in row.items()}
    )
