"""`minimize`: checks its arguments, prepares the problem and starts a run."""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from dataclasses import fields, replace
from inspect import signature as arguments_of
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._checkpoint import FILE
from jorth._distributed import naming_checkpoint, only_first
from jorth._inputs import ArrayLike, suggestion
from jorth.group.elements import check_feasible
from jorth.objectives import AbstractObjective, Quadratic
from jorth.objectives.base import hash_tensors
from jorth.signature import Signature
from jorth.solvers.automatic import Automatic, choose
from jorth.solvers.baselines.admm import ADMM
from jorth.solvers.baselines.parametrized import CSDM, Exponential
from jorth.solvers.baselines.umcm import UMCM
from jorth.solvers.batches import check_arguments as check_batch_arguments
from jorth.solvers.batches import minimize_batch
from jorth.solvers.jobcd.accelerated import AcceleratedGaussSeidel, AcceleratedJacobi
from jorth.solvers.jobcd.gauss_seidel import GaussSeidel
from jorth.solvers.jobcd.jacobi import Jacobi
from jorth.solvers.jobcd.variance_reduced import VarianceReduced
from jorth.solvers.loop.budget import CountedObjective, Interrupt, Limits
from jorth.solvers.loop.progress import ProgressLine
from jorth.solvers.loop.record import Result, drift
from jorth.solvers.loop.run import Callback, Run, Settings
from jorth.solvers.loop.scale import gradient_size
from jorth.solvers.loop.solver import AbstractSolver, Problem, as_objective
from jorth.solvers.loop.stopping import DEFAULT_TOLERANCE, Criterion, default_tolerance
from jorth.solvers.riemannian.conjugate_gradients import RiemannianCG
from jorth.solvers.riemannian.lbfgs import RiemannianLBFGS
from jorth.solvers.riemannian.newton import RiemannianNewton
from jorth.solvers.riemannian.steepest_descent import RiemannianSD

METHODS: dict[str, type[AbstractSolver]] = {
    solver.name: solver
    for solver in (
        Automatic,
        GaussSeidel,
        Jacobi,
        AcceleratedGaussSeidel,
        AcceleratedJacobi,
        VarianceReduced,
        UMCM,
        ADMM,
        CSDM,
        Exponential,
        RiemannianSD,
        RiemannianCG,
        RiemannianLBFGS,
        RiemannianNewton,
    )
}


# Many arguments, but all of them are independent keywords.
def minimize(
    objective: Any,
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
) -> Result:
    """Minimise f(X) over X^T J X = J (for thin x0: over X^T J X = x0^T J x0).

    Args:
        objective: A jorth objective, or a function of a tensor X that returns a scalar tensor
            and is differentiated by autograd.
        x0: The start, (n, n) J-orthogonal or thin (n, k); the identity when omitted. It is not
            changed.
        signature: The signs of J; may be omitted if the objective has them.
        method: "auto" chooses by what the objective says about itself, and ``result.method`` and
            the message say what it took. Others are "gs-jobcd", "j-jobcd", "accelerated-gs-jobcd",
            "accelerated-j-jobcd", "vr-j-jobcd", "umcm", "admm", "csdm", "exponential",
            "riemannian-sd", "riemannian-cg", "riemannian-lbfgs", "riemannian-newton", or a solver
            such as jorth.GaussSeidel(...). Another method goes on from ``x0=result.x``.
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
        stop: Further criteria from `jorth.stopping`, combined with | and &.
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
    """
    settings = Settings(
        limits=Limits(
            max_iterations=max_iterations, max_time=max_time, max_evaluations=max_evaluations
        ),
        gradient_tolerance=DEFAULT_TOLERANCE if gradient_tolerance is None else gradient_tolerance,
        stop=stop,
        seed=seed,
        callback=callback,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_interval=checkpoint_interval,
        on_unbounded=on_unbounded,
    )
    if isinstance(objective, Quadratic) and objective.batch:
        check_batch_arguments(
            method,
            f"objective {tuple(objective.A.shape)}",
            max_evaluations=max_evaluations,
            stop=stop,
            callback=callback,
            progress=progress,
            checkpoint=checkpoint,
            on_unbounded=None if on_unbounded == "stop" else on_unbounded,
            **options,
        )
        tolerance = gradient_tolerance
        if tolerance is None:
            tolerance = default_tolerance(objective.A)
        answers: Any = minimize_batch(objective, x0, signature, tolerance, settings.limits)
        return answers  # type: ignore[no-any-return]
    function = as_objective(objective)
    if isinstance(x0, Signature):
        raise TypeError(f"x0 must be a matrix, got {x0}; pass it by name: signature={x0}")
    agreed = _agreed_signature(signature, function)
    X = starting_point(x0, function, agreed)
    if gradient_tolerance is None:
        settings = replace(settings, gradient_tolerance=default_tolerance(X))
    numpy_out = not isinstance(x0, Tensor)
    if x0 is None:
        torch_data = not isinstance(objective, AbstractObjective) or objective.speaks_torch
        numpy_out = X.device.type == "cpu" and not torch_data
    result = _run(function, agreed, X, resolve(method, options), settings, numpy_out)
    if result.iterations:
        return result
    return _doubted(result, function, max(settings.gradient_tolerance, DEFAULT_TOLERANCE))


