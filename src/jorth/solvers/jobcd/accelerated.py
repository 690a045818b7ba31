"""Accelerated GS-JOBCD and J-JOBCD: sweeps in a frame, extrapolated by Anderson's method.

An iteration takes X to Y by a sweep of the plain method, always in the same order, and then to the
extrapolated point if f is lower there than at Y. On a quadratic f the sweep runs in the coordinates
of a `Frame`, in which few sweeps are needed.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._checkpoint import NOT_SAVED
from jorth._inputs import check_auto, check_choice, check_theta, whole_number
from jorth.plane import all_pairs, tournament
from jorth.plane.rounds import Majoriser
from jorth.solvers.jobcd.anderson import Anderson, Matrix, moved_by, relative_move
from jorth.solvers.jobcd.diagonalisation import trace_to_diagonalise
from jorth.solvers.jobcd.frame import Frame, balanced_frame, plain_frame
from jorth.solvers.jobcd.gauss_seidel import GaussSeidel, GaussSeidelState
from jorth.solvers.jobcd.jacobi import Jacobi, JacobiState
from jorth.solvers.jobcd.majorised import compile_kernels, first_curvature, majorised_step
from jorth.solvers.jobcd.quadratic_sweeps import (
    SIZES,
    BlockedSweep,
    PairwiseSweep,
    StepRule,
    SweepForm,
    rows_of_a_block,
)
from jorth.solvers.problem import AbstractSolver, Problem, State, StopRun, all_finite

MEMORY_IN_A_FRAME, MEMORY_OTHERWISE = 5, 10
"""The number of sweeps remembered."""
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
    path: Literal["right", "framed", "extrapolated", "plain", ""] = field(
        default="", metadata=NOT_SAVED
    )
    """The kind of steps, which the first one chooses."""


@dataclass
class AcceleratedSweepState(GaussSeidelState):
    """The state of `AcceleratedGaussSeidel`."""

    acceleration: Acceleration = field(default_factory=Acceleration)


@dataclass
class AcceleratedRoundsState(JacobiState):
    """The state of `AcceleratedJacobi`."""

    acceleration: Acceleration = field(default_factory=Acceleration)


@dataclass(frozen=True, kw_only=True)
class Accelerated(AbstractSolver):
    """What both accelerated methods share."""

    components: Literal["start", "all"] = "start"
    theta: float | None = None
    curvature: float | Literal["auto"] = "auto"
    memory: int | None = None
    frame: Literal["balanced", "none"] = "balanced"

    def __post_init__(self) -> None:
        check_choice(self.components, "components", ("start", "all"))
        check_theta(self.theta)
        check_auto(self.curvature, "curvature")
        if self.memory is not None:
            whole_number(self.memory, "memory", 0)
        check_choice(self.frame, "frame", ("balanced", "none"))

    def prepare(self) -> None:
        compile_kernels()

    def prepare_for(self, problem: Problem, X: Tensor) -> None:
        if problem.objective.quadratic() is None:
            compile_kernels("majoriser")
        else:
            compile_kernels("trace", "quadratic")
        if len(X) >= min(SIZES):
            compile_kernels("block")

    @abstractmethod
    def plain(self, side: Literal["left", "right"]) -> AbstractSolver:
        """Return the method that is accelerated, without a frame."""

    @abstractmethod
    def pairs(self, n: int) -> NDArray[np.int64]:
        """Return all pairs (t, 2) in the order of a sweep by single pairs."""

    def rows_of_a_block(self, n: int) -> int:
        """Return the number of rows that a sweep in a frame treats together."""
        return rows_of_a_block(n)

    def restart(self, state: Any) -> None:
        state.acceleration.frame = None
        state.acceleration.anderson.clear()

    def step(self, problem: Problem, state: Any) -> None:
        path = state.acceleration.path = state.acceleration.path or self._path(problem, state)
        if path == "framed":
            self._framed_step(problem, state)
        elif path == "extrapolated":
            self._extrapolated_step(problem, state)
        else:
            self.plain("right" if path == "right" else "left").step(problem, state)

    def _path(
        self, problem: Problem, state: Any
    ) -> Literal["right", "framed", "extrapolated", "plain"]:
        """Choose the kind of steps: only a fixed map of a square X can be extrapolated."""
        state.trace = trace_to_diagonalise(problem, state.X, self.theta)
        if state.trace is not None:
            return "right"
        n, k = state.X.shape
        if n != k or n < 2:
            return "plain"
        form = problem.objective.quadratic()
        if form is not None:
            # a run that continues on a concave f never ends
            ends = problem.stop_unbounded or not SweepForm.of(form, "left", k).concave()
            return "framed" if ends else "plain"
        fixed_map = state.X.device.type == "cpu" and not problem.objective.objective.nonsmooth
        return "extrapolated" if fixed_map and self.memory != 0 else "plain"

    # -- a quadratic objective

    def _framed_step(self, problem: Problem, state: Any) -> None:
        own: Acceleration = state.acceleration
        frame = self._current_frame(problem, state)
        start = frame.Z
        frame.Z = self.sweep(problem, state, frame)
        if not state.unbounded:
            K = relative_move(frame.Z, start, problem.signature.signs.astype(np.float64))
            memory = MEMORY_IN_A_FRAME if self.memory is None else self.memory
            step = own.anderson.propose(K, memory, problem.signature)
            if step is not None:
                beyond = moved_by(step, start)
                if frame.rise(frame.Z, beyond) < 0:
                    frame.Z = beyond
                else:
                    step = None
            frame.path += own.anderson.settle(step)
            frame.iterations += 1
        _move_to_frame(state, frame)
        state.value, state.gradient = problem.objective.value_and_gradient(state.X)
        state.exact = True

    def _current_frame(self, problem: Problem, state: Any) -> Frame:
        """Return the frame, or a new one if it is time for that."""
        own: Acceleration = state.acceleration
        renewed = self.frame == "balanced" and own.frame is not None and own.frame.outdated
        if own.frame is not None and not renewed:
            return own.frame
        X = state.X.double().cpu().numpy().copy() if own.frame is None else own.frame.point
        form = problem.objective.quadratic()
        assert form is not None
        signs = problem.signature.signs.astype(np.float64)
        own.frame = plain_frame(form, X) if self.frame == "none" else balanced_frame(form, X, signs)
        own.anderson.clear()
        return own.frame

    def sweep(self, problem: Problem, state: Any, frame: Frame) -> Matrix:
        """Return Z after a sweep in the frame."""
        own: Acceleration = state.acceleration
        n = len(frame.Z)
        if own.order is None:
            own.order = problem.rng.permutation(n)
        form = SweepForm(frame.A, frame.C, frame.D)
        signs = problem.signature.signs
        rule = StepRule(
            problem.weight(self.theta), self.components == "all", problem.ends_unbounded
        )
        size = self.rows_of_a_block(n)
        sweep: BlockedSweep | PairwiseSweep
        if size > 1:
            sweep = BlockedSweep(form, frame.Z, signs, own.order, size, rule)
        else:
            sweep = PairwiseSweep(form, frame.Z.copy(), signs, own.order[self.pairs(n)], rule)
        try:
            for done in sweep.run():
                problem.objective.count.pair_updates += done
                problem.objective.check_limits()
        except StopRun:  # the part of the sweep that is done lowers f too
            frame.Z = sweep.rows()
            _move_to_frame(state, frame)
            raise
        state.unbounded = sweep.unbounded
        return sweep.rows()

    # -- any other objective

    def sweep_on_gradients(self, problem: Problem, state: Any) -> None:
        """Take one step of the plain method, always in the same order."""
        self.plain("left").step(problem, state)

    def _extrapolated_step(self, problem: Problem, state: Any) -> None:
        anderson: Anderson = state.acceleration.anderson
        start = state.X.double().numpy().copy()
        self.sweep_on_gradients(problem, state)
        if state.unbounded or state.stalled:
            return
        K = relative_move(state.X.double().numpy(), start, problem.signs.double().numpy())
        memory = MEMORY_OTHERWISE if self.memory is None else self.memory
        step = anderson.propose(K, memory, problem.signature)
        if step is not None:
            beyond = torch.from_numpy(moved_by(step, start)).to(state.X)
            value, gradient = problem.objective.value_and_gradient(beyond)
            if all_finite(value, gradient) and value < state.value:
                state.move_to(beyond, value, gradient)
            else:
                step = None
        anderson.settle(step)


@dataclass(frozen=True, kw_only=True)
class AcceleratedGaussSeidel(Accelerated):
    """GS-JOBCD with acceleration. An iteration is a sweep of n (n - 1) / 2 pair updates.

    On a quadratic objective (`Quadratic`, `Procrustes`) and a square X the exact sweeps run in a
    frame in which the planes hardly interact, and are extrapolated by Anderson's method, on the CPU
    and in double precision. It needs a fifth to a tenth of the sweeps of `GaussSeidel`. On
    tr(X^T A X) it takes the right steps of the J-Jacobi method, which converge quadratically. On
    any other objective sweeps are extrapolated without a frame, at one more gradient each. The
    sweeps are the plain ones if X is thin, if the objective is rough, and if a run continues on a
    concave quadratic. f falls in every iteration by at least as much as a sweep lowers it.

    Args:
        components: "start" stays in the component of the start, "all" may leave it.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature.
        curvature: For objectives that are not quadratic; "auto" backtracks, a number is fixed.
        memory: The number of sweeps remembered; None takes 5 in a frame and 10 without. 0 does not
            extrapolate.
        frame: On a quadratic objective: "balanced" needs the fewest sweeps, "none" takes X as it
            is.
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

    def pairs(self, n: int) -> NDArray[np.int64]:
        return all_pairs(n)

    def rows_of_a_block(self, n: int) -> int:
        return rows_of_a_block(n) if self.block_size == "auto" else self.block_size


