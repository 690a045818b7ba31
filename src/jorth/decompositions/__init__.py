"""Decompositions for the indefinite product x^T J y."""

from jorth.decompositions.cs import CS, cs_decomposition
from jorth.decompositions.eigen import eigh
from jorth.decompositions.singular import HSVD, hsvd

__all__ = ["CS", "HSVD", "cs_decomposition", "eigh", "hsvd"]