def resolve(method: Any, options: dict[str, Any]) -> AbstractSolver:
    """The solver that ``method`` and ``options`` describe."""
    if isinstance(method, AbstractSolver):
        if options:
            raise TypeError(f"options must be given to the solver itself, got {sorted(options)}")
        return method
    if not isinstance(method, str) or method not in METHODS:
        known = f"{', '.join(METHODS)}, or a solver"
        found = f"{_inputs.describe(method)}{suggestion(method, METHODS)}"
        if isinstance(method, type) and issubclass(method, AbstractSolver):
            found += f"; write {method.__name__}()"
        raise ValueError(f"method must be one of {known}, got {found}")
    own = option_names(METHODS[method])
    for name in options:
        if name in own:
            continue
        if method != Automatic.name:
            hint = suggestion(name, [*own, *_keywords()])
            has = f"it has {', '.join(own)}" if own else "it has none"
            raise TypeError(f"{method} has no option {name!r}{hint or f'; {has}'}")
        if not any(name in option_names(solver) for solver in METHODS.values()):
            raise TypeError(f"minimize has no argument {name!r}{suggestion(name, _keywords())}")
        raise TypeError(f'option {name!r} needs a method: method="auto" has no options')
    return METHODS[method](**options)


def option_names(solver: type[AbstractSolver]) -> list[str]:
    """The options of a method."""
    return [field.name for field in fields(solver)]  # type: ignore[arg-type]


def _keywords() -> list[str]:
    """The arguments of `minimize`, but for the options of methods."""
    return list(arguments_of(minimize).parameters)[:-1]


def starting_point(x0: Any, objective: AbstractObjective, signature: Signature) -> Tensor:
    """A new tensor to start from: a copy of x0, or the identity like the objective's data."""
    data = objective.data()
    n = signature.n
    rows, columns = objective.shape()
    _check_sizes(rows, objective, signature)
    if x0 is None:
        X = torch.eye(n, dtype=torch.float64)
        X = X if data is None else X.to(data)
    else:
        own = _inputs.to_tensor(x0, "x0") if data is None else _inputs.tensor_after(x0, "x0", data)
        X = own.detach().clone(memory_format=torch.contiguous_format)
    if X.ndim != 2 or X.shape[0] != n or not 1 <= X.shape[1] <= n:
        raise ValueError(
            f"x0 must have shape ({n}, k) with k from 1 to {n} for {signature}, "
            f"got {_inputs.describe(x0)}"
        )
    if columns not in (None, X.shape[1]):
        found = "the identity, as no x0 was given" if x0 is None else str(tuple(X.shape))
        raise ValueError(f"x0 must have the shape {(n, columns)} of the objective, got {found}")
    if data is not None:
        _inputs.check_alike(X, "x0", data, "the objective's data")
    _inputs.check_finite(X, "x0")
    if x0 is not None and X.shape[1] == n:
        explained = f" where rounding explains {drift(X):.1g}"
        remedy = "jorth.polish(x0, signature) finds the nearest J-orthogonal matrix"
        check_feasible(X, signature, "x0", limit=drift(X), remedy=f"{explained}; {remedy}")
    if not objective.defined_everywhere:
        objective.check_start(X)
    return X


def _check_sizes(rows: int | None, objective: AbstractObjective, signature: Signature) -> None:
    """Raise a ValueError unless the signature has as many signs as the objective has rows of X."""
    if rows not in (None, signature.n):
        wanted = f"{rows} signs (p + q = {rows}) for this {type(objective).__name__}"
        raise ValueError(f"signature must have {wanted}, got {signature} (p + q = {signature.n})")


