"""`minimize`: its arguments, the methods by name, the one that "auto" takes, and the start."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayLike, describe, suggestion
from jorth.group.elements import check_feasible
from jorth.linalg.eigh import eigh
from jorth.objectives import AbstractObjective, Quadratic
from jorth.signature import Signature
from jorth.solvers.baselines.admm import ADMM
from jorth.solvers.baselines.csdm import CSDM, Exponential
from jorth.solvers.baselines.umcm import UMCM
from jorth.solvers.batch import BatchResult, minimize_batch
from jorth.solvers.checkpoint import CheckpointFolder, identity, resume
from jorth.solvers.jobcd.gauss_seidel import GaussSeidel
from jorth.solvers.jobcd.jacobi import Jacobi
from jorth.solvers.jobcd.variance_reduced import VarianceReduced
from jorth.solvers.loop import Callback, Interrupt, Run
from jorth.solvers.problem import (
    AbstractSolver,
    Clock,
    CountedObjective,
    Limits,
    Problem,
    agreed_signature,
    as_objective,
    point_of,
)
from jorth.solvers.result import History, Result, feasibility_limit
from jorth.solvers.riemannian.conjugate_gradients import RiemannianCG
from jorth.solvers.riemannian.lbfgs import RiemannianLBFGS
from jorth.solvers.riemannian.newton import Adaptive, RiemannianNewton
from jorth.solvers.riemannian.preconditioner import definite_form
from jorth.solvers.riemannian.steepest_descent import RiemannianSD
from jorth.solvers.stopping import Criterion, RelativeGradient, default_tolerance

Objective = AbstractObjective | Callable[[Tensor], Tensor]

MOST_ROWS_OF_NEWTON = 80
"""The most rows for which Newton's method is faster than L-BFGS with a preconditioner."""
MOST_ROWS_OF_PRODUCTS = 150
"""The most rows for which Newton's method is faster than L-BFGS on any other function."""
MOST_ROWS_TO_DIAGONALISE = 100
"""The most rows for which the J-Jacobi method is as fast as L-BFGS with a preconditioner."""


@dataclass(frozen=True)
class Automatic(AbstractSolver):
    """Stands for the method that `choose` finds, which `minimize` runs in its place."""

    name = "auto"

    def step(self, problem: Problem, state: Any) -> None:
        raise NotImplementedError("auto stands for another method")


METHODS: dict[str, type[AbstractSolver]] = {
    solver.name: solver
    for solver in (
        *(Automatic, GaussSeidel, Jacobi, VarianceReduced, UMCM, ADMM, CSDM, Exponential),
        *(RiemannianSD, RiemannianCG, RiemannianLBFGS, RiemannianNewton),
    )
}

NEWTON, LBFGS, ADAPTIVE = RiemannianNewton(), RiemannianLBFGS(), Adaptive()
SWEEPS = GaussSeidel()
PAIRS, RIGHT_PAIRS, SAMPLED_PAIRS = Jacobi(), Jacobi(side="right"), VarianceReduced()


@overload
def minimize(objective: Quadratic, x0: Any = None, **arguments: Any) -> Result | BatchResult: ...


@overload
def minimize(objective: Objective, x0: Any = None, **arguments: Any) -> Result: ...


