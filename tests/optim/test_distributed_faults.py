"""A loss that is not finite in one process: all of them leave that step out, and stay equal."""

import datetime
import math
import warnings
from itertools import pairwise

import pytest
import torch
import torch.distributed

import jorth
from jorth.optim import JOBCD, VRJOBCD
from tests.optim.problems import SIG, Alignment
from tests.ranks.processes import in_processes

BAD_STEP = 2
OPTIONS = {"lr": 0.1, "momentum": 0.5, "curvature": "per-matrix"}


def walk(rank, kind):
    """The points after each step; the loss of rank 1 is NaN in one of them."""
    model = Alignment(SIG, rows=20)
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = kind([model.weight], SIG, **OPTIONS)
    points = []
    for step in range(6):

        def closure(factor=math.nan if rank == 1 and step == BAD_STEP else 1.0):
            optimizer.zero_grad()
            loss = factor * parallel(torch.arange(rank, 20, 2))
            loss.backward()
            return loss

        optimizer.step(closure)
        points.append(model.weight.detach().clone())
    return torch.stack(points)


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
    torch.save([walk(rank, kind) for kind in (JOBCD, VRJOBCD)], f"{folder}/{rank}")
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch was built without distributed"
)
def test_all_processes_leave_out_the_same_step(tmp_path):
    assert in_processes(process, str(tmp_path)) == [0, 0]
    first, second = (torch.load(tmp_path / str(rank)) for rank in range(2))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
        rests = [torch.equal(before, after) for before, after in pairwise(one)]
        assert rests == [step == BAD_STEP for step in range(1, 6)]
        assert jorth.residual(one, SIG).max() < 1e-13
