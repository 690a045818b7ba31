"""optim, nn and the manifolds of other libraries: right calls and what their answers are."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.linalg
import torch

import jorth
from jorth import Signature, nn, optim
from tests.fuzz.calls import Call
from tests.fuzz.mutations import As
from tests.fuzz.oracles import Exact, close, exact, feasible, rough, signs, size, turned

SIG = Signature.of([1, -1, 1, 1, -1])
N = SIG.n
THIN = Signature.of([-1, 1, 1])


# -- optimisers


def weight(rng, **options):
    return torch.nn.Parameter(
        jorth.random_point(SIG, cond=3.0, seed=rng, dtype=torch.float64, **options)
    )


def options(rng):
    metric = ("embedding", "invariant")[rng.integers(2)]
    paper = metric == "embedding"
    return dict(
        lr=0.1,
        momentum=0.5 if rng.integers(2) else 0.0,
        curvature=("scheduled", "per-matrix", "per-plane")[rng.integers(3)],
        decay=0.9,
        eps=1e-8,
        gain_rate=0.1,
        max_angle=0.4,
        weight_decay=0.0 if paper else 0.1,
        decay_towards=("compact", "identity")[rng.integers(2)],
        max_norm=As("number", None if rng.integers(2) else 1e3),
        metric=metric,
        matching=("tournament", "random")[rng.integers(2)],
        rounds_per_gradient=As("count", None if rng.integers(2) else 2),
        side=("left", "right", "left" if paper else "both")[rng.integers(3)],
        components=("start", "all" if paper else "start")[rng.integers(2)],
        maximize=bool(rng.integers(2)),
        seed=3,
    )


def gradient_like(X):
    return torch.arange(1.0, X.numel() + 1).sin().reshape(X.shape).to(X)


def two_steps(optimizer, X):
    """The point before and after each of two steps."""
    points = [X.detach().clone()]
    for _ in range(2):

        def closure():
            X.grad = gradient_like(X)
            return torch.zeros(())

        optimizer.step(closure)
        points.append(X.detach().clone())
    return torch.stack(points)


def run_jobcd(params, signature, **rest):
    return two_steps(optim.JOBCD([params], signature, **rest), params)


def thin_weight(rng):
    return torch.nn.Parameter(
        jorth.random_point(SIG, cond=3.0, columns=(2, 1), seed=rng, dtype=torch.float64)
    )


def check_thin_steps(points, given):
    """Every point has X^T J X = diag(+-1), the same as the first."""
    x = exact(points[0])
    gram = turned(x) @ (signs(given["signature"])[:, None] * x)
    feasible(points, given["signature"], np.diag(np.sign(np.diag(gram))))


def run_vr_jobcd(params, signature, probability, **rest):
    return two_steps(optim.VRJOBCD([params], signature, probability=probability, **rest), params)


def check_steps(points, given):
    """All points are feasible, and the first step lowers its own majoriser."""
    feasible(points, given["signature"])
    if points.dtype in (torch.bfloat16, torch.float16):  # rounded, and at first polished as well
        return
    if given["metric"] == "embedding" and given["curvature"] == "scheduled" and given["lr"] > 0:
        X, Y = exact(points[0]), exact(points[1])
        G = (
            exact(gradient_like(points[0]))
            * (-1 if given["maximize"] else 1)
            * (1 - Exact(given["momentum"]))
        )
        G = G / (1 - Exact(given["momentum"]))  # Adam's correction of the first average
        if given["momentum"] == 0:
            linear, square = (
                ((Y - X) * G).sum(),
                ((Y - X) ** 2).sum() / (2 * Exact(float(given["lr"]))),
            )
            assert linear + square <= rough(points) * (abs(linear) + square)


def check_listed(points, given):
    feasible(points, SIG)


def run_listed(params):
    optimizer = optim.JOBCD(params, SIG, lr=0.1)
    return two_steps(optimizer, optimizer.param_groups[0]["params"][0])


def run_group(param_group):
    optimizer = optim.JOBCD([torch.nn.Parameter(torch.eye(N))], SIG, lr=0.1)
    optimizer.add_param_group(param_group)
    return two_steps(optimizer, optimizer.param_groups[1]["params"][0])


def run_closure(kind):
    def function(closure):
        X = torch.nn.Parameter(torch.eye(N))
        optimizer = kind([X], SIG)
        X.grad = gradient_like(X)
        optimizer.step(closure)
        return X.detach()

    return function


def check_point(X, given):
    feasible(X, SIG)


def made(method, module, signature, name, lr):
    optimizer = optim.make(method, module, signature, name=name, lr=lr)
    before = getattr(module, name).detach().clone()

    def closure():
        optimizer.zero_grad()
        loss = getattr(module, name).square().sum()
        loss.backward()
        return loss

    if method != "csdm" or lr < 1:  # Adam takes steps of any length
        optimizer.step(closure)
    return torch.stack([before, getattr(module, name).detach()])


def check_made(points, given):
    feasible(points, SIG if given["signature"] is None else given["signature"])


def split_of(model):
    return [
        p.detach() for groups in optim.split_parameters(model) for g in groups for p in g["params"]
    ]


def check_split(found, given):
    assert len(found) == len(list(given["model"].parameters()))


def averaged_weight(model, device, avg_fn, multi_avg_fn, use_buffers):
    averaged = optim.AveragedModel(model, device, avg_fn, multi_avg_fn, use_buffers)
    averaged.update_parameters(model)
    averaged.update_parameters(model)
    return averaged.module.weight.detach()


def check_averaged(X, given):
    feasible(X, SIG)


# -- nn


def declared_weight(module, name, signature, columns):
    nn.declare(module, name, signature, columns=columns)
    (group,) = optim.split_parameters(module).j_orthogonal
    assert group["signature"] == signature
    (found,) = group["params"]
    return found.detach()


def check_declared(X, given):
    rows, columns = given["signature"], given["columns"] or given["signature"]
    assert tuple(X.shape[-2:]) == (rows.n, columns.n)


def filled(tensor, signature, cond, component, seed):
    nn.init.j_orthogonal_(tensor, signature, cond=cond, component=component, seed=seed)
    return tensor.detach().clone()


def check_filled(X, given):
    feasible(X, given["signature"])
    if X.numel() and given["signature"].p and given["signature"].q:
        norms = torch.linalg.matrix_norm(X.double(), ord=2)
        close(
            norms,
            np.full(norms.shape, np.sqrt(float(given["cond"]))),
            np.sqrt(float(given["cond"])),
            rough(X),
        )


def filled_thin(tensor, signature, columns, seed):
    nn.init.j_orthogonal_(tensor, signature, columns=columns, cond=4.0, seed=seed)
    return tensor.detach().clone()


def check_thin(X, given):
    columns = given["columns"] or given["signature"]
    feasible(X, given["signature"], np.diag(signs(columns)))


def rectangular_layer(signature, out_signature, bias, seed):
    """The output of a layer for the rows of the identity: its matrix, transposed."""
    layer = nn.JOrthogonalLinear(
        signature, out_signature, bias=bias, cond=4.0, seed=seed, dtype=torch.float64
    )
    return layer(torch.eye(signature.n, dtype=torch.float64)).detach()


def check_rectangular(found, given):
    """An embedding keeps the form, and so does the adjoint of a projection, J W^T J."""
    ends = (given["signature"], given["out_signature"] or given["signature"])
    small, large = sorted(ends, key=lambda signature: signature.n)
    matrix = turned(exact(found))
    if ends[0].n > ends[1].n:
        matrix = signs(large)[:, None] * turned(matrix) * signs(small)
    feasible(matrix.astype(float), large, np.diag(signs(small)))


def layer_weight(signature, bias, batch, cond, seed, dtype, device):
    layer = nn.JOrthogonalLinear(
        signature, bias=bias, batch=batch, cond=cond, seed=seed, dtype=dtype, device=device
    )
    return layer.weight.detach()


def layer_output(x):
    return nn.JOrthogonalLinear(SIG, cond=4.0, dtype=torch.float64)(x).detach()


def check_output(y, given):
    """The form is kept; NaN and infinity go through, as in any layer."""
    x, s = exact(given["x"]), signs(SIG)
    if not np.isfinite(x).all() or size(x) > 1e150:
        return
    scale = (x * x).sum(axis=-1)
    close((exact(y) ** 2 * s).sum(axis=-1), (x * x * s).sum(axis=-1), 4 * scale, rough(y))


def parametrised(parametrize, module, name, signature):
    before = (
        getattr(module, name).detach().clone()
        if isinstance(name, str) and hasattr(module, name)
        else None
    )
    parametrize(module, name, signature)
    return torch.stack([before, getattr(module, name).detach()])


def check_parametrised(points, given):
    feasible(points, given["signature"])
    close(points[1], points[0], size(points), 10 * rough(points))


def factors(signature, triangular, X):
    parametrization = nn.CSParametrization(signature, triangular=triangular)
    return parametrization(*parametrization.right_inverse(X)).detach()


def exponential(signature, X):
    parametrization = nn.ExponentialParametrization(signature)
    return parametrization(parametrization.right_inverse(X)).detach()


def check_factors(found, given):
    X = exact(given["X"])
    gram = X.swapaxes(-1, -2) @ (given["signature"].signs[:, None] * X)  # a thin X keeps its own
    feasible(found, given["signature"], gram if X.shape[-1] < X.shape[-2] else None)
    close(found, given["X"], size(given["X"]), 10 * rough(found))


# -- layers on points

LORENTZ = Signature(4, 1)


def place():
    return dict(dtype=As("other", torch.float64), device=As("other", "cpu"))


def on_sheet(rng, *shape):
    """Points of one sheet, as a tensor."""
    x = 0.4 * rng.standard_normal((*shape, N))
    x[..., -1] = 1
    return torch.from_numpy(jorth.ultrahyperbolic.lift(x, LORENTZ))


def lorentz_weight(**given):
    layer = nn.LorentzLinear(**given)
    assert (layer.log_factor is None) == (not given["learn_radius"])
    return layer.weight.detach() if layer.in_signature == layer.out_signature else layer


def check_linear(W, given):
    """A square weight; an embedding keeps the form."""
    if not isinstance(W, torch.nn.Module):
        return check_filled(W, given)
    gram = np.diag(given["signature"].signs.astype(float))
    return feasible(W.weight.detach(), given["out_signature"], gram)


def attention_weights(**given):
    layer = nn.LorentzAttention(**given)
    return torch.cat([layer.query.weight, layer.value.weight]).detach()


def check_rotations(W, given):
    check_filled(W, given | {"cond": 1.0})


def centroid_logits(**given):
    layer = nn.LorentzCentroid(**given)
    return torch.zeros(0) if layer.logits is None else layer.logits.detach()


def check_logits(logits, given):
    assert not logits.any()
    assert len(logits) == (0 if given["points"] is None else given["points"])


def mlr_normals(**given):
    return nn.HyperbolicMLR(**given).normal.detach()


def check_normals(normals, given):
    assert tuple(normals.shape) == (given["classes"], given["signature"].p)


def residual_gate(**given):
    return nn.LorentzResidual(**given).gate.detach()


def check_gate(gate, given):
    close(gate, given["gate"], 1, rough(gate))


def centroid_output(x, weights, alpha):
    return nn.LorentzCentroid(LORENTZ, dtype=torch.float64)(x, weights, alpha=alpha)


def attention_output(x, context, attn_mask):
    layer = nn.LorentzAttention(LORENTZ, 2, dtype=torch.float64)
    return layer(x, context, attn_mask=attn_mask).detach()


def mlr_output(x):
    return nn.HyperbolicMLR(LORENTZ, 3, dtype=torch.float64)(x).detach()


def residual_output(x):
    layer = nn.LorentzResidual(torch.nn.Tanh(), LORENTZ, gate=0.5, dtype=torch.float64)
    return layer(x).detach()


def check_on_sheet(y, given):
    """Points of one sheet go to points; anything else goes through, as in any layer."""
    alpha = exact(given.get("alpha", 1.0))
    inputs = [exact(given[name]) for name in ("x", "context") if name in given]
    for x in inputs:
        off = np.abs((x * x * signs(LORENTZ)).sum(axis=-1) + alpha * alpha)
        if not (off < 1e-9).all() or not (x[..., -1] > 0).all() or size(x) > 100:
            return
    weights = exact(given["weights"]) if "weights" in given else np.ones(1)
    moderate = (weights > 1e-100).all() and size(weights) < 1e100
    plain = moderate and "attn_mask" not in given
    if plain or np.isfinite(exact(y)).all():
        form = (exact(y) ** 2 * signs(LORENTZ)).sum(axis=-1)
        close(form, np.broadcast_to(-alpha * alpha, form.shape), 1e3, 100 * rough(y))


def check_classes(y, given):
    assert tuple(y.shape) == (*given["x"].shape[:-1], 3)


# -- manifolds


def tangent(rng):
    M = 0.3 * rng.standard_normal((N, N))
    return M - M.T


def numpy_point(rng):
    return jorth.random_point(SIG, cond=3.0, seed=rng)


def on_pymanopt(method):
    from jorth.adapters.pymanopt import JOrthogonal

    return lambda **given: getattr(JOrthogonal(SIG), method)(**given)


def pymanopt_manifold(signature, cond, component, seed):
    from jorth.adapters.pymanopt import JOrthogonal

    return JOrthogonal(signature, cond=cond, component=component, seed=seed).random_point()


def check_manifold(X, given):
    feasible(X, given["signature"])
    if float(given["cond"]) < 1e12:  # beyond 1 / u the diagonal blocks are singular to rounding
        assert jorth.component(X, given["signature"]) == tuple(given["component"])


def on_geoopt(method):
    from jorth.adapters.geoopt import JOrthogonal

    return lambda **given: torch.as_tensor(getattr(JOrthogonal(SIG), method)(**given)).detach()


def geoopt_random(size, cond, component, seed):
    from jorth.adapters.geoopt import JOrthogonal

    return torch.as_tensor(
        JOrthogonal(SIG).random(size, cond=cond, component=component, seed=seed)
    ).detach()


def check_geoopt_random(X, given):
    feasible(X, SIG)
    assert tuple(X.shape) == tuple(given["size"])


def moved_by(K, X):
    """expm(K) X of one matrix, in float64."""
    return scipy.linalg.expm(exact(K).astype(float)) @ exact(X).astype(float)


def check_geodesic(found, given):
    S, X = (exact(given[name]).astype(float) for name in ("tangent_vector", "point"))
    K = signs(SIG).astype(float)[:, None] * ((S - S.T) / 2)
    if not np.linalg.norm(K) < 50:
        feasible_from(found, X)
        return
    wanted = moved_by(K - K.T, moved_by(K.T, X))
    grown = np.exp(3 * np.linalg.norm(K))
    close(found, wanted, size(X) * grown, rough(found))


def check_retraction(found, given):
    feasible_from(found, given["point"])


def feasible_from(Y, X):
    """Y is feasible as far as X is."""
    y, x, s = exact(Y), exact(X), signs(SIG)
    assert np.isfinite(y).all(), "not finite"
    off = turned(y) @ (s[:, None] * y) - turned(x) @ (s[:, None] * x)
    scale = np.maximum(1, (x * x).sum() + (y * y).sum())
    close(off, np.zeros_like(off), scale, 10 * rough(Y, X))


def check_projection(found, given):
    S = exact(found)
    close(S + turned(S), np.zeros_like(S), size(S), rough(found))
    s, U, X = signs(SIG), exact(given["vector"]), exact(given["point"])
    M = s[:, None] * ((U * s) @ turned(X)) * s
    close(S, (M - turned(M)) / 2, N * size(U) * size(X), rough(found))


def check_gradient(found, given):
    s, G, X = signs(SIG), exact(given["euclidean_gradient"]), exact(given["point"])
    M = s[:, None] * (G @ turned(X))
    close(found, (M - turned(M)) / 2, N * size(G) * size(X), rough(found))


def check_inner(found, given):
    a, b = exact(given["tangent_vector_a"]), exact(given["tangent_vector_b"])
    close(found, (a * b).sum(), np.abs(a * b).sum(), rough(given["tangent_vector_a"]))


def check_embedding(found, given):
    s, S, X = signs(SIG), exact(given["tangent_vector"]), exact(given["point"])
    close(found, s[:, None] * (S @ X), N * size(S) * size(X), rough(found))


def tensor_point(rng):
    return jorth.random_point(SIG, cond=3.0, seed=rng, dtype=torch.float64)


def ambient(rng):
    return torch.from_numpy(0.3 * rng.standard_normal((N, N)))


def broadcast(given):
    """x and u in one shape, or None for what is not finite, which goes through,
    or overflows on the way."""
    x, u = exact(given["x"]), exact(given["u"])
    moderate = np.isfinite(x).all() and np.isfinite(u).all() and size(x) ** 2 * size(u) < 1e300
    return np.broadcast_arrays(x, u) if moderate else None


def check_egrad(found, given):
    if broadcast(given) is None:
        return
    x, u = broadcast(given)
    s = signs(SIG)
    M = s[:, None] * (u @ turned(x))
    close(
        found,
        s[:, None] * ((M - turned(M)) / 2 @ x),
        N * N * size(u) * size(x) ** 2,
        rough(given["x"], given["u"]),
    )


def check_proju(found, given):
    if broadcast(given) is None:
        return
    x, u = broadcast(given)
    s = signs(SIG)
    M = s[:, None] * ((u * s) @ turned(x)) * s
    close(
        found,
        s[:, None] * ((M - turned(M)) / 2 @ x),
        N * N * size(u) * size(x) ** 2,
        rough(given["x"], given["u"]),
    )


def check_geoopt_step(found, given):
    x = np.broadcast_to(exact(given["x"]), found.shape)
    y = exact(found)
    for one, other in zip(y.reshape(-1, N, N), x.reshape(-1, N, N), strict=True):
        feasible_from(one, other)


def check_projx(found, given):
    feasible(found, SIG)


def geoopt_manifold(signature):
    from jorth.adapters.geoopt import JOrthogonal

    return torch.as_tensor(JOrthogonal(signature).origin(signature.n, signature.n)).detach()


def check_origin(X, given):
    assert np.array_equal(exact(X), np.eye(given["signature"].n))


def linear(rng):
    return nn.JOrthogonalLinear(SIG, cond=3.0, seed=int(rng.integers(100)), dtype=torch.float64)


CALLS = [
    Call(
        "jorth.optim.JOBCD",
        run_jobcd,
        lambda rng: dict(params=weight(rng), signature=SIG) | options(rng),
        check_steps,
        changes=("params",),
    ),
    Call(
        "jorth.optim.JOBCD thin",
        run_jobcd,
        lambda rng: (
            dict(params=thin_weight(rng), signature=SIG)
            | options(rng)
            | dict(side="left", weight_decay=0.0)
        ),
        check_thin_steps,
        changes=("params",),
    ),
    Call(
        "jorth.optim.VRJOBCD",
        run_vr_jobcd,
        lambda rng: (
            dict(params=weight(rng, batch=(2,)), signature=SIG, probability=0.5) | options(rng)
        ),
        check_steps,
        changes=("params",),
    ),
    Call(
        "jorth.optim.JOBCD listed",
        run_listed,
        lambda rng: dict(params=As("other", [weight(rng)])),
        check_listed,
        changes=("params",),
    ),
    Call(
        "jorth.optim.JOBCD add_param_group",
        run_group,
        lambda rng: dict(param_group=As("other", {"params": [weight(rng)], "lr": 0.1})),
        check_listed,
        changes=("param_group",),
    ),
    Call(
        "jorth.optim.JOBCD step",
        run_closure(optim.JOBCD),
        lambda rng: dict(closure=lambda: torch.zeros(())),
        check_point,
    ),
    Call(
        "jorth.optim.VRJOBCD step",
        run_closure(optim.VRJOBCD),
        lambda rng: dict(closure=lambda: torch.zeros(())),
        check_point,
    ),
    Call(
        "jorth.optim.make",
        made,
        lambda rng: dict(
            method=("j-jobcd", "vr-j-jobcd", "csdm")[rng.integers(3)],
            module=As("other", linear(rng)),
            signature=As("signature", SIG),
            name="weight",
            lr=0.01,
        ),
        check_made,
        changes=("module",),
    ),
    Call(
        "jorth.optim.split_parameters",
        split_of,
        lambda rng: dict(model=As("other", linear(rng))),
        check_split,
    ),
    Call(
        "jorth.optim.AveragedModel",
        averaged_weight,
        lambda rng: dict(
            model=As("other", linear(rng)),
            device=As("other", None),
            avg_fn=As("function", torch.optim.swa_utils.get_ema_avg_fn(0.9)),
            multi_avg_fn=As("other", None),
            use_buffers=bool(rng.integers(2)),
        ),
        check_averaged,
    ),
    Call(
        "jorth.nn.declare",
        declared_weight,
        lambda rng: dict(
            module=As("other", torch.nn.Linear(N, N)), name="weight", signature=SIG, columns=SIG
        ),
        check_declared,
        changes=("module",),
    ),
    Call(
        "jorth.nn.init.j_orthogonal_",
        filled,
        lambda rng: dict(
            tensor=torch.empty(2, N, N, dtype=torch.float64).zero_(),
            signature=SIG,
            cond=4.0,
            component=(1, 1),
            seed=3,
        ),
        check_filled,
        changes=("tensor",),
    ),
    Call(
        "jorth.nn.init.j_orthogonal_ thin",
        filled_thin,
        lambda rng: dict(
            tensor=torch.empty(2, N, 3, dtype=torch.float64).zero_(),
            signature=SIG,
            columns=As("signature", THIN),
            seed=3,
        ),
        check_thin,
        changes=("tensor",),
    ),
    Call(
        "jorth.nn.JOrthogonalLinear rectangular",
        rectangular_layer,
        lambda rng: dict(
            signature=THIN if (embeds := rng.integers(2)) else SIG,
            out_signature=As("signature", SIG if embeds else THIN),
            bias=bool(rng.integers(2)),
            seed=3,
        ),
        check_rectangular,
    ),
    Call(
        "jorth.nn.JOrthogonalLinear",
        layer_weight,
        lambda rng: dict(
            signature=SIG,
            bias=bool(rng.integers(2)),
            batch=(2,) if rng.integers(2) else (),
            cond=4.0,
            seed=3,
            dtype=As("other", torch.float64),
            device=As("other", "cpu"),
        ),
        check_filled,
    ),
    Call(
        "jorth.nn.JOrthogonalLinear forward",
        layer_output,
        lambda rng: dict(x=torch.from_numpy(rng.standard_normal((3, N)))),
        check_output,
        non_finite=True,
    ),
    Call(
        "jorth.nn.LorentzLinear",
        lorentz_weight,
        lambda rng: dict(
            signature=SIG,
            out_signature=As("signature", SIG),
            learn_radius=bool(rng.integers(2)),
            alpha=1.5,
            batch=(2,) if rng.integers(2) else (),
            cond=4.0,
            seed=3,
            **place(),
        ),
        check_linear,
    ),
    Call(
        "jorth.nn.LorentzAttention",
        attention_weights,
        lambda rng: dict(signature=SIG, heads=2, alpha=1.5, seed=3, **place()),
        check_rotations,
    ),
    Call(
        "jorth.nn.LorentzAttention forward",
        attention_output,
        lambda rng: dict(
            x=on_sheet(rng, 3), context=on_sheet(rng, 4), attn_mask=torch.zeros(3, 4).double()
        ),
        check_on_sheet,
        non_finite=True,
    ),
    Call(
        "jorth.nn.LorentzCentroid",
        centroid_logits,
        lambda rng: dict(signature=SIG, points=As("count", 3), alpha=1.5, **place()),
        check_logits,
    ),
    Call(
        "jorth.nn.LorentzCentroid forward",
        centroid_output,
        lambda rng: dict(
            x=on_sheet(rng, 3), weights=torch.from_numpy(rng.uniform(0.5, 1.0, 3)), alpha=1.0
        ),
        check_on_sheet,
        non_finite=True,
    ),
    Call(
        "jorth.nn.HyperbolicMLR",
        mlr_normals,
        lambda rng: dict(signature=SIG, classes=3, alpha=1.5, seed=3, **place()),
        check_normals,
    ),
    Call(
        "jorth.nn.HyperbolicMLR forward",
        mlr_output,
        lambda rng: dict(x=on_sheet(rng, 3)),
        check_classes,
        non_finite=True,
    ),
    Call(
        "jorth.nn.LorentzResidual",
        residual_gate,
        lambda rng: dict(
            module=As("other", torch.nn.Tanh()),
            signature=SIG,
            output=("vector", "point")[rng.integers(2)],
            gate=0.5,
            alpha=1.5,
            **place(),
        ),
        check_gate,
    ),
    Call(
        "jorth.nn.LorentzResidual forward",
        residual_output,
        lambda rng: dict(x=on_sheet(rng, 3)),
        check_on_sheet,
        non_finite=True,
    ),
    Call(
        "jorth.nn.cs_parametrization",
        partial(parametrised, nn.cs_parametrization),
        lambda rng: dict(module=As("other", linear(rng)), name="weight", signature=SIG),
        check_parametrised,
        changes=("module",),
    ),
    Call(
        "jorth.nn.CSParametrization",
        factors,
        lambda rng: dict(signature=SIG, triangular=bool(rng.integers(2)), X=tensor_point(rng)),
        check_factors,
    ),
    Call(
        "jorth.nn.exponential_parametrization",
        partial(parametrised, nn.exponential_parametrization),
        lambda rng: dict(module=As("other", linear(rng)), name="weight", signature=SIG),
        check_parametrised,
        changes=("module",),
    ),
    Call(
        "jorth.nn.ExponentialParametrization",
        exponential,
        lambda rng: dict(signature=SIG, X=tensor_point(rng)),
        check_factors,
    ),
    Call(
        "jorth.adapters.pymanopt.JOrthogonal",
        pymanopt_manifold,
        lambda rng: dict(signature=SIG, cond=10.0, component=(1, 1), seed=3),
        check_manifold,
    ),
    Call(
        "jorth.adapters.pymanopt.JOrthogonal exp",
        on_pymanopt("exp"),
        lambda rng: dict(point=numpy_point(rng), tangent_vector=tangent(rng)),
        check_geodesic,
    ),
    Call(
        "jorth.adapters.pymanopt.JOrthogonal retraction",
        on_pymanopt("retraction"),
        lambda rng: dict(point=numpy_point(rng), tangent_vector=tangent(rng)),
        check_retraction,
    ),
    Call(
        "jorth.adapters.pymanopt.JOrthogonal projection",
        on_pymanopt("projection"),
        lambda rng: dict(point=numpy_point(rng), vector=rng.standard_normal((N, N))),
        check_projection,
    ),
    Call(
        "jorth.adapters.pymanopt.JOrthogonal gradient",
        on_pymanopt("euclidean_to_riemannian_gradient"),
        lambda rng: dict(point=numpy_point(rng), euclidean_gradient=rng.standard_normal((N, N))),
        check_gradient,
    ),
    Call(
        "jorth.adapters.pymanopt.JOrthogonal inner_product",
        on_pymanopt("inner_product"),
        lambda rng: dict(
            point=numpy_point(rng), tangent_vector_a=tangent(rng), tangent_vector_b=tangent(rng)
        ),
        check_inner,
    ),
    Call(
        "jorth.adapters.pymanopt.JOrthogonal embedding",
        on_pymanopt("embedding"),
        lambda rng: dict(point=numpy_point(rng), tangent_vector=tangent(rng)),
        check_embedding,
    ),
    Call(
        "jorth.adapters.geoopt.JOrthogonal",
        geoopt_manifold,
        lambda rng: dict(signature=SIG),
        check_origin,
    ),
    Call(
        "jorth.adapters.geoopt.JOrthogonal random",
        geoopt_random,
        lambda rng: dict(size=(2, N, N), cond=10.0, component=(1, -1), seed=3),
        check_geoopt_random,
    ),
    Call(
        "jorth.adapters.geoopt.JOrthogonal retr",
        on_geoopt("retr"),
        lambda rng: dict(x=tensor_point(rng), u=ambient(rng)),
        check_geoopt_step,
    ),
    Call(
        "jorth.adapters.geoopt.JOrthogonal expmap",
        on_geoopt("expmap"),
        lambda rng: dict(x=tensor_point(rng), u=ambient(rng)),
        check_geoopt_step,
    ),
    Call(
        "jorth.adapters.geoopt.JOrthogonal egrad2rgrad",
        on_geoopt("egrad2rgrad"),
        lambda rng: dict(x=tensor_point(rng), u=ambient(rng)),
        check_egrad,
        non_finite=True,
    ),
    Call(
        "jorth.adapters.geoopt.JOrthogonal proju",
        on_geoopt("proju"),
        lambda rng: dict(x=tensor_point(rng), u=ambient(rng)),
        check_proju,
        non_finite=True,
    ),
    Call(
        "jorth.adapters.geoopt.JOrthogonal projx",
        on_geoopt("projx"),
        lambda rng: dict(x=tensor_point(rng) + 1e-3),
        check_projx,
    ),
]

WITHOUT: dict[str, str] = {
    "jorth.nn.init": "a module; its function is above",
    "jorth.optim.Split": "a result of split_parameters",
}
