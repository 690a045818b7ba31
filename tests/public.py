"""The public names of the package."""

from __future__ import annotations

from types import ModuleType

import jorth


def public_names() -> list[str]:
    """Every public name as it is imported; the adapters have no list of theirs."""
    values = {name: getattr(jorth, name) for name in dir(jorth) if name != "__version__"}
    names = [f"jorth.{name}" for name, value in values.items() if not isinstance(value, ModuleType)]
    for module, value in values.items():
        if isinstance(value, ModuleType):
            names += [f"jorth.{module}.{name}" for name in getattr(value, "__all__", [])]
    return sorted(names)