@dataclass(frozen=True, kw_only=True)
class AcceleratedJacobi(Accelerated):
    """J-JOBCD with acceleration. An iteration is a tournament of all pairs.

    On a quadratic objective and a square X the pairs of a tournament are taken one after the other,
    as by `AcceleratedGaussSeidel`. On any other objective a tournament on the majoriser of one
    gradient is extrapolated without a frame, at one more gradient. The steps are those of `Jacobi`
    if X is thin, if the objective is rough, and on CUDA unless the objective is quadratic. f falls
    in every iteration by at least as much as the plain step lowers it.

    Args:
        components: "start" stays in the component of the start, "all" may leave it.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature.
        curvature: For objectives that are not quadratic; "auto" backtracks, a number is fixed.
        memory: The number of iterations remembered; None takes 5 in a frame and 10 without. 0 does
            not extrapolate.
        frame: On a quadratic objective: "balanced" needs the fewest sweeps, "none" takes X as it
            is.
    """

    name = "accelerated-j-jobcd"
    state_type = AcceleratedRoundsState

    def plain(self, side: Literal["left", "right"]) -> Jacobi:
        return Jacobi(
            side=side, components=self.components, theta=self.theta, curvature=self.curvature
        )

    def pairs(self, n: int) -> NDArray[np.int64]:
        return _tournament(n).reshape(-1, 2)

    def sweep_on_gradients(self, problem: Problem, state: AcceleratedRoundsState) -> None:
        """Take a tournament on the majoriser of one gradient.

        The curvature is measured along the first steps. After that it only rises, where f does not
        fall enough, because the map must stay as it is.
        """
        own = state.acceleration
        majoriser = Majoriser(
            problem.signature, self.components == "all", problem.weight(self.theta)
        )
        rounds = _tournament(len(state.X))
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


_tournament = lru_cache(maxsize=16)(tournament)


def _move_to_frame(state: State, frame: Frame) -> None:
    """Move X to the point of the frame; f is not known there yet."""
    state.X.copy_(torch.from_numpy(frame.point))
    state.exact = False
