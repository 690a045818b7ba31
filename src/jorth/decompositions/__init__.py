"""Decompositions for the indefinite product x^T J y."""

from jorth.decompositions.cs import CS, cs_decomposition

__all__ = ["CS", "cs_decomposition"]
