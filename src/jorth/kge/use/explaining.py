"""`explain`: how much a relation boosts, how much it rotates, and what it undoes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.arrays import generator
from jorth.group import component, inverse
from jorth.kge.model import UltraE, squared_arc
from jorth.kge.use.naming import Key, is_single, parts_of
from jorth.linalg import cs_decomposition
from jorth.signature import Signature
from jorth.suggestions import explained
from jorth.ultrahyperbolic import distance

SAMPLE = 400
"""The most entities on which relations are compared."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """A relation R as a boost followed by rotations, and how it acts on the entities.

    R = diag(Q1, Q2) B is the polar decomposition. It follows from the hyperbolic CS decomposition
    R = diag(U1, U2) H(mu) diag(V1, V2)^T: Q1 = U1 V1^T rotates the positive coordinates, Q2 =
    U2 V2^T the negative ones, and B = diag(V1, V2) H(mu) diag(V1, V2)^T is symmetric.

    Attributes:
        relation: The name or the number of the relation.
        rapidities: (min(p, q),), mu, descending. With q = 1 it is the distance, in units of alpha,
            by which R moves the origin.
        angles: The angles of Q1 in [0, pi], descending, one per plane.
        negative_angles: Those of Q2.
        reflections: The determinants +-1 of Q1 and Q2; -1 is one reflection beside the angles.
        translation: The logarithm of the largest |eigenvalue|. Unlike mu it does not depend on
            where the origin is: with q = 1 it is the least distance, in units of alpha, by which R
            moves any point; zero for a rotation around some point.
        from_identity: The median distance of R x from x over the median distance of two entities:
            0 if R changes nothing, about 1 if R x is as far from x as any other entity.
        from_involution: The same for R R x: 0 for a symmetric relation.
        inverse: The other relation S with the least median distance of S R x from x; None if there
            is none.
        from_inverse: That distance, measured as above: 0 if S undoes R; NaN if there is no S.
    """

    relation: Key
    rapidities: NDArray[np.float64]
    angles: NDArray[np.float64]
    negative_angles: NDArray[np.float64]
    reflections: tuple[int, int]
    translation: float
    from_identity: float
    from_involution: float
    inverse: Key | None
    from_inverse: float


@explained
def explain(model: Any, relation: Any = None) -> Any:
    """What a relation does: its boosts, its rotations, and whether it undoes itself or another.

    The matrices are those of the direction from heads to tails; the factors of a model with
    ``scaling`` are no part of them. Distances are taken over all entities, or over 400 of them,
    drawn with a fixed seed.

    Args:
        model: A `NamedModel`, or an `UltraE`, which has numbers only.
        relation: The name or the number of a relation, or a sequence of them; None for all.

    Returns:
        An `Explanation`, or a list of them.
    """
    plain, _, relations = parts_of(model)
    asked = list(range(plain.n_relations)) if relation is None else relation
    numbers = relations.numbers(asked, "relation")
    with torch.no_grad():
        R = plain.matrices().detach()[: plain.n_relations].cpu()
        action = _Action.of(plain, R.double())
    found = []
    for number in numbers:
        parts = _decomposed(R[number], plain.signature) | action.shares(number)
        other, apart = action.best_inverse(number)
        parts |= {"inverse": None if other is None else relations.key(other), "from_inverse": apart}
        found.append(Explanation(relations.key(number), **parts))
    return found[0] if is_single(asked) else found


def _decomposed(R: Tensor, signature: Signature) -> dict[str, Any]:
    cs = cs_decomposition(R, signature)  # in the precision in which R is J-orthogonal
    reflections = component(R, signature)
    return {
        "rapidities": cs.mu.double().numpy(),
        "angles": rotation_angles(cs.U1 @ cs.V1.mT, reflections[0]),
        "negative_angles": rotation_angles(cs.U2 @ cs.V2.mT, reflections[1]),
        "reflections": reflections,
        "translation": max(0.0, float(torch.linalg.eigvals(R.double()).abs().max().log())),
    }


def rotation_angles(Q: Tensor, determinant: int) -> NDArray[np.float64]:
    """The angles in [0, pi] of the planes of an orthogonal Q (m, m), descending.

    The eigenvalues are exp(+-i angle), one pair per plane. With determinant -1, one eigenvalue -1
    is left over, and if m is then even, one eigenvalue 1.
    """
    both = torch.linalg.eigvals(Q).angle().abs().sort(descending=True).values
    paired = both[1:] if determinant < 0 else both
    return np.asarray(paired[: len(paired) // 2 * 2 : 2].double().numpy())


@dataclass(frozen=True, eq=False)
class _Action:
    """Sampled entities x (s, n), R x and R^-1 x (relations, s, n), and a typical distance."""

    points: Tensor
    forward: Tensor
    backward: Tensor
    typical: float
    signature: Signature
    alpha: float

    @staticmethod
    def of(model: UltraE, R: Tensor) -> _Action:
        order = torch.from_numpy(generator(0).permutation(model.n_entities)[:SAMPLE])
        x = model.embeddings()[order.to(model.points.device)].double().cpu()
        pairs = distance(x, x.roll(1, dims=0), model.signature, alpha=model.alpha)
        return _Action(
            x,
            x @ R.mT,
            x @ inverse(R, model.signature).mT,
            float(pairs.median()) or 1.0,
            model.signature,
            model.alpha,
        )

    def shares(self, number: int) -> dict[str, Any]:
        """How far R x and R R x are from x; R R x is as far from x as R x from R^-1 x."""
        moved = self.forward[number]
        return {
            "from_identity": float(self._apart(moved, self.points)),
            "from_involution": float(self._apart(moved, self.backward[number])),
        }

    def best_inverse(self, number: int) -> tuple[int | None, float]:
        """The other relation S whose S R x are nearest to x, and how far they are."""
        if len(self.backward) == 1:
            return None, math.nan
        signed = self.forward[number] * (self.signature.vector(self.points) / self.alpha**2)
        # one product for all S; half the digits of short distances are enough to compare them
        arcs = squared_arc(torch.einsum("sn,msn->ms", signed, self.backward)).median(dim=-1).values
        arcs[number] = torch.inf
        best = int(arcs.argmin())
        return best, float(self._apart(self.forward[number], self.backward[best]))

    def _apart(self, x: Tensor, y: Tensor) -> Tensor:
        """The median distance over the sample, over the typical distance of two entities."""
        distances: Tensor = distance(x, y, self.signature, alpha=self.alpha)
        return distances.median(dim=-1).values / self.typical