# Many arguments, but all of them are independent keywords.
def minimize(
    objective: Objective,
    x0: ArrayLike | None = None,
    *,
    signature: Signature | None = None,
    method: str | AbstractSolver = "auto",
    max_iterations: int | None = None,
    max_time: float | None = None,
    max_evaluations: int | None = None,
    gradient_tolerance: float | None = None,
    stop: Criterion | None = None,
    seed: int | np.random.Generator = 0,
    callback: Callback | None = None,
    progress: bool = False,
    checkpoint: str | Path | None = None,
    checkpoint_interval: float = 10.0,
    on_unbounded: Literal["stop", "continue"] = "stop",
    **options: Any,
) -> Result | BatchResult:
    """Minimise f(X) over X^T J X = J (for thin x0: over X^T J X = x0^T J x0).

    Args:
        objective: A jorth objective, or a function of a tensor X that returns a scalar tensor
            and is differentiated by autograd.
        x0: The start, (n, n) J-orthogonal or thin (n, k); the identity when omitted, but for a
            trace by "auto" the answer of `jorth.eigh`. It is not changed.
        signature: The signs of J; may be omitted if the objective has them.
        method: "auto" chooses by what the objective says about itself, and ``result.method`` and
            the message say what it took. Others are "gs-jobcd", "j-jobcd", "vr-j-jobcd", "umcm",
            "admm", "csdm", "exponential", "riemannian-sd", "riemannian-cg", "riemannian-lbfgs",
            "riemannian-newton", or a solver such as jorth.GaussSeidel(...). Another method goes on
            from ``x0=result.x``.
        max_iterations: Sweeps for Gauss-Seidel, gradient steps for all others.
        max_time: Seconds of solving, over all resumptions; recording, callbacks and checkpoints do
            not count.
        max_evaluations: Gradients; for finite sums the equivalent in samples. One more may be
            needed to score the point that is returned.
        gradient_tolerance: Stop when ||skew(J G X^T)||_F is at most this part of the scale of the
            gradient, see `jorth.stopping.RelativeGradient`: f and c f, or data and c times the
            data, take the same iterations. 1e-7 when omitted, and u^(2/3) = 1.5e-5 in single
            precision. For an absolute number give 0 here and
            ``stop=jorth.stopping.GradientNorm(...)``.
        stop: Further criteria from `jorth.stopping`, combined with |.
        seed: The seed for everything random: a number or a NumPy generator.
        callback: Called with X and the row of the history after every recorded iteration; if it
            returns something true, the run stops with the status INTERRUPTED.
        progress: Show a line on the terminal.
        checkpoint: A folder. A run that finds its own checkpoint there continues from it. If a
            checkpoint cannot be written, there is a warning and the run continues.
        checkpoint_interval: Seconds between two checkpoints; 0 saves every iteration.
        on_unbounded: "stop" returns UNBOUNDED or NOT_ATTAINED with the last finite point;
            "continue" skips such pairs, and goes on while most boosts keep the digits of X.
        **options: Options of the method, if it is given by name.

    Returns:
        A `Result`. The run ends when a criterion is met, a limit is reached, the method stalls, the
        problem is unbounded, a value is not finite, Ctrl-C is pressed or the callback asks for it.
        In every case x is the last complete point.

        For a `Quadratic` of many problems, a `jorth.BatchResult`: Newton's method solves all of
        them at once, each from the identity or from x0, (n, n) or (B, n, n). max_time is for all of
        them together, max_iterations for each, 1000 when omitted; callback, checkpoint, progress,
        stop, max_evaluations and on_unbounded are not for them.

    Raises:
        jorth.CheckpointMismatch: The folder holds the checkpoint of a run with another problem,
            method, start or seed.
        ValueError: The checkpoint is damaged, or an argument is wrong.

    >>> sig = jorth.Signature(2, 1)
    >>> x0 = jorth.random_point(sig)
    >>> result = jorth.minimize(lambda X: X.square().sum(), x0, signature=sig)
    >>> round(result.value, 6)
    3.0
    """
    limits = Limits(
        max_iterations=max_iterations, max_time=max_time, max_evaluations=max_evaluations
    )
    if gradient_tolerance is not None:
        _inputs.check_number(gradient_tolerance, "gradient_tolerance", 0)
    folder = None
    if checkpoint is not None:
        folder = Path(_inputs.file_path(checkpoint, "checkpoint"))
        _inputs.check_number(checkpoint_interval, "checkpoint_interval", 0)
    _inputs.check_seed(seed)
    if on_unbounded != "stop":
        _inputs.check_choice(on_unbounded, "on_unbounded", ("stop", "continue"))
    if progress is not False:
        _inputs.check_flag(progress, "progress")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function, got {describe(callback)}")
    if stop is not None and not isinstance(stop, Criterion):
        raise TypeError(f"stop must be a criterion from jorth.stopping, got {describe(stop)}")

    # what is minimised, from where, and by which method
    if isinstance(objective, Quadratic) and objective.batch:
        signature = agreed_signature(signature, objective)
        given = options | dict(
            max_evaluations=max_evaluations, stop=stop, callback=callback, progress=progress,
            checkpoint=checkpoint, on_unbounded=on_unbounded == "continue",
        )  # fmt: skip
        _check_batch(method, f"a batch (objective {tuple(objective.A.shape)})", given)
        return minimize_batch(objective, x0, signature, gradient_tolerance, limits)
    function = as_objective(objective)
    signature = agreed_signature(signature, function)
    X = starting_point(x0, function, signature)
    solver, frame = resolve(method, options), None
    if x0 is None and isinstance(solver, Automatic):
        frame = _eigenframe(function, signature, X, limits.clock)
    bounded = frame is not None or function.bounded_below()
    if frame is not None:
        X, solver, kind = frame, RIGHT_PAIRS, "a trace, from where jorth.eigh, the direct way, ends"
    elif isinstance(solver, Automatic):
        solver, kind = choose(function, signature, X, bounded=bounded)
    else:
        kind = ""
        solver.check_start(function.samples, X)  # before anything is compiled
    numpy_out = not isinstance(x0, Tensor)
    if x0 is None:
        torch_data = not isinstance(objective, AbstractObjective) or objective.speaks_torch
        numpy_out = X.device.type == "cpu" and not torch_data

    # what ends the run
    tolerance = default_tolerance(X) if gradient_tolerance is None else gradient_tolerance
    criteria = (RelativeGradient(tolerance), *(() if stop is None else stop.parts))
    ranks = function.ranks
    is_first = ranks is None or ranks.first  # which writes files and shows progress
    interrupt = limits.interrupt = Interrupt(of_job=ranks is not None)
    problem = Problem(
        CountedObjective(function, limits),
        signature,
        signature.vector(X),
        seed,
        stop_unbounded=on_unbounded == "stop",
        # with one sign only, the feasible set is compact
        bounded=bounded or signature.p == 0 or signature.q == 0,
    )
    try:
        if frame is None:  # else no step is left to take
            solver.prepare_for(problem, X)  # compilation may take some seconds
    except KeyboardInterrupt:
        interrupt.signalled = True

    history = History(problem, X, feasible=solver.feasible)
    run = Run(problem, solver, X, history, criteria, interrupt, numpy_out, callback)
    run.all_components = getattr(solver, "components", "start") == "all"
    with ExitStack() as stack:
        stack.enter_context(interrupt)
        if progress and is_first:
            from rich.console import Console

            run.progress = stack.enter_context(Console(stderr=True).status(solver.name))
        if folder is not None:
            store = CheckpointFolder(folder, identity(run, seed), checkpoint_interval)
            content = store.load() if ranks is None else ranks.from_first(store.load)
            run.checkpoint = store if is_first else None
            if content is not None:
                resume(run, content, folder)
        result = run.solve()
    if not kind:
        return result
    reason = f"; method {solver.name} chosen for {kind}"
    if run.state is not None:
        reason += "".join(f", then {switch}" for switch in solver.taken(run.state)[1:] if switch)
    return replace(result, message=result.message + reason)


