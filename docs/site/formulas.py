"""A hook of mkdocs: pages and docstrings hold formulas such as <x, y>, and no HTML but <br>."""

from __future__ import annotations

import re

from markdown import Extension, Markdown
from markdown.inlinepatterns import SubstituteTagInlineProcessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page


class Formulas(Extension):
    """Shows what looks like a tag as it was written."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Take HTML out of the language, but for the end of a line in a table."""
        md.preprocessors.deregister("html_block")
        md.inlinePatterns.deregister("html")
        md.inlinePatterns.register(SubstituteTagInlineProcessor("<br>", "br"), "end of line", 90)


@event_priority(100)
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read every page and, as this comes before mkdocstrings, every docstring in this way."""
    config.markdown_extensions.append(Formulas())
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave comments out."""
    return re.sub(r"^<!--.*?-->\n", "", markdown, flags=re.MULTILINE | re.DOTALL)
