"""Tensors that are not dense arrays of numbers in memory: an error that names the argument."""

import pytest
import torch

import jorth
from jorth.estimators import HyperbolicPCA, LorentzAligner

SIG = jorth.Signature(2, 1)
A = torch.eye(3, dtype=torch.float64)
ODD = {
    "nested, jagged": lambda: torch.nested.as_nested_tensor([A, A[:2]], layout=torch.jagged),
    "nested, strided": lambda: torch.nested.as_nested_tensor([A, A[:2]], layout=torch.strided),
    "on meta": lambda: A.to("meta"),
    "qint8": lambda: torch.quantize_per_tensor(torch.eye(3), 0.1, 0, torch.qint8),
}
CALLS = {
    "X": lambda value: jorth.residual(value, SIG),
    "A": lambda value: jorth.eigh(value, SIG),
    "source": lambda value: jorth.procrustes(value, A, SIG),
    "target": lambda value: jorth.procrustes(A, value, SIG),
    "x0": lambda value: jorth.minimize(jorth.Quadratic(A), value, signature=SIG),
    "data": lambda value: jorth.FiniteSum(lambda X, rows: (rows @ X).square().sum(), value),
    "y": lambda value: jorth.ultrahyperbolic.distance(A[-1], value, SIG),
    "x": lambda value: jorth.nn.JOrthogonalLinear(SIG, dtype=torch.float64)(value),
    "X of an estimator": lambda value: HyperbolicPCA().fit(value),
    "y of an estimator": lambda value: LorentzAligner().fit(A, value),
    "train": lambda value: jorth.kge.Triples(("a", "b"), ("r",), value, value, value),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("argument", CALLS)
def test_odd_tensors_are_named(argument, kind):
    value = ODD[kind]()
    if (argument, kind) in {("x", "on meta"), ("data", "qint8")}:
        pytest.skip("shapes of layers may be computed on meta, and labels are of any type")
    with pytest.raises((TypeError, ValueError)) as caught:
        CALLS[argument](value)
    message = str(caught.value)
    assert message.partition(" ")[0] == argument.partition(" ")[0]
    assert kind.partition(",")[0] in message.partition(", got ")[2]
