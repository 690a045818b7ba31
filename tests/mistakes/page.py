"""The page of all mistakes with their messages, as Markdown."""

from __future__ import annotations

import html
import tempfile
from pathlib import Path

from tests.mistakes.case import Mistake
from tests.mistakes.kinds import KINDS
from tests.mistakes.running import PREAMBLE, Made, make, workplace

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "mistakes.md"
HEAD = """# Mistakes and their messages

What jorth says when a call or a command is wrong, for {count} mistakes that are easily made. A
message names the argument or the option at fault, what it got and what was expected. The examples
in Python start with these lines:

```python
{preamble}
```

`python -m tests.mistakes` makes all of these mistakes and writes this page.
"""


def page() -> str:
    """The page, after all mistakes have been made."""
    with tempfile.TemporaryDirectory() as folder, workplace(Path(folder)) as names:
        return page_of({case: make(case, names) for kind in KINDS for case in kind.CASES})


def page_of(made: dict[Mistake, Made]) -> str:
    """The page of mistakes that have been made."""
    parts = [HEAD.format(count=len(made), preamble=PREAMBLE)]
    for kind in KINDS:
        rows = "".join(_row(case, made[case]) for case in kind.CASES)
        parts.append(f"## {kind.TITLE}\n\n| Code | Message |\n| --- | --- |\n{rows}")
    return "\n".join(parts)


def _row(case: Mistake, made: Made) -> str:
    code = "<br>".join(_code(line) for line in case.code.splitlines())
    return f"| {case.done}:<br>{code} | {made.kind}:<br>{_code(made.message)} |\n"


def _code(text: str) -> str:
    """Text in the typeface of code, in a cell of a table."""
    if "|" in text or "`" in text:
        entities = {"|": "&#124;", "`": "&#96;", "*": "&#42;", "_": "&#95;", "[": "&#91;"}
        escaped = html.escape(text, quote=False)
        return f"<code>{''.join(entities.get(letter, letter) for letter in escaped)}</code>"
    return f"`{text}`"
