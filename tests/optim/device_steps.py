"""Steps on a device beside those of plain torch on the CPU."""

import numpy as np
import torch

import jorth
from jorth import Signature
from jorth.optim import JOBCD
from jorth.optim.jobcd import angle_step, codes_of_step, first_state, is_one_launch, rule_of


def setting(n, b, dtype, seed=0, cond=4.0):
    """A signature in no order, matrices (b, n, n), and a generator."""
    rng = np.random.default_rng(seed)
    sig = Signature.of(rng.permutation([1] * (n // 2) + [-1] * (n - n // 2)))
    X = torch.from_numpy(np.array(jorth.random_point(sig, cond=cond, batch=(b,), seed=seed)))
    return sig, X.to(dtype), rng


def gradients(rng, X, sizes):
    for size in sizes:
        yield torch.from_numpy(size * rng.standard_normal(X.shape)).to(X.dtype)


def check_one_launch(
    device, n, b, dtype, *, sizes=(1.0, 3.0, 0.2), bad=None, cond=4.0, drift=0.0, **options
):
    """X, averages, gains and counts are those of `angle_step`; returns how many steps are held."""
    from jorth.optim._step_triton import take_step

    sig, start, rng = setting(n, b, dtype, cond=cond)
    start += drift * torch.finfo(dtype).eps ** 0.5 * torch.ones(n, n, dtype=dtype)
    group = JOBCD([torch.nn.Parameter(start.clone())], sig, **options).param_groups[0]
    state = first_state(group, start)
    there = {name: average.to(device, copy=True) for name, average in state.items()}
    X, Y, expected = start, start.to(device, copy=True), np.zeros(2)
    assert is_one_launch(group, Y)
    for turn, G in enumerate(gradients(rng, X, sizes)):
        group["turn"] = turn
        if turn == 1 and bad is not None:
            G[0, 1, 0] = bad
        rule, codes = rule_of(group, dtype), codes_of_step(group, X.device)
        X, finite, too_far = angle_step(rule, sig, codes, X, rule.sense * G, state)
        expected += [int((~finite).sum()), int(too_far.sum())]
        take_step(rule, sig, codes.to(device), Y, G.to(device), there)
    unit = torch.finfo(dtype).eps / 2
    size = float(X.abs().max())
    torch.testing.assert_close(Y.cpu(), X, rtol=0, atol=1e4 * unit * size)
    assert [there.pop("not_finite").item(), there.pop("too_far").item()] == expected.tolist()
    for name, average in there.items():
        bound = 1e5 * unit * float(state[name].abs().max())
        torch.testing.assert_close(average.cpu(), state[name], rtol=0, atol=bound, msg=name)
    assert (X - start).abs().max() > 1e-3
    assert jorth.residual(Y.cpu(), sig).max() <= 100 * n * unit
    return expected[1]


def check_options(device, dtype):
    """All options that one launch has."""
    check_one_launch(device, 6, 2, dtype, maximize=True)
    check_one_launch(device, 6, 2, dtype, gain_rate=0.0)
    check_one_launch(device, 7, 2, dtype, rounds_per_gradient=2)
    check_one_launch(device, 4, 3, dtype, bad=np.nan)
    check_one_launch(device, 4, 3, dtype, bad=np.inf)
    check_one_launch(device, 6, 2, dtype, lr=20.0)
    check_one_launch(device, 5, 2, dtype, sizes=(1.0, 1e20, 1.0))
    check_one_launch(device, 6, 2, dtype, drift=1e-2)
    assert check_one_launch(device, 6, 2, dtype, lr=2.0, max_norm=2.46, cond=1.01, sizes=[1.0] * 6)
