"""The Triton kernels on a CUDA device: equal to plain torch on the CPU, and nothing read back."""

from functools import partial

import numpy as np
import pytest
import torch

import jorth
from jorth.plane import random_matching
from jorth.plane.pairs import tournament_rounds
from jorth.plane.rounds import CHUNK, QuadraticRounds
from tests.plane.problems import (
    after,
    check_edges,
    check_nearly_null_rows,
    check_steps,
    quadratic,
    step_by_triton,
)

pytestmark = pytest.mark.gpu


def test_steps():
    check_steps(partial(step_by_triton, "cuda"), "identity")
    check_edges(partial(step_by_triton, "cuda"), "identity")
    check_nearly_null_rows("cuda")


@pytest.mark.parametrize("kind", ["tournament", "random"])
@pytest.mark.parametrize(
    ("n", "k", "all_components", "options"),
    [
        (600, 600, False, {}),
        (257, 257, False, dict(with_c=False)),
        (64, 64, True, {}),
        (130, 40, False, dict(with_d=True)),
        (512, 512, False, dict(dtype=torch.float32)),
        (64, 64, False, dict(cond=1e9)),
    ],
)
def test_a_round_equals_the_cpu(n, k, all_components, options, kind):
    problem = quadratic(n, k, **options)
    rng = np.random.default_rng(1)
    rounds = tournament_rounds(n, rng.permutation(n - 1)[:1])
    if kind == "random":
        rounds = random_matching(n, seed=rng)[None]
    X, Y, decrease, unbounded = after(problem, rounds, device="cuda", all_components=all_components)
    X_, _, decrease_, unbounded_ = after(
        problem, rounds, device="cpu", all_components=all_components
    )
    unit = torch.finfo(X.dtype).eps / 2
    size = float(X_.abs().max()) ** (1 if k == n else 2)
    # V is as well determined as its minimum is sharp, and a tie may fall either way:
    # most rows agree to rounding
    off = (X - X_).abs().amax(dim=1)
    assert (off <= 1e3 * n * unit * size).double().mean() > 0.99
    assert decrease == pytest.approx(decrease_, rel=1e3 * n * unit)
    D = problem[4]
    product = X.double() @ X.double().mT if D is None else X @ D @ X.mT
    assert (Y - product).abs().max() <= 100 * n * unit * float(product.abs().max())
    assert unbounded == unbounded_
    assert (X - problem[1]).abs().max() > 1e-2


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_replayed_graphs_equal_single_rounds_and_do_not_synchronise():
    n = 300
    sig, X, A, C, D = quadratic(n, n)
    table = tournament_rounds(n, np.random.default_rng(0).permutation(n - 1)[: 2 * CHUNK + 3])
    found = []
    for replayed in (False, True):
        rounds = QuadraticRounds(
            A.cuda(),
            C.cuda(),
            D,
            n,
            torch.from_numpy(sig.signs.copy()),
            all_components=False,
            theta=-1e-12,
        )
        if replayed:
            rounds.start(X.cuda())
            rounds.run(table, 3.0)  # compiles and captures
            assert rounds._graph is not None
        rounds.start(X.cuda())
        if replayed:
            torch.cuda.set_sync_debug_mode("error")
            try:
                rounds.run(table, 2.0)
            finally:
                torch.cuda.set_sync_debug_mode("default")
        else:
            for turn in range(len(table)):
                rounds.run(table[turn : turn + 1], 2.0)
        found.append((rounds.X.clone(), rounds.Y.clone(), rounds.decrease.item()))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert found[0][2] == found[1][2]
    assert jorth.residual(found[0][0], sig) <= 100 * n * 2.0**-53
