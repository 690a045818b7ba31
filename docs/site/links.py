"""A hook of mkdocs: what lies outside ``docs`` and is linked to becomes part of the site.

Links are written as the repository shows them (``../../examples/knowledge_graph.py``). Markdown
files become pages, source files become pages that show them, and the links lead to these pages.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
FRONT_PAGE = {"README.md": "index.md"}
IN_NAVIGATION = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "license.md",
}
PLACES = {**IN_NAVIGATION, **FRONT_PAGE}
"""Where files of the repository are on the site, relative to ``docs``."""
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of what is linked to, directly or by way of another such page."""
    inside = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    seen, left = {*inside, *FRONT_PAGE}, [*IN_NAVIGATION, *inside]
    while left:
        here = left.pop()
        if here not in seen:
            seen.add(here)
            files.append(File.generated(config, place(here), content=page_of(here)))
        if here.endswith(".md"):
            targets = (target_of(link, here) for link in LINK.findall((ROOT / here).read_text()))
            left += [target for target in targets if is_outside(target) and target not in seen]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The text of a page, with links that lead to where things are on the site."""
    homes = {uri: path for path, uri in IN_NAVIGATION.items()}
    uri = page.file.src_uri
    if uri.startswith("sources/"):
        here = uri.removeprefix("sources/")
    else:
        here = homes.get(uri, f"docs/{uri}")

    def moved(match: re.Match[str]) -> str:
        target = target_of(match[1], here)
        if not is_outside(target) and not is_outside(here):
            return match[1]
        return posixpath.relpath(place(target), posixpath.dirname(uri) or ".")

    return LINK.sub(moved, markdown)


def target_of(link: str, here: str) -> str:
    """The path from the root of the repository that a link on the page ``here`` leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), link))


def is_outside(path: str) -> bool:
    """Whether a path from the root names a file of the repository outside ``docs``."""
    return not path.startswith(("docs/", "..")) and (ROOT / path).is_file()


def place(path: str) -> str:
    """Where the site has a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PLACES.get(path, f"sources/{path}" if path.endswith(".md") else f"sources/{path}.md")


def page_of(path: str) -> str:
    """The page that shows a file: Markdown as it is, everything else as source."""
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        return text
    language = "python" if path.endswith(".py") else "text"
    return f"# {path}\n\n```{language}\n{text.rstrip()}\n```\n"
