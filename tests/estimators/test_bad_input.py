"""Bad input to the estimators: the error names the argument, what it got and what it expects."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from jorth import Signature
from jorth.estimators import HyperbolicPCA, LorentzAligner, StructuralProbeEmbedding

X = np.random.default_rng(0).standard_normal((20, 3))
POINTS = np.column_stack([np.sqrt(1 + np.square(X).sum(axis=1)), X])
FIT = HyperbolicPCA(2).fit(X)
ALIGNED = LorentzAligner().fit(X, X)
T = np.abs(X[:, :1] - X[:, 0])
PROBE = StructuralProbeEmbedding(gradient_tolerance=1.0).fit(X, T)
STRICT = StructuralProbeEmbedding(zero_rows="error", gradient_tolerance=1.0).fit(X, T)
WITH_ZERO = np.vstack([X[:-1], np.zeros(3)])


def fit(data=X, **options):
    return HyperbolicPCA(**options).fit(data)


def probe(data=X, distances=T, **options):
    return StructuralProbeEmbedding(**options).fit(data, distances)


CASES = {
    "n_components above d": (lambda: fit(n_components=4), ValueError, "n_components must be at most 3, the dimension of the hyperbolic space, got 4"),
    "n_components above d, hyperboloid": (lambda: fit(POINTS, n_components=4, input="hyperboloid"), ValueError, "n_components must be at most 3"),
    "n_components zero": (lambda: fit(n_components=0), ValueError, "n_components must be at least 1, got 0"),
    "n_components a fraction": (lambda: fit(n_components=0.5), TypeError, "n_components must be an integer, got 0.5"),
    "input": (lambda: fit(input="poincare"), ValueError, 'input must be one of "euclidean", "hyperboloid", got \'poincare\''),
    "output": (lambda: fit(output="ball"), ValueError, 'output must be one of "tangent", "hyperboloid"'),
    "time": (lambda: fit(time="middle"), ValueError, 'time must be one of "first", "last"'),
    "scale zero": (lambda: fit(scale=0.0), ValueError, "scale must be a positive number, got 0.0"),
    "scale infinite": (lambda: fit(scale=np.inf), ValueError, "scale must be a positive number, got inf"),
    "scale a string": (lambda: fit(scale="auto"), ValueError, "scale must be a positive number, got 'auto'"),
    "scale on the hyperboloid": (lambda: fit(POINTS, input="hyperboloid", scale=2.0), ValueError, "scale must be 1 for rows that are points of the hyperboloid, got 2.0"),
    "off the hyperboloid": (lambda: fit(X, input="hyperboloid"), ValueError, r"X must hold points of the hyperboloid, \|space\|\^2 - time\^2 = -1 with time > 0, got"),
    "slightly off": (lambda: fit(POINTS * (1 + 1e-5), input="hyperboloid"), ValueError, "X must hold points of the hyperboloid"),
    "the other sheet": (lambda: fit(-POINTS, input="hyperboloid"), ValueError, "X must hold points of the hyperboloid, .* and time = -.* in row 0"),
    "time last": (lambda: fit(POINTS, input="hyperboloid", time="last"), ValueError, "X must hold points of the hyperboloid with the time last"),
    "aligner, time": (lambda: LorentzAligner(time="middle").fit(X, X), ValueError, 'time must be one of "first", "last"'),
    "probe, time": (lambda: probe(time="middle"), ValueError, 'time must be one of "first", "last"'),
    "one column of the hyperboloid": (lambda: fit(np.ones((3, 1)), input="hyperboloid"), ValueError, "X must have at least 2 columns for points of the hyperboloid, got 1"),
    "too far": (lambda: fit(1e9 * X), ValueError, "X must lie within a hyperbolic radius of about 17 of its centre, .* got a largest radius of 2.*; for Euclidean rows a smaller scale helps"),
    "NaN": (lambda: fit(X * np.nan), ValueError, "Input X contains NaN"),
    "sparse": (lambda: fit(scipy.sparse.csr_array(X + 0j)), TypeError, "X must hold real numbers"),
    "one row": (lambda: fit(X[:1]), ValueError, "minimum of 2 is required"),
    "not fitted": (lambda: HyperbolicPCA().transform(X), NotFittedError, "not fitted yet"),
    "transform, columns": (lambda: FIT.transform(X[:, :2]), ValueError, "X has 2 features, but HyperbolicPCA is expecting 3 features"),
    "inverse_transform, columns": (lambda: FIT.inverse_transform(X), ValueError, "X must have 2 columns, as transform gives, got 3"),
    "aligner, signature": (lambda: LorentzAligner((2, 1)).fit(X, X), TypeError, "signature must be a jorth.Signature, got "),
    "aligner, signs": (lambda: LorentzAligner(Signature(2, 2)).fit(X, X), ValueError, r"signature must have 3 signs, one for each column of X, got Signature\(2, 2\)"),
    "aligner, too many columns": (lambda: LorentzAligner().fit(X, POINTS), ValueError, "y must have at most the 3 columns of X, got 4"),
    "aligner, rows": (lambda: LorentzAligner().fit(X, X[:5]), ValueError, "inconsistent numbers of samples"),
    "aligner, no target": (lambda: LorentzAligner().fit(X), ValueError, "requires y to be passed"),
    "aligner, components": (lambda: LorentzAligner(components="none").fit(X, X), ValueError, 'components must be one of "all", "start"'),
    "aligner, method": (lambda: LorentzAligner(method="newton").fit(X, X), ValueError, "method must be one of"),
    "aligner, sparse": (lambda: LorentzAligner().fit(scipy.sparse.csr_array(X + 0j), X), TypeError, "X must hold real numbers"),
    "aligner, NaN": (lambda: LorentzAligner().fit(X, X * np.nan), ValueError, "contains NaN"),
    "aligner, not fitted": (lambda: LorentzAligner().transform(X), NotFittedError, "not fitted yet"),
    "aligner, inverse_transform, columns": (lambda: ALIGNED.inverse_transform(POINTS), ValueError, "X must have 3 columns, as transform gives, got 4"),
    "probe, signature": (lambda: probe(signature=(2, 1)), TypeError, "signature must be a jorth.Signature, got "),
    "probe, too few columns": (lambda: probe(signature=Signature(3, 1)), ValueError, r"signature must have 3 signs, one for each column of X, got Signature\(3, 1\)"),
    "probe, too many columns": (lambda: probe(signature=Signature(1, 1)), ValueError, "signature must have 3 signs, one for each column of X"),
    "probe, q zero": (lambda: probe(signature=Signature(3, 0)), ValueError, "signature must have q of at least 1"),
    "probe, alpha": (lambda: probe(alpha=0.0), ValueError, "alpha must be a positive number"),
    "probe, alpha infinite": (lambda: probe(alpha=np.inf), ValueError, "alpha must be a positive number"),
    "probe, scale": (lambda: probe(scale=-1.0), ValueError, "scale must be a positive number or \"fit\", got -1.0"),
    "probe, scale a word": (lambda: probe(scale="auto"), ValueError, "scale must be a positive number or \"fit\", got 'auto'"),
    "probe, scale a bool": (lambda: probe(scale=True), ValueError, "scale must be a positive number or \"fit\", got True"),
    "probe, ridge": (lambda: probe(ridge=-1e-3), ValueError, "ridge must be a number of at least 0, got -0.001"),
    "probe, zero_rows": (lambda: probe(zero_rows="drop"), ValueError, 'zero_rows must be one of "error", "base", got \'drop\''),
    "probe, method": (lambda: probe(method="newton"), ValueError, "method must be one of"),
    "probe, n_init": (lambda: probe(n_init=0), ValueError, "n_init must be at least 1, got 0"),
    "probe, n_init a fraction": (lambda: probe(n_init=1.5), TypeError, "n_init must be an integer, got 1.5"),
    "probe, max_iterations": (lambda: probe(max_iterations=-1), ValueError, "max_iterations must be at least 0, got -1"),
    "probe, max_time": (lambda: probe(max_time=-1.0), ValueError, "max_time must be a number of at least 0, got -1.0"),
    "probe, random_state": (lambda: probe(random_state="a"), TypeError, "random_state must be an integer, a RandomState or None"),
    "probe, random_state negative": (lambda: probe(random_state=-1), ValueError, "random_state must be at least 0, got -1"),
    "probe, a row of zeros": (lambda: probe(WITH_ZERO, zero_rows="error"), ValueError, "X must have no row of zeros, which has no lift, got 1 of 20"),
    "probe, a row of zeros to transform": (lambda: STRICT.transform(WITH_ZERO), ValueError, "X must have no row of zeros, .* got 1 of 20"),
    "probe, not square": (lambda: probe(distances=T[:, :5]), ValueError, r"y must have shape \(20, 20\), distances, or \(20,\), numbers, for the rows of X, got \(20, 5\)"),
    "probe, of other rows": (lambda: probe(distances=T[:5, :5]), ValueError, r"y must have shape \(20, 20\), .* got \(5, 5\)"),
    "probe, too few numbers": (lambda: probe(distances=X[:5, 0]), ValueError, r"y must have shape \(20, 20\), .* got \(5,\)"),
    "probe, negative": (lambda: probe(distances=-T), ValueError, "y must hold distances that are not negative, got -"),
    "probe, not symmetric": (lambda: probe(distances=np.triu(T)), ValueError, r"y must be symmetric, got max \|T - T\^T\| = "),
    "probe, NaN": (lambda: probe(distances=T * np.nan), ValueError, "Input y contains NaN"),
    "probe, NaN in the rows": (lambda: probe(X * np.nan), ValueError, "Input X contains NaN"),
    "probe, one row": (lambda: probe(X[:1], T[:1, :1]), ValueError, "minimum of 2 is required"),
    "probe, sparse": (lambda: probe(scipy.sparse.csr_array(X + 0j)), TypeError, "X must hold real numbers"),
    "probe, not fitted": (lambda: StructuralProbeEmbedding().transform(X), NotFittedError, "not fitted yet"),
    "probe, distances not fitted": (lambda: StructuralProbeEmbedding().distances(X), NotFittedError, "not fitted yet"),
    "probe, transform, columns": (lambda: PROBE.transform(X[:, :2]), ValueError, "X has 2 features, but StructuralProbeEmbedding is expecting 3 features"),
    "probe, score, shape": (lambda: PROBE.score(X, T[:5]), ValueError, r"y must have shape \(20, 20\)"),
    "probe, stress, rows": (lambda: PROBE.stress(X[:5], T), ValueError, r"y must have shape \(5, 5\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "fit",
    [
        lambda frame: HyperbolicPCA().fit(frame),
        lambda frame: LorentzAligner().fit(frame, X),
        lambda frame: LorentzAligner().fit(X, frame),
        lambda frame: StructuralProbeEmbedding().fit(frame),
        lambda frame: StructuralProbeEmbedding().fit(X, frame),
    ],
)
def test_columns_of_text_are_named(fit):
    frame = pd.DataFrame(X, columns=["t", "x", "y"]).assign(city="Rome")
    with pytest.raises(ValueError, match=r"DataFrame of shape \(\d+, \d+\) with .*'city'"):
        fit(frame)


def test_names_of_columns_that_are_not_all_text():
    frame = pd.DataFrame(X).assign(other=0.0)
    with pytest.raises(
        TypeError, match=r"have string names; got X a DataFrame of shape \(20, 4\)$"
    ):
        HyperbolicPCA().fit(frame)


def test_frames_without_text_are_described_as_before():
    with pytest.raises(ValueError, match=r"y None$"):
        LorentzAligner().fit(pd.DataFrame(X))
