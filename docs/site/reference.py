"""Extensions of griffe: names mean what Python imports, and `>>>` lines are examples."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import griffe


class Shadowed(griffe.Extension):
    """Leads imported names past modules of the same name.

    Where ``jorth.solvers`` imports a function that is named after one of its modules, Python finds
    the function and griffe the module. What a package imports is what its names mean.
    """

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


class Examples(griffe.Extension):
    """Gives the `>>>` lines that end a docstring the heading that griffe's parser asks for."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of a function or a class."""
        if obj.docstring and "\n\n>>> " in obj.docstring.value:
            text, _, lines = obj.docstring.value.partition("\n\n>>> ")
            example = textwrap.indent(f">>> {lines}", "    ")
            obj.docstring.value = f"{text}\n\nExamples:\n{example}"


def _modules_in(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for part in module.modules.values():
        if not part.is_alias:
            yield from _modules_in(part)
