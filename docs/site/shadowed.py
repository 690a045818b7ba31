"""An extension of griffe: `jorth.minimize` is the function, although a module has the name too.

griffe reads ``from jorth.solvers import minimize`` as the module ``jorth.solvers.minimize``, where
Python finds the function that ``jorth.solvers`` imports from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe


class Shadowed(griffe.Extension):
    """Leads imported names past modules that hold what they are named after."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Correct the imports of every module of the package."""
        for module in [pkg, *_modules_in(pkg)]:
            for name, member in list(module.members.items()):
                shadow = member.is_alias and _module_at(member.target_path, pkg)
                if shadow and name in shadow.members:
                    module.set_member(name, griffe.Alias(name, shadow.members[name]))


def _module_at(path: str, package: griffe.Module) -> griffe.Module | None:
    """The module of the package with this path, if there is one."""
    found = package
    for name in path.split(".")[1:] if path.startswith(f"{package.path}.") else ():
        if name not in found.members or found.members[name].is_alias:
            return None
        found = found.members[name]
    return found if found.is_module and found is not package else None


def _modules_in(module: griffe.Module) -> Iterator[griffe.Module]:
    for part in module.modules.values():
        if not part.is_alias:
            yield part
            yield from _modules_in(part)
