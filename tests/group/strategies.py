"""Hypothesis strategies for signatures and points of O(p, q)."""

import numpy as np
from hypothesis import strategies as st

from jorth import Signature, random_point

UNIT = 2.0**-53


@st.composite
def signatures(draw, max_n=8):
    """Any order of signs, p = 0 and q = 0 included."""
    return Signature.of(draw(st.lists(st.sampled_from([1, -1]), min_size=1, max_size=max_n)))


@st.composite
def points(draw, signature, max_log_cond=8):
    """A point of O(p, q) in any component."""
    component = tuple(
        draw(st.sampled_from([1, -1])) if size else 1 for size in (signature.p, signature.q)
    )
    cond = 10.0 ** draw(st.floats(0, max_log_cond))
    return random_point(signature, cond=cond, component=component, seed=draw(st.integers(0, 2**32)))


def dense_j(signature):
    return np.diag(signature.signs.astype(float))
