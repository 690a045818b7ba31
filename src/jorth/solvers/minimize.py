"""`minimize`: the front door. It makes the problem ready and hands it to a run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from jorth.arrays import (
    check_choice,
    check_flag,
    check_number,
    describe,
    generator,
    shown,
    whole_number,
)
from jorth.clock import Clock
from jorth.objectives import AbstractObjective
from jorth.objectives.base import hash_tensors
from jorth.ranks import naming_checkpoint, only_first
from jorth.signature import Signature
from jorth.solvers.baselines.admm import ADMM
from jorth.solvers.baselines.parametrized import CSDM, Exponential
from jorth.solvers.baselines.umcm import UMCM
from jorth.solvers.jobcd.gauss_seidel import GaussSeidel
from jorth.solvers.jobcd.jacobi import Jacobi
from jorth.solvers.jobcd.variance_reduced import VarianceReduced
from jorth.solvers.loop.budget import CountedObjective
from jorth.solvers.loop.chain import Stage, run_chain
from jorth.solvers.loop.interrupt import Interrupt
from jorth.solvers.loop.problem import (
    Problem,
    agreed_signature,
    as_objective,
    is_bounded,
    starting_point,
)
from jorth.solvers.loop.progress import ProgressLine
from jorth.solvers.loop.result import Result
from jorth.solvers.loop.run import Run
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.stopping import Criterion, GradientNorm, MaxIterations
from jorth.solvers.riemannian.conjugate_gradients import RiemannianCG
from jorth.solvers.riemannian.lbfgs import RiemannianLBFGS
from jorth.solvers.riemannian.steepest_descent import RiemannianSD
from jorth.storage.checkpoint import FILE

METHODS: dict[str, type[AbstractSolver]] = {
    solver.name: solver
    for solver in (
        GaussSeidel,
        Jacobi,
        VarianceReduced,
        UMCM,
        ADMM,
        CSDM,
        Exponential,
        RiemannianSD,
        RiemannianCG,
        RiemannianLBFGS,
    )
}


def minimize(
    objective: Any,
    x0: Any = None,
    *,
    signature: Signature | None = None,
    method: str | AbstractSolver | Sequence[str | AbstractSolver | Stage] = "gs-jobcd",
    max_iterations: int | None = None,
    max_time: float | None = None,
    max_evaluations: int | None = None,
    gradient_tolerance: float = 1e-6,
    stop: Criterion | None = None,
    seed: int | np.random.Generator = 0,
    callback: Callable[[Any, dict[str, float]], object] | None = None,
    progress: bool = False,
    checkpoint: str | Path | None = None,
    checkpoint_interval: float = 10.0,
    on_unbounded: Literal["stop", "continue"] = "stop",
    **options: Any,
) -> Result:
    """Minimise f(X) over X^T J X = J (for thin x0: over X^T J X = x0^T J x0).

    Args:
        objective: A jorth objective, or a function of a tensor X that returns a scalar tensor (autograd).
        x0: The start, (n, n) J-orthogonal or thin (n, k); the identity when omitted. It is not changed.
        signature: The signs of J; may be omitted where the objective has them.
        method: "gs-jobcd", "j-jobcd", "vr-j-jobcd", "umcm", "admm", "csdm", "exponential", "riemannian-sd",
            "riemannian-cg", "riemannian-lbfgs", or a solver: jorth.GaussSeidel(...), ... A list runs one after the
            other, each from the point of the one before; limits are then for the chain, in equal shares. A `Stage` in
            it has limits of its own.
        max_iterations: Sweeps for Gauss-Seidel, gradient steps for all others.
        max_time: Seconds of solving; recording, callbacks and checkpoints do not count. A resumed run adds up.
        max_evaluations: Gradients; for finite sums the equivalent in samples. The point that is returned is scored
            besides, where it has not been: one more.
        gradient_tolerance: Stop when ||skew(J G X^T)||_F is at most this.
        stop: Further criteria from `jorth.stopping`, combined with | and &.
        seed: Of everything random: a number, or a NumPy generator.
        callback: Called with X and the row of the history after every recorded iteration; a true answer stops the run
            (status INTERRUPTED).
        progress: Show a line on the terminal.
        checkpoint: A folder. A run that finds its own checkpoint there goes on from it. Where it cannot be written any
            more there is a warning, and the run goes on.
        checkpoint_interval: Seconds between two of them; 0 saves every iteration.
        on_unbounded: "stop" returns UNBOUNDED with the last finite point; "continue" skips such pairs and goes on.
        **options: Of the method, when it is given by name.

    Returns:
        A `Result`. The run ends with the first of: a criterion met, a limit reached, a method that gets no
        further, an unbounded problem, a value that is not finite, Ctrl-C, a callback that asks for it. In every case
        x is the last complete point.

    Raises:
        jorth.CheckpointMismatch: The checkpoint in the folder is of another problem, method, start or seed.
        ValueError: It is damaged (or an argument is wrong).
    """
    check_choice(on_unbounded, "on_unbounded", ("stop", "continue"))
    _check_limits(
        max_iterations, max_time, max_evaluations, gradient_tolerance, checkpoint_interval
    )
    check_flag(progress, "progress")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function, got {describe(callback)}")
    if checkpoint is not None and not isinstance(checkpoint, (str, os.PathLike)):
        raise TypeError(f"checkpoint must be a path, got {describe(checkpoint)}")
    if stop is not None and not isinstance(stop, Criterion):
        raise TypeError(f"stop must be a criterion from jorth.stopping, got {describe(stop)}")
    function = as_objective(objective)
    agreed = agreed_signature(signature, function)
    X = starting_point(x0, function, agreed)
    if isinstance(method, (list, tuple)):
        stages = _stages(method, options, function.samples, X)
        common = dict(
            gradient_tolerance=gradient_tolerance, stop=stop, seed=seed, progress=progress
        )
        stage = partial(minimize, objective, signature=agreed, on_unbounded=on_unbounded, **common)  # type: ignore[arg-type]
        return run_chain(
            partial(stage, checkpoint_interval=checkpoint_interval),
            stages,
            x0,
            signature=agreed,
            samples=function.samples,
            limits=dict(
                max_iterations=max_iterations, max_time=max_time, max_evaluations=max_evaluations
            ),
            callback=callback,
            checkpoint=checkpoint,
            ranks=function.ranks,
        )
    solver = resolve(method, options)
    criterion = _criterion(gradient_tolerance, stop, max_iterations)
    numpy_out = isinstance(x0, np.ndarray) or (
        x0 is None and X.device.type == "cpu" and not _torch_data(objective)
    )
    folder, ranks = None if checkpoint is None else Path(checkpoint), function.ranks
    line = ProgressLine(progress and only_first(ranks), solver.name)
    with naming_checkpoint(folder, FILE), Interrupt(of_job=ranks is not None) as interrupt, line:
        counted = CountedObjective(
            function,
            Clock(),
            max_time=max_time,
            max_evaluations=max_evaluations,
            interrupted=interrupt.requested,
        )
        problem = Problem(
            counted,
            agreed,
            agreed.vector(X),
            generator(seed),
            stop_unbounded=on_unbounded == "stop",
            bounded=is_bounded(function, agreed),
        )
        run = Run(problem, solver, X, criterion, callback, numpy_out)
        if folder is not None:
            run.keep(folder, _identity(problem, solver, X, seed), checkpoint_interval)
        return run.go(line, interrupt)


def _criterion(
    gradient_tolerance: float, stop: Criterion | None, max_iterations: int | None
) -> Criterion:
    """All that may end the run after an iteration."""
    criterion: Criterion = GradientNorm(gradient_tolerance)
    if stop is not None:
        criterion = criterion | stop
    return criterion if max_iterations is None else criterion | MaxIterations(max_iterations)


def resolve(method: Any, options: dict[str, Any]) -> AbstractSolver:
    """The solver that ``method`` and ``options`` describe."""
    if isinstance(method, AbstractSolver):
        if options:
            raise TypeError(
                f"options must be given to the solver itself, got {sorted(options)} beside an instance"
            )
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(
            f"method must be one of {', '.join(METHODS)}, a solver, or a list of these, got {shown(method)}"
        )
    own = [field.name for field in fields(METHODS[method])]  # type: ignore[arg-type]
    for name in options:
        if name not in own:
            raise TypeError(f"{method} has no option {name!r}; it has {', '.join(own)}")
    return METHODS[method](**options)


def _stages(
    methods: Sequence[Any], options: dict[str, Any], samples: int, X: Tensor
) -> list[Stage]:
    """The stages of a chain; all errors before any work is done."""
    if options:
        raise TypeError(
            f"options must be given to the solvers themselves, got {sorted(options)} beside a list"
        )
    stages = [method if isinstance(method, Stage) else Stage(method) for method in methods]
    for stage in stages:
        resolve(stage.method, {}).check_start(samples, X)
        _check_limits(stage.max_iterations, stage.max_time, stage.max_evaluations)
    return stages


def _check_limits(
    max_iterations: int | None,
    max_time: float | None,
    max_evaluations: int | None,
    gradient_tolerance: float = 0.0,
    checkpoint_interval: float = 0.0,
) -> None:
    for name, count in (("max_iterations", max_iterations), ("max_evaluations", max_evaluations)):
        if count is not None:
            whole_number(count, name, 0)
    for name, number in (
        ("max_time", 0.0 if max_time is None else max_time),
        ("gradient_tolerance", gradient_tolerance),
        ("checkpoint_interval", checkpoint_interval),
    ):
        check_number(number, name, 0)


def _torch_data(objective: Any) -> bool:
    """Whether the caller's objective lives in torch: then x comes back as a tensor."""
    return not isinstance(objective, AbstractObjective) or objective.speaks_torch


