"""What objectives make of their data: numbers cast first, copies, no graph, nothing dropped."""

import numpy as np
import pytest
import scipy.sparse
import torch

import jorth
from jorth import FiniteSum, HyperbolicEigenvalue, Procrustes, Quadratic, Signature, StructuralProbe

SIG = Signature(3, 2)
COUNTS = np.random.default_rng(0).integers(0, 256, (30, 5))


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64, np.uint64]
)
@pytest.mark.parametrize(
    "kind", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array]
)
def test_whole_numbers_are_cast_before_they_are_multiplied(dtype, kind):
    counts = (COUNTS % 128 if dtype is np.int8 else COUNTS).astype(dtype)
    exact = counts.astype(object).T @ counts.astype(object)
    A = HyperbolicEigenvalue(data=kind(counts)).A
    assert A.dtype == torch.float64
    assert np.array_equal(A.numpy(), 2 * exact.astype(float))


# -- the user's arrays afterwards


def probes():
    rng = np.random.default_rng(4)
    source, target = rng.standard_normal((20, 5)), rng.standard_normal((20, 5))
    distances = np.abs(source[:, :1] - source[:, 0])
    A = source.T @ source

    def loss(X, batch):
        return (batch @ X).square().mean()

    yield "procrustes", [source, target], lambda s, t: Procrustes(s, t)
    yield "finite sum", [source], lambda s: FiniteSum(loss, s)
    yield (
        "two parts",
        [source, target],
        lambda s, t: FiniteSum(lambda X, b: (b[0] @ X - b[1]).square().mean(), (s, t)),
    )
    yield "quadratic", [A, target[:5], A + np.eye(5)], lambda a, c, d: Quadratic(a, c, d)
    yield "eigenvalue", [A], lambda a: HyperbolicEigenvalue(a)
    yield "gram", [source], lambda s: HyperbolicEigenvalue(data=s)
    yield "probe", [source, distances], lambda s, d: StructuralProbe(s, d, signature=SIG)


def sampled(objective, X):
    index = torch.tensor([2, 0, 7])
    return objective.sample_gradient(X, index) if objective.samples else torch.zeros(1)


@pytest.mark.parametrize("case", list(probes()), ids=lambda case: case[0])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_changing_the_data_afterwards_changes_nothing(case, as_tensor):
    _, arrays, make = case
    given = [torch.tensor(x) if as_tensor else x.copy() for x in arrays]
    objective = make(*given)
    X = torch.from_numpy(jorth.random_point(SIG, cond=2.0, seed=1))
    value, gradient = objective.value_and_gradient(X)
    samples = sampled(objective, X)
    for array in given:
        array *= 3
    again, other = objective.value_and_gradient(X)
    assert value == again
    assert torch.equal(gradient, other)
    assert torch.equal(samples, sampled(objective, X))
