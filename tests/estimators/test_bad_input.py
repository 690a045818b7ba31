"""Bad input to the estimators: the error names the argument, what it got and what it expects."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from jorth import Signature
from jorth.estimators import HyperbolicPCA, LorentzAligner, StructuralProbeEmbedding

X = np.random.default_rng(0).standard_normal((20, 3))
POINTS = np.column_stack([np.sqrt(1 + np.square(X).sum(axis=1)), X])
FIT = HyperbolicPCA(2).fit(X)
ALIGNED = LorentzAligner().fit(X, X)
T = np.abs(X[:, :1] - X[:, 0])


def fit(data=X, **options):
    return HyperbolicPCA(**options).fit(data)


def probe(data=X, distances=T, **options):
    return StructuralProbeEmbedding(**options).fit(data, distances)


CASES = {
    "n_components above d": (lambda: fit(n_components=4), ValueError, "n_components must be at most 3, the dimension of the hyperbolic space, or rows less one, got 4"),
    "n_components a fraction": (lambda: fit(n_components=1.5), ValueError, "n_components must be an integer from 1 to 3, or a share above 0 and below 1, got 1.5"),
    "input": (lambda: fit(input="poincare"), ValueError, 'input must be one of "euclidean", "hyperboloid", got \'poincare\''),
    "scale zero": (lambda: fit(scale=0.0), ValueError, "scale must be a positive number, got 0.0"),
    "scale on the hyperboloid": (lambda: fit(POINTS, input="hyperboloid", scale=2.0), ValueError, "scale must be 1 for rows that are points of the hyperboloid, got 2.0"),
    "off the hyperboloid": (lambda: fit(X, input="hyperboloid"), ValueError, r"X must hold points of the hyperboloid, \|space\|\^2 - time\^2 = -1 with time > 0, got"),
    "the other sheet": (lambda: fit(-POINTS, input="hyperboloid"), ValueError, "X must hold points of the hyperboloid, .* and time = -.* in row 0"),
    "time last": (lambda: fit(POINTS, input="hyperboloid", time="last"), ValueError, "X must hold points of the hyperboloid with the time last"),
    "one column of the hyperboloid": (lambda: fit(np.ones((3, 1)), input="hyperboloid"), ValueError, "X must have at least 2 columns for points of the hyperboloid, got 1"),
    "too far": (lambda: fit(1e9 * X), ValueError, "X must lie within a hyperbolic radius of about 17 of its centre, .* got a largest radius of 2.*; for Euclidean rows a smaller scale helps"),
    "NaN": (lambda: fit(X * np.nan), ValueError, "Input X contains NaN"),
    "not fitted": (lambda: HyperbolicPCA().transform(X), NotFittedError, "not fitted yet"),
    "transform, columns": (lambda: FIT.transform(X[:, :2]), ValueError, "X has 2 features, but HyperbolicPCA is expecting 3 features"),
    "inverse_transform, columns": (lambda: FIT.inverse_transform(X), ValueError, "X must have 2 columns, as transform gives, got 3"),
    "aligner, sample_weight": (lambda: LorentzAligner().fit(X, X, sample_weight=-np.ones(20)), ValueError, "Negative values in data passed to `sample_weight`"),
    "aligner, signs": (lambda: LorentzAligner(Signature(2, 2)).fit(X, X), ValueError, r"signature must have 3 signs, one for each column of X, got Signature\(2, 2\)"),
    "aligner, too many columns": (lambda: LorentzAligner().fit(X, POINTS), ValueError, "y must have at most the 3 columns of X, got 4"),
    "aligner, no target": (lambda: LorentzAligner().fit(X), ValueError, "requires y to be passed"),
    "aligner, components": (lambda: LorentzAligner(components="none").fit(X, X), ValueError, 'components must be one of "all", "start"'),
    "aligner, inverse_transform, columns": (lambda: ALIGNED.inverse_transform(POINTS), ValueError, "X must have 3 columns, as transform gives, got 4"),
    "probe, signature": (lambda: probe(signature=(2, 1)), TypeError, "signature must be a jorth.Signature, got "),
    "probe, q zero": (lambda: probe(signature=Signature(3, 0)), ValueError, "signature must have q of at least 1"),
    "probe, scale a word": (lambda: probe(scale="auto"), ValueError, "scale must be a positive number or \"fit\", got 'auto'"),
    "probe, n_init": (lambda: probe(n_init=0), ValueError, "n_init must be at least 1, got 0"),
    "probe, random_state": (lambda: probe(random_state="a"), ValueError, "'a' cannot be used to seed"),
    "probe, not square": (lambda: probe(distances=T[:, :5]), ValueError, r"y must have shape \(20, 20\), distances, or \(20,\), numbers, for the rows of X, got \(20, 5\)"),
    "probe, negative": (lambda: probe(distances=-T), ValueError, "y must hold distances that are not negative, got -"),
    "probe, not symmetric": (lambda: probe(distances=np.triu(T)), ValueError, r"y must be symmetric, got max \|T - T\^T\| = "),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call()
