"""JSON and TOML from files that may be damaged or hostile; a ValueError names the file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    return parse_json(path.read_bytes(), str(path))


def parse_json(content: bytes | str, where: str) -> Any:
    """What JSON stands for; an error message begins with ``where``."""
    return _parsed(lambda: json.loads(content), "JSON", where)


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds."""
    content = path.read_bytes()
    found: dict[str, Any] = _parsed(lambda: tomllib.loads(content.decode()), "TOML", str(path))
    return found


def _parsed(parse: Callable[[], Any], form: str, where: str) -> Any:
    try:
        return parse()
    except ValueError as error:  # text that is not UTF-8 too
        raise ValueError(f"{where} is not {form}: {error}") from None
    except RecursionError:
        raise ValueError(f"{where} cannot be read: its {form} is nested too deeply") from None
