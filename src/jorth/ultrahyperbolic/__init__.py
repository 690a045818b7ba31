"""The pseudo-hyperboloid U = {x : <x, x>_J = -alpha^2}: points, distances, geodesics and means.

A point is x = (s, t) with s at the positive and t at the negative signs of J. With q = 1 it is the
hyperboloid model of hyperbolic space, with p = 0 the sphere. All derivatives are finite, even where
those of the formulas are not: the docstrings say what is returned there.

Public functions check their arguments. Those whose names end in ``_at`` do not: they take tensors
and the signs (n,) as a tensor, never touch the host, and give NaN where the others raise.
"""

from jorth.group.lorentz import boost, frame, rotation
from jorth.ultrahyperbolic.distances import SLOPE_FLOOR as SLOPE_FLOOR
from jorth.ultrahyperbolic.distances import distance, pairwise_distance
from jorth.ultrahyperbolic.maps import exp, exp0, log, log0, project_tangent, transport
from jorth.ultrahyperbolic.means import centroid, frechet_mean
from jorth.ultrahyperbolic.points import Place as Place
from jorth.ultrahyperbolic.points import check_q as check_q
from jorth.ultrahyperbolic.points import height as height
from jorth.ultrahyperbolic.points import inner, lift, membership, origin
from jorth.ultrahyperbolic.points import lift_at as lift_at
from jorth.ultrahyperbolic.points import polar as polar
from jorth.ultrahyperbolic.points import slices as slices

__all__ = [
    "boost",
    "centroid",
    "distance",
    "exp",
    "exp0",
    "frame",
    "frechet_mean",
    "inner",
    "lift",
    "log",
    "log0",
    "membership",
    "origin",
    "pairwise_distance",
    "project_tangent",
    "rotation",
    "transport",
]
