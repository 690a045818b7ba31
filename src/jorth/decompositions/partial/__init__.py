"""A few eigenpairs of A x = lambda J x next to the gap, for dense, sparse and matrix-free A."""

from jorth.decompositions.partial.inputs import Operator
from jorth.decompositions.partial.options import Subset
from jorth.decompositions.partial.solve import partial_eigh

__all__ = ["Operator", "Subset", "partial_eigh"]
