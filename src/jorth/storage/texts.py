"""JSON and TOML: read from files that may be damaged or hostile, and written."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_json(path: Path) -> Any:
    """The content of a JSON file; a ValueError names the file."""
    return parse_json(path.read_bytes(), str(path))


def parse_json(content: bytes | str, where: str) -> Any:
    """The value of a JSON text; an error message begins with ``where``."""
    return _parsed(lambda: json.loads(content), "JSON", where)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; a ValueError names the file."""
    content = path.read_bytes()
    found: dict[str, Any] = _parsed(lambda: tomllib.loads(content.decode()), "TOML", str(path))
    return found


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The values of a TOML text; an error message begins with ``where``."""
    found: dict[str, Any] = _parsed(lambda: tomllib.loads(text), "TOML", where)
    return found


def to_json(value: Any, *, indent: int | None = None) -> bytes:
    """A value as JSON text. NaN and infinity become null, as JSON has neither."""
    return json.dumps(_without_nan(value), indent=indent, allow_nan=False).encode()


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(part) for part in value]
    return value


def _parsed(parse: Callable[[], Any], form: str, where: str) -> Any:
    try:
        return parse()
    except ValueError as error:  # also text that is not UTF-8
        raise ValueError(f"{where} is not {form}: {error}") from None
    except RecursionError:
        raise ValueError(f"{where} cannot be read: its {form} is nested too deeply") from None
