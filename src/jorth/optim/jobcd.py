"""JOBCD as a torch optimiser: the whole step, from gradients to new matrices, top to bottom.

`angle_step` is the step by default: pairs, slopes, averages, gains, angles, plane rotations, norm,
drift. `majoriser_step` is the paper's. `_step_numba` and `_step_triton` take the angle step on the
CPU and, for small matrices, on CUDA.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._compile import _disable_dynamo
from torch.optim import Optimizer

from jorth import _inputs
from jorth._inputs import FLOATS, describe
from jorth._triton import runs_triton
from jorth.group.elements import check_feasible, column_signs, finite_thin
from jorth.group.gradient import skew_gradient
from jorth.plane.pairs import random_matching, tournament, upload
from jorth.plane.rounds import Majoriser
from jorth.signature import Signature

FIRST_GAIN = 0.3
"""A run begins with less than its angle, while directions are those of one or two gradients."""
EARLY_GROWTH = 4.0
"""So many times the usual growth is added to that of a small gain while slopes agree."""
LARGEST_GAIN = 100.0
"""Gains stay between this and its inverse."""
BOOST_REACH = 0.25
"""The rapidity of a row's boost, all its planes together, over the angle of a rotation.

Rotations keep norms; boosts that follow noise carry X outwards, the faster the more planes there
are: Brownian motion in H^n drifts by (n - 1) / 2 per unit of time.
"""
LARGEST_GROWTH = 10.0
"""The most by which a single gradient multiplies a mean square."""
LARGEST_ANGLE = 0.5
"""The largest angle of a plane in one step; the compiled steps have series for angles up to 1."""
DRIFT = 8.0
"""A Newton step is due at ||X^T J X - J||_F = `DRIFT` u ||X||_F^2, where one rounding causes 2."""
NEWTON_RADIUS = 0.5
"""||J X^T J X - I||_F up to which a Newton step makes it less than half; due at half of that."""
SHUFFLES = 64
"""Tournaments after which they recur, so that a device need not be told for ever."""
MOST_FUSED_ROWS = 64
"""The largest matrix that one Triton program takes through a whole step."""


class SignedOptimizer(Optimizer):
    """An optimiser whose groups may have signatures."""

    def state_dict(self) -> dict[str, Any]:
        """As torch's, with signatures as lists of signs, which `torch.load` accepts."""
        state = super().state_dict()
        for group in state["param_groups"]:
            if "signature" in group:
                group["signature"] = group["signature"].signs.tolist()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As torch's; the signatures must be those of the groups."""
        groups = [dict(group) for group in state_dict["param_groups"]]
        for group, saved in zip(self.param_groups, groups, strict=False):
            if "signature" in saved:
                saved["signature"] = Signature.of(saved["signature"])
            expected, found = group.get("signature"), saved.get("signature")
            if expected != found:
                raise ValueError(f"state_dict must be of {expected}, got one of {found}")
        super().load_state_dict(state_dict | {"param_groups": groups})


