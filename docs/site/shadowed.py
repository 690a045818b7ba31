"""An extension of griffe: `jorth.minimize` is the function, although a module has the name too.

Where ``jorth.solvers`` imports a function that is named after one of its modules, Python finds the
function and griffe the module. What a package imports is what its names mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe


class Shadowed(griffe.Extension):
    """Leads imported names past modules of the same name."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Correct the imports of every module of the package."""
        modules = {module.path: module for module in _modules_in(pkg)}
        for module in modules.values():
            for name, member in list(module.members.items()):
                if not member.is_alias or member.target_path not in modules:
                    continue
                owner, _, last = member.target_path.rpartition(".")
                meant = modules[owner].imports.get(last) if owner else None
                if meant not in (None, member.target_path):
                    module.set_member(name, griffe.Alias(name, meant))


def _modules_in(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for part in module.modules.values():
        if not part.is_alias:
            yield from _modules_in(part)
