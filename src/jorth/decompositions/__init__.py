"""Decompositions and least squares for the indefinite product x^T J y."""

from jorth.decompositions.cs import CS, cs_decomposition
from jorth.decompositions.eigen import eigh
from jorth.decompositions.least_squares import indefinite_lstsq
from jorth.decompositions.partial import Subset
from jorth.decompositions.polar import polar
from jorth.decompositions.qr import hyperbolic_qr
from jorth.decompositions.singular import HSVD, hsvd
from jorth.decompositions.updating import cholesky_update

__all__ = [
    "CS",
    "HSVD",
    "Subset",
    "cholesky_update",
    "cs_decomposition",
    "eigh",
    "hsvd",
    "hyperbolic_qr",
    "indefinite_lstsq",
    "polar",
]