class JOBCD(SignedOptimizer):
    """Block coordinate descent for J-orthogonal parameters (..., n, n), in a training loop.

    Each step turns every plane of two rows, and of two columns, by an angle of its own: a rotation
    where their signs agree, a boost where they do not. X^T J X = J is thus kept to rounding, which
    a Newton step removes once it has added up to ||X^T J X - J||_F = 8 u ||X||_F^2.

    lr is an angle (a rapidity, for boosts), whatever the sizes of gradients and of X: that of a
    plane whose slopes agree from step to step; where they are noise the angle is smaller, as in
    Adam. It is multiplied by a gain, which starts at 0.3 and is learned for the rotations and the
    boosts of each matrix, so that an lr from 0.003 to 0.03 leads to much the same end. The slopes S
    = skew(J G X^T) are averaged, not the gradient: S_ij belongs to the plane (i, j) at every X, so
    no transport is needed.

    A matrix with a gradient that is not finite is not moved. A step that would end beyond ||X|| =
    ``max_norm`` is taken without its boosts (in the embedding metric, not at all), and one that
    would end with a residual above u^(1/2) not at all. "not_finite" and "too_far" in the state of a
    parameter count the two cases; on the CPU the first of each gives a RuntimeWarning. Of thin
    parameters, (..., n, k) with X^T J X = diag(+-1), only rows are turned.

    Args:
        params: Parameters, named parameters or groups of them; J-orthogonal. A group may have
            options of its own, including the signature. They are plain tensors in float32 or
            float64: keep half precision to autocast, and leave them out of sharding (FSDP).
        signature: The signs of J; may be left out if every group has one.
        lr: The angle of a step, in radians, before the gain.
        momentum: The decay of the average of slopes, 0 for none.
        decay: The decay of the running mean square of slopes, by the root of which the average is
            divided in each plane (as in Adam). A gradient that would multiply it by more than ten
            is scaled down first.
        eps: Added to the root, relative to the root mean square over the matrix.
        gain_rate: How fast the gain learns; 0 keeps it at its value, which is 1 if it has always
            been 0.
        max_norm: The largest ||X||_F that a step may lead to; None is u^(-1/2) / 4, 1e3 in float32
            and 2e7 in float64.
        metric: "invariant" measures ||log Y X^-1||, so that steps do not shrink where X is large.
            "embedding" is the paper's: the majoriser <Y - X, G> + L/2 ||Y - X||_F^2, L = 1 / lr, is
            minimised exactly for each pair of rows, without averages, gains and angles and their
            options.
        rounds_per_gradient: So many random rounds of disjoint pairs are taken in one step, in the
            paper one; None goes through all pairs.
        components: "start" stays in the component of the start; "all", in the embedding metric, may
            leave it (the paper).
        maximize: Ascend.
        seed: Seed for the pairings, which depend on it and on the number of the step alone.

    >>> sig = jorth.Signature(2, 1)
    >>> X = torch.nn.Parameter(torch.from_numpy(jorth.random_point(sig)))
    >>> optimizer = jorth.optim.JOBCD([X], sig, lr=0.01)
    >>> X.square().sum().backward()
    >>> optimizer.step()
    """

    def __init__(  # one argument per option, as in torch's optimisers
        self,
        params: Any,
        signature: Signature | None = None,
        *,
        lr: float | Tensor = 1e-2,
        momentum: float = 0.9,
        decay: float = 0.99,
        eps: float = 1e-5,
        gain_rate: float = 0.05,
        max_norm: float | None = None,
        metric: Literal["invariant", "embedding"] = "invariant",
        rounds_per_gradient: int | None = None,
        components: Literal["start", "all"] = "start",
        maximize: bool = False,
        seed: int = 0,
    ) -> None:
        options: dict[str, Any] = dict(
            signature=signature, lr=lr, momentum=momentum, decay=decay, eps=eps,
            gain_rate=gain_rate, max_norm=max_norm, metric=metric,
            rounds_per_gradient=rounds_per_gradient, components=components,
            maximize=maximize, seed=seed, turn=0,  # the number of steps so far
        )  # fmt: skip
        super().__init__(params, options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a copy of a group; its parameters must be J-orthogonal for its signature."""
        super().add_param_group(dict(param_group))
        try:
            with torch.device("cpu"):  # the default may be "meta"
                _check_group(self.param_groups[-1])
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise

    @_disable_dynamo  # as torch's optimisers do: Dynamo cannot trace what Numba compiles
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step of every group; return the loss if there is a closure, called first."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(
        self, group: dict[str, Any], estimates: dict[Tensor, Tensor] | None = None
    ) -> None:
        """Take one step along the gradients or estimates of them, one parameter after the other."""
        turn = group["turn"]
        for p in group["params"]:
            G = p.grad if estimates is None else estimates.get(p)
            if G is None:
                continue
            turn = group["turn"] + 1
            if G.is_sparse:
                raise RuntimeError("JOBCD does not take sparse gradients: use sparse=False")
            state = self.state[p]
            if "not_finite" not in state:
                state.update(first_state(group, p))
            if not p.numel():
                continue
            rule, signature = rule_of(group, p.dtype), group["signature"]
            if group["metric"] == "invariant" and runs_compiled(p):
                from jorth.optim._step_numba import take_step

                pairs = pairs_of_step(group)
                counts: tuple[Any, Any] = take_step(rule, signature, pairs, p, G, state)
            elif is_one_launch(group, p):
                from jorth.optim._step_triton import take_step as launch

                launch(rule, signature, codes_of_step(group, p.device), p, G, state)
                continue  # it has counted
            else:
                X, G = p.reshape(-1, *p.shape[-2:]), rule.sense * G.reshape(-1, *p.shape[-2:])
                if group["metric"] == "invariant":
                    codes = codes_of_step(group, p.device)
                    X, finite, too_far = angle_step(rule, signature, codes, X, G, state)
                else:
                    X, finite, too_far = majoriser_step(group, X, G)
                p.copy_(X.reshape(p.shape))
                counts = (~finite).sum(), too_far.sum()
            if p.is_cuda or any(counts):
                _count(group, p, state, counts)
        group["turn"] = turn


class Rule(NamedTuple):
    """The numbers of a step: options of a group, and what they and the dtype imply."""

    lr: float | Tensor
    momentum: float
    decay: float
    eps: float
    gain_rate: float
    reach: float
    max_norm: float
    sense: float  # -1 to ascend
    largest_number: float
    unit: float  # the unit roundoff
    first_gain: float = FIRST_GAIN
    early_growth: float = EARLY_GROWTH
    largest_gain: float = LARGEST_GAIN
    largest_angle: float = LARGEST_ANGLE
    largest_growth: float = LARGEST_GROWTH
    drift: float = DRIFT
    newton_radius: float = NEWTON_RADIUS


def rule_of(group: dict[str, Any], dtype: torch.dtype) -> Rule:
    """Return the numbers of a step; a learning rate on a device is not read."""
    signature, lr, limits = group["signature"], group["lr"], torch.finfo(dtype)
    return Rule(
        lr=lr if isinstance(lr, Tensor) and lr.is_cuda else float(lr),
        momentum=group["momentum"],
        decay=group["decay"],
        eps=group["eps"],
        gain_rate=group["gain_rate"],
        reach=BOOST_REACH / math.sqrt(max(signature.p, signature.n - signature.p)),
        # at u^(-1/2) / 4 one rounding changes X^T J X by 1/8
        max_norm=(8 * limits.eps) ** -0.5 if group["max_norm"] is None else group["max_norm"],
        sense=-1.0 if group["maximize"] else 1.0,
        largest_number=limits.max,
        unit=limits.eps / 2,
    )


def first_state(group: dict[str, Any], p: Tensor) -> dict[str, Tensor]:
    """Return the state before the first step, for the b matrices of a parameter (..., n, k).

    "momentum" M and "root" r (b, sides, n, n) are averages of the slopes and of their squares,
    which "momentum_weight" and "root_weight" (b, sides) divide, so that they are right from the
    first step on, also where a decay changes on the way. The root is stored, not its square, so
    that slopes of 1e-30 and 1e30 can be averaged in float32. "gain" (b, sides, 2) is that of
    rotations and of boosts. Sides are rows and, of square matrices, columns.
    """
    state = {name: p.new_zeros(()) for name in ("not_finite", "too_far")}
    if group["metric"] == "invariant":
        n, k = p.shape[-2:]
        sides = (p.shape[:-2].numel(), 2 if n == k else 1)
        state |= {name: p.new_zeros((*sides, n, n)) for name in ("momentum", "root")}
        state |= {name: p.new_zeros(sides) for name in ("momentum_weight", "root_weight")}
        state["gain"] = p.new_full((*sides, 2), FIRST_GAIN if group["gain_rate"] > 0 else 1.0)
    return state


# -- the step in the invariant metric


def angle_step(
    rule: Rule, signature: Signature, codes: Tensor, X: Tensor, G: Tensor, state: dict[str, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return X (b, n, k) after one step along the gradients G; the state changes in place.

    Both masks (b,) go with it: which gradients were finite, and which steps were not taken whole.
    """
    sides, real = state["gain"].shape[1], X.double()
    signs = signature.vector(real)
    boosts = signs[:, None] != signs

    # the slope of every plane of rows, skew(J G X^T), and of columns, skew(J G^T X)
    views = [(real, G.double()), (real.mT, G.double().mT)][:sides]
    S = torch.stack([skew_gradient(x, g, signs) for x, g in views], dim=1)
    finite = (S.abs() <= rule.largest_number).all(dim=-1).all(dim=-1).all(dim=-1)
    S = torch.where(finite[:, None, None, None], S, 0.0)
    theta = next_angles(rule, boosts, S, state, finite)

    def rotated(theta: Tensor) -> Tensor:
        Y = rotate_rows(real, theta[:, 0], signs, codes)
        return Y if sides == 1 else rotate_rows(Y.mT, theta[:, 1], signs, codes).mT

    moved = rotated(theta)
    too_far = ~within_norm(moved, X, rule.max_norm)
    if X.is_cuda or bool(too_far.any()):  # once more without boosts; no branch waits for a device
        mask = too_far[:, None, None]
        moved = torch.where(mask, rotated(theta * ~boosts), moved)
        state["momentum"].masked_fill_(mask[:, None] & boosts, 0.0)
        if rule.gain_rate > 0:
            state["gain"][..., 1].masked_fill_(too_far[:, None], FIRST_GAIN)
    moved, feasible = remove_drift(moved.to(X.dtype), X, signature)
    return (torch.where((feasible & finite)[:, None, None], moved, X), finite, too_far | ~feasible)


def next_angles(
    rule: Rule, boosts: Tensor, S: Tensor, state: dict[str, Tensor], finite: Tensor
) -> Tensor:
    """Return the angles (b, sides, n, n), float64, after new slopes S; averages and gains change.

    Theta_ij = lr gain reach D_ij with D = M / r, clipped; D_ij is near +-1 where
    the slopes of a plane agree, and near 0 where they are noise. The gain of rotations and of
    boosts grows while new slopes point where the last step went, and shrinks while they point back
    (Jacobs, delta-bar-delta, 1988; Baydin et al., hypergradient descent, 2018), by the factor
    exp(rate c (1 + 4 c^2 / (1 + gain^2))) with the cosine c of the last D and S / r: fast while the
    gain is small and slopes agree, so that short runs move too. Slopes that are not finite change
    nothing, and their angles are zero.
    """
    before = direction(state, rule.eps)

    # An average forgets only at the rate of the decay: after a square of 1e30, steps would be tiny
    # for a long time. A limited gradient still takes the step that it would take in Adam.
    decay, momentum = rule.decay, rule.momentum
    M, r = state["momentum"].double(), state["root"].double()
    weight = state["root_weight"].double()[..., None, None]
    largest = r * (LARGEST_GROWTH / (1 - decay) / weight).sqrt()
    S = torch.where(r > 0, S.clamp(-largest, largest), S)
    new = whitened(S, state, rule.eps)

    averages = {
        "momentum": M + (1 - momentum) * (S - M),
        "momentum_weight": momentum * state["momentum_weight"] + (1 - momentum),
        "root": (decay * r.square() + (1 - decay) * S.square()).sqrt(),
        "root_weight": decay * state["root_weight"] + (1 - decay),
    }
    for name, average in averages.items():
        mask = finite.reshape(-1, *[1] * (average.ndim - 1))
        state[name].copy_(torch.where(mask, average, state[name]))

    gain = state["gain"]
    for kind, planes in enumerate((~boosts, boosts)):
        a, b = before * planes, new * planes
        size = torch.linalg.matrix_norm(a) * torch.linalg.matrix_norm(b)
        cosine = torch.where(size > 0, (a * b).sum(dim=(-2, -1)) / size, 0.0)
        old = gain[..., kind].double()
        early = rule.early_growth * cosine.square() / (1 + old.square())
        grown = old * (rule.gain_rate * cosine * (1 + early)).exp()
        gain[..., kind] = grown.clamp(1 / LARGEST_GAIN, LARGEST_GAIN)

    turn, push = gain[..., :1, None].double(), gain[..., 1:, None].double()
    D = torch.where(finite[:, None, None, None], direction(state, rule.eps), 0.0)
    theta = rule.lr * torch.where(boosts, rule.reach * push, turn) * D
    return theta.clamp(-LARGEST_ANGLE, LARGEST_ANGLE)


def direction(state: dict[str, Tensor], eps: float) -> Tensor:
    """Return M / (r + eps ||r||), float64; both averages are divided by their weights."""
    weight = state["momentum_weight"].double()[..., None, None]
    return whitened(state["momentum"].double() / weight, state, eps)


def whitened(S: Tensor, state: dict[str, Tensor], eps: float) -> Tensor:
    """Return S / (r + eps ||r||) with the root mean square ||r|| over a matrix; 0 where r is."""
    r = state["root"].double() / state["root_weight"].double().sqrt()[..., None, None]
    size = torch.linalg.matrix_norm(r, keepdim=True) / r.shape[-1]
    return torch.where(r > 0, S / (r + eps * size), 0.0)


def rotate_rows(X: Tensor, theta: Tensor, signs: Tensor, codes: Tensor) -> Tensor:
    """Return T X (b, n, k), float64, with the product T of the plane rotations of all pairs.

    In a round of disjoint pairs row i with partner p becomes cos(a) x_i + sin(a) x_p if their signs
    are equal, and cosh(a) x_i + sinh(a) x_p if they are opposite, with a = -s_i Theta_ip: this is
    exp(-J Theta) for the plane (i, p) alone. Both rows of a pair have the same formula, since Theta
    (b, n, n) is skew. It is applied as an increment, so that feasibility drifts least. ``codes``
    (r, n) are those of `codes_of_step`.
    """
    opposite, partner = codes < 0, torch.where(codes < 0, -1 - codes, codes).long()
    a = -(signs[:, None] * theta)[:, torch.arange(len(signs), device=codes.device), partner]
    half = torch.where(opposite, (0.5 * a).sinh(), (0.5 * a).sin())
    even = torch.where(opposite, 2.0, -2.0) * half.square()
    odd = torch.where(opposite, a.sinh(), a.sin())
    for number in range(len(codes)):
        e, o = even[:, number, :, None], odd[:, number, :, None]
        X = X + (e * X + o * X[:, partner[number]])
    return X


def within_norm(moved: Tensor, X: Tensor, max_norm: float) -> Tensor:
    """Return which matrices are finite and not beyond ``max_norm``, unless X was farther out."""
    norm = torch.linalg.matrix_norm(moved)
    within: Tensor = (norm <= max_norm) | (norm <= torch.linalg.matrix_norm(X))  # false for NaN
    return within


def remove_drift(moved: Tensor, X: Tensor, signature: Signature) -> tuple[Tensor, Tensor]:
    """Return matrices (b, n, k) without drift, and which of them may take the place of X: (b,).

    These are finite and J-orthogonal to half their digits. Turns of rows leave X^T J X as it is,
    with its errors; turns of columns, X R, multiply an error E to R^T E R. Boosts of both sides
    that cancel each other in X thus blow it up exponentially. A Newton step
    X (3 I - J X^T J X) / 2 takes it away while it is small; what is far from the group is not
    brought back.
    """
    unit = torch.finfo(X.dtype).eps / 2
    finite = torch.isfinite(moved).all(dim=-1).all(dim=-1)
    kept = torch.where(finite[:, None, None], moved, X)
    rows, columns = kept.double(), column_signs(X, signature)
    E = columns[..., None] * (rows.mT @ (signature.vector(rows)[:, None] * rows))
    E.diagonal(dim1=-2, dim2=-1).sub_(1)
    squares = rows.square().sum(dim=-1)
    longest = squares.amax(dim=-1).clamp(min=1.0)  # at most ||X||_2^2, and cheap
    near = E.abs().amax(dim=(-2, -1)) <= unit**0.5 * longest
    size, due = torch.linalg.matrix_norm(E), DRIFT * unit * squares.sum(dim=-1)
    drifted = near & (size > due.clamp(max=NEWTON_RADIUS / 2)) & (size <= NEWTON_RADIUS)
    kept = torch.where(drifted[:, None, None], (rows - 0.5 * rows @ E).to(X.dtype), kept)
    return kept, finite & near


# -- the step in the embedding metric


def majoriser_step(group: dict[str, Any], X: Tensor, G: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return X (b, n, k) after exact steps on the majoriser of every pair of rows: the paper's.

    Both masks (b,) are those of `angle_step`. There is no state.
    """
    finite = torch.isfinite(G).all(dim=-1).all(dim=-1)
    lr = float(group["lr"])
    if lr < np.finfo(np.float64).tiny:  # at 0, where schedulers begin, 1 / lr is infinite
        return X, finite, torch.zeros_like(finite)
    majoriser = Majoriser(group["signature"], all_components=group["components"] == "all")
    G = torch.where(finite[:, None, None], G, 0.0)
    moved = majoriser.rounds(X, G, 1 / lr, rounds_of_step(group))[0]
    within = within_norm(moved, X, rule_of(group, X.dtype).max_norm)
    moved, feasible = remove_drift(
        torch.where(within[:, None, None], moved, X), X, group["signature"]
    )
    accepted = within & feasible
    return torch.where(accepted[:, None, None], moved, X), finite, ~accepted


# -- pairs


def rounds_of_step(group: dict[str, Any]) -> NDArray[np.int64]:
    """Return the rounds (r, m, 2) of disjoint pairs of the group's next step; (i, i) is a bye."""
    return _rounds(*_round_numbers(group))


def pairs_of_step(group: dict[str, Any]) -> NDArray[np.uint32]:
    """Return the pairs (m, 2) of `rounds_of_step` without byes, couple by couple (`in_order`)."""
    return _pairs(*_round_numbers(group))


def codes_of_step(group: dict[str, Any], device: torch.device) -> Tensor:
    """Return the rounds of the next step on a device, as `pair_codes`.

    While a step is captured in a CUDA graph, the group has them under "codes": the graph then reads
    the rounds that this tensor holds at the time of the replay.
    """
    if "codes" in group:
        return group["codes"]  # type: ignore[no-any-return]
    return _uploaded_codes(group["signature"], device, *_round_numbers(group))


def _round_numbers(group: dict[str, Any]) -> tuple[int, bool, int | None, int, int]:
    """Return the arguments of `_rounds`; those of tournaments recur."""
    n, count, turn = group["signature"].n, group["rounds_per_gradient"], group["turn"]
    in_couples = count is None and group["metric"] == "invariant"
    return n, in_couples, count, group["seed"], turn % SHUFFLES if count is None else turn


def _rounds(n: int, in_couples: bool, count: int | None, seed: int, turn: int) -> NDArray[np.int64]:
    """Return the ``count`` random rounds of a turn, or a tournament, of `couples` or not.

    They depend on the seed and the turn alone: runs resume, and processes agree.
    """
    if n < 2:
        return np.empty((0, 0, 2), dtype=np.int64)
    rng = np.random.default_rng([seed, turn])
    if count is not None:
        return np.stack([random_matching(n, seed=rng) for _ in range(count)])
    return couples(n, seed=rng) if in_couples else tournament(n, seed=rng)


def couples(n: int, *, seed: int | np.random.Generator) -> NDArray[np.int64]:
    """Return a tournament (rounds, m, 2) of random couples; a pair (i, i) is a bye.

    In the first round the two of every couple meet. Then couples (a, b) and (c, d) meet in two
    rounds, with the pairs (a, c), (b, d) and (a, d), (b, c): rows are moved through memory half as
    often as in any tournament.
    """
    rng = np.random.default_rng(seed)
    count = (n + 1) // 2
    couple = rng.permutation(2 * count).reshape(count, 2)
    rounds = [couple]
    for meeting in tournament(count, seed=rng) if count > 1 else ():
        one, other = couple[meeting[:, 0]], couple[meeting[:, 1]]
        rounds += [np.stack([one, other[:, ::step]], axis=2).reshape(-1, 2) for step in (1, -1)]
    pairs = np.zeros((len(rounds), count, 2), dtype=np.int64)
    for own, found in zip(pairs, rounds, strict=True):
        own[: len(found)] = found
    return np.where(pairs.max(axis=2, keepdims=True) < n, pairs, pairs.min(axis=2, keepdims=True))


@lru_cache(maxsize=128)
def _pairs(n: int, in_couples: bool, *numbers: Any) -> NDArray[np.uint32]:
    rounds = _rounds(n, in_couples, *numbers)
    pairs: NDArray[Any] = in_order(rounds) if in_couples else rounds.reshape(-1, 2)
    return np.array(pairs[pairs[:, 0] != pairs[:, 1]], dtype=np.uint32)


def in_order(rounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs (r m, 2) of `couples`, with the four of a meeting one after the other."""
    meetings = rounds.shape[1] // 2
    both = rounds[1:, : 2 * meetings].reshape(len(rounds) // 2, 2, meetings, 2, 2)
    return np.concatenate([*rounds[:1], both.swapaxes(1, 2).reshape(-1, 2)])


@lru_cache(maxsize=256)
def _uploaded_codes(signature: Signature, device: torch.device, *numbers: Any) -> Tensor:
    return upload(pair_codes(signature.signs, _rounds(*numbers)), device)


def pair_codes(signs: NDArray[np.int8], rounds: NDArray[np.int64]) -> NDArray[np.int16]:
    """Return the partners (r, n) of rounds (r, m, 2): p for equal signs, -1 - p for opposite ones.

    An index without a partner is its own.
    """
    partner = np.tile(np.arange(len(signs)), (len(rounds), 1))
    turn, pair = np.nonzero(rounds[:, :, 0] != rounds[:, :, 1])
    i, j = rounds[turn, pair].T
    partner[turn, i], partner[turn, j] = j, i
    return np.where(signs[partner] == signs, partner, -1 - partner).astype(np.int16)


# -- which engine


def runs_compiled(p: Tensor) -> bool:
    """Return whether `_step_numba.take_step` takes the angle step of a parameter."""
    return p.device.type == "cpu"


def is_one_launch(group: dict[str, Any], X: Tensor) -> bool:
    """Return whether `_step_triton.take_step` takes the step of a parameter (..., n, k)."""
    return (
        runs_triton(X.device)
        and X.is_contiguous()
        and 2 <= X.shape[-2] == X.shape[-1] <= MOST_FUSED_ROWS
        and group["metric"] == "invariant"
    )


# -- checks and warnings


def _check_group(group: dict[str, Any]) -> None:
    """Check the options and the parameters of a group, and turn numbers into Python's own."""
    signature = group["signature"] = _inputs.check_signature(group["signature"])
    _inputs.check_choice(group["metric"], "metric", ("invariant", "embedding"))
    _inputs.check_choice(group["components"], "components", ("start", "all"))
    for name in ("lr", "momentum", "decay", "eps", "gain_rate"):
        value, bound = group[name], math.inf if name in ("lr", "eps") else 1
        single = isinstance(value, Tensor) and value.numel() == 1 and not value.is_meta
        given = value.item() if single else value
        expected = f"a number in [0, {bound})"
        number = _inputs.real_number(given, name, expected, lambda x: 0 <= x < bound)  # noqa: B023
        group[name] = value if name == "lr" and isinstance(value, Tensor) else number
    if group["max_norm"] is not None:
        group["max_norm"] = _inputs.positive_number(group["max_norm"], "max_norm")
    _inputs.check_count(group["rounds_per_gradient"], "rounds_per_gradient")
    if group["metric"] == "invariant" and group["components"] == "all":
        expected = '"start" with metric="invariant", whose turns keep the component'
        raise ValueError(f"components must be {expected}, got 'all'")
    _inputs.check_flag(group["maximize"], "maximize")
    group["seed"] = _inputs.whole_number(group["seed"], "seed", 0)
    for position, p in enumerate(group["params"]):
        try:
            _check_parameter(p, f"params[{position}]", signature)
        except (TypeError, ValueError) as error:
            also = "jorth.optim.split_parameters(model) separates what is declared from others"
            raise type(error)(f"{error}; {also}") from None


def _check_parameter(p: Tensor, name: str, signature: Signature) -> None:
    """Check that a parameter is a plain tensor of J-orthogonal matrices."""
    if p.dtype not in FLOATS or hasattr(p, "device_mesh"):
        expected = "a plain tensor in float32 or float64 (use autocast, and leave it unsharded)"
        raise TypeError(f"{name} must be {expected}, got {describe(p)}")
    if not p.is_meta:  # otherwise there is nothing to check yet
        remedy = "; start with jorth.nn.init.j_orthogonal_, or jorth.polish what was rounded"
        point = finite_thin(p.detach(), signature, name)
        check_feasible(point, signature, name, remedy=remedy)


def _count(group: dict[str, Any], p: Tensor, state: dict[str, Tensor], counts: Any) -> None:
    """Count the matrices that do not move as they would; warn of the first, but for a device."""
    bad = "a gradient is not finite, or its slopes are not: {} matrices stay where they are"
    far = (
        f"a step would end beyond ||X|| = {rule_of(group, p.dtype).max_norm:.2g}, or where "
        f"X^T J X = J is lost in the rounding of {p.dtype}: lr is too large, nothing in the loss "
        "keeps X bounded, or X had lost it before and needs jorth.polish: {} matrices "
        f"{'turn without their boosts, or ' if group['metric'] == 'invariant' else ''}stay where "
        "they are"
    )
    for name, number, text in zip(("not_finite", "too_far"), counts, (bad, far), strict=True):
        if not p.is_cuda and number and not state[name]:
            reason = text.format(f"{int(number)} of {p.shape[:-2].numel()}")
            how = f"{name!r} in the state of the parameter counts how often that happens"
            warnings.warn(f"{reason}; {how}, without further warnings", RuntimeWarning, 2)
        state[name] += number
