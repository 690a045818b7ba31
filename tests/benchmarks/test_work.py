"""Bytes and operations of `benchmarks/work.py` against counts of what the kernels do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, mm_flop

import jorth
from benchmarks import work

ROOT = Path(__file__).resolve().parents[2]


def products(call):
    """Operations of all matrix products of a call, as torch counts them; those added in place it
    does not by itself."""
    in_place = {torch.ops.aten.addmm_: lambda self, a, b, out_shape=None, **options: mm_flop(a, b)}
    with FlopCounterMode(display=False, custom_mapping=in_place) as counter:
        call()
    return counter.get_total_flops()


@pytest.fixture(scope="module")
def counted():
    """The compiled kernels on numbers that count."""
    command = [sys.executable, "-m", "tests.benchmarks.counted"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("n", [2, 10, 40])
def test_a_pair_step(counted, n):
    """The plane takes more or fewer Newton steps from pair to pair, hence 15%; rows and columns of
    Y share 4 cells."""
    found, expected = counted["step"][str(n)], work.pair_step(n)
    assert found["flops"] == pytest.approx(expected.flops, rel=0.15)
    assert 8 * found["words"] == expected.bytes - 4 * 8


def test_rounds_of_disjoint_pairs(counted):
    assert counted["round"]["flops"] == pytest.approx(work.gradient_round(40).flops, rel=0.15)
    assert 8 * counted["round"]["words"] == work.gradient_round(40).bytes
    assert counted["majorised"]["flops"] == pytest.approx(work.batch_step(1, 40, 1).flops, rel=0.15)
    assert 8 * counted["majorised"]["words"] == work.batch_step(1, 40, 1).bytes


def test_sweeps():
    """n = 2 is one step after Y = X X^T; a sweep by blocks has the 14 n^3 of its products, and
    moves less."""
    assert work.pair_sweep(2).flops == work.pair_step(2).flops + 16
    assert work.pair_sweep(2).bytes == work.pair_step(2).bytes + 3 * 4 * 8
    n = 10**5
    assert work.blocked_sweep(n, 60).flops == pytest.approx(16 * n**3, rel=0.01)
    assert work.blocked_sweep(n, 60).bytes == pytest.approx(9.5 * 8 * n**3 / 60, rel=0.01)
    assert work.pair_sweep(n).bytes == pytest.approx(7 * 8 * n**3, rel=0.01)


def test_products_of_a_blocked_sweep():
    """Every product of a sweep, by the shapes that numpy is given."""
    from jorth.plane.proximal import StepRule
    from jorth.solvers.jobcd.quadratic_sweeps import BlockedSweep, SweepForm

    class Counting(np.ndarray):
        flops = 0

        def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
            if ufunc is np.matmul:
                a, b = inputs
                Counting.flops += 2 * a.shape[0] * a.shape[1] * b.shape[1]
            plain = [
                part.view(np.ndarray) if isinstance(part, Counting) else part for part in inputs
            ]
            found = getattr(ufunc, method)(*plain, **options)
            if out is not None:
                out[0][...] = found
                return out[0]
            return np.asarray(found).view(Counting)

    n, k = 96, 8
    A, C, X = (np.eye(n).view(Counting) for _ in range(3))
    rule = StepRule(-1e-12, all_components=False, stop_unbounded=True)
    sweep = BlockedSweep(
        SweepForm(A, C, None), X, jorth.Signature(n // 2, n // 2).signs, np.arange(n), k, rule
    )
    for name in ("_data", "_state", "_panel", "_spare"):
        setattr(sweep, name, np.asarray(getattr(sweep, name)).view(Counting))
    for _ in sweep.run():
        pass
    steps = (n / k) ** 2 / 2 * k * k * work.pair_step(2 * k).flops
    # the meetings of a block with itself, and blocks that are fetched anew, come on top: one part
    # in n / k
    assert Counting.flops == pytest.approx(work.blocked_sweep(n, k).flops - steps, rel=0.2)


def test_kept_rounds():
    """The 6 n^2 words of a round, 8 n^2 with C; at n = 2 the operations by hand."""
    assert work.kept_round(64).bytes == 6 * 64**2 * 8
    assert work.kept_round(64, 4, with_c=True).bytes == 8 * 64**2 * 4
    dots, turned = 4 * 2 * 2, 3 * 2 * work.TURN
    assert work.kept_round(2).flops == dots + turned + work.PLANE
    assert work.kept_round(2, with_c=True).flops == 2 * dots + turned + work.PLANE


def test_products_of_gradients():
    n, m = 70, 1100  # larger than what NumPy evaluates, whose operations are not counted
    rng = np.random.default_rng(0)
    X = torch.eye(n, dtype=torch.float64)
    quadratic = jorth.Quadratic(np.eye(n), rng.standard_normal((n, n)))
    assert (
        products(lambda: quadratic.value_and_gradient(X))
        == work.quadratic_gradient(n).flops - 5 * n * n
    )
    probe = jorth.StructuralProbe(rng.standard_normal((m, n)), signature=jorth.Signature(n - 1, 1))
    probe.value_and_gradient(X)  # the distances are kept from here on
    entries = 512 * 1100 + 512 * 588 + 76 * 76
    expected = work.probe_gradient(m, n)
    assert products(lambda: probe.value_and_gradient(X)) == expected.flops - work.ARC * entries
    assert expected.bytes == 8 * (entries + (2 + 4 * 3) * m * n)


def test_products_of_scores():
    model = jorth.kge.UltraE(50, 3, signature=jorth.Signature(4, 4))
    query = torch.tensor([0, 1, 2])
    with torch.no_grad():
        found = products(lambda: model.score_tails(query, query))
    moved = 3 * 2 * 8 * 8  # compiled, so that torch does not see it
    assert found == work.scores(3, 50, 8).flops - 3 * 50 * work.ARC - moved


def test_products_of_an_lbfgs_iteration(monkeypatch):
    """One more iteration, once the preconditioner is made, has one trial and seven products."""
    from jorth.solvers import RiemannianLBFGS

    n, found = 70, []
    signature = jorth.Signature(n // 2, n // 2)
    source, target, _ = jorth.datasets.planted_procrustes(
        2 * n, signature, noise=0.1, source_condition=3.0, seed=0
    )
    step = RiemannianLBFGS.step

    def counted(self, problem, state):
        before = problem.objective.count.gradient
        flops = products(lambda: step(self, problem, state))
        found.append((problem.objective.count.gradient - before, flops))

    monkeypatch.setattr(RiemannianLBFGS, "step", counted)
    jorth.minimize(
        jorth.Procrustes(source, target),
        signature=signature,
        method="riemannian-lbfgs",
        max_iterations=14,
    )
    settled = min(flops for trials, flops in found if trials == 1)
    assert settled == pytest.approx(work.lbfgs_iteration(n).flops - 8 / 3 * n**3)


@pytest.mark.parametrize(("m", "n", "block"), [(400, 40, 4096), (60, 40, 4096), (1000, 30, 300)])
def test_compression(m, n, block):
    """Householder reflections column by column: 4 (r - j)(c - j) each."""

    def reflections(r, c):
        return sum(4 * (r - j) * (c - j) for j in range(min(r, c)))

    triangle, total = 0, 0
    for start in range(0, m, block):
        rows = triangle + min(block, m - start)
        total, triangle = total + reflections(rows, 2 * n), min(rows, 2 * n)
    assert work.compression(m, n, block).flops == pytest.approx(total, rel=0.05)
    assert work.compression(m, n, block).bytes == 8 * (2 * m * n + 4 * n * n)


def test_apply_rows_and_copies():
    assert work.turn_rows(2) == (2 * work.TURN, 2 * 4 * 8, 4 * 8)
    assert work.copy(10) == (0, 160, 160)
    assert work.matrix_product(2, 3, 5, 4) == (60, 4 * 31, 4 * 31)
