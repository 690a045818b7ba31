"""Two processes under DistributedDataParallel take the steps of one process on the joined batch."""

import datetime

import pytest
import torch
import torch.distributed

from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD
from tests.optim.problems import Alignment
from tests.ranks.processes import in_processes

SIG = Signature(3, 2)
STEPS, ROWS = 12, 40
KINDS = (JOBCD, VRJOBCD)
OPTIONS = {"lr": 0.1, "momentum": 0.5, "curvature": "per-matrix"}


def run(model, forward, kind, rows):
    optimizer = kind([model.weight], SIG, **OPTIONS)
    for _ in range(STEPS):

        def closure():
            optimizer.zero_grad()
            loss = forward(rows)
            loss.backward()
            return loss

        optimizer.step(closure)
    return model.weight.detach()


def process(rank, folder):
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=2,
        timeout=datetime.timedelta(seconds=60),
    )
    found = {}
    for kind in KINDS:
        model = Alignment(SIG, rows=ROWS)
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        found[kind.__name__] = run(model, parallel, kind, torch.arange(rank, ROWS, 2))
    torch.save(found, f"{folder}/{rank}")
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch was built without distributed"
)
def test_two_processes_equal_one(tmp_path):
    assert in_processes(process, str(tmp_path)) == [0, 0]
    first, second = (torch.load(tmp_path / str(rank)) for rank in range(2))
    for kind in KINDS:
        model = Alignment(SIG, rows=ROWS)
        alone = run(model, model, kind, torch.arange(ROWS))
        found = first[kind.__name__]
        assert torch.equal(found, second[kind.__name__])
        assert (found - torch.eye(SIG.n)).abs().max() > 0.1
        assert torch.allclose(found, alone, rtol=0, atol=1e-12)
