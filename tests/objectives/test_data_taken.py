"""What objectives make of their data: numbers cast first, copies, no graph, nothing dropped."""

import numpy as np
import pytest
import scipy.sparse
import torch

import jorth
from jorth import (
    FiniteSum,
    HyperbolicEigenvalue,
    Procrustes,
    Quadratic,
    Signature,
    Status,
    StructuralProbe,
)

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


def test_half_and_single_precision_are_multiplied_in_double():
    data = np.random.default_rng(1).standard_normal((200, 5)).astype(np.float32)
    A = HyperbolicEigenvalue(data=scipy.sparse.csr_array(data)).A.numpy()
    exact = 2 * data.T.astype(np.float64) @ data.astype(np.float64)
    assert np.abs(A - exact).max() <= 200 * 2.0**-53 * np.abs(exact).max()


@pytest.mark.parametrize("side", ["left", "right"])
def test_term_counts_are_not_unbounded(side):
    counts = scipy.sparse.csr_array(np.random.default_rng(2).poisson(30, (40, 5)).astype(np.uint16))
    result = jorth.minimize(
        HyperbolicEigenvalue(data=counts),
        signature=SIG,
        method="gs-jobcd",
        side=side,
        max_iterations=50,
    )
    assert result.status is not Status.UNBOUNDED
    assert result.value > 0


def test_sparse_counts_as_a_source():
    target = np.random.default_rng(3).standard_normal((30, 5))
    for dtype in (np.uint8, np.uint16, np.int64):
        found = Procrustes(scipy.sparse.csr_array(COUNTS.astype(dtype)), target)
        exact = Procrustes(COUNTS.astype(float), target)
        assert torch.equal(found.R, exact.R)
        index = torch.tensor([3, 1, 4])
        X = torch.eye(5, dtype=torch.float64)
        assert torch.equal(found.sample_gradient(X, index), exact.sample_gradient(X, index))


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.complex128, np.bool_])
def test_complex_data_and_flags_are_refused(make, dtype):
    data = make(np.eye(3, dtype=dtype))
    with pytest.raises(TypeError, match=rf"^data must hold real numbers.*{np.dtype(dtype)}"):
        HyperbolicEigenvalue(data=data)
    with pytest.raises(TypeError, match=rf"^source must hold real numbers.*{np.dtype(dtype)}"):
        Procrustes(data, np.eye(3))
    with pytest.raises(TypeError, match=rf"^source must hold real numbers.*{np.dtype(dtype)}"):
        jorth.procrustes(data, np.eye(3), Signature(2, 1))


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


def test_a_sparse_source_is_copied():
    source, target = scipy.sparse.csr_array(COUNTS.astype(float)), np.ones((30, 5))
    objective = Procrustes(source, target)
    X, index = torch.eye(5, dtype=torch.float64), torch.arange(4)
    before = objective.sample_gradient(X, index)
    source.data *= 3
    assert torch.equal(before, objective.sample_gradient(X, index))


@pytest.mark.parametrize("case", list(probes()), ids=lambda case: case[0])
@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd", "riemannian-lbfgs", "vr-j-jobcd"])
def test_data_with_a_graph(case, method):
    """The tensors may be parameters of something else: no gradient flows there."""
    name, arrays, make = case
    plain, tracked = (
        [torch.tensor(x).requires_grad_(graph) for x in arrays] for graph in (False, True)
    )
    if method == "vr-j-jobcd" and not make(*plain).samples:
        pytest.skip("no finite sum")
    options = dict(signature=SIG, method=method, max_iterations=2 if name == "finite sum" else 5)
    x0 = torch.from_numpy(jorth.random_point(SIG, cond=2.0, seed=1))
    with_graph = jorth.minimize(make(*tracked), x0, **options)
    assert torch.equal(with_graph.x, jorth.minimize(make(*plain), x0, **options).x)
    assert all(x.grad is None for x in tracked)
