"""Averages of weights: on the group where parameters are J-orthogonal, as in torch elsewhere."""

import copy
import math

import mpmath
import numpy as np
import pytest
import torch
from torch.optim import swa_utils

import jorth
from jorth import PolishError, Signature
from jorth.nn import JOrthogonalLinear, declare
from jorth.optim import AveragedModel, split_parameters

SIG = Signature.of([1, -1, 1, 1, -1])
N = SIG.n
FUNCTIONS = {
    "SWA": {},
    "SWA, one by one": {"avg_fn": swa_utils.get_swa_avg_fn()},
    "EMA": {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.9)},
    "EMA, one by one": {"avg_fn": swa_utils.get_ema_avg_fn(0.9)},
}
DTYPES = (torch.float32, torch.float64)


def share(name, count):
    """The weight t of the next model after ``count`` of them."""
    return 0.1 if name.startswith("EMA") else 1 / (count + 1)


class Model(torch.nn.Module):
    """Matrices of two signatures, alone and in a batch, with a norm layer and a head."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        place = {"dtype": dtype}
        self.first = JOrthogonalLinear(SIG, bias=True, cond=3.0, **place)
        self.norm = torch.nn.BatchNorm1d(N, **place)
        self.second = JOrthogonalLinear(Signature(2, 1), batch=(2,), cond=3.0, **place)
        self.head = torch.nn.Linear(N, 3, **place)
        self.third = JOrthogonalLinear(SIG, cond=3.0, seed=1, **place)

    def forward(self, x):
        y = self.head(self.norm(self.third(self.first(x))))
        return self.second(y[:, None, :].expand(-1, 2, -1))


def small_turn(signature, size, generator):
    K = size * torch.randn(signature.n, signature.n, generator=generator, dtype=torch.float64)
    return jorth.exp(signature.vector(K)[:, None] * (K - K.mT), signature)


def move(model, generator, size=0.1):
    """A random step of all parameters, along the group where there is one."""
    kinds = {
        id(p): group["signature"]
        for group in split_parameters(model).j_orthogonal
        for p in group["params"]
    }
    with torch.no_grad():
        for p in model.parameters():
            if id(p) in kinds:
                exact = jorth.polish(p.double(), kinds[id(p)])
                p.copy_(small_turn(kinds[id(p)], size, generator).to(p.device) @ exact)
            else:
                p.add_(size * torch.randn(p.shape, generator=generator, dtype=p.dtype).to(p.device))
        model(torch.randn(8, N, generator=generator).to(next(model.parameters())))


def residuals(model):
    return [
        float(torch.as_tensor(jorth.residual(p.detach(), group["signature"])).max())
        for group in split_parameters(model).j_orthogonal
        for p in group["params"]
    ]


def pair(A, X, signature=SIG, columns=None, **options):
    """The average of A after an update by X."""
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(A.clone())
    declare(module, "weight", signature, columns=columns)
    averaged = AveragedModel(module, **options)
    averaged.update_parameters(module)
    with torch.no_grad():
        module.weight.copy_(X)
    averaged.update_parameters(module)
    return averaged.module.weight.detach()


def ema(decay):
    return {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(decay)}


# -- as in torch


@pytest.mark.parametrize("use_buffers", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_parameters_and_buffers_are_those_of_torch(name, use_buffers):
    generator = torch.Generator().manual_seed(0)
    model = Model()
    ours = AveragedModel(model, use_buffers=use_buffers, **FUNCTIONS[name])
    theirs = swa_utils.AveragedModel(model, use_buffers=use_buffers, **FUNCTIONS[name])
    for _ in range(5):
        move(model, generator)
        for averaged in (ours, theirs):
            averaged.update_parameters(model)
    on_group = {"module.first.weight", "module.second.weight", "module.third.weight"}
    expected = theirs.state_dict()
    assert list(ours.state_dict()) == list(expected)
    for key, value in ours.state_dict().items():
        assert torch.equal(value, expected[key]) == (key not in on_group)
    assert max(residuals(ours)) < 10 * N * 2.0**-24 < 1e-2 * max(residuals(theirs))


# -- which mean


def boost(w):
    return torch.tensor(
        [[math.cosh(w), math.sinh(w)], [math.sinh(w), math.cosh(w)]], dtype=torch.float64
    )


def points(seed, cond, apart):
    """A point of a condition number, and another that a random turn leads to."""
    A = jorth.random_point(SIG, cond=cond, seed=seed, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    return A, small_turn(SIG, apart, generator) @ A


def polar_factor(E, columns=SIG):
    """E (C E^T J E)^(-1/2) by mpmath."""
    with mpmath.workdps(60):
        J, C = (mpmath.diag(signature.signs.tolist()) for signature in (SIG, columns))
        M = mpmath.matrix(E.tolist())
        values, vectors = mpmath.eig(C * M.T * J * M)
        inverse_root = vectors * mpmath.diag([1 / mpmath.sqrt(v) for v in values]) * vectors**-1
        factor = (M * inverse_root).apply(mpmath.re)
        return torch.tensor(np.array(factor.tolist(), dtype=float))


@pytest.mark.parametrize("apart", [0.01, 0.5])
@pytest.mark.parametrize("cond", [4.0, 1e8])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_average_is_the_polar_factor_of_the_mean(name, cond, apart):
    A, X = points(3, cond, apart)
    t = share(name, 1)
    found = pair(A, X, **FUNCTIONS[name])
    wanted = polar_factor((1 - t) * A + t * X)
    # rounding moves A and X by n u ||A||^2 along the group
    assert (found - wanted).abs().max() < 1e-13 * cond * float(wanted.abs().max())
    assert jorth.residual(found, SIG) < 10 * N * 2.0**-53


THIN = [1, 0, 2]
"""Some columns of a J-orthogonal matrix, in another order."""
COLUMNS = Signature.of([-1, 1, 1])


@pytest.mark.parametrize(("cond", "apart"), [(4.0, 0.1), (100.0, 0.01), (1e6, 1e-4)])
@pytest.mark.parametrize("decay", [0.9, 0.5])
def test_thin_averages_are_polar_factors_too(decay, cond, apart):
    """Where X - A is below one, so that there is such a factor."""
    A, X = (point[:, THIN] for point in points(3, cond, apart))
    found = pair(A, X, columns=COLUMNS, **ema(decay))
    wanted = polar_factor(decay * A + (1 - decay) * X, COLUMNS)
    assert (found - wanted).abs().max() < 1e-13 * cond**1.5 * float(wanted.abs().max())
    gram = torch.diag(COLUMNS.vector(found))
    assert jorth.residual(found, SIG, gram=gram) < 10 * N * 2.0**-53
    single = pair(A.float(), X.float(), columns=COLUMNS, **ema(decay))
    assert jorth.residual(single, SIG, gram=gram) < 10 * N * 2.0**-24


def test_components_of_thin_matrices():
    """Two negative columns of two signs have an orientation, two positive ones of three have
    none."""
    eye = torch.eye(N, dtype=torch.float64)
    flipped = eye[:, [0, 2]] * torch.tensor([-1.0, 1.0])
    assert torch.allclose(
        pair(eye[:, [0, 2]], flipped, columns=Signature(2, 0), **ema(0.9)), eye[:, [0, 2]]
    )
    flipped = eye[:, [1, 4]] * torch.tensor([-1.0, 1.0])
    with pytest.raises(ValueError, match="there is no mean of matrices in different components"):
        pair(eye[:, [1, 4]], flipped, columns=Signature(0, 2), **ema(0.9))
    with pytest.raises(PolishError, match="too far apart"):
        pair(eye[:, [0, 2]], -eye[:, [0, 2]], columns=Signature(2, 0))


# -- far and long


def test_different_components_have_no_mean():
    model = Model()
    averaged = AveragedModel(model, **ema(0.99))
    averaged.update_parameters(model)
    before = copy.deepcopy(averaged.state_dict())
    with torch.no_grad():
        model.head.weight.zero_()
        model.third.weight[0] *= -1
    with pytest.raises(ValueError, match=r"third.weight must lie in the component"):
        averaged.update_parameters(model)
    for key, value in averaged.state_dict().items():
        assert torch.equal(value, before[key])


def test_points_too_far_apart_have_no_mean():
    """-boost(w) is in the component of I for two signs of each kind; t = 1/2."""
    signature = Signature.of([1, -1, 1, -1])
    X = -torch.block_diag(boost(1.0), boost(1.5))
    assert jorth.component(X, signature) == (1, 1)
    with pytest.raises(PolishError, match="weight and the average are too far apart"):
        pair(torch.eye(4, dtype=torch.float64), X, signature)


@pytest.mark.parametrize("value", [2.0, math.nan])
def test_parameters_off_the_group_are_refused(value):
    model = Model()
    averaged = AveragedModel(model)
    with torch.no_grad():
        model.first.weight[0, 0] = value
    with pytest.raises(ValueError, match=r"first.weight must be (J-orthogonal|finite)"):
        averaged.update_parameters(model)
    assert int(averaged.n_averaged) == 0
