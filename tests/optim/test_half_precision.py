"""Parameters in bfloat16 and float16: a float32 master in the state, rounded into the parameter."""

import copy
import math
import pickle

import pytest
import torch

import jorth
from jorth import Signature
from jorth.optim import JOBCD, VRJOBCD
from tests.optim.problems import SIG, STRATEGIES

HALF = [torch.bfloat16, torch.float16]
LIMIT = 100 * SIG.n * 2.0**-24
"""Of the residual of a float32 matrix."""


def weights(dtype, count=3, cond=4.0, seed=0):
    X = jorth.random_point(SIG, cond=cond, batch=(count,), dtype=torch.float32, seed=seed)
    return torch.nn.Parameter(X.to(dtype))


def step(optimizer, p, seed, scale=1.0):
    draw = torch.Generator().manual_seed(seed)
    p.grad = scale * torch.randn(p.shape, generator=draw).to(p.dtype)
    optimizer.step()


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", STRATEGIES)
def test_steps_are_those_of_float32(name, dtype):
    """Of a float32 parameter that starts where the master does and sees the same gradients."""
    options = {"lr": 0.1} | STRATEGIES[name]
    p = weights(dtype)
    full = torch.nn.Parameter(jorth.polish(p.detach().double(), SIG).float())
    optimizer, reference = JOBCD([p], SIG, **options), JOBCD([full], SIG, **options)
    for turn in range(12):
        step(optimizer, p, turn, 0.1)
        full.grad = p.grad.float()
        reference.step()
        master = optimizer.state[p]["master"]
        assert torch.equal(master, full)
        assert torch.equal(p, full.to(dtype))
    assert p.dtype == dtype
    assert jorth.residual(master, SIG).max() < LIMIT
    assert {value.dtype for value in optimizer.state[p].values()} == {torch.float32}


@pytest.mark.parametrize("dtype", HALF)
def test_the_master_starts_near_the_parameter(dtype):
    """From a rounding error of u |X| polishing moves X by some u ||X||^2 ||X||."""
    p = weights(dtype)
    given = p.detach().float()
    optimizer = JOBCD([p], SIG, lr=1e-6)
    step(optimizer, p, 0, 1e-6)
    moved = torch.linalg.matrix_norm(optimizer.state[p]["master"] - given)
    norm = torch.linalg.matrix_norm(given)
    assert (moved > 0).all()
    assert (moved < torch.finfo(dtype).eps * norm**3).all()


@pytest.mark.parametrize("dtype", HALF)
def test_thin_parameters_have_thin_masters(dtype):
    """Columns of a J-orthogonal matrix, with signs of their own."""
    columns = Signature.of([-1, 1, 1])
    p = torch.nn.Parameter(torch.empty(2, SIG.n, 3, dtype=dtype))
    jorth.nn.init.j_orthogonal_(p, SIG, columns=columns, cond=4.0, seed=2)
    before = p.detach().clone()
    optimizer = JOBCD([p], SIG, lr=0.05, curvature="per-plane", momentum=0.9)
    for turn in range(5):
        step(optimizer, p, turn)
    master = optimizer.state[p]["master"]
    assert torch.equal(p, master.to(dtype))
    assert not torch.equal(p, before)
    gram = torch.diag(columns.vector(master))
    assert jorth.residual(master, SIG, gram=gram).max() < LIMIT


