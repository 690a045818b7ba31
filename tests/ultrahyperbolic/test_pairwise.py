"""Distances of all pairs by one matrix product: values, derivatives, near pairs, tracing."""

import numpy as np
import pytest
import torch

import jorth
from jorth.ultrahyperbolic import distance, exp0, pairwise_distance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("p", "q"), [(6, 1), (4, 3), (1, 1), (0, 5)])
def test_pairwise_distances_are_those_of_pairs(p, q, dtype):
    signature = jorth.Signature(p, q)
    generator = torch.Generator().manual_seed(0)
    v = 2 * torch.randn(2, 12, p + q - 1, generator=generator, dtype=dtype)
    v[:, 5:8] = v[:, :3] * (1 + 1e-4)  # near pairs
    x = exp0(v, signature, alpha=1.5)
    y = torch.cat([x[0, 3:], x[0, :2]])  # and the same points
    found = pairwise_distance(x, y, signature, alpha=1.5)
    wanted = distance(x[:, :, None], y[None, None], signature, alpha=1.5)
    assert found.shape == (2, 12, 11)
    u = torch.finfo(dtype).eps / 2
    # where g is near -1 the distance is near pi alpha, and as exact as elsewhere
    assert torch.allclose(found, wanted, rtol=10 * u**0.5, atol=0)
    assert (found[0].diagonal(offset=-3)[:8] == 0).all()
    assert isinstance(pairwise_distance(x[0].numpy(), y.numpy(), signature), np.ndarray)


def test_pairwise_distances_have_the_derivatives_of_distances():
    signature = jorth.Signature.lorentz(4)
    v = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    v[3] = v[2] * (1 + 1e-6)
    gradients = []
    for call in (
        lambda x, a: pairwise_distance(x, x, signature, alpha=a),
        lambda x, a: distance(x[:, None], x[None], signature, alpha=a),
    ):
        w = v.clone().requires_grad_()
        alpha = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
        call(exp0(w, signature, alpha=alpha), alpha).square().sum().backward()
        gradients.append((w.grad, alpha.grad))
    for one, two in zip(*gradients, strict=True):
        assert torch.allclose(one, two, rtol=1e-6, atol=1e-9)


# Dynamo's own warning
@pytest.mark.filterwarnings("ignore:.* should not be instantiated:DeprecationWarning")
def test_pairwise_distances_compiled_mapped_and_under_autocast():
    signature = jorth.Signature.lorentz(4)
    x = exp0(torch.randn(3, 6, 3, generator=torch.Generator().manual_seed(2)), signature)

    def pairs(x):
        return pairwise_distance(x, x + 0.0, signature)

    plain = pairs(x)
    compiled = torch.compile(pairs, fullgraph=True, backend="eager")(x)
    for found in (compiled, torch.vmap(pairs)(x)):
        assert torch.allclose(found, plain, atol=0.05)  # u^(1/2) |x|
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(pairs(x), plain)
