"""Accelerated GS-JOBCD and J-JOBCD: sweeps in a frame, extrapolated by Anderson's method.

An iteration takes X to Y by a sweep of the plain method, always in the same order, and then to the
extrapolated point if f is lower there than at Y. On a quadratic f the sweep runs in the coordinates
of a `Frame`: first the J-eigenframe, in which sweeps are cheap, and near the solution a balanced
one, in which few of them are needed.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.arrays import check_auto, check_choice, check_theta, whole_number
from jorth.kernels import Majoriser, QuadraticRounds, tournament_rounds
from jorth.kernels.pairings import rounds_in_tournament
from jorth.plane import all_pairs, tournament
from jorth.plane.proximal import StepRule
from jorth.solvers.jobcd.anderson import Anderson, Matrix, moved_by, relative_move
from jorth.solvers.jobcd.diagonal_sweeps import DiagonalForm, DiagonalSweep, near_pairs
from jorth.solvers.jobcd.diagonalisation import trace_to_diagonalise
from jorth.solvers.jobcd.frame import Coordinates, Frame
from jorth.solvers.jobcd.gauss_seidel import GaussSeidel, GaussSeidelState
from jorth.solvers.jobcd.jacobi import Jacobi, JacobiState
from jorth.solvers.jobcd.majorised import (
    DOUBLINGS,
    compile_kernels,
    first_curvature,
    majorised_step,
)
from jorth.solvers.jobcd.quadratic_sweeps import (
    SIZES,
    BlockedSweep,
    PairwiseSweep,
    SweepForm,
    rows_of_a_block,
)
from jorth.solvers.loop.budget import all_finite
from jorth.solvers.loop.solver import AbstractSolver, Problem, State
from jorth.solvers.loop.status import StopRun
from jorth.storage.checkpoint import NOT_SAVED

IN_A_FRAME, OTHERWISE = 5, 10
"""The number of sweeps remembered."""
CHEAP_SWEEPS = 3
"""The sweeps of an iteration in the eigenframe, which together cost less than the rest of it."""
FIRST = 3
"""The iterations in the eigenframe before the balanced ones. A balanced frame of the start is of no
use for long; with 5 iterations, or 2 sweeps in each, runs take 0 to 15% longer."""
TOO_SMALL_FOR_THREADS = range(65, 800)
"""Sizes at which the products of NumPy take one thread. More of them gain little, and have to wait
for those of torch, which stay busy for a while after each call."""
MEASUREMENTS = 5
"""The steps on a general f along which the curvature is measured, before it is held."""


@dataclass
class Acceleration:
    """What an accelerated method remembers besides the state of the plain one."""

    anderson: Anderson = field(default_factory=Anderson)
    frame: Frame | None = None
    order: NDArray[np.int64] | None = None
    """The order of the rows in all sweeps."""
    measured: int = 0
    """How often the curvature along a step on a general f has been measured."""
    steepest: float = 0.0
    """The largest of these curvatures."""
    factor: float = 1.0
    """The factor on the curvatures of pairs that makes up for their interaction on a device."""


@dataclass
class AcceleratedSweepState(GaussSeidelState):
    """The state of `AcceleratedGaussSeidel`."""

    acceleration: Acceleration = field(default_factory=Acceleration)
    known: bool = field(default=False, metadata=NOT_SAVED)
    """Whether the two fields below are known."""
    framed: bool = field(default=False, metadata=NOT_SAVED)
    """Whether sweeps run in a frame."""
    pairs: NDArray[np.int64] | None = field(default=None, metadata=NOT_SAVED)
    """All pairs in the order of the sweeps; None if they go by blocks."""


@dataclass
class AcceleratedRoundsState(JacobiState):
    """The state of `AcceleratedJacobi`."""

    acceleration: Acceleration = field(default_factory=Acceleration)
    known: bool = field(default=False, metadata=NOT_SAVED)
    framed: bool = field(default=False, metadata=NOT_SAVED)
    pairs: NDArray[np.int64] | None = field(default=None, metadata=NOT_SAVED)
    rounds: QuadraticRounds | None = field(default=None, metadata=NOT_SAVED)
    """The rounds on a device."""
    rounds_of: Frame | None = field(default=None, metadata=NOT_SAVED)
    """The frame whose form they have."""


@dataclass(frozen=True, kw_only=True)
class Accelerated(AbstractSolver):
    """What both accelerated methods share."""

    components: Literal["start", "all"] = "start"
    theta: float | None = None
    curvature: float | Literal["auto"] = "auto"
    memory: int | None = None
    frame: Literal["auto", "balanced", "eigen", "none"] = "auto"

    def __post_init__(self) -> None:
        check_choice(self.components, "components", ("start", "all"))
        check_theta(self.theta)
        check_auto(self.curvature, "curvature")
        if self.memory is not None:
            whole_number(self.memory, "memory", 0)
        check_choice(self.frame, "frame", ("auto", "balanced", "eigen", "none"))

    def prepare(self) -> None:
        compile_kernels()
        self._compile_extrapolation()

    def prepare_for(self, problem: Problem, X: Tensor) -> None:
        if problem.objective.quadratic() is None:
            compile_kernels("majoriser")
        else:
            compile_kernels("trace", "quadratic", "diagonal")
        if len(X) >= min(SIZES):
            compile_kernels("block")
        self._compile_extrapolation()

    def _compile_extrapolation(self) -> None:
        with suppress(ImportError):  # on a device the solvers run without numba
            from jorth.solvers.jobcd import compiled_anderson

            compiled_anderson.compile_kernels()

    @abstractmethod
    def plain(self, side: Literal["left", "right"]) -> AbstractSolver:
        """The method that is accelerated, without a frame."""

    @abstractmethod
    def sweep(self, problem: Problem, state: Any, frame: Frame) -> Matrix:
        """Z after a sweep in the frame."""

    def step(self, problem: Problem, state: Any) -> None:
        if not state.known:
            state.trace = trace_to_diagonalise(problem, state.X, self.theta)
            state.framed = self._takes_frame(problem, state)
            state.known = True
        if state.trace is not None:
            self.plain("right").step(problem, state)
        elif state.framed:
            self._framed_step(problem, state)
        elif self._extrapolates(problem, state):
            self._extrapolated_step(problem, state)
        else:
            self.plain("left").step(problem, state)

    # -- a quadratic objective

    def _takes_frame(self, problem: Problem, state: State) -> bool:
        """Whether f is a quadratic form of a square X, and not concave with no end to the run."""
        form = problem.objective.quadratic()
        n, k = state.X.shape
        if form is None or n != k or n < 2:
            return False
        return problem.stop_unbounded or not SweepForm.of(form, "left", k).concave()

    def _framed_step(self, problem: Problem, state: Any) -> None:
        with _one_blas_thread() if len(state.X) in TOO_SMALL_FOR_THREADS else nullcontext():
            self._move_in_frame(problem, state)
        state.value, state.gradient = problem.objective.value_and_gradient(state.X)
        state.exact = True

    def _move_in_frame(self, problem: Problem, state: Any) -> None:
        own: Acceleration = state.acceleration
        frame = self._current_frame(problem, state)
        start = frame.Z
        end = self.sweep(problem, state, frame)
        if not state.unbounded:
            K = relative_move(end, start, self.signs(problem, end))
            memory = IN_A_FRAME if self.memory is None else self.memory
            step = own.anderson.propose(K, memory, problem.signature)
            if step is not None:
                beyond = moved_by(step, start)
                if frame.rise(end, beyond) < 0:
                    end = beyond
                else:
                    step = None
            frame.path += own.anderson.settle(step)
            frame.iterations += 1
        frame.Z = end
        _move_to_frame(state, frame)

    def _current_frame(self, problem: Problem, state: Any) -> Frame:
        """The frame, or a new one if it is time for that."""
        own: Acceleration = state.acceleration
        frame = own.frame
        if frame is not None and not self._renews(frame):
            return frame
        X = self.workplace(state.X) if frame is None else frame.point
        form = problem.objective.quadratic()
        assert form is not None
        here = Coordinates.of(form, X, self.signs(problem, X))
        own.frame = self._new_frame(here, first=frame is None)
        own.anderson.clear()
        return own.frame

    def _renews(self, frame: Frame) -> bool:
        """Whether another frame is to take the place of this one."""
        if frame.diagonal:
            return self.frame == "auto" and frame.iterations >= FIRST
        return self.frame != "none" and frame.outdated

    def _new_frame(self, here: Coordinates, *, first: bool) -> Frame:
        if self.frame == "none":
            return here.plain()
        found = None
        if first and self.frame != "balanced":
            found = here.eigen(shifts=self.frame == "eigen")
        return here.balanced() if found is None else found

    def workplace(self, X: Tensor) -> Matrix:
        """X as frames have it: in double precision on the CPU."""
        return X.double().cpu().numpy().copy()

    def signs(self, problem: Problem, X: Matrix) -> Matrix:
        """The signs of J like X."""
        if isinstance(X, Tensor):
            return problem.signature.vector(X)
        return problem.signature.signs.astype(np.float64)

    def sweep_rule(self, problem: Problem) -> StepRule:
        return StepRule(
            problem.weight(self.theta), self.components == "all", problem.ends_unbounded
        )

    # -- any other objective

    def _extrapolates(self, problem: Problem, state: State) -> bool:
        """Whether the steps on f are a fixed map of a square X, and f is not rough."""
        n, k = state.X.shape
        return self.memory != 0 and n == k > 1 and not problem.objective.objective.rough

    def sweep_on_gradients(self, problem: Problem, state: Any) -> None:
        """One step of the plain method, always in the same order."""
        self.plain("left").step(problem, state)

    def _extrapolated_step(self, problem: Problem, state: Any) -> None:
        anderson: Anderson = state.acceleration.anderson
        start = state.X.clone()
        self.sweep_on_gradients(problem, state)
        if state.unbounded or state.stalled:
            return
        K = relative_move(state.X, start, problem.signs)
        memory = OTHERWISE if self.memory is None else self.memory
        step = anderson.propose(K, memory, problem.signature)
        if step is not None:
            beyond = moved_by(step, start).contiguous()
            value, gradient = problem.objective.value_and_gradient(beyond)
            if all_finite(value, gradient) and value < state.value:
                state.move_to(beyond, value, gradient)
            else:
                step = None
        anderson.settle(step)


@dataclass(frozen=True, kw_only=True)
class AcceleratedGaussSeidel(Accelerated):
    """GS-JOBCD with acceleration. An iteration is a sweep of n (n - 1) / 2 pair updates, or three.

    On a quadratic objective (`Quadratic`, `Procrustes`) and a square X the exact sweeps run in a
    frame in which the planes hardly interact, and are extrapolated by Anderson's method; they run
    on the CPU. It needs a third to a fifteenth of the sweeps of `GaussSeidel`. On tr(X^T A X) it
    takes the right steps of the J-Jacobi method, which converge quadratically. On any other
    objective sweeps are extrapolated without a frame, at one more gradient each. The sweeps are the
    plain ones if X is thin, if the objective is rough, and if a run continues on a concave
    quadratic. f falls in every iteration by at least as much as a sweep lowers it.

    Args:
        components: "start" stays in the component of the start, "all" may leave it.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature.
        curvature: For objectives that are not quadratic; "auto" backtracks, a number is fixed.
        memory: The number of sweeps remembered; None takes 5 in a frame and 10 without. 0 does not
            extrapolate.
        frame: On a quadratic objective: "balanced" needs the fewest sweeps, and "eigen" has the
            cheapest ones, three per iteration, on the CPU. "auto" begins with three iterations of
            "eigen" if A is positive definite, and goes on with "balanced". If there is no
            eigenframe, or it would cost digits, a balanced one takes its place. "none" takes X as
            it is.
        block_size: For a quadratic objective: the rows of a block, as in `GaussSeidel`; 1 takes
            single pairs. "auto" uses blocks from n = 192 on.
    """

    block_size: int | Literal["auto"] = "auto"
    name = "accelerated-gs-jobcd"
    state_type = AcceleratedSweepState

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.block_size, str) and self.block_size == "auto"):
            whole_number(self.block_size, "block_size", 1, instead='"auto" or ')

    def plain(self, side: Literal["left", "right"]) -> GaussSeidel:
        order: Literal["sweep", "cyclic"] = "sweep" if side == "right" else "cyclic"
        return GaussSeidel(
            side=side,
            components=self.components,
            order=order,
            theta=self.theta,
            curvature=self.curvature,
        )

    def sweep(self, problem: Problem, state: AcceleratedSweepState, frame: Frame) -> Matrix:
        n = len(frame.Z)
        size = rows_of_a_block(n) if self.block_size == "auto" else self.block_size
        order = _fixed_order(problem, state.acceleration)
        if state.pairs is None and size == 1:
            state.pairs = order[all_pairs(n)]
        return _run_sweep(problem, state, frame, self.sweep_rule(problem), size)


@dataclass(frozen=True, kw_only=True)
class AcceleratedJacobi(Accelerated):
    """J-JOBCD with acceleration. An iteration is a tournament of all pairs.

    On a quadratic objective and a square X the rounds are exact, run in a frame in which the planes
    hardly interact, and are extrapolated by Anderson's method. On the CPU the pairs of a round are
    taken one after the other, by blocks of rows if n is large; on CUDA they are taken at once. On
    tr(X^T A X) it takes the right steps of the J-Jacobi method, which converge quadratically. On
    any other objective a tournament on the majoriser of one gradient is extrapolated without a
    frame, at one more gradient. The steps are those of `Jacobi` if X is thin, and if the objective
    is rough. f falls in every iteration by at least as much as the plain step lowers it.

    Args:
        components: "start" stays in the component of the start, "all" may leave it.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature.
        curvature: For objectives that are not quadratic; "auto" backtracks, a number is fixed.
        memory: The number of iterations remembered; None takes 5 in a frame and 10 without. 0 does
            not extrapolate.
        frame: On a quadratic objective: "balanced" needs the fewest sweeps, and "eigen" has the
            cheapest ones, three per iteration, on the CPU. "auto" begins with three iterations of
            "eigen" if A is positive definite, and goes on with "balanced". If there is no
            eigenframe, or it would cost digits, a balanced one takes its place. "none" takes X as
            it is.
    """

    name = "accelerated-j-jobcd"
    state_type = AcceleratedRoundsState

    def plain(self, side: Literal["left", "right"]) -> Jacobi:
        return Jacobi(
            side=side, components=self.components, theta=self.theta, curvature=self.curvature
        )

    def _extrapolates(self, problem: Problem, state: State) -> bool:
        """On a device a step is a single round, another one each time."""
        return state.X.device.type == "cpu" and super()._extrapolates(problem, state)

    def sweep_on_gradients(self, problem: Problem, state: AcceleratedRoundsState) -> None:
        """A tournament on the majoriser of one gradient.

        The curvature is measured along the first steps. After that it only rises, where f does not
        fall enough, because the map must stay as it is.
        """
        own = state.acceleration
        rounds = _tournament(len(state.X))
        majoriser = Majoriser(
            problem.signature, self.components == "all", problem.weight(self.theta)
        )
        propose = partial(majoriser.propose, state.X, state.gradient, rounds=rounds)
        estimate = first_curvature(problem, state, self.curvature)
        adaptive = self.curvature == "auto"
        measures = adaptive and own.measured < MEASUREMENTS
        floor = 0.0 if measures else estimate
        state.curvature = majorised_step(
            problem, state, propose, estimate,
            side="left", adaptive=adaptive, floor=floor, secant=measures,
        )  # fmt: skip
        if measures:
            own.measured += 1
            own.steepest = max(own.steepest, state.curvature)
            own.anderson.clear()
            if own.measured == MEASUREMENTS:
                state.curvature = own.steepest

    def sweep(self, problem: Problem, state: AcceleratedRoundsState, frame: Frame) -> Matrix:
        if isinstance(frame.Z, Tensor):
            return _run_rounds(problem, state, frame, self.sweep_rule(problem))
        n = len(frame.Z)
        size = rows_of_a_block(n)
        order = _fixed_order(problem, state.acceleration)
        if state.pairs is None and size == 1:
            state.pairs = order[_tournament(n).reshape(-1, 2)]
        return _run_sweep(problem, state, frame, self.sweep_rule(problem), size)

    def workplace(self, X: Tensor) -> Matrix:
        """X itself on a device, and in double precision on the CPU."""
        return super().workplace(X) if X.device.type == "cpu" else X.clone()


_tournament = lru_cache(maxsize=16)(tournament)


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _one_blas_thread() -> Any:
    """A context in which NumPy and SciPy compute with one thread."""
    return _blas().limit(limits=1)


def _fixed_order(problem: Problem, own: Acceleration) -> NDArray[np.int64]:
    """The order of the rows, drawn once: only a fixed map can be extrapolated."""
    if own.order is None:
        own.order = problem.rng.permutation(problem.signature.n)
    return own.order


def _move_to_frame(state: State, frame: Frame) -> None:
    """Move X to the point of the frame; f is not known there yet."""
    X = state.X
    if frame.W is None or isinstance(frame.W, Tensor) or X.dtype != torch.float64 or X.is_cuda:
        X.copy_(torch.as_tensor(frame.point))
    else:
        np.matmul(frame.W, frame.Z, out=X.numpy())
    state.exact = False


def _sweep_for(
    problem: Problem,
    state: AcceleratedSweepState | AcceleratedRoundsState,
    frame: Frame,
    rule: StepRule,
    size: int,
) -> BlockedSweep | PairwiseSweep | DiagonalSweep:
    """A sweep over the pairs, or by blocks of rows if there are none."""
    signs = problem.signature.signs
    Z = np.array(frame.Z, order="C")
    C = np.zeros((len(Z), 0)) if frame.C is None else np.ascontiguousarray(frame.C)
    if frame.diagonal:
        return DiagonalSweep(DiagonalForm(frame.A, C, frame.D), Z, signs, near_pairs(len(Z)), rule)
    form = SweepForm(np.ascontiguousarray(frame.A), C, frame.D)
    if state.pairs is None:
        return BlockedSweep(form, Z, signs, _fixed_order(problem, state.acceleration), size, rule)
    return PairwiseSweep(form, Z, signs, state.pairs, rule)


def _run_sweep(
    problem: Problem,
    state: AcceleratedSweepState | AcceleratedRoundsState,
    frame: Frame,
    rule: StepRule,
    size: int,
) -> Matrix:
    """Z after a sweep on the CPU, or after some cheap ones."""
    sweep = _sweep_for(problem, state, frame, rule, size)
    try:
        for _ in range(CHEAP_SWEEPS if frame.diagonal else 1):
            for done in sweep.run():
                problem.objective.count.pair_updates += done
                problem.objective.check_limits()
            if sweep.unbounded:
                break
    except StopRun:  # the part of the sweep that is done lowers f too
        frame.Z = sweep.rows()
        _move_to_frame(state, frame)
        raise
    state.unbounded = sweep.unbounded
    return sweep.rows()


def _run_rounds(
    problem: Problem, state: AcceleratedRoundsState, frame: Frame, rule: StepRule
) -> Matrix:
    """Z after a tournament on a device, where disjoint pairs move at once.

    Pairs interact where A is not diagonal. If f does not fall, their curvatures are multiplied by a
    larger factor.
    """
    own = state.acceleration
    n = len(frame.Z)
    rounds = _rounds_in(problem, state, frame, rule)
    partners = tournament_rounds(n, np.arange(rounds_in_tournament(n)))
    for _ in range(DOUBLINGS):
        problem.objective.check_limits()
        rounds.start(frame.Z)
        rounds.run(partners, own.factor)
        problem.objective.count.pair_updates += n * (n - 1) // 2
        state.unbounded = rule.stop_unbounded and bool(rounds.unbounded)
        if state.unbounded:
            break
        end = rounds.X.clone()
        if frame.rise(frame.Z, end) <= 0:
            own.factor = max(1.0, 0.8 * own.factor)
            return end
        own.factor *= 2
    return frame.Z


def _rounds_in(
    problem: Problem, state: AcceleratedRoundsState, frame: Frame, rule: StepRule
) -> QuadraticRounds:
    """The rounds in a frame; those of the last one get its form, and keep their graph."""
    if state.rounds is None:
        state.rounds = QuadraticRounds(
            frame.A.clone(),
            None if frame.C is None else frame.C.clone(),
            frame.D,
            torch.from_numpy(problem.signature.signs.copy()),
            all_components=rule.all_components,
            theta=rule.theta,
        )
    elif state.rounds_of is not frame:
        state.rounds.A.copy_(frame.A)
        if state.rounds.C is not None and frame.C is not None:
            state.rounds.C.copy_(frame.C)
    state.rounds_of = frame
    return state.rounds
