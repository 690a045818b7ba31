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
    LorentzSpace,
    LorentzTransformerLayer,
)
from jorth.ultrahyperbolic import centroid, distance, inner, lift, membership, origin

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


def heads_of(sig):
    """A number of heads that divides n - 1."""
    return 2 if sig.n % 2 else sig.n - 1


MAKE = {
    "isometry": lambda sig, alpha=1.0, **o: JOrthogonalLinear(sig, cond=2.0, **o),
    "linear": lambda sig, **o: LorentzLinear(sig, activation=torch.nn.Tanh(), **o),
    "space": lambda sig, dtype=None, device=None, **o: LorentzSpace(torch.nn.Tanh(), sig, **o),
    "centroid": lambda sig, dtype=None, device=None, **o: LorentzCentroid(sig, **o),
    "attention": lambda sig, **o: LorentzAttention(sig, heads_of(sig), **o),
    "transformer": lambda sig, **o: LorentzTransformerLayer(
        sig, heads_of(sig), hidden=7, dropout=0.0, **o
    ),
    "mlr": lambda sig, **o: HyperbolicMLR(sig, 4, **o),
    "residual": lambda sig, **o: LorentzResidual(field(sig, o.get("dtype")), sig, gate=0.3, **o),
}
TO_POINTS = [name for name in MAKE if name != "mlr"]


def layer_of(name, sig, dtype=torch.float64, alpha=1.0):
    layer = MAKE[name](sig, dtype=dtype, alpha=alpha)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for key, parameter in layer.named_parameters():
            if key == "offset" or key.endswith("bias"):
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return small_turn(layer, sig) if sig.q > 1 else layer


def fits(name, sig):
    return name not in ("mlr", "transformer") or sig.p > 0


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
    y = y.detach().double()
    off = (inner(y, y, sig) + 0.7**2).abs().max()
    largest = torch.cat([x.detach().double().reshape(-1, sig.n), y.reshape(-1, sig.n)])
    assert off <= 40 * sig.n * torch.finfo(dtype).eps * largest.square().sum(-1).max()


@each_layer
def test_derivatives(name, sig):
    layer = layer_of(name, sig)
    x = points(sig, 2, POINTS, seed=1).requires_grad_()
    names = [name for name, _ in layer.named_parameters()]
    parameters = list(layer.parameters())

    def call(x, alpha, *values):
        given = dict(zip(names, values, strict=True))
        options = {} if name == "isometry" else {"alpha": alpha}
        return torch.func.functional_call(layer, given, (x,), options)

    alpha = torch.tensor(1.0, dtype=torch.float64, requires_grad=name != "isometry")
    assert torch.autograd.gradcheck(call, (x, alpha, *parameters), fast_mode=True)


# torch's attention has no rule for vmap on the CPU, and runs in a loop
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@each_layer
def test_layers_go_through_functional_call_and_vmap(name, sig):
    layer = layer_of(name, sig)
    models = [layer, copy.deepcopy(layer)]
    for parameter in models[1].parameters():
        if parameter.shape == (1,):
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
    alpha = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    options = {} if name == "isometry" else {"alpha": alpha}
    x = points(sig, 2, POINTS, seed=3).requires_grad_()
    torch._dynamo.reset()
    found = []
    for call in (layer, torch.compile(layer, fullgraph=True, backend="aot_eager")):
        y = call(x, **options)
        inputs = [x, *options.values(), *layer.parameters()]
        found.append([y, *torch.autograd.grad(y.sin().sum(), inputs)])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


