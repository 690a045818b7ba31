"""Waits that nothing on the screen explains: a program may ask to be told before one begins."""

from __future__ import annotations

from collections.abc import Callable

before_compiling: list[Callable[[], object]] = []
"""Called before a function is compiled whose code is not on the disk."""
