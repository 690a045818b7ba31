"""Options that several commands share, and the examples in their help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from jorth.cli import F

# methods of `jorth solve` that are none of `minimize`, and the default of eigen and of the others
DIRECT = "direct"  # by jorth.eigh
EVERY = "every-component"  # the best of runs in all components of O(p, q)


def examples(*lines: str, after: str = "") -> str:
    """The epilog of a command: lines to copy, and then other text."""
    shown = "\n".join(f"  {line}" for line in lines)
    return f"\b\nExamples:\n{shown}\n\n{after}".strip()


def device_option(default: str | None = None) -> Callable[[F], F]:
    """The option --device, which is refused unless torch has the device here."""
    text = "Where to compute: cpu, cuda, cuda:1, mps."
    return click.option(
        "--device", default=default, show_default=True, callback=_available, help=text
    )


def _available(_ctx: click.Context, _option: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    known = devices()
    if value not in known:
        raise click.BadParameter(f"must be {' or '.join(known)} here, got {value!r}")
    return value


def devices() -> list[str]:
    """The devices that torch can compute on here."""
    import torch

    found = ["cpu"]
    if torch.cuda.is_available():
        found += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    return [*found, "mps"] if torch.backends.mps.is_available() else found
