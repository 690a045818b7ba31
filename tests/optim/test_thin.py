"""JOBCD on thin parameters X (n, k) with X^T J X = diag(+-1): the weights of rectangular layers."""

import io

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.group.gradient import gradient_of_slopes, skew_gradient
from jorth.nn import JOrthogonalLinear
from jorth.optim import JOBCD, VRJOBCD, make, split_parameters
from jorth.optim.guard import settled
from tests.optim.problems import SIG

COLUMNS = Signature.of([-1, 1, 1])
OPTIONS = {
    "scheduled": {"curvature": "scheduled", "lr": 0.1},
    "momentum": {"curvature": "scheduled", "momentum": 0.8, "lr": 0.1},
    "random": {"curvature": "scheduled", "matching": "random", "rounds_per_gradient": 2, "lr": 0.1},
    "greedy": {"curvature": "scheduled", "matching": "greedy", "lr": 0.1},
    "per matrix": {"curvature": "per-matrix", "momentum": 0.9, "lr": 0.03},
    "per plane": {"curvature": "per-plane", "momentum": 0.9, "lr": 0.03, "decay": 0.99},
}
options = pytest.mark.parametrize("name", OPTIONS)
metrics = pytest.mark.parametrize("metric", ["embedding", "invariant"])


def thin_point(*batch, columns=COLUMNS, cond=4.0, seed=0, dtype=torch.float64):
    X = torch.empty(*batch, SIG.n, columns.n, dtype=dtype)
    jorth.nn.init.j_orthogonal_(X, SIG, columns=columns, cond=cond, seed=seed)
    return torch.nn.Parameter(X)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).to(dtype)


def defect(X, columns=COLUMNS):
    """max |X^T J X - J_k| / max(1, ||X||^2) in NumPy."""
    X = X.detach().double().numpy()
    gram = X.swapaxes(-1, -2) @ (SIG.signs[:, None] * X)
    norms = np.linalg.norm(X, 2, axis=(-2, -1), keepdims=True)
    return (np.abs(gram - np.diag(columns.signs)) / np.maximum(1, norms) ** 2).max()


# -- what a step is


@options
def test_an_invariant_step_is_that_of_a_full_matrix_whose_other_columns_do_not_matter(name):
    """G X^T is the same with zeros for the gradients of the other columns, so V is, too."""
    full = torch.nn.Parameter(jorth.random_point(SIG, cond=4.0, dtype=torch.float64, seed=1))
    places = [1, 0, 2]  # signs -1, 1, 1
    thin = torch.nn.Parameter(full.detach()[:, places].clone())
    optimizers = [
        JOBCD([X], SIG, metric="invariant", side=side, **OPTIONS[name])
        for X, side in ((full, "left"), (thin, "both"))
    ]
    for turn in range(5):
        thin.grad = normal(SIG.n, 3, seed=turn)
        full.grad = torch.zeros_like(full)
        full.grad[:, places] = thin.grad
        for optimizer in optimizers:
            optimizer.step()
        torch.testing.assert_close(thin, full[:, places], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("columns", [COLUMNS, Signature(1, 0), Signature(0, 2), SIG], ids=str)
def test_a_gradient_has_the_slopes_it_was_made_from(columns):
    X = thin_point(4, columns=columns).detach()
    G = normal(*X.shape)
    s = SIG.vector(X)
    S = skew_gradient(X, G, s)
    found = gradient_of_slopes(S, X, SIG)
    assert found.shape == X.shape
    torch.testing.assert_close(skew_gradient(X, found, s), S, rtol=0, atol=1e-12)


@options
@metrics
def test_a_short_step_descends_along_the_slopes(name, metric):
    X = thin_point()
    start, target = X.detach().clone(), thin_point(seed=5).detach()
    loss = lambda: (X - target).square().sum() / 2  # noqa: E731
    X.grad = (X - target).detach()
    before = loss().item()
    JOBCD([X], SIG, metric=metric, **(OPTIONS[name] | {"lr": 1e-4})).step()
    change = (X.detach() - start).norm().item()
    assert 0 < change < 0.01
    assert loss().item() < before - 1e-9


# -- training


@pytest.mark.parametrize("ends", [(COLUMNS, SIG), (SIG, COLUMNS)], ids=["embedding", "projection"])
@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("momentum", "embedding"),
        ("per plane", "embedding"),
        ("scheduled", "invariant"),
        ("per matrix", "invariant"),
    ],
)
def test_a_planted_layer_is_found(name, metric, ends):
    """The loss of the planted weight is zero."""
    planted, layer = (
        JOrthogonalLinear(*ends, cond=cond, seed=seed, dtype=torch.float64)
        for cond, seed in ((2.0, 1), (1.0, 1))
    )
    x = normal(50, layer.in_features)
    y = planted(x).detach()
    optimizer = JOBCD([layer.weight], layer.signature, metric=metric, **OPTIONS[name])
    values = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = (layer(x) - y).square().sum(dim=-1).mean() / 2
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    assert values[-1] < 1e-2 * values[0]
    assert defect(layer.weight) < 100 * SIG.n * 2.0**-53


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("metric", "components"), [("embedding", "start"), ("embedding", "all"), ("invariant", "start")]
)
def test_columns_stay_orthonormal_over_many_steps(metric, dtype, components):
    X = thin_point(2, dtype=dtype)
    optimizer = JOBCD(
        [X], SIG, metric=metric, curvature="per-plane", lr=0.05, components=components
    )
    target = X.detach().clone()
    for turn in range(200):
        X.grad = (X.detach() - target) + normal(*X.shape, seed=turn, dtype=dtype)
        optimizer.step()
    assert (X.detach() - target).abs().max() > 0.05
    assert defect(X) < 100 * SIG.n * torch.finfo(dtype).eps