def _identity(problem: Problem, solver: AbstractSolver, X: Tensor, seed: object) -> dict[str, str]:
    """By what a checkpoint knows its problem."""
    objective = problem.objective.objective
    start = hashlib.sha256(X.detach().cpu().numpy().tobytes()).hexdigest()[:16]
    value, gradient = objective.value_and_gradient(X)
    return {
        "objective": objective.fingerprint(),
        "value at the start": repr(value.item()),
        "gradient at the start": hash_tensors("gradient", gradient.detach()),
        "start": f"{tuple(X.shape)} {X.dtype} {start}",
        "signature": repr(problem.signature),
        "method": repr(solver),
        "seed": _seed_in_words(seed),
        "on_unbounded": "stop" if problem.stop_unbounded else "continue",
    }


def _seed_in_words(seed: object) -> str:
    """A number as it is; a generator by its kind and the state that it is in."""
    if not isinstance(seed, np.random.Generator):
        return str(seed)
    state = repr(sorted(_flat(seed.bit_generator.state)))
    return f"{seed.bit_generator.state['bit_generator']} {hashlib.sha256(state.encode()).hexdigest()[:16]}"


def _flat(state: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers of the state of a generator, under the names that lead to them."""
    for name, value in state.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", np.asarray(value).tolist()
