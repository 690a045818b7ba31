"""Two processes with sharded parameters (FSDP2, tensor parallel, both) take the steps of one."""

import datetime
import warnings

import pytest
import torch
import torch.distributed
import torch.multiprocessing

import jorth
from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD

fsdp = pytest.importorskip("torch.distributed.fsdp", reason="torch was built without distributed")
pytestmark = pytest.mark.skipif(
    not hasattr(fsdp, "fully_shard"), reason="fully_shard came with torch 2.6"
)
SIG = Signature.of([1, -1, 1, 1, -1])
EVEN = Signature(4, 2)  # torch's tensor parallelism wants even shards
STEPS, ROWS = 8, 40
OPTIONS = {"lr": 0.03, "momentum": 0.5, "curvature": "per-matrix"}
FIRST, SECOND = 5, 3
"""Steps before and after a checkpoint."""


class Net(torch.nn.Module):
    """Two isometries, and a batch of ``count`` more."""

    signature = SIG

    def __init__(self, count=3, dtype=torch.float64):
        super().__init__()
        self.first, self.second = (
            jorth.nn.JOrthogonalLinear(SIG, cond=2.0, seed=seed, dtype=torch.float64)
            for seed in (1, 2)
        )
        self.several = jorth.nn.JOrthogonalLinear(
            SIG, batch=(count,), cond=2.0, seed=3, dtype=torch.float64
        )
        self.to(dtype)
        draw = torch.Generator().manual_seed(4)
        self.x, self.y = torch.randn((2, ROWS, SIG.n), generator=draw, dtype=torch.float64).to(
            dtype
        )

    def forward(self, rows=slice(None)):
        middle = self.second(self.first(self.x[rows]).tanh())
        ends = self.several(middle[:, None].expand(-1, *self.several.batch, -1)).tanh()
        return (ends.mean(dim=1) - self.y[rows]).square().sum(-1).mean()


class Pair(torch.nn.Module):
    """Two plain linear layers whose weights are J-orthogonal."""

    signature = EVEN

    def __init__(self):
        super().__init__()
        self.up, self.down = (
            torch.nn.Linear(EVEN.n, EVEN.n, bias=False, dtype=torch.float64) for _ in range(2)
        )
        for seed, layer in enumerate((self.up, self.down)):
            jorth.nn.init.j_orthogonal_(layer.weight, EVEN, cond=2.0, seed=seed)
        draw = torch.Generator().manual_seed(4)
        self.x, self.y = torch.randn((2, ROWS, EVEN.n), generator=draw, dtype=torch.float64)

    def forward(self, rows=slice(None)):
        return (self.down(self.up(self.x[rows]).tanh()) - self.y[rows]).square().sum(-1).mean()


def train(model, optimizer, steps, rows=slice(None)):
    for _ in range(steps):
        optimizer.zero_grad()
        model(rows).backward()
        optimizer.step()


def whole(model):
    """The parameters by name, gathered."""
    return {
        name: p.full_tensor() if hasattr(p, "full_tensor") else p.detach().clone()
        for name, p in model.named_parameters()
    }


def alone(model=None, **options):
    """The parameters after the steps of one process."""
    model = model or Net()
    train(model, JOBCD(model.parameters(), model.signature, **(OPTIONS | options)), STEPS)
    return whole(model)


# -- what the two processes do


def fully_sharded(model, mesh=None):
    from torch.distributed.fsdp import fully_shard

    for layer in model.children():
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def tensor_split(model, mesh):
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


def by_fsdp(rank, folder, model=None, **options):
    model = fully_sharded(model or Net())
    optimizer = JOBCD(model.parameters(), model.signature, **(OPTIONS | options))
    train(model, optimizer, STEPS, torch.arange(rank, ROWS, 2))
    return model, optimizer


