"""Write `src/jorth/__init__.pyi`, the public names for type checkers, from `jorth/__init__.py`."""

from pathlib import Path

import jorth

STUB = Path(__file__).resolve().parent.parent / "src" / "jorth" / "__init__.pyi"


def stub() -> str:
    """Return the text of the stub: one import for each public name."""
    homes: dict[str, str] = vars(jorth)["_HOMES"]
    lines = ["# Generated from the table in __init__.py by scripts/public_names.py.", ""]
    for name in sorted(homes, key=lambda name: (homes[name], name)):
        lines.append(f"from {homes[name]} import {name} as {name}")
    return "\n".join([*lines, "", "__version__: str", ""])


if __name__ == "__main__":
    STUB.write_text(stub())
