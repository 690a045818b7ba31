"""Locks on files and folders: they end with the process that holds them, however that ends."""

from __future__ import annotations

import sys


def held(handle: int, *, wait: bool) -> bool:
    """Whether the open file is now this process's alone, after waiting for others if need be.

    Where there are no locks, those who wait go on without one, and the others are told that they have none.
    """
    if sys.platform == "win32":
        return wait
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return wait
    return True