def test_small_steps_are_not_lost():
    """A step changes no entry by half a unit in its last place; in the master they add up."""
    turn = torch.eye(SIG.n)
    turn[0, 0] = turn[2, 2] = turn[2, 0] = math.sqrt(0.5)
    turn[0, 2] = -math.sqrt(0.5)  # entries 0 and 2 have the same sign
    p = torch.nn.Parameter(turn.bfloat16())
    before = p.detach().float()
    optimizer = JOBCD([p], SIG, lr=1e-3, metric="embedding", curvature="scheduled")
    generator = torch.zeros(SIG.n, SIG.n)
    generator[0, 2], generator[2, 0] = 0.5, -0.5
    last, largest = None, 0.0
    for _ in range(100):
        p.grad = (generator @ before).bfloat16()
        optimizer.step()
        master = optimizer.state[p]["master"].clone()
        largest = max(largest, 0.0 if last is None else float((master - last).abs().max()))
        last = master
    assert 0 < largest < 0.5 * 2.0**-8  # the last place of numbers from 0.5 to 1
    assert (p.detach().float() - before).abs().max() > 10 * largest
    assert jorth.residual(last, SIG) < LIMIT


@pytest.mark.parametrize("dtype", HALF)
def test_a_parameter_that_others_write_is_taken_over(dtype):
    """One matrix of three; another is so large by now that its rounding could be no start."""
    p, other = weights(dtype), weights(dtype, seed=9)
    optimizer = JOBCD([p], SIG, lr=0.1)
    step(optimizer, p, 0)
    far = jorth.random_point(SIG, cond=1e5, dtype=torch.float32, seed=3)
    optimizer.state[p]["master"][2] = far
    with torch.no_grad():
        p[2] = far
    twin, alone = copy.deepcopy((p, optimizer))
    with torch.no_grad():
        p[1] = other[1]
    step(optimizer, p, 5, 1e-3)
    step(alone, twin, 5, 1e-3)
    master, undisturbed = optimizer.state[p]["master"], alone.state[twin]["master"]
    assert torch.equal(master[::2], undisturbed[::2])
    assert not torch.equal(master[2], far)
    taken = jorth.polish(other[1].detach().double(), SIG).float()
    assert 0 < (master[1] - taken).norm() < 0.1
    assert jorth.residual(master, SIG).max() < LIMIT


@pytest.mark.parametrize("dtype", HALF)
def test_what_cannot_be_taken_over_is_refused(dtype):
    p = weights(dtype)
    optimizer = JOBCD([p], SIG)
    step(optimizer, p, 0)
    with torch.no_grad():
        p.mul_(1.5)
    before = p.detach().clone()
    with pytest.raises(ValueError, match=r"up to the rounding of .*0\.3\d of its norm away"):
        step(optimizer, p, 1)
    assert torch.equal(p, before)


@pytest.mark.parametrize("cond", [1e3, 1e6])
def test_a_matrix_that_rounding_destroys_is_refused(cond):
    X = jorth.random_point(Signature(1, 1), cond=cond, dtype=torch.float32)
    with pytest.raises(ValueError, match=r"must be J-orthogonal .* up to the rounding"):
        JOBCD([torch.nn.Parameter(X.bfloat16())], Signature(1, 1))


@pytest.mark.parametrize("rest", ["lr", "gradient"])
def test_a_matrix_that_rests_keeps_its_bits(rest):
    """Polishing alone does not change the parameter."""
    p = weights(torch.bfloat16)
    before = p.detach().clone()
    optimizer = JOBCD([p], SIG, lr=0.0 if rest == "lr" else 0.1)
    p.grad = torch.ones_like(p)
    if rest == "gradient":
        p.grad[:2] = torch.nan
        with pytest.warns(RuntimeWarning, match="2 of 3 matrices stay"):
            optimizer.step()
    else:
        optimizer.step()
    assert torch.equal(p[:2], before[:2])
    assert torch.equal(p[2], before[2]) == (rest == "lr")


def by_state_dict(p, optimizer, folder):
    torch.save({"p": p, "optimizer": optimizer.state_dict()}, folder / "checkpoint.pt")
    saved = torch.load(folder / "checkpoint.pt", weights_only=True)
    fresh = JOBCD([saved["p"]], SIG)
    fresh.load_state_dict(saved["optimizer"])
    return saved["p"], fresh


