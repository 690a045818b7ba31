"""Extensions of griffe: names mean what Python imports, and docstrings are typeset."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import griffe

KEPT = re.compile(r"(``.+?``|`[^`\n]+`|^ *\*{0,2}\w+:)", re.MULTILINE)
"""Code, and the names of arguments."""
WORDS = ["alpha", "beta", "delta", "eta", "theta", "lambda", "Lambda", "mu", "rho", "sigma"]
GREEK = dict(zip(WORDS, "αβδηθλΛμρσ", strict=True))
SYMBOLS = {
    r"\|\|": "‖",
    r"<([^<>|]{1,40}?, [^<>|]{1,40}?)>": r"⟨\1⟩",
    "<=": "≤",
    ">=": "≥",
    "->": "→",
    r"\+-": "±",
    "(?<= )-(?= )": "−",
    rf"(?<![\w.])({'|'.join(GREEK)})(?![A-Za-z0-9(=])": lambda match: GREEK[match[1]],
}


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


class Docstrings(griffe.Extension):
    """Writes formulas with their symbols, and gives `>>>` lines the heading of examples."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of a function or a class."""
        if obj.docstring is None:
            return
        text, _, lines = obj.docstring.value.partition("\n\n>>> ")
        parts = KEPT.split(text)
        parts[::2] = [typeset(part) for part in parts[::2]]
        text = "".join(parts)
        if lines:
            text += f"\n\nExamples:\n{textwrap.indent(f'>>> {lines}', '    ')}"
        obj.docstring.value = text


def typeset(text: str) -> str:
    """Return a text with the symbols that docstrings write in ASCII."""
    for pattern, symbol in SYMBOLS.items():
        text = re.sub(pattern, symbol, text)
    return text


def _modules_in(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for part in module.modules.values():
        if not part.is_alias:
            yield from _modules_in(part)