def _agreed_signature(signature: Signature | None, objective: AbstractObjective) -> Signature:
    """The signature that was given, or the objective's; where both exist they must be equal."""
    known = objective.signature
    if signature is None:
        if known is None:
            rows = objective.shape()[0]
            wanted = "jorth.Signature(p, q)" + (f" with p + q = {rows}" if rows else "")
            expected = f"given, as the objective has none: signature={wanted}"
            raise ValueError(f"signature must be {expected}; got None")
        return known
    _inputs.check_signature(signature)
    if known is not None and known != signature:
        raise ValueError(f"signature must be the objective's, {known}, got {signature}")
    return signature


def _run(
    function: AbstractObjective,
    signature: Signature,
    X: Tensor,
    solver: AbstractSolver,
    settings: Settings,
    numpy_out: bool,
) -> Result:
    """Run one method from X."""
    ranks = function.ranks
    folder = settings.folder
    solver.check_start(function.samples, X)  # before anything is compiled
    bounded = function.bounded_below()
    note = ""
    if isinstance(solver, Automatic):
        solver, kind = choose(function, signature, X, bounded=bounded)
        note = f"; method {solver.name} chosen for {kind}"
    with ExitStack() as stack:
        if ranks is not None:
            stack.enter_context(naming_checkpoint(folder, FILE))
        interrupt = stack.enter_context(Interrupt(of_job=ranks is not None))
        line = None
        if settings.progress and only_first(ranks):
            line = stack.enter_context(ProgressLine(solver.name))
        problem = Problem(
            CountedObjective(function, settings.limits, interrupt.requested),
            signature,
            signature.vector(X),
            _inputs.generator(settings.seed),
            stop_unbounded=settings.on_unbounded == "stop",
            # with one sign only, the feasible set is compact
            bounded=bounded or signature.p == 0 or signature.q == 0,
        )
        run = Run(problem, solver, X, settings, numpy_out=numpy_out)
        if folder is not None:
            stack.callback(run.leave_folder)
            identity = _identity(function, signature, solver, X, settings)
            run.keep_in(folder, identity, settings.checkpoint_interval)
        result = run.solve(interrupt, line)
    return replace(result, message=result.message + note) if note else result


def _doubted(result: Result, objective: AbstractObjective, tolerance: float) -> Result:
    """Return the result; if the run ended at its start because that is critical, say so.

    There is no doubt if f is constant, or is a convex quadratic without a slope in any direction.
    """
    level = tolerance * result.gradient_scale
    ended_at_start = result.success and result.gradient_norm <= level
    if not ended_at_start or objective.constant or _is_least(result.x, objective, level):
        return result
    doubt = "the start is a critical point; jorth.hessian_check tells whether it is a minimum"
    return replace(result, message=f"{result.message}; {doubt}")


def _is_least(x: Any, objective: AbstractObjective, level: float) -> bool:
    """Check that no matrix at all has a lower f. Nothing is evaluated."""
    form = objective.quadratic()
    if form is None or not objective.bounded_below():
        return False
    X = _inputs.tensor_after(x, "x", form.A)
    form = form.like(X)
    slope = form.second_derivative(X)
    return gradient_size(X, slope if form.C is None else slope + form.C) <= level


def _identity(
    objective: AbstractObjective,
    signature: Signature,
    solver: AbstractSolver,
    X: Tensor,
    settings: Settings,
) -> dict[str, str]:
    """What must be the same for a run to continue from a checkpoint."""
    value, gradient = objective.value_and_gradient(X)
    return {
        "objective": objective.fingerprint(),
        "value at the start": repr(value.item()),
        "gradient at the start": hash_tensors("gradient", gradient.detach()),
        "start": f"{tuple(X.shape)} {X.dtype} {hash_tensors('start', X)}",
        "signature": repr(signature),
        "method": repr(solver),
        "seed": _describe_seed(settings.seed),
        "on_unbounded": settings.on_unbounded,
    }


def _describe_seed(seed: object) -> str:
    """A number as it is, or the kind of a generator and a hash of its state."""
    if not isinstance(seed, np.random.Generator):
        return str(seed)
    state = seed.bit_generator.state
    text = json.dumps(state, sort_keys=True, default=lambda part: np.asarray(part).tolist())
    return f"{state['bit_generator']} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
