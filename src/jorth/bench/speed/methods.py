"""The methods that are timed: those of jorth in groups, and those of other libraries."""

from __future__ import annotations

CHAIN = "GS-JOBCD + L-BFGS"
DATA_START = ", data start"
"""These methods start from the data as `jorth.procrustes` does, and are charged for it; all others
start from the identity."""
LBFGS = "Riemannian L-BFGS"
NEWTON = "Riemannian Newton"
AUTO = "auto"
ONE_CALL = "procrustes, one call"
LOOP = "procrustes in a loop"
"""Many problems at once, and the same problems one after the other."""
GROUPS = {
    "plain": ("GS-JOBCD", "J-JOBCD"),
    "accelerated": ("Accelerated GS-JOBCD", "Accelerated J-JOBCD"),
    "L-BFGS": (CHAIN, CHAIN + DATA_START, LBFGS, LBFGS + DATA_START),
    "Newton": (NEWTON, NEWTON + DATA_START),
    "auto": (AUTO, AUTO + DATA_START),
    "one call": (ONE_CALL,),
    "in a loop": (LOOP,),
}
"""Our methods by what is compared; "plain" and "accelerated" are JOBCD."""
UMCM = "UMCM"
OURS = (*(name for members in GROUPS.values() for name in members), UMCM)
CDOPT = "cdopt L-BFGS"
TRUST_REGIONS = "pymanopt TR"
PEER_LOOP = TRUST_REGIONS + " in a loop"
PEERS = ("pymanopt CG", TRUST_REGIONS, CDOPT, PEER_LOOP)  # other libraries
SPEED_METHODS = (*OURS, *PEERS, TRUST_REGIONS + DATA_START)
"""The last one uses our start, so it is not among the peers that ours are compared with."""
BATCH_METHODS = (ONE_CALL, LOOP, PEER_LOOP)
PROCRUSTES_ONLY = (UMCM, CDOPT)
SOLVERS = {
    "GS-JOBCD": "gs-jobcd",
    "J-JOBCD": "j-jobcd",
    "Accelerated GS-JOBCD": "accelerated-gs-jobcd",
    "Accelerated J-JOBCD": "accelerated-j-jobcd",
    LBFGS: "riemannian-lbfgs",
    NEWTON: "riemannian-newton",
    AUTO: "auto",
    UMCM: "umcm",
}
"""What `minimize` calls them."""


def methods_for(task: str) -> tuple[str, ...]:
    """The methods of a task: only Procrustes has a start from the data."""
    if task == "batch":
        return BATCH_METHODS
    alone = [name for name in SPEED_METHODS if name not in BATCH_METHODS]
    if task == "procrustes":
        return tuple(alone)
    general = [name for name in alone if name not in PROCRUSTES_ONLY]
    return tuple(name for name in general if not name.endswith(DATA_START))