def fsdp(rank, folder):
    model, optimizer = by_fsdp(rank, folder)
    state = optimizer.state[model.several.weight], optimizer.state[model.first.weight]
    return whole(model) | {
        "own matrices": state[0]["momentum"].to_local().shape[0],
        "steps of own matrices": state[0]["step"].to_local().shape[0],
        "whole matrices": tuple(state[1]["momentum"].to_local().shape[-2:]),
    }


def first_on_meta(rank, folder):
    """Sharded before there are any data; each layer then draws what it would have drawn."""
    with torch.device("meta"):
        model = Net()
    fully_sharded(model).to_empty(device="cpu")
    for seed, layer in enumerate(model.children(), start=1):
        layer.reset_parameters(seed)
    return whole(model)


def an_empty_shard(rank, folder):
    return whole(by_fsdp(rank, folder, Net(count=1))[0])


def columns_and_greedy(rank, folder):
    return whole(by_fsdp(rank, folder, Pair(), side="right", matching="greedy")[0])


def greedy_pairs(rank, folder):
    """Of matrices that both have, beside those that only one has."""
    return whole(by_fsdp(rank, folder, matching="greedy")[0])


def half_precision(rank, folder):
    model, optimizer = by_fsdp(rank, folder, Net(dtype=torch.bfloat16))
    masters = {
        f"master of {name}": optimizer.state[p]["master"].full_tensor()
        for name, p in model.named_parameters()
    }
    return whole(model) | masters


def mixed_precision(rank, folder):
    """Float32 shards, products in bfloat16."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    layer = jorth.nn.JOrthogonalLinear(SIG, seed=1)
    fully_shard(layer, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    optimizer = JOBCD([layer.weight], SIG, **OPTIONS)
    x = torch.randn(ROWS, SIG.n, generator=torch.Generator().manual_seed(rank))
    losses, dtypes = [], []
    for _ in range(30):
        optimizer.zero_grad()
        y = layer(x)
        loss = (y.float() - x.roll(1, dims=1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        dtypes.append(y.dtype)
    return {"losses": losses, "dtype": dtypes[0], "weight": layer.weight.full_tensor().detach()}


def one_bad_gradient(rank, folder):
    """Of one row, which one process has."""
    model = fully_sharded(Net())
    optimizer = JOBCD(model.parameters(), model.signature, **OPTIONS)
    before = whole(model)
    model(torch.arange(rank, ROWS, 2)).backward()
    gradient = model.first.weight.grad.to_local()
    if rank == 1:
        gradient[0, 0] = torch.nan
    optimizer.step()
    after = whole(model)
    return {name: torch.equal(before[name], after[name]) for name in before}


def tensor_parallel(rank, folder):
    from torch.distributed.device_mesh import init_device_mesh

    model = tensor_split(Pair(), init_device_mesh("cpu", (2,)))
    train(model, JOBCD(model.parameters(), model.signature, **OPTIONS), STEPS)
    return whole(model)


def both(rank, folder):
    """FSDP on one dimension of the mesh, tensor parallelism on the other: strided shards."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("data", "tensor"))
    model = fully_sharded(tensor_split(Pair(), mesh["tensor"]), mesh["data"])
    optimizer = JOBCD(model.parameters(), model.signature, **OPTIONS)
    train(model, optimizer, STEPS)
    return whole(model)


