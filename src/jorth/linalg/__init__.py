"""Decompositions and least squares for the indefinite product x^T J y."""

from jorth.linalg.cs import CS, cs_decomposition
from jorth.linalg.eigh import eigh
from jorth.linalg.hsvd import HSVD, hsvd
from jorth.linalg.polar import polar
from jorth.linalg.qr import hyperbolic_qr, indefinite_lstsq
from jorth.linalg.updating import cholesky_update

__all__ = [
    "CS",
    "HSVD",
    "cholesky_update",
    "cs_decomposition",
    "eigh",
    "hsvd",
    "hyperbolic_qr",
    "indefinite_lstsq",
    "polar",
]
