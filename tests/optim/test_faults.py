"""Gradients that are not finite or huge, walks without bound: nothing infeasible is written,
and training goes on."""

import math
import warnings

import pytest
import torch

import jorth
from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD
from tests.optim.problems import ENGINES, PAPER, SIG, STRATEGIES, random_batch, use_engine

DTYPES = [torch.float32, torch.float64]
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
BAD = [math.nan, math.inf, -math.inf]


def unit_roundoff(dtype):
    return torch.finfo(dtype).eps / 2


def gradients(shape, dtype, seed):
    draw = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randn(shape, generator=draw, dtype=torch.float64).to(dtype)


def step(optimizer, *values):
    """One step on the given gradients, None for none."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for p, value in zip(params, values, strict=True):
        p.grad = None if value is None else value.clone()
    optimizer.step()


# -- walks without bound


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("signature", "batch", "options"),
    [
        (Signature(2, 1), (), {"lr": 0.1}),
        (Signature(1, 1), (4,), {"lr": 0.3}),
        (Signature(6, 4), (3,), {}),
        (SIG, (), {"lr": 0.3, "rounds_per_gradient": 3}),
        (SIG, (2, 2), {"lr": 0.5, "momentum": 0.0, "gain_rate": 0.0}),
    ],
)
def test_noise_carries_no_matrix_out_of_the_group(signature, batch, options, dtype, seed):
    """In the invariant metric boosts add up: ||X|| grows like exp(sqrt(steps)),
    and faster the larger it is."""
    X = torch.nn.Parameter(jorth.random_point(signature, batch=batch, dtype=dtype, seed=seed))
    optimizer = JOBCD([X], signature, **options)
    draw = gradients(X.shape, dtype, seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(300):
            step(optimizer, next(draw))
            assert torch.isfinite(X).all()
    u = unit_roundoff(dtype)
    assert torch.as_tensor(jorth.residual(X.detach(), signature)).max() <= math.sqrt(u)
    assert torch.linalg.matrix_norm(X.detach()).max() <= u**-0.5
    rests = optimizer.state[X]["too_far"]
    assert len(caught) == (rests > 0)
    if options.get("lr") == 0.5 and dtype == torch.float32:
        assert rests
        assert "a step would end beyond" in str(caught[0].message)
        assert str(dtype) in str(caught[0].message)
    JOBCD([X], signature)  # what was written would be taken again


DRIFTS = {
    "noise on both sides": (Signature(1, 1), 4000, {}),
    "noise, far out": (Signature.lorentz(4), 4000, {"lr": 0.3, "gain_rate": 0.0}),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DRIFTS)
@pytest.mark.parametrize("engine", ENGINES)
def test_rounding_does_not_add_up(engine, name, dtype, monkeypatch):
    """X = L X0 R with boosts L and R that grow and cancel: an error E becomes R^T E R."""
    signature, steps, options = DRIFTS[name]
    use_engine(engine, monkeypatch)
    steps = steps // 4 if engine == "plain" else steps
    X = torch.nn.Parameter(torch.eye(signature.n, dtype=dtype))
    optimizer = JOBCD([X], signature, **options)
    draw, worst = gradients(X.shape, dtype, 0), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(steps):
            before = X.detach().clone()
            step(optimizer, next(draw))
            assert not torch.equal(X, before)
            worst = max(worst, jorth.residual(X.detach(), signature))
    assert worst < 80 * signature.n * unit_roundoff(dtype)  # 8 measured over 5 seeds


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1e30, 1e37])
def test_a_step_that_leads_too_far_is_not_taken_and_the_next_is(size, dtype):
    X0, G = random_batch(dtype, count=3, cond=4.0)
    X = torch.nn.Parameter(X0.clone())
    optimizer = JOBCD([X], SIG, **PAPER)
    huge = G.clone()
    huge[1] *= size
    with pytest.warns(RuntimeWarning, match="1 of 3 matrices stay"):
        step(optimizer, huge)
    assert torch.equal(X[1], X0[1])
    assert not torch.equal(X[0], X0[0])
    step(optimizer, G)
    assert torch.isfinite(X).all()
    assert not torch.equal(X[1], X0[1])
    assert (X[1] - X0[1]).abs().max() < 1
    assert optimizer.state[X]["too_far"] == 1


# -- gradients that are not finite


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("bad", BAD)
def test_a_gradient_that_is_not_finite_is_none(name, bad):
    """The parameter and all of its state are, bit for bit,
    those of a run in which that gradient is None."""
    options = {"lr": 0.1} | STRATEGIES[name]
    for dtype in DTYPES:
        X0, _ = random_batch(dtype, count=2, cond=4.0)
        ends = []
        for broken in (True, False):
            params = [torch.nn.Parameter(X.clone()) for X in X0]
            optimizer = JOBCD(params, SIG, **options)
            draw = gradients(X0.shape[1:], dtype, 5)
            for turn in range(6):
                first, second = next(draw), next(draw)
                if turn not in (0, 3):
                    step(optimizer, first, second)
                elif broken:
                    first[2, 1] = bad
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter("always")
                        step(optimizer, first, second)
                    assert len(caught) == (turn == 0)
                else:
                    step(optimizer, None, second)
            assert optimizer.state[params[0]].pop("not_finite") == 2 * broken
            ends.append((params, [optimizer.state[p] for p in params]))
        for one, other in zip(ends[0][0], ends[1][0], strict=True):
            assert torch.equal(one, other)
        for one, other in zip(ends[0][1], ends[1][1], strict=True):
            assert all(torch.equal(one[key], other[key]) for key in one)
        assert not torch.equal(ends[0][0][0], X0[0])


# -- huge gradients


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("size", [1e6, 1e15, 1e30])
@pytest.mark.filterwarnings("ignore:a gradient is not finite", "ignore:a step would end beyond")
def test_steps_recover_from_one_huge_gradient(size, momentum, dtype, seed):
    """Once t gradients are averaged,
    one more raises the root mean square sqrt(1 + 10 / (1 - decay^t)) fold at most."""
    X0, _ = random_batch(dtype, count=2, cond=4.0)
    options = {"momentum": momentum, "decay": 0.999, "gain_rate": 0.0}
    paths = []
    for scale in (1.0, size):
        X = torch.nn.Parameter(X0.clone())
        optimizer = JOBCD([X], SIG, **options)
        draw = gradients(X0.shape, dtype, seed)
        for turn in range(20):
            step(optimizer, next(draw) * (scale if turn == 15 else 1.0))
        path = 0.0
        for _ in range(10):
            before = X.detach().clone()
            step(optimizer, next(draw))
            path += float(((X.detach() - before) @ jorth.inverse(before, SIG)).norm())
        paths.append(path)
    assert paths[1] > 0.1 * paths[0] / math.sqrt(1 + 10 / (1 - 0.999**15))


# -- variance reduction


class Sampled:
    """VRJOBCD on a mean over samples;
    the loss of chosen calls of the closure is multiplied by a bad number."""

    def __init__(self, bad, at, *, dtype=torch.float64, **options):
        self.X = torch.nn.Parameter(jorth.random_point(SIG, cond=2.0, batch=(2,), dtype=dtype))
        self.W = torch.randn(
            (40, SIG.n, SIG.n), generator=torch.Generator().manual_seed(4), dtype=dtype
        )
        self.optimizer = VRJOBCD(
            [self.X], SIG, **(PAPER | {"lr": 0.05, "probability": 1e-9} | options)
        )
        self.bad, self.at, self.turn, self.large = bad, at, 0, []

    def step(self):
        self.large.append(self.optimizer.wants_large_batch())
        rows = slice(None) if self.large[-1] else slice(self.turn % 40, self.turn % 40 + 1)
        factor = self.bad if self.turn == self.at else 1.0

        def closure():
            self.X.grad = None
            loss = ((self.X[:, None] - self.W[rows]) ** 2).mean() * factor
            loss.backward()
            return loss

        self.optimizer.step(closure)
        self.turn += 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("at", [0, 1, 4])
@pytest.mark.parametrize("options", [{}, {"metric": "invariant"}, {"probability": 1.0}])
def test_one_loss_that_is_not_finite_costs_one_step(options, at, bad):
    for dtype in DTYPES:
        run = Sampled(bad, at, dtype=dtype, **options)
        for turn in range(8):
            before = run.X.detach().clone()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run.step()
            assert torch.equal(run.X, before) == (turn == at)
        assert torch.isfinite(run.optimizer.state[run.X]["estimate"]).all()
        assert run.large[at + 1] or at == 0 or options.get("probability") == 1.0
        assert run.large[0]
        assert run.large[1] or at != 0  # there was no estimate yet


def test_a_huge_estimate_is_refreshed():
    run = Sampled(1e30, 3, dtype=torch.float32)
    moved = []
    for _ in range(8):
        before = run.X.detach().clone()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run.step()
        moved.append(not torch.equal(run.X, before))
    assert moved == [turn != 3 for turn in range(8)]
    assert run.large == [turn in (0, 4) for turn in range(8)]