WAYS = {
    "state_dict": by_state_dict,
    "deepcopy": lambda p, optimizer, _: copy.deepcopy((p, optimizer)),
    "pickle": lambda p, optimizer, _: pickle.loads(pickle.dumps((p, optimizer))),
}


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("way", WAYS)
def test_a_saved_master_goes_on_bit_for_bit(way, dtype, tmp_path):
    p = weights(dtype, cond=2.0)
    optimizer = JOBCD([p], SIG, lr=0.05, curvature="per-plane", momentum=0.9, metric="invariant")
    for turn in range(6):
        step(optimizer, p, turn)
    twin, resumed = WAYS[way](p, optimizer, tmp_path)
    for turn in range(6, 12):
        step(optimizer, p, turn)
        step(resumed, twin, turn)
    assert torch.equal(p, twin)
    for name, value in optimizer.state[p].items():
        assert torch.equal(value, resumed.state[twin][name]), name
        assert resumed.state[twin][name].dtype == torch.float32


def test_hooks_of_loading_see_tensors():
    """Those of users run before the state is kept from rounding."""
    p = weights(torch.bfloat16)
    optimizer = JOBCD([p], SIG)
    step(optimizer, p, 0)
    seen = []

    def halved(_, state_dict):
        state_dict["state"][0]["master"] = state_dict["state"][0]["master"].clone()
        seen.append(state_dict["state"][0]["master"])

    fresh = JOBCD([p], SIG)
    fresh.register_load_state_dict_pre_hook(halved)
    fresh.register_load_state_dict_post_hook(lambda own: seen.append(own.state[p]["master"]))
    fresh.load_state_dict(optimizer.state_dict())
    assert [type(value) for value in seen] == [torch.Tensor, torch.Tensor]
    assert torch.equal(seen[0], seen[1])
    assert len(fresh._optimizer_load_state_dict_pre_hooks) == 1


def test_variance_reduction_has_its_estimate_in_float32():
    p = weights(torch.bfloat16)
    optimizer = VRJOBCD([p], SIG, lr=0.05, probability=0.3)
    noise = torch.randn((40, SIG.n, SIG.n), generator=torch.Generator().manual_seed(1))
    targets = torch.eye(SIG.n) + 0.1 * noise
    losses = []
    for turn in range(60):
        rows = slice(None) if optimizer.wants_large_batch() else slice(turn % 30, turn % 30 + 10)

        def closure(rows=rows):
            optimizer.zero_grad()
            loss = (p[:, None].float() - targets[rows]).square().sum(dim=(-2, -1)).mean()
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    assert optimizer.state[p]["estimate"].dtype == torch.float32
    assert losses[-1] < 0.3 * losses[0]
    assert jorth.residual(optimizer.state[p]["master"], SIG).max() < LIMIT


# -- autocast


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_step_inside_autocast_is_not_rounded(name):
    ends = []
    for on in (True, False):
        p = torch.nn.Parameter(weights(torch.float32).detach().clone())
        optimizer = JOBCD([p], SIG, **({"lr": 0.1} | STRATEGIES[name]))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=on):
            for turn in range(3):
                step(optimizer, p, turn)
        ends.append(p.detach())
    assert torch.equal(*ends)


@pytest.mark.parametrize("dtype", HALF)
def test_a_model_in_half_precision_learns(dtype):
    layer = jorth.nn.JOrthogonalLinear(SIG, seed=1, cond=2.0).to(dtype)
    optimizer = JOBCD([layer.weight], SIG, lr=0.02, momentum=0.9, curvature="per-matrix")
    x = torch.randn(256, SIG.n, generator=torch.Generator().manual_seed(0))
    planted = jorth.random_point(SIG, cond=2.0, seed=7, dtype=torch.float32)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = (layer(x.to(dtype)).float() - x @ planted.mT).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 1e-3 * losses[0]
    assert jorth.residual(optimizer.state[layer.weight]["master"], SIG) < LIMIT
