"""Layers on the pseudo-hyperboloid: formulas, isometries, norms at first, and torch's conventions."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.nn import (
    HyperbolicMLR,
    JOrthogonalLinear,
    LorentzAttention,
    LorentzCentroid,
    LorentzLinear,
    LorentzResidual,
)
from jorth.ultrahyperbolic import (
    centroid,
    distance,
    exp,
    inner,
    lift,
    log,
    membership,
    origin,
    project_tangent,
)

SIGS = [
    Signature(4, 1),
    Signature.lorentz(4, time="first"),
    Signature(3, 2),
    Signature(0, 3),
    Signature.of([-1, 1, 1, -1, 1, -1]),
]
DTYPES = [torch.float64, torch.float32]
POINTS = 6


def points(sig, *shape, seed=0, spread=0.4, alpha=1.0, dtype=torch.float64):
    """Points of U around the origin, so that their sums are timelike, on one sheet for q = 1."""
    rng = np.random.default_rng(seed)
    x = spread * rng.standard_normal((*shape, sig.n))
    x[..., sig.negative[0]] = 1.0 + np.abs(x[..., sig.negative[0]])
    return torch.from_numpy(lift(alpha * x, sig, alpha=alpha)).to(dtype)


def small_turn(layer, sig):
    """Isometries near the identity, which join all points with their images."""
    for module in layer.modules():
        if isinstance(module, JOrthogonalLinear):
            batch = module.weight.shape[:-2]
            rng = np.random.default_rng(3)
            M = 0.05 * rng.standard_normal((*batch, sig.n, sig.n))
            K = sig.signs[:, None] * (M - np.swapaxes(M, -1, -2))
            with torch.no_grad():
                module.weight.copy_(torch.from_numpy(jorth.exp(K, sig)))
    return layer


def field(sig, dtype):
    """A module whose result is a vector, not a point."""
    linear = torch.nn.Linear(sig.n, sig.n, dtype=dtype)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return torch.nn.Sequential(linear, torch.nn.Tanh())


MAKE = {
    "linear": lambda sig, **o: LorentzLinear(sig, cond=2.0, **o),
    "linear, radius": lambda sig, **o: LorentzLinear(sig, learn_radius=True, **o),
    "centroid": lambda sig, **o: LorentzCentroid(sig, POINTS, **o),
    "attention": lambda sig, **o: LorentzAttention(sig, 3, **o),
    "mlr": lambda sig, **o: HyperbolicMLR(sig, 4, **o),
    "residual, vector": lambda sig, **o: LorentzResidual(
        field(sig, o.get("dtype")), sig, gate=0.3, **o
    ),
    "residual, point": lambda sig, **o: LorentzResidual(
        LorentzLinear(sig, **o), sig, output="point", gate=0.3, **o
    ),
}
TO_POINTS = [name for name in MAKE if name != "mlr"]


def layer_of(name, sig, dtype=torch.float64, alpha=1.0):
    layer = MAKE[name](sig, dtype=dtype, alpha=alpha)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, parameter in layer.named_parameters():
            if key in ("log_factor", "logits", "offset"):
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return small_turn(layer, sig) if sig.q > 1 else layer


def radius_of(layer, place=()):
    radius = layer.radius
    return radius.detach()[place].item() if isinstance(radius, torch.Tensor) else radius


def fits(name, sig):
    return name != "mlr" or sig.p > 0


CASES = [(name, sig) for name, sig in itertools.product(MAKE, SIGS) if fits(name, sig)]
each_layer = pytest.mark.parametrize(("name", "sig"), CASES, ids=str)
some_layers = pytest.mark.parametrize(
    ("name", "sig"), [(name, Signature.lorentz(4)) for name in MAKE], ids=str
)


# -- what holds for all


@pytest.mark.parametrize("dtype", DTYPES)
@each_layer
def test_results_are_points_of_the_manifold(name, sig, dtype):
    layer = layer_of(name, sig, dtype, alpha=0.7)
    x = points(sig, 5, POINTS, alpha=0.7, dtype=dtype)
    y = layer(x)
    assert y.dtype == dtype
    assert torch.isfinite(y).all()
    if name not in TO_POINTS:
        assert y.shape == (5, POINTS, 4)
        return
    assert y.shape == ((5, sig.n) if name == "centroid" else x.shape)
    alpha = radius_of(layer) if name.startswith("linear") else 0.7
    y = y.detach().double()
    off = (inner(y, y, sig) + alpha**2).abs().max()
    largest = torch.cat([x.detach().double().reshape(-1, sig.n), y.reshape(-1, sig.n)])
    assert off <= 40 * sig.n * torch.finfo(dtype).eps * largest.square().sum(-1).max()


@each_layer
def test_derivatives(name, sig):
    layer = layer_of(name, sig)
    x = points(sig, 2, POINTS, seed=1).requires_grad_()
    names, parameters = zip(*layer.named_parameters(), strict=True)

    def call(x, *values):
        given = dict(zip(names, values, strict=True))
        return torch.func.functional_call(layer, given, (x,))

    assert torch.autograd.gradcheck(call, (x, *parameters), fast_mode=True)


@each_layer
def test_layers_go_through_functional_call_and_vmap(name, sig):
    layer = layer_of(name, sig)
    models = [layer, copy.deepcopy(layer)]
    for parameter in models[1].parameters():
        if parameter.ndim == 0:
            parameter.data += 0.1
    stacked = torch.func.stack_module_state(models)
    x = points(sig, 2, 5, POINTS, seed=2)
    found = torch.func.vmap(lambda p, b, a: torch.func.functional_call(layer, (p, b), (a,)))(
        *stacked, x
    )
    wanted = torch.stack([model(a) for model, a in zip(models, x, strict=True)])
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-13)


@some_layers
def test_layers_compile_without_graph_breaks(name, sig):
    layer = layer_of(name, sig)
    x = points(sig, 2, POINTS, seed=3)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), layer(x), rtol=0, atol=1e-13)


@each_layer
def test_state_copies_and_pickles(name, sig):
    layer, other = layer_of(name, sig), MAKE[name](sig, dtype=torch.float64)
    x = points(sig, 2, POINTS, seed=4)
    wanted = layer(x)
    other.load_state_dict(layer.state_dict())
    for twin in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), wanted)
    assert "signs" not in layer.state_dict()
    assert str(sig) in repr(layer)
    assert layer.float()(x.float()).dtype == torch.float32


@each_layer
def test_layers_on_the_device_meta(name, sig):
    """Shapes go through without data, as for models that are loaded later."""
    layer = MAKE[name](sig, device="meta").to("meta")
    x = torch.empty(2, POINTS, sig.n, device="meta")
    assert layer(x).shape[:1] == (2,)


# -- isometries


def conjugated(layer, V, sig):
    """The layer with every isometry W replaced by V W V^-1."""
    twin = copy.deepcopy(layer)
    for module in twin.modules():
        if isinstance(module, JOrthogonalLinear):
            module.weight.data = V @ module.weight.data @ jorth.inverse(V, sig)
    return twin


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("name", ["linear, radius", "centroid", "attention", "residual, point"])
def test_layers_move_with_isometries(name, sig):
    layer = layer_of(name, sig)
    V = jorth.random_point(sig, cond=3.0, seed=5, dtype=torch.float64)
    x = points(sig, 3, POINTS, seed=6)
    moved = conjugated(layer, V, sig)(x @ V.mT)
    torch.testing.assert_close(moved, layer(x) @ V.mT, rtol=0, atol=1e-11)


# -- norms at first


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_ten_layers_keep_the_distances_from_the_origin(sig):
    """Exactly: isometries are rotations, and residual blocks the identity."""
    blocks = []
    for k in range(10):
        attention = LorentzAttention(sig, 2, seed=k, dtype=torch.float64)
        blocks.append(LorentzLinear(sig, learn_radius=True, seed=k, dtype=torch.float64))
        blocks.append(LorentzResidual(attention, sig, dtype=torch.float64))
        blocks.append(LorentzResidual(field(sig, torch.float64), sig, dtype=torch.float64))
    x = points(sig, 50, seed=9)
    y = torch.nn.Sequential(*blocks)(x).detach()
    plus = torch.tensor(sig.positive)
    sizes = [points[:, plus].norm(dim=1) for points in (x, y)]  # |s| = sinh of the distance
    torch.testing.assert_close(sizes[1], sizes[0], rtol=0, atol=1e-12)
    if sig.q == 1:
        o = origin(sig, dtype=torch.float64)[None]
        torch.testing.assert_close(distance(y, o, sig), distance(x, o, sig), rtol=0, atol=1e-11)


# -- one by one


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_linear_is_an_isometry_times_a_factor(sig):
    layer = layer_of("linear, radius", sig, alpha=1.5)
    x, y = points(sig, 2, 7, seed=12, alpha=1.5)
    factor = layer.log_factor.exp().item()
    assert radius_of(layer) == pytest.approx(1.5 * factor)
    torch.testing.assert_close(inner(layer(x), layer(y), sig), factor**2 * inner(x, y, sig))
    torch.testing.assert_close(
        distance(layer(x), layer(y), sig, alpha=radius_of(layer)),
        factor * distance(x, y, sig, alpha=1.5),
    )
    assert layer.bias is None
    assert LorentzLinear(sig).radius == 1.0


def test_linear_embeds_into_more_dimensions():
    sig, out = Signature(3, 1), Signature.of([-1, 1, 1, 1, -1, 1])
    layer = LorentzLinear(sig, out, learn_radius=True, alpha=0.7, dtype=torch.float64)
    x, y = points(sig, 2, 7, seed=25, alpha=0.7)
    torch.testing.assert_close(inner(layer(x), layer(y), out), inner(x, y, sig))
    assert membership(layer(x).detach(), out, alpha=0.7).max() < 1e-14
    assert "alpha=0.7" in repr(layer)
    with pytest.raises(ValueError, match="out_signature must have at least as many signs"):
        LorentzLinear(out, sig)


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_centroid_is_that_of_ultrahyperbolic(sig):
    x = points(sig, 3, POINTS, seed=15, alpha=0.7)
    weights = torch.rand(3, POINTS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    plain, learned = LorentzCentroid(sig, alpha=0.7), layer_of("centroid", sig, alpha=0.7)
    assert torch.equal(plain(x), centroid(x, sig, alpha=0.7))
    assert torch.equal(plain(x, weights), centroid(x, sig, weights=weights, alpha=0.7))
    shares = learned.logits.softmax(0)
    torch.testing.assert_close(
        learned(x, weights), centroid(x, sig, weights=shares * weights, alpha=0.7)
    )


def plain_attention(layer, x, y, allowed):
    """By loops over heads and points, and the public functions."""
    sig, rows = layer.signature, []
    for i in range(len(x)):
        heads = []
        for Q, V, scale in zip(
            layer.query.weight, layer.value.weight, layer.log_scale.exp(), strict=True
        ):
            g = -inner((Q @ x[i])[None], y, sig) / layer.alpha**2
            weights = torch.where(allowed[i], torch.exp(-scale * (g - 1)), 0.0)
            heads.append(centroid(y @ V.mT, sig, weights=weights, alpha=layer.alpha))
        rows.append(centroid(torch.stack(heads), sig, alpha=layer.alpha))
    return torch.stack(rows)


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_attention_is_softmax_of_inner_products_and_centroids(sig):
    layer = layer_of("attention", sig, alpha=0.7).requires_grad_(False)
    x, y = points(sig, 4, seed=16, alpha=0.7), points(sig, 5, seed=17, alpha=0.7)
    generator = torch.Generator().manual_seed(0)
    allowed = torch.rand(4, 5, generator=generator) < 0.6
    allowed[:, 0] = True
    found = layer(x, y, attn_mask=~allowed)
    torch.testing.assert_close(found, plain_attention(layer, x, y, allowed), rtol=0, atol=1e-12)
    floats = torch.zeros(4, 5, dtype=torch.float64).masked_fill(~allowed, -torch.inf)
    torch.testing.assert_close(layer(x, y, attn_mask=floats), found, rtol=0, atol=1e-14)
    torch.testing.assert_close(layer(x), layer(x, x), rtol=0, atol=0)
    # nearer points have more weight
    assert (layer.log_scale.exp() > 0).all()


def test_masks_are_those_of_torch():
    sig = Signature.lorentz(4)
    layer = LorentzAttention(sig, 2, dtype=torch.float64)
    theirs = torch.nn.MultiheadAttention(4, 2, batch_first=True, dtype=torch.float64)
    x = points(sig, 3, 5, seed=18)
    padding = torch.tensor([[False] * 5, [False, False, True, False, True], [True] + [False] * 4])
    mask = torch.ones(5, 5, dtype=torch.bool).triu(2)

    def influence(call):
        """Which result depends on which point, (3, 5, 5)."""
        jacobian = torch.autograd.functional.jacobian(lambda a: call(a).sum(dim=(0, 2)), x)
        return (jacobian != 0).any(dim=-1).permute(1, 0, 2)

    ours = influence(lambda a: layer(x, a, attn_mask=mask, key_padding_mask=padding))
    other = influence(
        lambda a: theirs(x, a, a, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]
    )
    assert torch.equal(ours, other)
    one = layer(x[1:2], attn_mask=mask, key_padding_mask=padding[1:2])
    torch.testing.assert_close(one, layer(x, attn_mask=mask, key_padding_mask=padding)[1:2])
    nothing = layer(x, key_padding_mask=torch.ones(3, 5, dtype=torch.bool))
    assert torch.isnan(nothing).all()


@pytest.mark.parametrize("sig", [sig for sig in SIGS if sig.p], ids=str)
def test_logits_are_distances_to_hyperplanes(sig):
    """The foot y of the perpendicular is on U and on the hyperplane, as far away as the logit."""
    alpha = 0.7
    layer = layer_of("mlr", sig, alpha=alpha).requires_grad_(False)
    x = points(sig, 8, seed=19, alpha=alpha)
    logits = layer(x)
    for k in range(layer.classes):
        z, b = layer.normal[k], layer.offset[k]
        w = torch.empty(sig.n, dtype=torch.float64)
        r = b.norm() / alpha
        w[torch.tensor(sig.positive)] = r.cosh() * z / z.norm()
        w[torch.tensor(sig.negative)] = r.sinh() * b / b.norm()
        assert inner(w, w, sig).item() == pytest.approx(1.0)
        product = inner(x, w[None], sig)
        foot = (x - product[:, None] * w) / (1 + (product / alpha) ** 2).sqrt()[:, None]
        assert membership(foot, sig, alpha=alpha).max() < 1e-14
        torch.testing.assert_close(inner(foot, w[None], sig), torch.zeros_like(product))
        wanted = product.sign() * z.norm() * distance(x, foot, sig, alpha=alpha)
        torch.testing.assert_close(logits[:, k], wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_residual_blocks_are_steps_along_geodesics(sig):
    x = points(sig, 5, seed=21, alpha=0.7)
    vector, point = (layer_of(f"residual, {kind}", sig, alpha=0.7) for kind in ("vector", "point"))
    u = project_tangent(x, vector.module(x), sig, alpha=0.7)
    v = u / (1 + (inner(u, u, sig) / 0.7**2) ** 2).pow(0.25)[:, None]
    torch.testing.assert_close(vector(x), exp(x, 0.3 * v, sig, alpha=0.7))
    f = point.module(x)
    torch.testing.assert_close(point(x), exp(x, 0.3 * log(x, f, sig, alpha=0.7), sig, alpha=0.7))
    point.gate.data.fill_(1.0)
    torch.testing.assert_close(point(x), f)
    point.gate.data.fill_(0.5)
    middle = centroid(torch.stack([x, f], dim=1), sig, alpha=0.7)
    torch.testing.assert_close(point(x), middle, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e3])
def test_residual_steps_are_limited(size):
    sig, alpha = Signature(4, 1), 0.7
    module = torch.nn.Linear(sig.n, sig.n, bias=False, dtype=torch.float64)
    torch.nn.init.constant_(module.weight, 0.1 * size)
    block = LorentzResidual(module, sig, gate=0.8, alpha=alpha, dtype=torch.float64)
    x = points(sig, 20, seed=25, alpha=alpha)
    length = distance(x, block(x).detach(), sig, alpha=alpha)
    u = project_tangent(x, block.module(x).detach(), sig, alpha=alpha)
    whole = 0.8 * inner(u, u, sig).sqrt()
    assert (length <= 0.8 * alpha * (1 + 1e-9)).all()
    if size < 0.1:
        torch.testing.assert_close(length, whole, rtol=1e-4, atol=0)
    if size > 100:
        torch.testing.assert_close(length, torch.full_like(length, 0.8 * alpha), rtol=1e-4, atol=0)


@pytest.mark.parametrize("gate", [-0.2, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("norm", [1.0, 14.0, 40.0, 105.0, 1000.0])
def test_steps_between_far_points_stay_on_the_manifold_in_float32(norm, gate):
    sig = Signature.lorentz(5)
    rng = np.random.default_rng(26)
    x = rng.standard_normal((200, 5))
    x[:, 1:] *= norm * (1 + rng.random((200, 1))) / np.linalg.norm(x[:, 1:], axis=1)[:, None]
    x[:, 0] = 1.0
    x = torch.from_numpy(lift(x, sig)).float()
    block = LorentzResidual(LorentzLinear(sig, seed=1), sig, output="point", gate=gate)
    y = block(x).detach()
    assert membership(y, sig).max() < 1e-6
    exact = block.double()(x.double()).detach()
    assert ((y - exact).norm(dim=1) / exact.norm(dim=1)).max() < 1e-5
    assert torch.equal(y, x) or gate != 0


@pytest.mark.parametrize("sig", [Signature.lorentz(5), Signature(3, 2)])
def test_residual_steps_keep_their_gradients_far_out(sig):
    """In float32 at |s| = 1000: the tangent part u of f has entries of 1e6, and <u, u> is 1."""
    blocks = [LorentzResidual(field(sig, torch.float32), sig, gate=0.5) for _ in range(3)]
    network = torch.nn.Sequential(*blocks, HyperbolicMLR(sig, 3))
    exact = copy.deepcopy(network).double()
    x = torch.randn(20, sig.n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    plus, minus = sig.positions("cpu")
    for at, length in ((plus, 1e3), (minus, math.hypot(1e3, 1.0))):
        x[:, at] *= length / torch.linalg.vector_norm(x[:, at], dim=1, keepdim=True)
    if sig.q == 1:
        x[:, minus] = x[:, minus].abs()
    gradients = []
    for model, points in ((network, x.float()), (exact, x)):
        loss = torch.nn.functional.cross_entropy(model(points), torch.arange(20) % 3)
        parts = torch.autograd.grad(loss, list(model.parameters()))
        gradients.append(torch.cat([part.double().flatten() for part in parts]))
    error = torch.linalg.vector_norm(gradients[0] - gradients[1])
    assert error < 1e-4 * torch.linalg.vector_norm(gradients[1])  # 2e-6 measured, 0.7 before


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MAKE)
def test_layers_keep_their_precision_under_autocast(name, dtype):
    """They take points in half precision for what they are, and return float32."""
    sig = Signature.lorentz(5)
    layer = layer_of(name, sig, torch.float32)
    x = points(sig, 5, POINTS, dtype=torch.float32).to(dtype)
    wanted = layer(x.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = layer(x)
        compiled = torch.compile(layer, backend="eager", fullgraph=True)(x)
    assert found.dtype == torch.float32
    assert torch.equal(found, compiled)
    rounds = name == "residual, vector"  # its module is a network, and gives a vector
    tolerance = 0.05 if rounds else 0.0
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


# -- bad input

SIG = Signature(3, 1)
X = points(SIG, 4, dtype=torch.float32)
BAD = {
    "q": (lambda: LorentzLinear(Signature(3, 0)), ValueError, "signature must have q of at least 1"),
    "signature": (lambda: LorentzAttention((3, 1)), TypeError, "signature must be a jorth.Signature"),
    "p": (lambda: HyperbolicMLR(Signature(0, 3), 2), ValueError, "signature must have p of at least 1"),
    "alpha": (lambda: LorentzCentroid(SIG, alpha=0.0), ValueError, "alpha must be a positive number"),
    "heads": (lambda: LorentzAttention(SIG, 0), ValueError, "heads must be at least 1"),
    "points": (lambda: LorentzCentroid(SIG, 0), ValueError, "points must be None or at least 1"),
    "weights": (lambda: LorentzCentroid(SIG)(X, torch.ones(3)), ValueError, r"weights must have shape \(..., 4\)"),
    "shape": (lambda: HyperbolicMLR(SIG, 2)(X[:, :3]), ValueError, r"x must have shape \(..., 4\)"),
    "dtype": (lambda: HyperbolicMLR(SIG, 2)(X.double()), TypeError, "x must have the layer's dtype torch.float32"),
    "context": (lambda: LorentzAttention(SIG)(X, X.numpy()), TypeError, "context must be a tensor of floats"),
    "mask": (lambda: LorentzAttention(SIG)(X, attn_mask=torch.ones(4, 3)), ValueError, r"attn_mask must fit \(1, 4, 4\) for the scores of x and context"),
    "module": (lambda: LorentzResidual(len, SIG), TypeError, "module must be a torch.nn.Module"),
    "result": (lambda: LorentzResidual(torch.nn.Linear(4, 3), SIG)(X), ValueError, "the module's result must have shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_error_names_the_argument(name):
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call()
