"""On a CUDA device: the same answers as on the CPU, and nothing read back."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.plane import apply_rows, random_matching, solve_plane
from jorth.solvers import METHODS
from tests.linalg.reference import positive_definite
from tests.plane.test_problem import random_problems

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("components", ["all", "identity"])
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_solve_plane_equals_the_cpu(components, general, dtype):
    P, Q, signs = (torch.from_numpy(t) for t in random_problems(1, 20_000))
    Q = Q if general else Q[:, 0, 0].contiguous()
    cpu = solve_plane(P.to(dtype), Q.to(dtype), signs, components=components)
    gpu = solve_plane(P.to(dtype).cuda(), Q.to(dtype).cuda(), signs.cuda(), components=components)
    size = cpu.V.abs().amax(dim=(1, 2))
    relative = (gpu.V.cpu() - cpu.V).abs().amax(dim=(1, 2)) / size
    # V is as accurate as the minimum is sharp: Q has condition up to 1e3, and ties go either way
    assert (relative > 1e4 * torch.finfo(dtype).eps).float().mean() < 1e-3
    scale = (P.abs().amax(dim=(1, 2)) + Q.abs().reshape(len(P), -1).amax(dim=1)) * size**2
    assert ((gpu.decrease.cpu() - cpu.decrease).abs() <= 64 * torch.finfo(dtype).eps * scale).all()
    assert torch.equal(gpu.unbounded.cpu(), cpu.unbounded)


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize("general", [False, True])
def test_solve_plane_does_not_synchronise(general):
    P, Q, signs = (torch.from_numpy(t).cuda() for t in random_problems(2, 100))
    Q = Q if general else Q[:, 0, 0].contiguous()
    torch.cuda.set_sync_debug_mode("error")
    try:
        solve_plane(P, Q, signs, theta=0.1, check=False)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_group_on_the_device(dtype):
    sig = Signature.of([1, -1, 1, 1, -1, 1])
    X = jorth.random_point(
        sig, cond=100.0, component=(-1, 1), batch=(3,), dtype=dtype, device="cuda"
    )
    unit = torch.finfo(dtype).eps / 2
    assert X.is_cuda
    assert jorth.residual(X, sig).amax() <= 30 * 6 * unit
    assert jorth.component(X, sig).tolist() == [[-1, 1]] * 3
    assert (jorth.inverse(X, sig) @ X - torch.eye(6, device="cuda")).abs().amax() <= 100 * 60 * unit
    assert (jorth.exchange(jorth.exchange(X, sig), sig) - X).abs().amax() <= 1e5 * unit
    assert (jorth.cs_decomposition(X, sig).compose() - X).abs().amax() <= 1e3 * unit
    assert jorth.residual(jorth.polish(X + 1e-3, sig), sig).amax() <= 30 * 6 * unit
    K = torch.randn(6, 6, dtype=dtype, device="cuda")
    K = sig.vector(K)[:, None] * (K - K.mT) / 8
    for retract in (jorth.exp, jorth.cayley):
        assert jorth.residual(retract(K, sig), sig) <= 30 * 6 * unit


def test_steps_on_the_device():
    sig = Signature(25, 26)
    X = jorth.random_point(sig, cond=100.0, device="cuda")
    pairs = random_matching(51, seed=0)
    P = torch.randn(25, 2, 2, dtype=torch.float64, device="cuda")
    V = solve_plane(P, 1.0, torch.from_numpy(sig.signs[pairs]).cuda()).V
    expected = X.cpu().numpy()
    apply_rows(X, torch.from_numpy(pairs).cuda(), V)
    apply_rows(expected, pairs, V.cpu().numpy())
    assert np.abs(X.cpu().numpy() - expected).max() < 1e-12


@pytest.mark.parametrize(
    "options", [{}, dict(accelerate=True), dict(rounds_per_gradient=5), dict(side="right")], ids=str
)
def test_jacobi_on_the_device(options):
    sig = Signature(6, 5)
    source, target, _ = jorth.datasets.planted_procrustes(40, sig, source_condition=3.0, seed=1)
    S, T = torch.from_numpy(source).cuda(), torch.from_numpy(target).cuda()
    first = (S - T).square().sum().item() / 80
    for objective in (jorth.Procrustes(S, T), lambda X: (S @ X - T).square().sum() / 80):
        x0 = torch.eye(11, dtype=torch.float64, device="cuda")
        result = jorth.minimize(
            objective,
            x0,
            signature=sig,
            method="j-jobcd",
            gradient_tolerance=0.0,
            stop=jorth.stopping.ValueBelow(1e-3 * first),
            max_time=40,
            **options,
        )
        assert result.status is jorth.Status.CONVERGED
        assert result.x.is_cuda
        assert result.residual <= 100 * 11 * 2.0**-53


@pytest.mark.parametrize("method", [name for name in METHODS if name != "j-jobcd"])
def test_other_methods_take_device_tensors(method):
    sig = Signature(6, 5)
    source, target, _ = jorth.datasets.planted_procrustes(40, sig, source_condition=3.0, seed=1)
    objective = jorth.Procrustes(torch.from_numpy(source).cuda(), torch.from_numpy(target).cuda())
    result = jorth.minimize(
        objective, signature=sig, method=method, max_time=10, gradient_tolerance=1e-3
    )
    assert result.x.is_cuda
    assert result.value <= 0.2 * result.history["value"][0]
    assert result.residual <= 100 * 11 * 2.0**-53


@pytest.mark.parametrize("p", [6, 1])
def test_right_steps_on_the_trace_diagonalise_as_on_the_cpu(p):
    sig = Signature.of(np.random.default_rng(0).permutation([1] * p + [-1] * (11 - p)))
    A = torch.from_numpy(positive_definite(11, 100.0, 1))
    runs = [
        jorth.minimize(
            jorth.HyperbolicEigenvalue(A.to(device)),
            signature=sig,
            method="j-jobcd",
            side="right",
            max_iterations=8,
            gradient_tolerance=0.0,
        )
        for device in ("cpu", "cuda")
    ]
    on_cpu, on_gpu = (run.x.cpu() for run in runs)
    assert runs[1].x.is_cuda
    torch.testing.assert_close(on_gpu, on_cpu, rtol=1e-9, atol=1e-9)
    W = on_gpu.mT @ A @ on_gpu
    assert (W - torch.diag(W.diagonal())).abs().max() < 1e-12 * W.abs().max()
    assert runs[0].evaluations.pair_updates == runs[1].evaluations.pair_updates


def test_decompositions_equal_the_cpu():
    """torch in, torch out, on the device of the input; eigh and hsvd compute on the CPU."""
    sig = Signature.of([1, -1, 1, 1, -1, 1])
    A = torch.from_numpy(jorth.random_point(sig, cond=3.0, batch=(4,), seed=0))
    thin = A[..., sig.positive[:3].tolist()].contiguous()
    b = torch.arange(24.0, dtype=torch.float64).reshape(4, 6)
    calls = {
        "eigh": lambda A, thin, b: jorth.eigh(A.mT @ A, sig)[0],
        "hsvd": lambda A, thin, b: jorth.hsvd(A, sig).S,
        "hyperbolic_qr": lambda A, thin, b: jorth.hyperbolic_qr(thin, sig)[1],
        "indefinite_lstsq": lambda A, thin, b: jorth.indefinite_lstsq(thin, b, sig),
        "polar": lambda A, thin, b: jorth.polar(A + 0.01, sig)[1],
    }
    for name, call in calls.items():
        gpu = call(A.cuda(), thin.cuda(), b.cuda())
        assert gpu.is_cuda, name
        torch.testing.assert_close(gpu.cpu(), call(A, thin, b), rtol=1e-10, atol=1e-10, msg=name)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "options", [{}, dict(rounds_per_gradient=2), dict(metric="embedding")], ids=str
)
def test_optimiser_equals_the_cpu(options, dtype):
    sig = Signature.of([1, -1, 1, 1, -1, 1])
    start = jorth.random_point(sig, cond=4.0, batch=(7,), dtype=dtype)
    pull = jorth.random_point(sig, cond=4.0, batch=(7,), seed=1, dtype=dtype)
    ends = []
    for device in ("cpu", "cuda"):
        X = torch.nn.Parameter(start.to(device, copy=True))
        optimizer = jorth.optim.JOBCD([X], sig, lr=0.05, **options)
        for _ in range(10):
            optimizer.zero_grad()
            (X - pull.to(device)).square().sum().backward()
            optimizer.step()
        assert X.device.type == device
        ends.append(X.detach().cpu())
    unit = torch.finfo(dtype).eps / 2
    assert (ends[1] - start).abs().amax() > 0.05
    # ten steps, whose averages divide by slopes that may be small
    torch.testing.assert_close(ends[1], ends[0], rtol=0, atol=1e4 * unit)
    assert jorth.residual(ends[1], sig).amax() <= 100 * 6 * unit


def test_variance_reduction_and_csdm_on_the_device():
    sig = Signature(3, 2)
    source, target, _ = jorth.datasets.planted_procrustes(40, sig, seed=1)
    x, y = torch.from_numpy(source).cuda(), torch.from_numpy(target).cuda()
    for method in ("j-jobcd", "vr-j-jobcd", "csdm"):
        layer = jorth.nn.JOrthogonalLinear(sig, dtype=torch.float64, device="cuda")
        if method == "csdm":
            jorth.nn.cs_parametrization(layer, "weight", sig)
            optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
        else:
            kind = jorth.optim.JOBCD if method == "j-jobcd" else jorth.optim.VRJOBCD
            optimizer = kind(layer.parameters(), sig, lr=0.5)

        def closure(layer=layer, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (layer(x) - y).square().mean()
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(60)]
        assert losses[-1] < 0.3 * losses[0], method
        assert layer.weight.is_cuda
        assert jorth.residual(layer.weight.detach(), sig) <= 100 * 5 * 2.0**-53


def test_batches_on_a_device_are_those_of_the_cpu():
    sig = Signature(3, 1)
    rng = np.random.default_rng(0)
    source = rng.standard_normal((200, 20, 4))
    X = jorth.random_point(sig, cond=3.0, component=(-1, 1), seed=1)
    target = source @ X + 0.1 * rng.standard_normal((200, 20, 4))
    here = jorth.procrustes(source, target, sig)
    there = jorth.procrustes(torch.from_numpy(source).cuda(), torch.from_numpy(target).cuda(), sig)
    assert there.x.device.type == "cuda"
    assert there.success.all()
    np.testing.assert_allclose(there.value.cpu().numpy(), here.value, rtol=1e-10)


@pytest.mark.parametrize("norm", [2.0, 300.0])
def test_averages_equal_the_cpu(norm):
    sig = Signature.of([1, -1, 1, 1, -1, 1])
    start = jorth.random_point(sig, cond=norm**2, batch=(3,), dtype=torch.float64)
    K = 0.2 * torch.randn(50, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    turns = jorth.exp(sig.vector(K)[:, None] * (K - K.mT), sig)
    found = []
    for device in ("cpu", "cuda"):
        layer = jorth.nn.JOrthogonalLinear(sig, batch=(3,), dtype=torch.float32, device=device)
        ema = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        averaged = jorth.optim.AveragedModel(layer, multi_avg_fn=ema)
        for turn in turns:
            with torch.no_grad():
                layer.weight.copy_(turn @ start)
            averaged.update_parameters(layer)
        found.append(averaged.module.weight.detach().cpu())
    assert jorth.residual(found[1], sig).max() < 10 * sig.n * 2.0**-24
    assert (found[0] - found[1]).abs().max() < 1e-5 * norm**2 * found[0].abs().max()
