"""A hook of mkdocs: `jorth.minimize`, written as code on a page or in a docstring, leads to it."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement

from markdown import Extension, Markdown
from markdown.treeprocessors import Treeprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority

NAME = re.compile(r"(jorth(?:\.\w+)+)(?:\(.*\))?")
CLOSED = {"a", "autoref", "pre", "h1", "h2", "h3", "h4", "h5", "h6"}
"""Elements in which code stays as it is."""


class Links(Treeprocessor):
    """Wraps names of the library in references, which mkdocs-autorefs resolves where it can."""

    def run(self, root: Element) -> None:
        """Visit every element that is not closed."""
        for child in root:
            name = NAME.fullmatch(child.text or "") if child.tag == "code" else None
            if child.tag == "code" and " " not in (child.text or ""):
                child.set("class", "word")
            if name:
                _wrap(child, name[1])
            elif child.tag not in CLOSED:
                self.run(child)


def _wrap(code: Element, identifier: str) -> None:
    """Turn an element of code into a reference that holds it."""
    text, code.text = code.text, None
    code.tag = "autoref"
    code.set("identifier", identifier)
    code.set("optional", "")
    SubElement(code, "code", {"class": code.attrib.pop("class", "")}).text = text


class Names(Extension):
    """Markdown in which names of the library are links."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Look at the tree once its inline elements are known."""
        md.treeprocessors.register(Links(md), "names of jorth", 5)


@event_priority(100)
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read every page and, as this comes before mkdocstrings, every docstring in this way."""
    config.markdown_extensions.append(Names())
    return config
