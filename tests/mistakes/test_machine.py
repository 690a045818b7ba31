"""Mistakes whose messages depend on the machine: devices, and libraries that may be missing."""

import numpy as np
import pytest
import torch

import jorth
from jorth import kge, nn, optim, ultrahyperbolic

SIG = jorth.Signature.lorentz(3)
NOWHERE = "cuda:99"
DEVICES = {
    "random_point": lambda: jorth.random_point(SIG, dtype=torch.float64, device=NOWHERE),
    "random_point, NumPy": lambda: jorth.random_point(SIG, device=NOWHERE),
    "origin": lambda: ultrahyperbolic.origin(SIG, device=NOWHERE),
    "JOrthogonalLinear": lambda: nn.JOrthogonalLinear(SIG, device=NOWHERE),
    "LorentzLinear": lambda: nn.LorentzLinear(SIG, device=NOWHERE),
    "LorentzAttention": lambda: nn.LorentzAttention(SIG, device=NOWHERE),
    "LorentzCentroid": lambda: nn.LorentzCentroid(SIG, 3, device=NOWHERE),
    "HyperbolicMLR": lambda: nn.HyperbolicMLR(SIG, 3, device=NOWHERE),
    "AveragedModel": lambda: optim.AveragedModel(nn.JOrthogonalLinear(SIG), device=NOWHERE),
    "UltraE": lambda: kge.UltraE(4, 2, device=NOWHERE),
    "train": lambda: kge.train(kge.hierarchy_with_cycles(depth=2), kge.Config(device=NOWHERE)),
}


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_that_is_not_there(name):
    found = f"{torch.cuda.device_count()} CUDA devices were found"
    with pytest.raises(ValueError, match=rf"device must be .* got 'cuda:99' \({found}\)"):
        DEVICES[name]()


def manifolds():
    """O(2, 1) in the libraries that are installed."""
    for library in ("pymanopt", "geoopt"):
        module = pytest.importorskip(f"jorth.adapters.{library}", exc_type=ImportError)
        yield module.JOrthogonal


def test_manifolds_of_other_libraries():
    for manifold in manifolds():
        with pytest.raises(TypeError, match=r"signature must be .*; write jorth.Signature\(2, 1\)"):
            manifold((2, 1))
        with pytest.raises(TypeError, match="JOrthogonal has no argument 'random_state'"):
            manifold(SIG, random_state=3)


def test_points_of_another_size_in_geoopt():
    module = pytest.importorskip("jorth.adapters.geoopt", exc_type=ImportError)
    with pytest.raises(ValueError, match=r"u must have shape \(..., 3, 3\)"):
        module.JOrthogonal(SIG).expmap(torch.eye(3), torch.eye(2))


def test_points_of_another_size_in_pymanopt():
    module = pytest.importorskip("jorth.adapters.pymanopt", exc_type=ImportError)
    with pytest.raises(ValueError, match="must have"):
        module.JOrthogonal(SIG).exp(np.eye(3), np.eye(2))
