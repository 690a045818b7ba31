"""The page of all mistakes with their messages, as Markdown."""

from __future__ import annotations

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
        parts.append(
            f"## {kind.TITLE}\n\n| Mistake | Code | Message |\n| --- | --- | --- |\n{rows}"
        )
    return "\n".join(parts)


def _row(case: Mistake, made: Made) -> str:
    code = _cell("; ".join(case.code.splitlines()))
    return f"| {case.done} | {code} | {_cell(f'{made.kind}: {made.message}')} |\n"


def _cell(text: str) -> str:
    """Text in the typeface of code; as plain text where it has the sign that divides columns."""
    if "|" not in text:
        return f"`` {text} ``" if "`" in text else f"`{text}`"
    signs = {"|": "&#124;", "<": "&lt;"} | {sign: f"\\{sign}" for sign in "*_`[]"}
    return "".join(signs.get(sign, sign) for sign in text)
