"""Two processes take the steps of one on the joined batch, and rest together."""

import datetime
import math
import warnings
from itertools import pairwise

import pytest
import torch
import torch.distributed
import torch.distributed.fsdp
import torch.multiprocessing

import jorth
from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD, ModelOptimizer
from tests.optim.problems import Alignment

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch was built without distributed"
)
SIG = Signature(3, 2)
STEPS, ROWS = 12, 40
BAD_STEP = 2
KINDS = (JOBCD, VRJOBCD)
OPTIONS = {"lr": 0.1, "momentum": 0.5}


def run(model, forward, kind, rows, bad=()):
    """The points after each step; the loss is NaN in the steps ``bad``."""
    optimizer = kind([model.weight], SIG, **OPTIONS)
    points = []
    for step in range(STEPS):

        def closure(factor=math.nan if step in bad else 1.0):
            optimizer.zero_grad()
            loss = factor * forward(rows)
            loss.backward()
            return loss

        optimizer.step(closure)
        points.append(model.weight.detach().clone())
    return torch.stack(points)


def trained(rows, shard=False):
    """The parameters of a small network after the steps; sharded, but for the isometry, or not."""
    torch.manual_seed(0)
    isometry = jorth.nn.JOrthogonalLinear(SIG, seed=0, dtype=torch.float64)
    model = torch.nn.Sequential(isometry, torch.nn.Tanh(), torch.nn.Linear(5, 1).double())
    x = torch.randn(ROWS, 5, dtype=torch.float64)
    if shard:
        mesh = torch.distributed.init_device_mesh("cpu", (2,))
        torch.distributed.fsdp.fully_shard(model, mesh=mesh, ignored_params={isometry.weight})
    optimizer = ModelOptimizer(model, lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (model(x[rows]) - x[rows, :1] * x[rows, 4:]).square().mean().backward()
        if shard:
            torch.distributed.all_reduce(isometry.weight.grad, torch.distributed.ReduceOp.AVG)
        optimizer.step()
    return [p.full_tensor() if hasattr(p, "full_tensor") else p.data for p in model.parameters()]


def process(rank, folder):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=120),
    )
    found = {}
    for kind in KINDS:
        for name, bad in (("sound", ()), ("one bad loss", (BAD_STEP,) if rank == 1 else ())):
            model = Alignment(SIG, rows=ROWS)
            parallel = torch.nn.parallel.DistributedDataParallel(model)
            rows = torch.arange(rank, ROWS, 2)
            found[kind.__name__, name] = run(model, parallel, kind, rows, bad)
    found["sharded"] = trained(torch.arange(rank, ROWS, 2), shard=True)
    torch.save(found, f"{folder}/{rank}")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What the two processes found."""
    folder = str(tmp_path_factory.mktemp("two"))
    torch.multiprocessing.spawn(process, args=(folder,), nprocs=2)
    return [torch.load(f"{folder}/{rank}") for rank in range(2)]


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_equal_one(two, kind):
    first, second = (found[kind.__name__, "sound"][-1] for found in two)
    model = Alignment(SIG, rows=ROWS)
    alone = run(model, model, kind, torch.arange(ROWS))[-1]
    assert torch.equal(first, second)
    assert (first - torch.eye(SIG.n)).abs().max() > 0.1
    assert torch.allclose(first, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_all_processes_leave_out_the_same_step(two, kind):
    """A loss that is not finite in one process."""
    first, second = (found[kind.__name__, "one bad loss"] for found in two)
    assert torch.equal(first, second)
    rests = [torch.equal(before, after) for before, after in pairwise(first)]
    assert rests == [step == BAD_STEP for step in range(1, STEPS)]
    assert jorth.residual(first, SIG).max() < 1e-13


def test_a_sharded_model_takes_the_steps_of_one_process(two):
    for first, second, alone in zip(
        *(found["sharded"] for found in two), trained(slice(None)), strict=True
    ):
        assert torch.equal(first, second)
        assert torch.allclose(first, alone, rtol=0, atol=1e-9)
    assert jorth.residual(two[0]["sharded"][0], SIG) < 1e-13