# -- the method


def resolve(method: Any, options: dict[str, Any]) -> AbstractSolver:
    """Return the solver that ``method`` and ``options`` describe."""
    if isinstance(method, AbstractSolver):
        if options:
            raise TypeError(f"options must be given to the solver itself, got {sorted(options)}")
        return method
    if not isinstance(method, str) or method not in METHODS:
        known = f"{', '.join(METHODS)}, or a solver"
        found = f"{describe(method)}{suggestion(method, METHODS)}"
        if isinstance(method, type) and issubclass(method, AbstractSolver):
            found += f"; write {method.__name__}()"
        raise ValueError(f"method must be one of {known}, got {found}")
    if options:
        own = [field.name for field in fields(METHODS[method])]  # type: ignore[arg-type]
        wrong = [name for name in options if name not in own]
        having = f"it has {', '.join(own)}" if own else "give a method that has it"
        if wrong:
            raise TypeError(f"method {method!r} has no option {wrong[0]!r}; {having}")
    return METHODS[method](**options)


def choose(
    objective: AbstractObjective, signature: Signature, X: Tensor, *, bounded: bool
) -> tuple[AbstractSolver, str]:
    """Return the method from X and the kind of objective, by the time to a relative gap of 1e-8.

    A quadratic that is ``bounded`` below over all matrices is convex.
    """
    form, n = objective.quadratic(), signature.n
    if objective.nonsmooth:
        return SAMPLED_PAIRS if objective.samples else PAIRS, "a rough function"
    if form is None:
        kind = "a mean over samples" if objective.samples else "a smooth function"
        return (ADAPTIVE if n <= MOST_ROWS_OF_PRODUCTS and objective.keeps_graphs else LBFGS), kind
    on_cpu = X.device.type == "cpu"
    in_double = on_cpu and X.dtype == torch.float64
    of_trace = form.C is None and on_cpu and (n <= MOST_ROWS_TO_DIAGONALISE or not bounded)
    compact = signature.p == 0 or signature.q == 0
    falls = not (bounded or compact or definite_form(form, signature))
    table = (
        # exact plane steps see at once where f falls for ever
        (falls, SWEEPS, "a quadratic not known to be bounded below"),
        (X.shape[1] < n, NEWTON, "a quadratic in a thin X"),
        (form.D is not None, NEWTON, "a quadratic with D"),
        (of_trace, RIGHT_PAIRS, "a trace, which right steps diagonalise"),
        (bounded and in_double and n <= MOST_ROWS_OF_NEWTON, NEWTON, "a convex quadratic"),
        (bounded, LBFGS, "a convex quadratic"),
    )
    for fits, solver, kind in table:
        if fits:
            return solver, kind
    return NEWTON, "a quadratic that is bounded on the feasible set"