def a_sharded_layer(rank, folder):
    """A layer of ours that `distribute_module` splits by rows of its weight."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor

    def split(_, layer, mesh):
        weight = distribute_tensor(layer.weight.detach(), mesh, [Shard(0)])
        layer.weight = torch.nn.Parameter(weight)

    def prepare(_, inputs, mesh):
        return distribute_tensor(inputs[0], mesh, [Replicate()])

    model, mesh = Net(), init_device_mesh("cpu", (2,))
    distribute_module(model.first, mesh, split, prepare, lambda _, y, mesh: y.full_tensor())
    train(model, JOBCD(model.parameters(), model.signature, **OPTIONS), STEPS)
    return whole(model)


def checkpoint(rank, folder):
    import torch.distributed.checkpoint as files
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    rows = torch.arange(rank, ROWS, 2)
    model = fully_sharded(Net())
    optimizer = JOBCD(model.parameters(), model.signature, **OPTIONS)
    train(model, optimizer, FIRST, rows)
    weights, state = get_state_dict(model, optimizer)
    files.save({"model": weights, "optimizer": state}, checkpoint_id=f"{folder}/checkpoint")
    train(model, optimizer, SECOND, rows)

    resumed = fully_sharded(Net())
    fresh = JOBCD(resumed.parameters(), SIG, **OPTIONS)
    weights, state = get_state_dict(resumed, fresh)
    files.load({"model": weights, "optimizer": state}, checkpoint_id=f"{folder}/checkpoint")
    set_state_dict(resumed, fresh, model_state_dict=weights, optim_state_dict=state)
    train(resumed, fresh, SECOND, rows)
    gathered = full_state(model, optimizer)
    loaded = fully_sharded(Net())
    other = JOBCD(loaded.parameters(), SIG, **OPTIONS)
    load_full_state(loaded, other, gathered)
    same = full_state(loaded, other)
    return {
        "on": whole(model),
        "resumed": whole(resumed),
        "turn": fresh.param_groups[0]["turn"],
        "gathered": gathered["state"],
        "loaded": same["state"],
    }


def full_state(model, optimizer):
    """The state of the optimiser, gathered into plain tensors."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

    options = StateDictOptions(full_state_dict=True)
    return get_optimizer_state_dict(model, optimizer, options=options)


def load_full_state(model, optimizer, state):
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_optimizer_state_dict

    options = StateDictOptions(full_state_dict=True)
    set_optimizer_state_dict(model, optimizer, state, options=options)


def zero_redundancy(rank, folder):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = Net()
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=JOBCD, signature=SIG, **OPTIONS
    )
    train(parallel, optimizer, STEPS, torch.arange(rank, ROWS, 2))
    return whole(model)


def refused(rank, folder):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial

    model = fully_sharded(Pair())
    with torch.no_grad():
        model.down.weight.mul_(2)
    half = torch.eye(EVEN.n) / 2
    summands = DTensor.from_local(half, init_device_mesh("cpu", (2,)), [Partial()])
    found = []
    for kind, parameter in (
        (VRJOBCD, model.up.weight),
        (JOBCD, model.down.weight),
        (JOBCD, torch.nn.Parameter(summands)),
    ):
        try:
            kind([parameter], model.signature)
        except (TypeError, ValueError) as error:
            found.append(str(error))
    return found


