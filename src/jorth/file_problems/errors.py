"""Errors of options."""

from __future__ import annotations


class OptionError(ValueError):
    """An option that cannot be: the message names it, what it got and what it expects."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option} {message}")
