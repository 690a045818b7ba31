"""`explain`, on relations whose boosts, rotations and inverses are planted."""

import numpy as np
import pytest
import torch

import jorth
from jorth.kge import NamedModel, explain
from jorth.kge.answers import rotation_angles
from tests.kge.models import SIGNATURE, scattered

PLUS, MINUS = SIGNATURE.positive.tolist(), SIGNATURE.negative.tolist()
HYPERBOLIC = jorth.Signature.of([1, -1, 1, 1, 1, 1])


def turn(signature, i, j, by):
    """A rotation by an angle if the signs at i and j agree, a boost by a rapidity if not."""
    X = np.eye(signature.n)
    if signature.signs[i] == signature.signs[j]:
        X[[i, i, j, j], [i, j, i, j]] = np.cos(by), -np.sin(by), np.sin(by), np.cos(by)
    else:
        X[[i, i, j, j], [i, j, i, j]] = np.cosh(by), np.sinh(by), np.sinh(by), np.cosh(by)
    return X


def planted(*matrices, signature=SIGNATURE, entities=30):
    model = scattered(entities, len(matrices), signature=signature)
    with torch.no_grad():
        model.relations.copy_(torch.from_numpy(np.stack(matrices)))
    return model


def test_boosts_and_rotations_come_back():
    boost = turn(SIGNATURE, PLUS[0], MINUS[0], 0.7) @ turn(SIGNATURE, PLUS[1], MINUS[1], -0.4)
    rotation = turn(SIGNATURE, PLUS[2], PLUS[3], 0.3)
    back = turn(SIGNATURE, MINUS[1], MINUS[2], -1.1)
    frame = turn(SIGNATURE, PLUS[0], PLUS[2], 0.9) @ turn(SIGNATURE, MINUS[0], MINUS[1], 0.5)
    found = explain(planted(rotation @ back @ frame @ boost @ frame.T), 0)
    assert found.rapidities == pytest.approx([0.7, 0.4, 0], abs=1e-13)
    assert found.angles == pytest.approx([0.3, 0], abs=1e-13)
    assert found.negative_angles == pytest.approx([1.1], abs=1e-13)
    assert found.reflections == (1, 1)
    assert found.inverse is None
    assert np.isnan(found.from_inverse)


def test_reflections():
    flip = np.ones(SIGNATURE.n)
    flip[PLUS[1]] = -1
    found = explain(planted(turn(SIGNATURE, PLUS[2], PLUS[3], 3.0) @ np.diag(flip)), 0)
    assert found.reflections == (-1, 1)
    assert found.angles == pytest.approx([3.0], abs=1e-13)
    flip[MINUS[0]] = -1
    found = explain(planted(np.diag(flip)), 0)
    assert found.reflections == (-1, -1)
    assert found.angles == pytest.approx([0], abs=1e-13)
    assert found.negative_angles == pytest.approx([0], abs=1e-13)


@pytest.mark.parametrize("size", [1, 2, 5, 6])
@pytest.mark.parametrize("sign", [1, -1])
def test_angles_of_any_orthogonal_matrix(size, sign):
    rng = np.random.default_rng(size)
    planes = (size - (sign < 0)) // 2
    angles = np.sort(rng.uniform(0, np.pi, planes))[::-1]
    Q = np.eye(size)
    for k, angle in enumerate(angles):
        Q = Q @ turn(jorth.Signature(size, 0), 2 * k, 2 * k + 1, angle)
    Q[:, -1] *= sign
    W, _ = np.linalg.qr(rng.standard_normal((size, size)))
    found = rotation_angles(torch.from_numpy(W @ Q @ W.T), sign)
    assert found == pytest.approx(angles, abs=1e-13)


def test_translation_does_not_depend_on_the_origin():
    away = turn(HYPERBOLIC, 0, 1, 1.5) @ turn(HYPERBOLIC, 2, 1, 0.8)
    home = np.linalg.inv(away)
    boost, rotation = turn(HYPERBOLIC, 3, 1, 0.7), turn(HYPERBOLIC, 0, 2, 2.0)
    model = planted(away @ boost @ home, away @ rotation @ home, signature=HYPERBOLIC)
    moved, turned = explain(model)
    assert moved.translation == pytest.approx(0.7, abs=1e-12)
    assert moved.rapidities[0] > 1
    assert turned.translation == pytest.approx(0, abs=1e-6)  # the root of an error: a double 1
    assert turned.rapidities[0] > 1
    # with one negative sign the rapidity is how far the origin moves
    o = np.asarray(jorth.ultrahyperbolic.origin(HYPERBOLIC))
    far = jorth.ultrahyperbolic.distance(away @ boost @ home @ o, o, HYPERBOLIC)
    assert moved.rapidities[0] == pytest.approx(far, rel=1e-12)


@pytest.mark.parametrize("signature", [SIGNATURE, HYPERBOLIC], ids=str)
def test_involutions_and_inverses(signature):
    R = jorth.random_point(signature, cond=3.0, batch=(3,), seed=3)
    S = jorth.random_point(signature, cond=3.0, seed=4)
    flips = np.ones(signature.n)
    flips[signature.positive[:2]] = -1
    symmetric = S @ np.diag(flips) @ jorth.inverse(S, signature)
    undone = jorth.inverse(R[1], signature)
    model = planted(R[0], symmetric, R[1], undone, np.eye(signature.n), signature=signature)
    named = NamedModel(model, [f"e{k}" for k in range(30)], ["a", "sym", "b", "unb", "same"])
    a, sym, b, unb, same = explain(named)
    assert sym.from_involution < 1e-6 < 0.1 < sym.from_identity
    assert same.from_identity < 1e-12
    assert (b.inverse, unb.inverse) == ("unb", "b")
    assert max(b.from_inverse, unb.from_inverse) < 1e-6 < 0.1 < a.from_inverse
    assert explain(named, "b").relation == "b"
    assert [one.relation for one in explain(named, ["b", 0])] == ["b", "a"]
