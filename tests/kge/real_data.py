"""Knowledge graphs of the folder that JORTH_DATA names."""

import os
from pathlib import Path

import pytest

from jorth.kge import load_triples


def folder(name):
    if not os.environ.get("JORTH_DATA"):
        pytest.skip("JORTH_DATA is not set")
    found = Path(os.environ["JORTH_DATA"]) / "kg" / name
    if not found.is_dir():
        pytest.skip(f"knowledge graph {name} is not in JORTH_DATA")
    return found


def graph(name, **options):
    return load_triples(folder(name), **options)
