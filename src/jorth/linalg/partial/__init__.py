"""A few eigenpairs of A x = lambda J x next to the gap, for dense, sparse and matrix-free A."""

from jorth.linalg.partial.inputs import Operator
from jorth.linalg.partial.options import Subset
from jorth.linalg.partial.solve import partial_eigh

__all__ = ["Operator", "Subset", "partial_eigh"]
