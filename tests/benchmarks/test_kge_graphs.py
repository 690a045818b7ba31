"""The graph of countries leaks nothing and leaves nothing out of training."""

import json

import numpy as np

from benchmarks.kge_graphs import PARTS, countries


def write_countries(folder, count, generator):
    """Countries on a circle, with common regions and languages, and a currency each."""
    for k in range(count):
        languages = generator.choice(8, size=generator.integers(1, 4), replace=False)
        country = {
            "ISO": {"alpha3": f"C{k}"},
            "borders": [f"C{(k + 1) % count}", "nowhere"],  # the other direction is not in the data
            "languages": [f"l{number}" for number in languages],
            "currencies": [f"money {k}"],
            "region": f"r{k % 3}",
            **{name: f"{name} {k // 2}" for name in ("subregion", "timezones")},  # two have it
        }
        (folder / f"{k}.json").write_text(json.dumps(country))


def test_parts_of_countries(tmp_path):
    write_countries(tmp_path, 60, np.random.default_rng(0))
    parts = countries(tmp_path)
    triples = [triple for part in PARTS for triple in parts[part]]
    assert len(set(triples)) == len(triples)
    facts = {(h, r, t) for h, r, t in triples}
    assert sum(r == "borders" for _, r, _ in facts) == 2 * 60
    assert not any(r == "currencies" or "nowhere" in t for _, r, t in facts)
    known = {entity for h, _, t in parts["train"] for entity in (h, t)}
    assert known == {entity for h, _, t in triples for entity in (h, t)}
    for part in PARTS:
        borders = {(h, t) for h, r, t in parts[part] if r == "borders"}
        assert borders == {(t, h) for h, t in borders}
    for part in ("valid", "test"):
        assert abs(len(parts[part]) - 0.1 * len(triples)) <= 2