@each_layer
def test_state_copies_and_pickles(name, sig):
    layer, other = layer_of(name, sig), MAKE[name](sig, dtype=torch.float64)
    x = points(sig, 2, POINTS, seed=4)
    wanted = layer(x)
    other.load_state_dict(layer.state_dict())
    for twin in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(x), wanted)
    assert "signs" not in layer.state_dict()
    assert all(parameter.ndim for parameter in layer.parameters())  # fully_shard asks for it
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
@pytest.mark.parametrize("name", ["isometry", "centroid"])
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
        attention = LorentzAttention(sig, seed=k, dtype=torch.float64)
        blocks.append(JOrthogonalLinear(sig, seed=k, dtype=torch.float64))
        blocks.append(LorentzResidual(attention, sig, dtype=torch.float64))
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
def test_centroid_is_that_of_ultrahyperbolic(sig):
    x = points(sig, 3, POINTS, seed=15, alpha=0.7)
    weights = torch.rand(3, POINTS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    layer = LorentzCentroid(sig, alpha=0.7)
    assert torch.equal(layer(x), centroid(x, sig, alpha=0.7))
    assert torch.equal(layer(x, weights), centroid(x, sig, weights=weights, alpha=0.7))


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("out", [Signature.lorentz(3), Signature.of([1, -1, 1, -1, -1])], ids=str)
def test_linear_lifts_any_linear_map(sig, out):
    options = dict(alpha=0.7, seed=1, dtype=torch.float64)
    layer = LorentzLinear(sig, out, **options)
    assert layer.weight[:, torch.tensor(sig.negative)].abs().max() == 0
    torch.nn.init.constant_(layer.weight, 0.3)
    torch.nn.init.constant_(layer.bias, -0.2)
    x = points(sig, 7, seed=14)
    s = 0.3 * x.sum(dim=1, keepdim=True).expand(-1, out.n - 1) - 0.2
    torch.testing.assert_close(layer(x), lift(s, out, alpha=0.7))
    relu = LorentzLinear(sig, out, activation=torch.nn.ReLU(), **options)
    relu.load_state_dict(layer.state_dict())
    torch.testing.assert_close(relu(x), lift(s.relu(), out, alpha=0.7))
    assert LorentzLinear(sig, out, bias=False).bias is None


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_modules_act_on_space(sig):
    x = points(sig, 7, seed=14, alpha=0.7)
    plus, minus = sig.positions("cpu")
    wanted = x.clone()
    wanted[:, plus] = x[:, plus].tanh()
    layer = LorentzSpace(torch.nn.Tanh(), sig, alpha=0.7)
    torch.testing.assert_close(layer(x), lift(wanted, sig, alpha=0.7))
    torch.testing.assert_close(LorentzSpace(torch.nn.Identity(), sig, alpha=0.7)(x), x)
    if sig.p:
        normal = LorentzSpace(torch.nn.BatchNorm1d(sig.p, dtype=torch.float64), sig, alpha=0.7)
        space = normal(x)[:, plus]
        torch.testing.assert_close(space.mean(dim=0), torch.zeros(sig.p, dtype=torch.float64))
        nothing = LorentzSpace(torch.nn.Dropout(1.0), sig, alpha=0.7)(x)
        assert nothing[:, plus].abs().max() == 0
        torch.testing.assert_close(nothing[:, minus].norm(dim=1), torch.full((7,), 0.7).double())


def plain_attention(layer, x, y, allowed):
    """By loops over heads and points, and the public functions."""
    size = (layer.signature.n - 1) // layer.heads
    head = Signature.lorentz(size + 1)
    rows = []
    for i in range(len(x)):
        means = []
        for h in range(layer.heads):
            own = slice(h * size, (h + 1) * size)
            q, k, v = (
                lift(z @ W[own].mT + b[own], head, alpha=layer.alpha)
                for z, W, b in zip((x[i : i + 1], y, y), layer.weight, layer.bias, strict=True)
            )
            scores = inner(q, k, head) / (math.sqrt(size) * layer.alpha**2)
            weights = torch.where(allowed[i], torch.exp(scores - scores.max()), 0.0)
            means.append(centroid(v, head, weights=weights, alpha=layer.alpha))
        s = layer.out.weight @ torch.cat(means) + layer.out.bias
        rows.append(lift(s, layer.signature, alpha=layer.alpha))
    return torch.stack(rows)


@pytest.mark.parametrize("sig", SIGS, ids=str)
def test_attention_is_softmax_of_inner_products_and_centroids(sig):
    layer = layer_of("attention", sig, alpha=0.7).requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for weight in (layer.weight, layer.out.weight):  # time too
        torch.nn.init.normal_(weight, generator=generator)
    x, y = points(sig, 4, seed=16, alpha=0.7), points(sig, 5, seed=17, alpha=0.7)
    allowed = torch.rand(4, 5, generator=generator) < 0.6
    allowed[:, 0] = True
    found = layer(x, y, attn_mask=~allowed)
    torch.testing.assert_close(found, plain_attention(layer, x, y, allowed), rtol=0, atol=1e-11)
    floats = torch.zeros(4, 5, dtype=torch.float64).masked_fill(~allowed, -torch.inf)
    torch.testing.assert_close(layer(x, y, attn_mask=floats), found, rtol=0, atol=1e-12)
    torch.testing.assert_close(layer(x), layer(x, x), rtol=0, atol=0)


def test_a_transformer_layer_adds_attention_and_a_network():
    sig = Signature.lorentz(5, time="last")
    layer = layer_of("transformer", sig, alpha=0.7)
    x, mask = points(sig, 2, 6, alpha=0.7), torch.ones(6, 6, dtype=torch.bool).triu(1)
    s, space = x[..., :-1], slice(0, 4)
    attended = layer.attention(layer.norm1(x, alpha=0.7), attn_mask=mask)
    y = lift(s + attended[..., space], sig, alpha=0.7)
    norm = torch.nn.functional.layer_norm(
        y[..., space], (4,), layer.norm2.module.weight, layer.norm2.module.bias
    )
    hidden = layer.expand(lift(norm, sig, alpha=0.7))
    wanted = lift(y[..., space] + layer.contract(hidden)[..., space], sig, alpha=0.7)
    found = layer(x, attn_mask=mask)
    torch.testing.assert_close(found, wanted)
    other = x.clone()
    other[:, 3:] = points(sig, 2, 3, seed=5, alpha=0.7)
    torch.testing.assert_close(layer(other, attn_mask=mask)[:, :3], found[:, :3])


def test_a_transformer_learns_to_look_back():
    """The answer is the token that stood behind the first one like the last."""
    sig = Signature.lorentz(17)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.rand(256, 4, generator=generator).argsort(dim=1)
    asked = torch.randint(3, (256, 1), generator=generator)
    answer = tokens.gather(1, asked + 1).squeeze(1)
    tokens = torch.cat([tokens, tokens.gather(1, asked)], dim=1)
    embedding = torch.nn.Parameter(torch.randn(5, 4, 16, generator=generator))
    layers = [LorentzTransformerLayer(sig, 2, hidden=32, dropout=0.0, seed=k) for k in range(2)]
    head = HyperbolicMLR(sig, 4)
    model = torch.nn.Sequential(*layers, head)
    optimizer = torch.optim.Adam([embedding, *model.parameters()], lr=0.01)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        x = lift(embedding[torch.arange(5), tokens], sig)
        loss = torch.nn.functional.cross_entropy(model(x)[:, -1], answer)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_masks_are_those_of_torch():
    sig = Signature.lorentz(5)
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
        lambda a: theirs(
            x[..., 1:],
            a[..., 1:],
            a[..., 1:],
            attn_mask=mask,
            key_padding_mask=padding,
            need_weights=False,
        )[0]
    )
    assert torch.equal(ours, other)
    one = layer(x[1:2], attn_mask=mask, key_padding_mask=padding[1:2])
    torch.testing.assert_close(one, layer(x, attn_mask=mask, key_padding_mask=padding)[1:2])


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
def test_residual_blocks_add_coordinates(sig):
    x = points(sig, 5, seed=21, alpha=0.7)
    block = layer_of("residual", sig, alpha=0.7)
    s = x + 0.3 * block.module(x)
    torch.testing.assert_close(block(x), lift(s, sig, alpha=0.7))
    with torch.no_grad():
        block.gate.zero_()
    torch.testing.assert_close(block(x), x)
    if sig.q == 1:  # on the sheet of x, whatever the time of f(x)
        torch.nn.init.constant_(block.gate, -100.0)
        assert block(x)[:, sig.negative[0]].min() > 0.7