def test_a_group_holds_square_and_thin_matrices():
    """Each as by itself: they share pairs and nothing else."""
    columns = (SIG, Signature(1, 1), Signature(1, 1), Signature(2, 0))
    together, alone = (
        [thin_point(columns=signs, seed=k) for k, signs in enumerate(columns)] for _ in range(2)
    )
    options = OPTIONS["per plane"]
    optimizers = [JOBCD(together, SIG, **options), *(JOBCD([X], SIG, **options) for X in alone)]
    for turn in range(4):
        for k, (X, Y) in enumerate(zip(together, alone, strict=True)):
            X.grad = normal(*X.shape, seed=10 * turn + k)
            Y.grad = X.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for X, Y in zip(together, alone, strict=True):
        torch.testing.assert_close(X, Y, rtol=0, atol=1e-12)


@options
def test_state_is_saved_and_continued_bit_for_bit(name):
    X = thin_point(2, 2)
    optimizer = JOBCD([X], SIG, **OPTIONS[name])
    X.grad = normal(*X.shape)
    optimizer.step()
    if "momentum" in optimizer.state[X]:
        assert optimizer.state[X]["momentum"].shape[-2:] == (SIG.n, SIG.n)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    Y = torch.nn.Parameter(X.detach().clone())
    continued = JOBCD([Y], SIG, **OPTIONS[name])
    continued.load_state_dict(torch.load(file, weights_only=True))
    for turn in range(3):
        X.grad = normal(*X.shape, seed=turn)
        Y.grad = X.grad.clone()
        optimizer.step()
        continued.step()
    assert torch.equal(X, Y)


@pytest.mark.parametrize("method", ["j-jobcd", "vr-j-jobcd"])
def test_layers_are_trained_by_name(method):
    layer = JOrthogonalLinear(COLUMNS, SIG, dtype=torch.float64)
    planted = JOrthogonalLinear(COLUMNS, SIG, cond=2.0, dtype=torch.float64)
    x = normal(50, COLUMNS.n)
    y = planted(x).detach()
    optimizer = make(method, layer, lr=0.1)
    assert isinstance(optimizer, VRJOBCD) == (method == "vr-j-jobcd")

    def closure():
        optimizer.zero_grad()
        loss = (layer(x) - y).square().sum(dim=-1).mean() / 2
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    for _ in range(100):
        last = optimizer.step(closure).item()
    assert last < 0.5 * first
    assert defect(layer.weight) < 100 * SIG.n * 2.0**-53