def _eigenframe(
    objective: AbstractObjective, signature: Signature, X: Tensor, clock: Clock
) -> Tensor | None:
    """Return where tr(X^T A X) is least in the component of I, if f is that; see `jorth.eigh`."""
    form = objective.quadratic()
    if form is None or form.C is not None or form.D is not None or X.device.type != "cpu":
        return None
    clock.start()
    try:
        values, frame = eigh(form.A.detach().double().numpy(), signature)
    except (ValueError, RuntimeError):  # A - mu J is definite for no mu
        return None
    finally:
        clock.pause()
    at = [block for block in (signature.positive, signature.negative) if len(block)]
    if len(at) == 2 and values[at[0]].min() < values[at[1]].max():  # A - mu J is negative
        return None
    for block in at:
        if np.linalg.slogdet(frame[block[:, None], block])[0] < 0:
            frame[:, block[0]] *= -1
    return torch.from_numpy(frame).to(X)


# -- the start


def starting_point(x0: Any, objective: AbstractObjective, signature: Signature) -> Tensor:
    """Return a new tensor to start from: a copy of x0, or the identity like the data."""
    if isinstance(x0, Signature):
        raise TypeError(f"x0 must be a matrix, got {x0}; pass it by name: signature={x0}")
    n, data = signature.n, objective.data()
    if x0 is None:
        columns = objective.shape()[1]
        if columns not in (None, n):
            raise ValueError(f"x0 must be given for X of shape ({n}, {columns}), got None")
        X = torch.eye(n, dtype=torch.float64)
        X = X if data is None else X.to(data)
    else:
        X = point_of(x0, "x0", objective, signature)
        X = X.clone(memory_format=torch.contiguous_format)
        if X.shape[1] == n:
            limit = feasibility_limit(X)
            explained = f" where rounding explains {limit:.1g}"
            remedy = "jorth.polish(x0, signature) finds the nearest J-orthogonal matrix"
            check_feasible(X, signature, "x0", limit=limit, remedy=f"{explained}; {remedy}")
    if not objective.defined_everywhere:
        objective.check_start(X)
    return X


def _check_batch(method: Any, batch: str, given: dict[str, Any]) -> None:
    """Raise an error for a method or an option that makes no sense for a batch."""
    by_name = isinstance(method, str) and method in ("auto", RiemannianNewton.name)
    if not by_name and not isinstance(method, RiemannianNewton):
        wanted = f'"auto" or "{RiemannianNewton.name}" for {batch}'
        raise ValueError(f"method must be {wanted}, got {describe(method)}")
    for name, value in given.items():
        if value is not None and value is not False:
            raise ValueError(f"{name} must be omitted for {batch}, got {describe(value)}")