@pytest.mark.parametrize("sig", [Signature.lorentz(5), Signature(3, 2)])
def test_residual_steps_keep_their_gradients_far_out(sig):
    """In float32 at |s| = 1000, where rounding makes x leave U by a tenth of alpha."""
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
    assert error < 1e-4 * torch.linalg.vector_norm(gradients[1])  # 5e-6 measured


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MAKE)
def test_points_stay_on_the_manifold_under_autocast(name, dtype):
    """Only maps and modules that are free round to bfloat16; |s| is 20 here."""
    sig = Signature.lorentz(5)
    layer = layer_of(name, sig, torch.float32)
    x = points(sig, 5, POINTS, dtype=torch.float32, spread=10.0).to(dtype)
    wanted = layer(x.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = layer(x)
        compiled = torch.compile(layer, backend="eager", fullgraph=True)(x)
    assert found.dtype == torch.float32
    assert torch.equal(found, compiled)
    if name in ("isometry", "centroid", "mlr"):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
        return
    assert membership(found.detach(), sig).max() < 1e-6
    assert (found - wanted).norm() < 0.05 * wanted.norm()


# -- bad input

SIG = Signature(3, 1)
X = points(SIG, 4, dtype=torch.float32)
BAD = {
    "q": (lambda: LorentzLinear(Signature(3, 0)), ValueError, "signature must have q of at least 1"),
    "signature": (lambda: LorentzAttention((3, 1)), TypeError, "signature must be a jorth.Signature"),
    "p": (lambda: HyperbolicMLR(Signature(0, 3), 2), ValueError, "signature must have p of at least 1"),
    "alpha": (lambda: LorentzCentroid(SIG, alpha=0.0), ValueError, "alpha must be a positive number"),
    "heads": (lambda: LorentzAttention(SIG, 0), ValueError, "heads must be at least 1"),
    "divisor": (lambda: LorentzAttention(SIG, 2), ValueError, "heads must be a divisor of n - 1 = 3"),
    "norm": (lambda: LorentzTransformerLayer(Signature(0, 3)), ValueError, "signature must have p of at least 1"),
    "activation": (lambda: LorentzLinear(SIG, activation=abs), TypeError, "activation must be None or a torch.nn.Module"),
    "space": (lambda: LorentzSpace(torch.nn.Linear(3, 2), SIG)(X), ValueError, r"the module's result must have the shape \(4, 3\) of its input"),
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