def test_an_isometric_autoencoder_is_split_and_trained():
    """Embedding, isometry and the projection that shares the weight of the embedding."""
    encoder = JOrthogonalLinear(COLUMNS, SIG, seed=1, dtype=torch.float64)
    isometry = JOrthogonalLinear(SIG, bias=True, seed=2, dtype=torch.float64)
    decoder = JOrthogonalLinear(SIG, COLUMNS, dtype=torch.float64)
    decoder.weight = encoder.weight
    model = torch.nn.Sequential(encoder, isometry, decoder)
    split = split_parameters(model)
    trained = [p for group in split.j_orthogonal for p in group["params"]]
    assert {id(p) for p in trained} == {id(encoder.weight), id(isometry.weight)}
    optimizers = [JOBCD(split.j_orthogonal), torch.optim.Adam(split.others, lr=0.01)]
    x = normal(50, COLUMNS.n)
    values = []
    for _ in range(200):
        model.zero_grad()
        loss = (model(x) - x).square().sum(dim=-1).mean()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        values.append(loss.item())
    assert values[-1] < 0.05 * values[0]
    assert decoder.weight is encoder.weight
    assert defect(encoder.weight) < 100 * SIG.n * 2.0**-53
    assert defect(isometry.weight, SIG) < 100 * SIG.n * 2.0**-53


# -- what is refused


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_may_be_written(dtype):
    """Signs of columns are those before the step; nothing beyond half the digits is written."""
    X = thin_point(8, dtype=dtype).detach()
    moved = jorth.random_point(SIG, cond=3.0, dtype=dtype, seed=7) @ X
    assert settled(moved, X, SIG)[1].all()
    assert not settled(moved.flip(-1), X, SIG)[1].any()  # signs 1, 1, -1
    assert not settled(1.01 * moved, X, SIG)[1].any()
    spoilt = moved.clone()
    spoilt[2, 0, 0] = torch.nan
    spoilt[5, 3, 1] += 0.01
    spoilt[6] *= 1e10
    assert (~settled(spoilt, X, SIG)[1]).nonzero().flatten().tolist() == [2, 5, 6]


def test_a_gradient_that_is_not_finite_moves_nothing():
    X = thin_point(2)
    start = X.detach().clone()
    optimizer = JOBCD([X], SIG, **OPTIONS["per plane"])
    X.grad = normal(*X.shape)
    X.grad[1, 0, 2] = torch.nan
    with pytest.warns(RuntimeWarning, match="a gradient is not finite"):
        optimizer.step()
    assert torch.equal(X[1], start[1])
    assert not torch.equal(X[0], start[0])


CASES = {
    "columns are not J-orthonormal": (lambda: JOBCD([torch.nn.Parameter(torch.ones(5, 3))], SIG), r"params\[0\] must have J-orthonormal columns, X\^T J X = diag\(\+-1\), for .*, got a scaled residual of .*; start with jorth.nn.init.j_orthogonal_"),
    "columns have other lengths": (lambda: JOBCD([torch.nn.Parameter(2 * thin_point().detach())], SIG), r"params\[0\] must have J-orthonormal columns"),
    "right steps": (lambda: JOBCD([thin_point()], SIG, side="right"), r"""side must be "left" or "both" for the thin params\[0\], whose rows alone have a signature, got 'right'"""),
    "decay": (lambda: JOBCD([thin_point()], SIG, weight_decay=0.1), r"weight_decay must be 0 for the thin params\[0\], got 0.1"),
    "wide": (lambda: JOBCD([torch.nn.Parameter(thin_point().detach().mT.clone())], SIG), r"params\[0\] must have shape \(..., 5, 5\) for .*, or \(..., 5, k\) with fewer columns"),
    "CSDM": (lambda: make("csdm", JOrthogonalLinear(COLUMNS, SIG)), "weight must be square for the CS form"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, message = CASES[name]
    with pytest.raises(ValueError, match=message):
        call()
