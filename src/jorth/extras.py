"""Optional packages: imported where they are used, with one message if they are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

EXTRAS = {
    "geoopt": "adapters",
    "matplotlib": "plots",
    "pandas": "data",
    "pooch": "data",
    "pykeen": "kge",
    "pymanopt": "adapters",
    "sklearn": "sklearn",
}
"""The extra of jorth that installs each optional package, which has the name of its import."""


@contextmanager
def needs(name: str, package: str, *, otherwise: str = "") -> Iterator[None]:
    """Import an optional package in this context, or say what to install.

    ``name`` is what needs the package, as the user knows it, ``package`` one of `EXTRAS`, and
    ``otherwise`` says what can be done without it. Other errors of its import pass as they are.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        remedy = f'pip install "jorth[{EXTRAS[package]}]"'
        distribution = {"sklearn": "scikit-learn"}.get(package, package)
        message = f"{name} needs {distribution}; install it with: {remedy}"
        also = f"; or {otherwise}" if otherwise else ""
        raise ImportError(message + also, name=package) from None
