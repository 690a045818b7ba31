"""A hook of mkdocs: formulas. Blocks of LaTeX become MathML, X^T J X in prose gets its superscript.

Pages and docstrings hold formulas such as <x, y>, and no HTML but <br>.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor, SubstituteTagInlineProcessor
from markdown.util import ETX
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

GROUP = r"\((?:[^()]|\([^()]*\))*\)|\{[^}]*\}"
SCRIPTS = {
    "sup": rf"(?<=[\w)\]}}‖⟩|'{ETX}])\^({GROUP}|[-±]?\w+)",
    "sub": rf"(?<=[‖⟩|)\]²\d{ETX}])_(\{{[^}}]*\}}|\w{{1,2}})(?!\w)",
}
INDEX = r"(?<![\w`])([A-Za-zα-ω]|sum|softmax)_(\{[^}]*\}|\w{1,3})(?!\w)"
"""A letter with its index; longer words are names of Python."""


class Script(InlineProcessor):
    """Raises or lowers what is after ^ or _."""

    def __init__(self, pattern: str, tag: str) -> None:
        super().__init__(pattern)
        self.tag = tag

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Any, int, int]:  # type: ignore[override]
        """Return the element, without the brackets that hold it together."""
        script = Element(self.tag)
        text = m[m.lastindex or 1]
        script.text = (text[1:-1] if text[0] in "({" else text).replace("-", "−")
        if m.lastindex == 1:
            return script, m.start(0), m.end(0)
        both = Element("span")
        both.text = m[1]
        both.append(script)
        return both, m.start(0), m.end(0)


class Formulas(Extension):
    """Shows what looks like a tag as it was written, and typesets indices and powers."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Take HTML out of the language, but for the end of a line in a table."""
        md.preprocessors.deregister("html_block")
        md.inlinePatterns.deregister("html")
        md.inlinePatterns.register(SubstituteTagInlineProcessor("<br>", "br"), "end of line", 90)
        for name, pattern in SCRIPTS.items():
            md.inlinePatterns.register(Script(pattern, name), name, 95)
        md.inlinePatterns.register(Script(INDEX, "sub"), "index", 96)


def display(source: str, *args: Any, **kwargs: Any) -> str:
    """Return a block of LaTeX as MathML."""
    return f'<div class="formula">{convert(source.strip(), display="block")}</div>'


@event_priority(100)
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Read every page and, as this comes before mkdocstrings, every docstring in this way."""
    config.markdown_extensions.append(Formulas())
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "math", "format": display}]
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leave comments out."""
    return re.sub(r"^<!--.*?-->\n", "", markdown, flags=re.MULTILINE | re.DOTALL)
