"""Problems for turns by given angles, and the product of turns, plane by plane."""

import numpy as np
import torch

import jorth
from jorth import Signature
from jorth.optim.rotations import turn_factors
from jorth.optim.rounds import pair_codes
from jorth.plane import tournament


def problem(n, k, b, dtype, largest, seed=0):
    """A signature in no order, X (b, n, k), codes, factors, angles and rounds."""
    rng = np.random.default_rng(seed)
    sig = Signature.of(rng.permutation([1] * (n // 2) + [-1] * (n - n // 2)))
    X = jorth.random_point(sig, cond=9.0, batch=(b,), seed=seed)[:, :, :k]
    upper = np.triu(rng.uniform(-largest, largest, (b, n, n)), 1)
    angles = torch.from_numpy(upper - np.swapaxes(upper, 1, 2))
    rounds = tournament(n, seed=seed)
    codes = torch.from_numpy(pair_codes(sig.signs, rounds))
    signs = torch.from_numpy(sig.signs.copy())
    factors = turn_factors(angles, signs, codes)
    return sig, torch.from_numpy(X.copy()).to(dtype), codes, factors, angles, rounds


def product_of_turns(angles, sig, rounds):
    """The product (b, n, n) of exp(-J Theta_ij (e_i e_j^T - e_j e_i^T)) over the pairs."""
    s, T = sig.signs.astype(float), np.eye(sig.n)[None].repeat(len(angles), 0)
    theta = angles.numpy()
    for i, j in rounds.reshape(-1, 2):
        a = theta[:, i, j, None]
        cosine, sine = (np.cos(a), np.sin(a)) if s[i] == s[j] else (np.cosh(a), np.sinh(a))
        above, below = T[:, i].copy(), T[:, j].copy()
        T[:, i] = cosine * above - s[i] * sine * below
        T[:, j] = cosine * below + s[j] * sine * above
    return torch.from_numpy(T)


def check_turns(turned, device, n, k, *, b, dtype, largest=None):
    """T X of ``turned`` is that of `product_of_turns`, on rows and on columns, to rounding."""
    largest = 1.0 / n if largest is None else largest
    largest = min(largest, 20.0 / n**1.5)  # so that products of many boosts do not overflow
    sig, X, codes, factors, angles, rounds = problem(n, k, b, dtype, largest)
    T = product_of_turns(angles, sig, rounds)
    inputs = [tensor.to(device) for tensor in (X, codes, *factors)]
    found = turned(*inputs)
    size = T.norm(dim=(1, 2)) * X.double().norm(dim=(1, 2))
    bound = 20 * n * 2.0**-53 * size[:, None, None]
    assert found.dtype == torch.float64
    assert ((found.cpu() - T @ X.double()).abs() <= bound).all()
    assert (found.cpu() - X).abs().amax(dim=(1, 2)).min() > 1e-3
    if n == k:
        columns = turned(inputs[0].mT, *inputs[1:]).mT.cpu()
        assert ((columns - X.double() @ T.mT).abs() <= bound).all()
