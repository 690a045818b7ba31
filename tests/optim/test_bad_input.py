"""Bad input: the error names the argument, what it got and what it expects."""

import pytest
import torch
from torch.distributed.tensor import distribute_tensor

from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD

SIG = Signature(2, 1)


def point(*shape, dtype=torch.float32):
    return torch.nn.Parameter(torch.eye(3, dtype=dtype).repeat(*shape, 1, 1))


def sparse_gradient():
    X = point()
    X.grad = torch.eye(3).to_sparse()
    JOBCD([X], SIG).step()


def sharded():
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        mesh = torch.distributed.init_device_mesh("cpu", (1,))
        JOBCD([torch.nn.Parameter(distribute_tensor(torch.eye(3), mesh))], SIG)
    finally:
        torch.distributed.destroy_process_group()


def other_signature():
    JOBCD([point()], Signature.of([1, -1, 1])).load_state_dict(JOBCD([point()], SIG).state_dict())


CASES = {
    "not J-orthogonal": (lambda: JOBCD([point(), torch.nn.Parameter(torch.full((3, 3), 0.5))], SIG), ValueError, r"params\[1\] must be J-orthogonal for Signature\(2, 1\), got a scaled residual of .*; start with jorth.nn.init.j_orthogonal_"),
    "NaN": (lambda: JOBCD([torch.nn.Parameter(torch.full((3, 3), torch.nan))], SIG), ValueError, r"params\[0\] must be finite, got 9 NaN"),
    "shape": (lambda: JOBCD([torch.nn.Parameter(torch.eye(4))], SIG), ValueError, r"params\[0\] must have shape \(..., 3, 3\) for Signature\(2, 1\)"),
    "complex": (lambda: JOBCD([point(dtype=torch.complex64)], SIG), TypeError, r"params\[0\] must be a plain tensor .*, got a torch.complex64 tensor"),
    "half precision": (lambda: JOBCD([point(dtype=torch.bfloat16)], SIG), TypeError, r"params\[0\] must be a plain tensor in float32 or float64 \(use autocast, and leave it unsharded\), got a torch.bfloat16 tensor"),
    "DTensor": (sharded, TypeError, r"params\[0\] must be a plain tensor .*unsharded"),
    "no signature": (lambda: JOBCD([point()]), TypeError, "signature must be a jorth.Signature, got None"),
    "lr": (lambda: JOBCD([point()], SIG, lr=-1.0), ValueError, r"lr must be a number in \[0, inf\), got -1.0"),
    "lr text": (lambda: JOBCD([point()], SIG, lr="fast"), ValueError, "lr must be a number .*, got 'fast'"),
    "momentum": (lambda: JOBCD([point()], SIG, momentum=1.0), ValueError, r"momentum must be a number in \[0, 1\), got 1.0"),
    "metric": (lambda: JOBCD([point()], SIG, metric="flat"), ValueError, "metric must be one of"),
    "all components": (lambda: JOBCD([point()], SIG, components="all"), ValueError, 'components must be "start" with metric="invariant"'),
    "gain_rate": (lambda: JOBCD([point()], SIG, gain_rate=1.0), ValueError, r"gain_rate must be a number in \[0, 1\), got 1.0"),
    "max_norm": (lambda: JOBCD([point()], SIG, max_norm=-1.0), ValueError, "max_norm must be a positive number, got -1.0"),
    "rounds": (lambda: JOBCD([point()], SIG, rounds_per_gradient=0), ValueError, "rounds_per_gradient must be None or at least 1, got 0"),
    "seed negative": (lambda: JOBCD([point()], SIG, seed=-1), ValueError, "seed must be at least 0, got -1"),
    "sparse gradient": (sparse_gradient, RuntimeError, "JOBCD does not take sparse gradients"),
    "state of another signature": (other_signature, ValueError, r"state_dict must be of Signature.of\(.\+-\+.\), got one of Signature\(2, 1\)"),
    "probability": (lambda: VRJOBCD([point()], SIG, probability=0.0), ValueError, r"probability must be in \(0, 1\], got 0.0"),
    "no closure": (lambda: VRJOBCD([point()], SIG).step(), TypeError, "closure must be a function .*, got None"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call()


def test_a_refused_group_is_not_kept():
    optimizer = JOBCD([point()], SIG)
    with pytest.raises(ValueError, match="must be J-orthogonal"):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3, 3))]})
    assert len(optimizer.param_groups) == 1
