"""HTML by jinja2: the templates are constants of this package, and whatever is filled into one is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

Html: TypeAlias = Markup
"""Text that a template has made. The engine escapes all other text when it is filled in."""
_ENGINE = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)


def html(template: str, **values: Any) -> Html:
    """Fill ``values`` into a template, which must be a constant: never text that was read."""
    return Markup(_compiled(template).render(values))


@cache
def _compiled(template: str) -> Template:
    return _ENGINE.from_string(template)


def together(*parts: Html) -> Html:
    """Some pieces of a page, one after the other."""
    return html("{{ parts | join }}", parts=parts)
