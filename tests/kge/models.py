"""Models that no training has touched, at points where nothing is special."""

import numpy as np
import torch

import jorth
from jorth.kge import UltraE

SIGNATURE = jorth.Signature.of([1, -1, 1, 1, -1, -1, 1])


def scattered(entities, relations, *, signature=SIGNATURE, seed=0, cond=5.0, **options):
    """An UltraE with random entities, biases and J-orthogonal relations."""
    model = UltraE(entities, relations, signature=signature, spread=0.7, seed=seed, **options)
    shape = (len(model.relations),)
    R = jorth.random_point(signature, cond=cond, batch=shape, seed=seed + 1)
    with torch.no_grad():
        model.relations.copy_(torch.as_tensor(R))
        model.bias.copy_(
            torch.randn(
                entities, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
            )
        )
    return model


def random_triples(count, entities, relations, seed=0):
    """Triples (count, 3), repetitions among them."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(size, size=count) for size in (entities, relations, entities)]
    return torch.from_numpy(np.stack(columns, axis=1))
