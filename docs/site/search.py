"""A hook of mkdocs: the search shows the reference first, then how-to pages, then results."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

BOOST = {"reference": 6.0, "tutorials": 2.0, "howto": 2.0, "results": 0.4, "sources": 0.2}
"""The weights of folders; other pages have 1."""
LESS = {"changelog.md": 0.2, "contributing.md": 0.2, "reference/commands.md": 1.0}


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Set the weight of a page."""
    uri = page.file.src_uri
    page.meta["search"] = {"boost": LESS.get(uri, BOOST.get(uri.partition("/")[0], 1.0))}
    return markdown