JOBS = (
    fsdp,
    first_on_meta,
    an_empty_shard,
    columns_and_greedy,
    greedy_pairs,
    half_precision,
    mixed_precision,
    one_bad_gradient,
    tensor_parallel,
    both,
    a_sharded_layer,
    checkpoint,
    zero_redundancy,
    refused,
)


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
    torch.save({job.__name__: job(rank, folder) for job in JOBS}, f"{folder}/{rank}")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the two processes have left what they found."""
    folder = str(tmp_path_factory.mktemp("sharded"))
    torch.multiprocessing.spawn(process, args=(folder,), nprocs=2)
    return folder


@pytest.fixture(scope="module")
def two(folder):
    return [torch.load(f"{folder}/{rank}") for rank in range(2)]


# -- what they found


def assert_alike(found, expected, tolerance=1e-12):
    for name, matrix in expected.items():
        assert (found[name] - matrix).abs().max() < tolerance, name


@pytest.mark.parametrize(
    ("job", "model", "options"),
    [
        (fsdp, Net, {}),
        (an_empty_shard, lambda: Net(count=1), {}),
        (columns_and_greedy, Pair, {"side": "right", "matching": "greedy"}),
        (tensor_parallel, Pair, {}),
        (both, Pair, {}),
        (a_sharded_layer, Net, {}),
        (zero_redundancy, Net, {}),
    ],
)
def test_two_processes_equal_one(two, job, model, options):
    start, expected = whole(model()), alone(model(), **options)
    assert all((expected[name] - start[name]).abs().max() > 1e-3 for name in start)
    for found in two:
        assert_alike(found[job.__name__], expected)


def test_a_batch_is_stepped_where_it_is(two):
    counts = [found["fsdp"]["own matrices"] for found in two]
    assert sorted(counts) == [1, 2]
    assert [found["fsdp"]["steps of own matrices"] for found in two] == counts
    assert all(found["fsdp"]["whole matrices"] == (SIG.n, SIG.n) for found in two)


def test_greedy_pairs_of_shared_matrices_are_shared(two):
    """Rows from two different steps would not be those of a J-orthogonal matrix."""
    first, second = (found["greedy_pairs"] for found in two)
    for name, start in whole(Net()).items():
        assert torch.equal(first[name], second[name])
        assert not torch.equal(first[name], start)
        assert torch.as_tensor(jorth.residual(first[name], SIG)).max() < 1e-14


def test_layers_are_drawn_in_shards(two):
    """The same matrices, bit for bit, in half and in full."""
    expected = whole(Net())
    for found in two:
        assert all(torch.equal(found["first_on_meta"][name], X) for name, X in expected.items())


def test_masters_of_sharded_parameters(two):
    """Equal on both processes, J-orthogonal, and rounded into the parameters."""
    first, second = (found["half_precision"] for found in two)
    start = whole(Net(dtype=torch.bfloat16))
    for name, before in start.items():
        master = first[f"master of {name}"]
        assert torch.equal(master, second[f"master of {name}"])
        assert torch.equal(first[name], master.bfloat16())
        assert not torch.equal(first[name], before)
        residual = torch.as_tensor(jorth.residual(master, SIG)).max()
        assert residual < 100 * SIG.n * 2.0**-24


def test_mixed_precision_keeps_float32_weights_on_the_group(two):
    for found in two:
        job = found["mixed_precision"]
        assert job["dtype"] == torch.bfloat16
        assert job["weight"].dtype == torch.float32
        assert job["losses"][-1] < 0.9 * job["losses"][0]
        assert jorth.residual(job["weight"], SIG) < 100 * SIG.n * 2.0**-24


def test_a_gathered_state_is_whole(two):
    for found in two:
        gathered, loaded = found["checkpoint"]["gathered"], found["checkpoint"]["loaded"]
        assert gathered.keys() == loaded.keys()
        assert len(gathered["several.weight"]["momentum"]) == 3
        for name, entries in gathered.items():
            for key, value in entries.items():
                assert type(value) is torch.Tensor
                assert torch.equal(value, loaded[name][key]), (name, key)


def test_a_bad_gradient_on_one_process_rests_the_matrix_on_both(two):
    for found in two:
        assert found["one_bad_gradient"] == {
            "first.weight": True,
            "second.weight": False,
            "several.weight": False,
        }


def test_a_checkpoint_goes_on(two):
    for found in two:
        job = found["checkpoint"]
        assert job["turn"] == FIRST + SECOND
        for name, matrix in job["on"].items():
            assert torch.equal(matrix, job["resumed"][name])


def test_a_checkpoint_of_two_processes_goes_on_in_one(two, folder):
    import torch.distributed.checkpoint as files
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

    model = Net()
    optimizer = JOBCD(model.parameters(), model.signature, **OPTIONS)
    weights, state = get_state_dict(model, optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files.load(
            {"model": weights, "optimizer": state},
            checkpoint_id=f"{folder}/checkpoint",
            no_dist=True,
        )
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=state)
    train(model, optimizer, SECOND)
    assert_alike(two[0]["checkpoint"]["on"], whole(model))


def test_what_is_refused(two):
    for found in two:
        estimate, infeasible, summands = found["refused"]
        assert "params[0] must be a plain tensor" in estimate
        assert "Shard(dim=0)" in estimate
        assert "params[0] must be J-orthogonal" in infeasible
        assert "params[0] must have placements that torch can gather and split again" in summands
        assert "Partial(sum)" in summands
        assert "ignored_params" in summands
