"""Whole calls are timed once: nothing here depends on how long they take."""

import pytest

from jorth.bench.speed import runner


@pytest.fixture(autouse=True)
def one_call(monkeypatch):
    monkeypatch.setattr(runner, "CALLS", 1)
