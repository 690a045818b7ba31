"""What objectives make of their data: numbers cast first, copies, files read in chunks."""

import weakref

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


# -- data in files


class Stored:
    """Rows in a file, as a user's adapter gives them; ``most`` is the largest number read."""

    def __init__(self, array):
        self.array, self.dtype, self.most = array, array.dtype, 0

    def __len__(self):
        return len(self.array)

    def __getitem__(self, rows):
        if not isinstance(rows, slice):
            assert isinstance(rows, np.ndarray)
            assert (np.diff(rows) > 0).all()
        self.most = max(self.most, len(self.array[rows]))
        return self.array[rows].copy()


def memory_map(array, folder):
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def rows_and_labels(m, dtype=np.float64):
    rng = np.random.default_rng(6)
    return rng.standard_normal((m, 5)).astype(dtype), rng.integers(0, 5, m)


def cross_entropy(X, batch):
    rows, labels = batch
    assert labels.dtype == torch.int64
    return torch.nn.functional.cross_entropy(rows @ X, labels)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("store", [memory_map, lambda array, _: Stored(array)])
def test_stored_sums_are_those_in_memory(store, dtype, tmp_path):
    """Value, gradient, samples and second derivative, by chunks and blocks that do not divide N."""
    m = 1000
    arrays = rows_and_labels(m, dtype)
    parts = tuple(store(array, tmp_path) for array in arrays)
    memory, stored = FiniteSum(cross_entropy, arrays), FiniteSum(cross_entropy, parts, chunk=300)
    X = torch.from_numpy(jorth.random_point(SIG, cond=3.0, seed=2).astype(dtype))
    index, V = torch.tensor([700, 3, 999, 41]), X.flip(0)
    assert [repr(part) for part in stored._data] == [repr(part) for part in parts]  # no copies
    for evaluate in (
        lambda f: f.value(X),
        lambda f: f.value_and_gradient(X)[1],
        lambda f: f.sample_gradient(X, index),
        lambda f: f.hessian(X)(V),
    ):
        one, other = evaluate(memory), evaluate(stored)
        assert one.dtype == other.dtype == X.dtype
        # sums of m terms, each of a size near the largest one
        bound = m * np.finfo(dtype).eps * X.norm() ** 2
        assert (one - other).norm() <= bound
    if isinstance(parts[0], Stored):
        assert parts[0].most == 300
    methods = {"signature": SIG, "method": "vr-j-jobcd", "max_iterations": 30, "seed": 3}
    runs = [jorth.minimize(f, X.numpy(), **methods).x for f in (memory, stored)]
    error = np.linalg.norm(runs[0] - runs[1])
    assert error <= 1e3 * m * np.finfo(dtype).eps * np.linalg.norm(runs[0])


@pytest.mark.parametrize("store", [memory_map, lambda array, _: Stored(array)])
def test_products_of_stored_rows_are_summed_in_blocks(store, tmp_path):
    source, target = np.random.default_rng(8).standard_normal((2, 9000, 5))
    S, T = store(source, tmp_path), store(target, tmp_path)
    X = torch.from_numpy(jorth.random_point(SIG, seed=2))
    memory, stored = Procrustes(source, target), Procrustes(S, T)
    assert torch.equal(stored.value_and_gradient(X)[1], memory.value_and_gradient(X)[1])
    assert torch.equal(sampled(stored, X), sampled(memory, X))
    A = HyperbolicEigenvalue(data=S).A
    np.testing.assert_allclose(A.numpy(), 2 * source.T @ source, rtol=0, atol=9000 * 1e-15 * 100)
    if isinstance(S, Stored):
        assert S.most <= 4096
    with pytest.raises(ValueError, match="target must have shape"):
        Procrustes(S, T[:100])


def test_one_chunk_and_the_graph_of_one_block_are_in_memory():
    """When a chunk is read, nothing of the one before is left; autograd sees small parts of it."""
    read: list[weakref.ref] = []
    sizes = []

    class Watched(Stored):
        def __getitem__(self, rows):
            left = [array() for array in read]
            assert all(array is None or len(array) == 1 for array in left)
            found = super().__getitem__(rows)
            read.append(weakref.ref(found))
            return found

    def loss(X, batch):
        sizes.append(len(batch))
        return (batch @ X).square().mean()

    f = FiniteSum(loss, Watched(rows_and_labels(2000)[0]), chunk=640)
    f.value_and_gradient(torch.eye(5, dtype=torch.float64))
    assert len(sizes) == 200
    assert max(sizes) == 10
