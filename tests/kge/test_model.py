import numpy as np
import pytest
import torch

import jorth
from jorth.kge import UltraE
from jorth.kge._loss_numba import write_squared_arcs
from jorth.kge.model import _square_and_slope, multiply, squared_arc
from jorth.ultrahyperbolic import distance, lift, membership
from tests.kge.device_checks import check_arcs
from tests.kge.models import SIGNATURE, scattered


def expected_score(model, h, r, t):
    """The formula of the score, from the public geometry."""
    E = lift(model.points.detach(), model.signature, alpha=model.alpha)
    d = distance(model.relations.detach()[r] @ E[h], E[t], model.signature, alpha=model.alpha)
    return -(d**2) + model.bias[h] + model.bias[t] + model.delta


@pytest.mark.parametrize("alpha", [1.0, 1.7])
def test_score_is_the_formula(alpha):
    model = scattered(6, 2, alpha=alpha, delta=2.5)
    for h, r, t in np.ndindex(6, 2, 6):
        score = model(torch.tensor([h, r, t]))
        # u |x| |y| / alpha^2 with |x|, |y| up to 20
        assert abs(score - expected_score(model, h, r, t)) < 1e-12 * 50
    assert (membership(model.embeddings().detach(), model.signature, alpha=alpha) < 1e-14).all()


@pytest.mark.parametrize("alpha", [1.0, 1.7])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_all_ways_to_score_agree(reciprocal, alpha):
    model = scattered(6, 2, reciprocal=reciprocal, alpha=alpha)
    h, r, t = torch.tensor(list(np.ndindex(6, 2, 6))).unbind(-1)
    one_by_one = model(torch.stack([h, r, t], dim=-1))
    tails = model.score_tails(h, r)[torch.arange(len(h)), t]
    assert torch.allclose(one_by_one, tails, rtol=0, atol=1e-11)
    heads = model.score_heads(r, t)[torch.arange(len(h)), h]
    backwards = model(torch.stack([t, r + 2, h], dim=-1))
    assert torch.allclose(backwards, heads, rtol=0, atol=1e-11)
    # without matrices of their own, heads are found by the inverse: the same score
    assert torch.allclose(one_by_one, heads, rtol=0, atol=1e-10) != reciprocal
    (x, anchor_bias), (E, bias) = model.gather(h, torch.stack([t, h], dim=1))
    few = model.score_points(model.apply_relations(x, r), anchor_bias, E, bias)
    assert torch.allclose(few[:, 0], one_by_one, rtol=0, atol=1e-11)


def test_gradients():
    model = scattered(4, 1, signature=jorth.Signature.of([1, -1, -1]))
    names = ("points", "bias", "relations")

    def scores(*values):
        triples = torch.tensor([[0, 0, 1], [2, 0, 3], [3, 1, 1]])
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (triples,))

    assert torch.autograd.gradcheck(scores, tuple(getattr(model, name) for name in names))


@pytest.mark.parametrize("write", [write_squared_arcs, _square_and_slope])
def test_ways_to_write_arcs(write):
    check_arcs("cpu", write)


def test_a_triple_of_an_entity_with_itself_has_finite_gradients():
    model = UltraE(3, 1, signature=SIGNATURE, start="identity")  # relations start at I: d = 0
    model(torch.tensor([1, 0, 1])).backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_start():
    model, same, other = UltraE(5, 2, seed=3), UltraE(5, 2, seed=3), UltraE(5, 2, seed=4)
    assert model.signature == jorth.Signature(18, 18)
    assert (model.alpha, model.delta) == (1.0, 5.0)
    assert torch.equal(model.points, same.points)
    assert not torch.equal(model.points, other.points)
    assert torch.equal(model.relations, same.relations)
    assert not torch.equal(model.relations, other.relations)
    assert (jorth.residual(model.relations.detach(), model.signature) < 1e-14).all()
    assert torch.equal(*model.relations.detach())  # one rotation for all relations
    separate = UltraE(5, 2, start="separate", seed=3).relations.detach()
    assert (separate[1] - separate[0]).abs().max() > 0.1
    at_identity = UltraE(5, 2, start="identity").relations
    assert torch.equal(at_identity, torch.eye(36, dtype=torch.float64).expand(2, 36, 36))
    assert UltraE(5, 2, reciprocal=True).relations.shape == (4, 36, 36)
    assert UltraE(5, 2, dtype=torch.float32)(torch.tensor([0, 1, 2])).dtype == torch.float32
    assert "5 entities, 2 relations, Signature(18, 18), alpha=1, delta=5" in repr(model)


def test_the_other_direction_enters_predictions():
    """From each end its own distance counts once, that by the other matrix reverse_weight times."""
    model = scattered(5, 2, reciprocal=True, alpha=1.3, reverse_weight=0.6)
    E, R = lift(model.points.detach(), SIGNATURE, alpha=1.3), model.relations.detach()

    def squared(x, code, y):
        return distance(R[code] @ E[x], E[y], SIGNATURE, alpha=1.3) ** 2

    for h, r, t in np.ndindex(5, 2, 5):
        biases = (model.bias[h] + model.bias[t] + model.delta).detach()
        there, back = squared(h, r, t), squared(t, r + 2, h)
        head, relation, tail = (torch.tensor([number]) for number in (h, r, t))
        tails, heads = model.score_tails(head, relation), model.score_heads(relation, tail)
        # u |x| |y| / alpha^2 with |x|, |y| up to 50
        assert abs(tails[0, t] - (biases - (there + 0.6 * back))) < 1e-11 * 50
        assert abs(heads[0, h] - (biases - (back + 0.6 * there))) < 1e-11 * 50
        both = model(torch.tensor([[h, r, t], [t, r + 2, h]]))
        assert (both - torch.stack([tails[0, t], heads[0, h]])).abs().max() < 1e-11


def test_second_derivatives_are_refused():
    """Also where the incoming gradient is constant, which torch's own decorator lets pass."""
    g = torch.tensor([1.5, 0.3, -2.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="first derivatives only, got a backward pass"):
        torch.autograd.grad(squared_arc(g).sum(), g, create_graph=True)


@pytest.mark.parametrize("shape", [(9,), (3, 2), (), (0,), (100,)])
def test_products_with_chosen_matrices(shape):
    """Products and slopes are those of gathered matrices; the last matrix is never chosen."""
    random = torch.Generator().manual_seed(0)
    R = torch.randn(4, 5, 5, generator=random, dtype=torch.float64).requires_grad_()
    index = torch.randint(3, shape, generator=random)
    x = torch.randn(*shape, 5, generator=random, dtype=torch.float64).requires_grad_()
    factor = torch.randn(x.shape, generator=random, dtype=torch.float64)
    found, expected = multiply(R, index, x), (R[index] @ x[..., None]).squeeze(-1)
    torch.testing.assert_close(found, expected)
    ours, theirs = (torch.autograd.grad((y * factor).sum(), (R, x)) for y in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
