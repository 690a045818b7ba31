"""jorth in other libraries: `jorth.adapters.pymanopt`, `jorth.adapters.geoopt`, `.pykeen`.

The first two provide O(p, q) as a manifold, the third UltraE as a model. Each is imported by its
full name, since each needs its library: ``pip install 'jorth[adapters]'`` or, for PyKEEN,
``'jorth[kge]'``.
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needing(library: str, extra: str) -> Iterator[None]:
    """Import a library in this context, or say which extra of jorth installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != library:
            raise
        remedy = f"pip install 'jorth[{extra}]'"
        raise ImportError(f"jorth.adapters.{library} needs {library}: {remedy}") from None
