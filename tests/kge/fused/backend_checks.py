"""Checks of a backend of the fused loss on any device, against the reference in float64."""

import torch

from jorth.kge.loss import by_torch
from tests.kge.fused.batch import random_batch


def exact_batch(rows, k, n, *, dtype, device, smoothing=0.1, leave=True, seed=0):
    """A batch whose inner products are exact in float32, some of them 0 and +-1 for small n.

    |g| = 1 is thus on the same side in every precision, where the slope changes its sign.
    """
    batch = random_batch(rows, k, n, smoothing=smoothing, leave=leave, seed=seed)
    for name in ("signed", "candidates"):
        batch.tensors[name] = (4 * batch.tensors[name].detach()).round() / 4
    batch.tensors.update(
        {name: part.detach().to(device, dtype) for name, part in batch.tensors.items()}
    )
    return batch


def on(excluded, device):
    return None if excluded is None else type(excluded)(*(part.to(device) for part in excluded))


def reference(batch):
    """The loss and the gradients by autograd, in float64 on the CPU."""
    given = [part.cpu().double().clone().requires_grad_() for part in batch.tensors.values()]
    signed, candidates, bias, truth = given
    rest = (batch.area, batch.smoothing, on(batch.excluded, "cpu"))
    loss = by_torch(signed, candidates, bias, truth, *rest)
    return loss.detach(), torch.autograd.grad(loss, given)


def check(backend, batch, device):
    """Loss and gradients up to rounding of scores, each of which is off by u times its size."""
    given = batch.tensors.values()
    signed, candidates, bias, truth = (part.cpu().double() for part in given)
    area = batch.area
    unit = torch.finfo(batch.tensors["truth"].dtype).eps / 2
    arcs = torch.acosh((signed @ candidates.mT).abs().clamp(min=1)) + torch.pi / 2
    largest = 1 + float(bias.abs().max() + area * arcs.max() ** 2 + truth.abs().max())
    loss, gradients = backend(*given, area, batch.smoothing, on(batch.excluded, device))
    expected, slopes = reference(batch)
    assert abs(float(loss) - float(expected)) <= 10 * unit * largest
    # a weight is off by u times the score; what is summed is at most as large as its parts
    most = 2 * area * max(1.0, float(signed.abs().max()), float(candidates.abs().max()))
    sizes = (most, most, 1.0, 1.0)
    for found, slope, size in zip(gradients, slopes, sizes, strict=True):
        assert found.dtype == batch.tensors["truth"].dtype
        assert float((found.cpu().double() - slope).abs().max()) <= 10 * unit * largest * size


def check_shapes(backend, device):
    """Blocks that are full, partly filled and several; both precisions; with and without lists."""
    for shape in ((1, 1, 2), (5, 7, 3), (9, 1025, 33)):
        for smoothing, leave in ((0.0, False), (0.1, True)):
            for dtype in (torch.float64, torch.float32):
                options = dict(dtype=dtype, device=device, smoothing=smoothing, leave=leave)
                check(backend, exact_batch(*shape, **options), device)


def check_edges(backend, device):
    """Inner products of 0 and 1, rows without competitors, huge products, no number."""
    for dtype, huge in ((torch.float64, 1e200), (torch.float32, 1e25)):
        batch = exact_batch(6, 9, 2, dtype=dtype, device=device)
        signed, candidates = batch.tensors["signed"], batch.tensors["candidates"]
        signed[0], signed[1], candidates[0] = 0.0, torch.tensor([1.0, 0.0]), signed[1]
        check(backend, batch, device)
        found = backend(*batch.tensors.values(), batch.area, 0.1, on(batch.excluded, device))[1]
        assert found[0][0].abs().max() == 0
        assert batch.lists[-1] >= set(batch.entities.tolist())
        assert found[0][-1].abs().max() == 0
        assert found[3][-1] == 0
        candidates[1:] *= huge  # its square is not finite
        check(backend, batch, device)
        batch.tensors["bias"][2] = torch.nan
        assert backend(*batch.tensors.values(), batch.area, 0.1, None)[0].isnan()
