"""VRJOBCD: the PAGE estimator, and the loop that its interface asks for."""

import pytest
import torch

import jorth
from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD
from tests.optim.problems import Alignment

SIG = Signature(3, 2)
ROWS = 400


class Loop:
    """A training loop with its own source of batches: the part that a user writes."""

    def __init__(self, *, kind=VRJOBCD, small=20, model=None, **options):
        self.model = Alignment(SIG, rows=ROWS) if model is None else model
        self.optimizer = kind(
            [self.model.weight], SIG, **({"lr": 0.5, "metric": "embedding"} | options)
        )
        self.generator, self.small, self.samples = torch.Generator().manual_seed(0), small, 0

    def run(self, steps):
        losses = []
        for _ in range(steps):
            large = isinstance(self.optimizer, VRJOBCD) and self.optimizer.wants_large_batch()
            index = torch.randperm(ROWS, generator=self.generator)[: ROWS if large else self.small]

            def closure(index=index):
                self.model.zero_grad()
                self.samples += len(index)
                loss = self.model(index)
                loss.backward()
                return loss

            losses.append(self.optimizer.step(closure).item())
        return losses

    def gradient(self):
        """The full gradient at the current point."""
        return torch.autograd.grad(self.model(), self.model.weight)[0]


def test_the_estimate_is_page():
    """Independently: the estimate after every step, from the batches and points that were seen."""
    model, points = Alignment(SIG, rows=ROWS), []
    optimizer = VRJOBCD([model.weight], SIG, lr=0.5, probability=0.3, seed=2, metric="embedding")
    expected, refreshes = None, 0

    def gradient(X, index):
        return model.source[index].T @ (model.source[index] @ X - model.target[index]) / len(index)

    for step in range(30):
        large = optimizer.wants_large_batch()
        assert large == optimizer.wants_large_batch()
        index = torch.randperm(ROWS, generator=torch.Generator().manual_seed(step))[
            : ROWS if large else 20
        ]

        def closure(index=index):
            points.append(model.weight.detach().clone())
            model.zero_grad()
            loss = model(index)
            loss.backward()
            return loss

        points.clear()
        here = model.weight.detach().clone()
        optimizer.step(closure)
        now = gradient(here, index)
        expected = now if large else expected + now - gradient(before, index)  # noqa: F821
        assert torch.allclose(optimizer.state[model.weight]["estimate"], expected, atol=1e-12)
        assert len(points) == (1 if large else 2)
        assert torch.equal(points[-1], here)  # the last call is at the current point
        before, refreshes = here, refreshes + large  # noqa: F841
    assert 1 <= refreshes <= 22  # 9 expected, with a standard deviation of 2.5


def test_converges_where_plain_minibatches_do_not():
    reduced, plain = Loop(probability=0.1), Loop(kind=JOBCD)
    reduced.run(300)
    plain.run(300)
    slopes = [
        float(jorth.riemannian_gradient(loop.model.weight.detach(), loop.gradient(), SIG).norm())
        for loop in (reduced, plain)
    ]
    assert slopes[0] < 0.25 * slopes[1]
    assert jorth.residual(reduced.model.weight.detach(), SIG) < 100 * SIG.n * 2.0**-53


def test_state_dict_continues_bit_for_bit(tmp_path):
    options = {"probability": 0.2, "metric": "invariant", "lr": 0.05}
    loop = Loop(**options)
    loop.run(6)
    torch.save(
        [loop.model.state_dict(), loop.optimizer.state_dict(), loop.generator.get_state()],
        tmp_path / "saved",
    )
    losses = loop.run(12)
    model_state, optimizer_state, generator_state = torch.load(
        tmp_path / "saved", weights_only=True
    )
    model = Alignment(SIG, rows=ROWS)
    model.load_state_dict(model_state)
    resumed = Loop(model=model, metric="invariant")
    resumed.optimizer.load_state_dict(optimizer_state)
    resumed.generator.set_state(generator_state)
    assert resumed.run(12) == losses
    assert torch.equal(resumed.model.weight, loop.model.weight)


def test_both_evaluations_see_the_same_random_numbers_and_others_get_current_gradients():
    X, other = torch.nn.Parameter(torch.eye(SIG.n)), torch.nn.Parameter(torch.ones(()))
    optimizer = VRJOBCD([X], SIG, lr=0.1, probability=1e-9)
    drawn, gradients = [], []

    def closure():
        X.grad = other.grad = None
        mask = torch.rand(SIG.n)
        drawn.append(mask)
        loss = (X.square() * mask).sum() * other
        loss.backward()
        gradients.append(float((X.detach().square() * mask).sum()))
        return loss

    torch.manual_seed(0)
    for _ in range(3):
        loss = optimizer.step(closure)
        assert float(other.grad) == gradients[-1] == loss.item()
    assert len(drawn) == 5
    assert torch.equal(drawn[1], drawn[2])
    assert torch.equal(drawn[3], drawn[4])
    assert not torch.equal(drawn[2], drawn[3])


def test_an_error_in_the_closure_leaves_the_point():
    loop = Loop(probability=1e-9)
    loop.run(2)
    before = loop.model.weight.detach().clone()

    def closure():
        raise RuntimeError("no data")

    with pytest.raises(RuntimeError, match="no data"):
        loop.optimizer.step(closure)
    assert torch.equal(loop.model.weight, before)
