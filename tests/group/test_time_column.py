"""Data that fit the other Lorentz signature are noticed, and no others."""

import numpy as np
import pytest
import scipy.sparse
import torch

import jorth
from jorth import Signature
from jorth.group.time_column import OtherTimeWarning, other_time


def points(time="first", m=30, d=3, seed=0):
    """Of the hyperboloid, x^T J x = -1."""
    space = np.random.default_rng(seed).standard_normal((m, d))
    rows = np.column_stack([np.sqrt(1 + np.square(space).sum(axis=1)), space])
    return rows if time == "first" else np.roll(rows, -1, axis=1)


KINDS = {
    "NumPy": np.asarray,
    "float32": lambda rows: rows.astype(np.float32),
    "torch": torch.from_numpy,
    "sparse": scipy.sparse.csr_array,
    "batch": lambda rows: rows.reshape(3, 10, 4),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("has", "takes"), [("last", "first"), ("first", "last")])
def test_the_other_time_is_found(kind, has, takes):
    rows = KINDS[kind](points(has))
    assert other_time(Signature.lorentz(4, takes), rows, rows) == has
    assert other_time(Signature.lorentz(4, has), rows, rows) is None


def test_no_false_alarms():
    rng = np.random.default_rng(1)
    signature = Signature.lorentz(4)
    timelike = points("last")
    assert other_time(signature, timelike, rng.standard_normal((30, 4))) is None  # one cloud alone
    assert other_time(Signature(3, 1), timelike) is None  # its time is last
    assert other_time(Signature(2, 2), timelike) is None
    assert other_time(signature, timelike[:2]) is None  # too few rows
    lightlike = np.column_stack([np.eye(3), np.ones(3)])
    assert other_time(signature, lightlike) is None
    assert other_time(signature, np.zeros((5, 4))) is None
    assert other_time(signature, timelike[:, :2]) is None  # a thin target says nothing


@pytest.mark.parametrize("form", ["one", "batch", "thin"])
def test_procrustes_warns(form):
    X = jorth.random_point(Signature.lorentz(4, "last"), cond=3.0, seed=1)
    source, target = points("last"), points("last") @ X
    if form == "batch":
        source, target = np.stack([source] * 2), np.stack([target] * 2)
    if form == "thin":
        target = target[:, :2]
    with pytest.warns(OtherTimeWarning, match="signature with the time last") as caught:
        jorth.procrustes(source, target, Signature.lorentz(4))
    assert caught[0].filename == __file__
