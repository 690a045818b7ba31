import json

import numpy as np
import pytest
import torch

from jorth import Signature


def test_sorted_signature():
    sig = Signature(3, 2)
    assert (sig.p, sig.q, sig.n) == (3, 2, 5)
    np.testing.assert_array_equal(sig.signs, [1, 1, 1, -1, -1])
    assert repr(sig) == "Signature(3, 2)"


def test_any_order():
    sig = Signature.of([1, -1, -1, 1])
    assert (sig.p, sig.q) == (2, 2)
    np.testing.assert_array_equal(sig.positive, [0, 3])
    np.testing.assert_array_equal(sig.negative, [1, 2])
    assert repr(sig) == 'Signature.of("+--+")'
    assert repr(Signature.of("-+++")) == "Signature.lorentz(4)"
    for each in (sig, Signature.of("-+++"), Signature(1, 2), Signature.of("-")):
        assert eval(repr(each)) == each
    assert len(str(Signature.of([1, -1] * 500))) < 100


@pytest.mark.parametrize(("time", "expected"), [("first", [-1, 1, 1]), ("last", [1, 1, -1])])
def test_lorentz(time, expected):
    np.testing.assert_array_equal(Signature.lorentz(3, time=time).signs, expected)


def test_value_semantics():
    assert Signature(1, 1) == Signature.of([1, -1])
    assert Signature(1, 1) != Signature.of([-1, 1])
    assert (
        len({Signature(2, 1), Signature.of((1.0, 1.0, -1.0)), Signature.of(np.array([1, 1, -1]))})
        == 1
    )


def test_signs_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        Signature(2, 1).signs[0] = -1


def test_vector_follows_the_tensor():
    like = torch.zeros(1, dtype=torch.float32)
    vector = Signature(1, 2).vector(like)
    assert vector.dtype == torch.float32
    assert vector.tolist() == [1, -1, -1]


@pytest.mark.parametrize(
    "signs", [[1], [-1], [-1, -1, 1], [1, -1, 1, -1], [-1, 1, 1] * 3, [1, -1] * 20]
)
def test_tensors_of_signs_in_any_order(signs):
    signature = Signature.of(signs)
    assert signature.vector(torch.empty(0, dtype=torch.float64)).tolist() == signs
    assert signature.vector(torch.empty(0, dtype=torch.int64)).tolist() == signs
    plus, minus = signature.positions(torch.device("cpu"))
    assert (plus.dtype, minus.dtype) == (torch.int64, torch.int64)
    assert plus.tolist() == [place for place, sign in enumerate(signs) if sign == 1]
    assert minus.tolist() == [place for place, sign in enumerate(signs) if sign == -1]


def test_json():
    sig = Signature.of("+-+")
    assert (
        Signature.of(json.loads(json.dumps({"signature": sig}, default=list))["signature"]) == sig
    )


def test_counts_of_numpy_do_not_wrap():
    sig = Signature(np.uint8(255), np.uint8(1))
    assert (sig.p, sig.q, sig.n) == (255, 1, 256)
