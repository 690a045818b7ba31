"""An extension of griffe: `jorth.minimize` is the function, although a module has the name too.

griffe reads ``from jorth.solvers import minimize`` as the module ``jorth.solvers.minimize``, where
Python finds the function that ``jorth.solvers`` imports from it.
"""

from __future__ import annotations

from typing import Any

import griffe


class Shadowed(griffe.Extension):
    """Leads names of ``jorth`` past modules that hold what they are named after."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Correct the aliases of the package."""
        for name, member in list(pkg.members.items()):
            if not member.is_alias or not member.target_path.startswith("jorth."):
                continue
            target = pkg.modules_collection[member.target_path]
            if target.is_module and name in target.members:
                pkg.set_member(name, griffe.Alias(name, target.members[name], parent=pkg))
