"""Bad input: the error names the argument, what it got and what it expects."""

import pytest
import torch
from torch.distributed.tensor import distribute_tensor

import jorth
from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD, make

SIG = Signature(2, 1)


def point(*shape, dtype=torch.float32):
    return torch.nn.Parameter(torch.eye(3, dtype=dtype).repeat(*shape, 1, 1))


def sparse_gradient():
    X = point()
    X.grad = torch.eye(3).to_sparse()
    JOBCD([X], SIG).step()


def without_gradients():
    X = point()
    X.grad = torch.ones(3, 3)
    VRJOBCD([X], SIG).step(lambda: None)


def sparse_estimate():
    X = torch.nn.Parameter(torch.eye(3))

    def closure():
        X.grad = torch.eye(3).to_sparse()

    VRJOBCD([X], SIG).step(closure)


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
    "noisy": (lambda: JOBCD([torch.nn.Parameter(torch.eye(3) + 1e-2)], SIG), ValueError, "must be J-orthogonal"),
    "one of a batch": (lambda: JOBCD([torch.nn.Parameter(torch.stack([torch.eye(3), 2 * torch.eye(3)]))], SIG), ValueError, "scaled residual of 0.75"),
    "NaN": (lambda: JOBCD([torch.nn.Parameter(torch.full((3, 3), torch.nan))], SIG), ValueError, r"params\[0\] must be finite, got 9 NaN"),
    "shape": (lambda: JOBCD([torch.nn.Parameter(torch.eye(4))], SIG), ValueError, r"params\[0\] must have shape \(..., 3, 3\) for Signature\(2, 1\)"),
    "complex": (lambda: JOBCD([point(dtype=torch.complex64)], SIG), TypeError, r"params\[0\] must hold real numbers .*, got a torch.complex64 tensor"),
    "half precision": (lambda: JOBCD([point(dtype=torch.bfloat16)], SIG), TypeError, r"params\[0\] must be a plain tensor in float32 or float64 \(use autocast, and leave it unsharded\), got a torch.bfloat16 tensor"),
    "DTensor": (sharded, TypeError, r"params\[0\] must be a plain tensor .*unsharded"),
    "no signature": (lambda: JOBCD([point()]), TypeError, "signature must be a jorth.Signature, got None; jorth.optim.split_parameters"),
    "signature a tuple": (lambda: JOBCD([{"params": [point()], "signature": (2, 1)}]), TypeError, "signature must be a jorth.Signature, got "),
    "lr": (lambda: JOBCD([point()], SIG, lr=-1.0), ValueError, r"lr must be a number in \[0, inf\), got -1.0"),
    "lr NaN": (lambda: JOBCD([point()], SIG, lr=float("nan")), ValueError, "lr must be a number"),
    "lr text": (lambda: JOBCD([point()], SIG, lr="fast"), ValueError, "lr must be a number .*, got 'fast'"),
    "momentum": (lambda: JOBCD([point()], SIG, momentum=1.0), ValueError, r"momentum must be a number in \[0, 1\), got 1.0"),
    "decay": (lambda: JOBCD([point()], SIG, decay=1.5), ValueError, "decay must be a number"),
    "eps": (lambda: JOBCD([point()], SIG, eps=-1e-8), ValueError, "eps must be a number"),
    "curvature": (lambda: JOBCD([point()], SIG, curvature="auto"), ValueError, "curvature must be one of \"scheduled\", \"per-matrix\", \"per-plane\", got 'auto'"),
    "metric": (lambda: JOBCD([point()], SIG, metric="flat"), ValueError, "metric must be one of"),
    "matching": (lambda: JOBCD([point()], SIG, matching="all"), ValueError, "matching must be one of"),
    "side": (lambda: JOBCD([point()], SIG, side="inner"), ValueError, "side must be one of"),
    "both sides": (lambda: JOBCD([point()], SIG, side="both", metric="embedding"), ValueError, 'side must be "left" or "right" with metric="embedding", got .both'),
    "components": (lambda: JOBCD([point()], SIG, components="identity"), ValueError, "components must be one of"),
    "all components": (lambda: JOBCD([point()], SIG, components="all"), ValueError, 'components must be "start" with metric="invariant"'),
    "gain_rate": (lambda: JOBCD([point()], SIG, gain_rate=1.0), ValueError, r"gain_rate must be a number in \[0, 1\), got 1.0"),
    "max_angle": (lambda: JOBCD([point()], SIG, max_angle=0.0), ValueError, "max_angle must be a positive number, got 0.0"),
    "max_norm": (lambda: JOBCD([point()], SIG, max_norm=-1.0), ValueError, "max_norm must be a positive number, got -1.0"),
    "weight_decay": (lambda: JOBCD([point()], SIG, weight_decay=-1.0), ValueError, "weight_decay must be a number"),
    "weight_decay of the paper's step": (lambda: JOBCD([point()], SIG, weight_decay=0.1, metric="embedding"), ValueError, 'weight_decay must be 0 with metric="embedding", got 0.1'),
    "decay_towards": (lambda: JOBCD([point()], SIG, decay_towards="zero"), ValueError, "decay_towards must be one of"),
    "rounds": (lambda: JOBCD([point()], SIG, rounds_per_gradient=0), ValueError, "rounds_per_gradient must be at least 1, got 0"),
    "greedy rounds": (lambda: JOBCD([point()], SIG, rounds_per_gradient=2, matching="greedy"), ValueError, 'rounds_per_gradient must be None or 1 for matching="greedy", got 2'),
    "a model": (lambda: JOBCD(torch.nn.Sequential(jorth.nn.JOrthogonalLinear(SIG))), TypeError, r"^params must be parameters, got the module Sequential; jorth.optim.split_parameters\(model\)"),
    "a layer": (lambda: JOBCD(jorth.nn.JOrthogonalLinear(SIG)), TypeError, "^params must be parameters, got the module JOrthogonalLinear; "),
    "seed": (lambda: JOBCD([point()], SIG, seed=None), TypeError, "seed must be an integer, got None"),
    "seed negative": (lambda: JOBCD([point()], SIG, seed=-1), ValueError, "seed must be at least 0, got -1"),
    "sparse gradient": (sparse_gradient, RuntimeError, "JOBCD does not take sparse gradients"),
    "sparse estimate": (sparse_estimate, RuntimeError, "VRJOBCD does not take sparse gradients"),
    "closure without gradients": (without_gradients, RuntimeError, "closure must clear all gradients .*, got one that leaves the gradients as they were"),
    "state of another signature": (other_signature, ValueError, r"state_dict must be of Signature.of\(.\+-\+.\), got one of Signature\(2, 1\)"),
    "probability": (lambda: VRJOBCD([point()], SIG, probability=0.0), ValueError, r"probability must be in \(0, 1\], got 0.0"),
    "no closure": (lambda: VRJOBCD([point()], SIG).step(), TypeError, "closure must be a function .*, got None"),
    "make, method": (lambda: make("adam", jorth.nn.JOrthogonalLinear(SIG)), ValueError, "method must be one of \"j-jobcd\", \"vr-j-jobcd\", \"csdm\", got 'adam'"),
    "make, no signature": (lambda: make("j-jobcd", torch.nn.Linear(3, 3)), TypeError, "signature must be given for a Linear, which has none, got None"),
    "make, name": (lambda: make("j-jobcd", jorth.nn.JOrthogonalLinear(SIG), name="wait"), ValueError, "name must be that of a parameter of JOrthogonalLinear, got 'wait'"),
    "make, CSDM, name": (lambda: make("csdm", jorth.nn.JOrthogonalLinear(SIG), name="wait"), ValueError, "name must be that of a parameter of JOrthogonalLinear, got 'wait'"),
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
