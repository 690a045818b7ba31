"""`nearest`, against arccosh and arccos of inner products in long doubles."""

import numpy as np
import pytest
import torch

import jorth
from jorth.kge import NamedModel, nearest
from tests.kge.models import SIGNATURE, scattered

HYPERBOLIC = jorth.Signature.of([1, 1, -1, 1])


def pairs(model):
    """The products <x, y> / alpha^2 of all pairs, in long doubles."""
    E = model.embeddings().detach().numpy().astype(np.longdouble)
    return np.abs((E * model.signature.signs) @ E.T) / np.longdouble(model.alpha) ** 2


@pytest.mark.parametrize("signature", [HYPERBOLIC, SIGNATURE], ids=str)
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_sorted_by_distance(signature, alpha):
    model = scattered(40, 2, signature=signature, alpha=alpha)
    g = pairs(model)
    hyperbolic = np.arccosh(np.maximum(g, 1))
    distances = alpha * np.where(g >= 1, hyperbolic, np.arccos(np.minimum(g, 1))).astype(float)
    kinds = set()
    for number in (0, 17):
        found = nearest(model, number, 39)
        others = np.delete(np.arange(40), number)
        order = others[np.argsort(distances[number, others])]
        assert [neighbour.entity for neighbour in found] == order.tolist()
        # near 0 an arccosh loses half the digits, in long doubles too
        assert [n.distance for n in found] == pytest.approx(
            distances[number, order].tolist(), rel=1e-8
        )
        assert [n.kind == "timelike" for n in found] == (g[number, order] < 1).tolist()
        kinds |= {neighbour.kind for neighbour in found}
        assert nearest(model, number, 5) == found[:5]
    assert kinds == ({"spacelike"} if signature.q == 1 else {"spacelike", "timelike"})


def test_names_and_several():
    names = [f"e{k}" for k in range(9)]
    model = NamedModel(scattered(9, 1), names, ["r"])
    assert len(nearest(model, "e4")) == 8
    assert nearest(model, ["e4", 2], k=3) == [nearest(model, 4, 3), nearest(model, "e2", 3)]
    assert "e4" not in [neighbour.entity for neighbour in nearest(model, "e4")]


def test_a_twin_is_nearest_and_no_timelike_one():
    model = scattered(6, 1, signature=HYPERBOLIC)
    with torch.no_grad():
        model.points[4] = model.points[1]
        model.points[5] = model.points[1] * (1 + 1e-15)
    found = nearest(model, 1, 2)
    assert {neighbour.entity for neighbour in found} == {4, 5}
    assert all(n.distance < 1e-7 and n.kind == "spacelike" for n in found)
