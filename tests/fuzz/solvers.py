"""The estimators: right calls and what their answers are."""

from __future__ import annotations

from tests.fuzz.calls import Call

CALLS: list[Call] = []

WITHOUT: dict[str, str] = {}
