"""docs/results/kge_commands.md: each published run has the command that asks for it."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.kge import Job as FullJob
from benchmarks.kge import config_of
from jorth.cli import main
from jorth.kge import Config, hierarchy_with_cycles, load_triples
from jorth.kge.session import read_request

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROW = re.compile(r"^\| (.+) \| ([\d.]+) \| (\d) \| `(jorth kge train .+)` \|$", re.MULTILINE)
ROWS = ROW.findall((DOCS / "results" / "kge_commands.md").read_text())
GRAPHS = ("WN18RR", "FB15k-237", "hpo-eye", "countries")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small graph under each name."""
    root = tmp_path_factory.mktemp("graphs")
    graph = hierarchy_with_cycles(branching=3, depth=2)
    for name in GRAPHS:
        (root / name).mkdir()
        for part in ("train", "valid", "test"):
            rows = getattr(graph, part).tolist()
            lines = [
                f"{graph.entities[h]}\t{graph.relations[r]}\t{graph.entities[t]}\n"
                for h, r, t in rows
            ]
            (root / name / f"{part}.txt").write_text("".join(lines))
    return root


def asked(command, folder, monkeypatch):
    """The graph and the settings of a command, which stops before training."""
    monkeypatch.chdir(folder)
    words = shlex.split(command.replace("--device cuda", "--device cpu"))[1:]
    result = CliRunner().invoke(main, [*words, "--dry-run"])
    assert result.exit_code == 0, result.output
    (folder / "asked.toml").write_text(result.output)
    request = read_request(folder / "asked.toml")
    return request.data.name, request.config


def published(folder):
    """The graph and the settings of all runs with seed 0 that test triples were ranked by."""
    graph = load_triples(folder / GRAPHS[0])
    for line in (DOCS / "report" / "kge.jsonl").read_text().splitlines():
        record = json.loads(line)
        if "test" in record and record["job"]["seed"] == 0:
            job = FullJob(**record["job"])
            yield job.graph, config_of(job, "cpu").fitted(graph)
    for line in (DOCS / "report" / "kge_defaults.jsonl").read_text().splitlines():
        record = json.loads(line)
        job = record["job"]
        if "test" in record and job["seed"] == 0:
            preset = "paper" if job["stage"] == "paper" else "default"
            changes = job["changes"] | ({"epochs": job["epochs"]} if job["epochs"] else {})
            yield job["graph"], Config.preset(preset, method=job["method"], **changes).fitted(graph)


def test_every_published_run_has_its_command(folder, monkeypatch):
    found = [asked(command, folder, monkeypatch) for _, _, _, command in ROWS]
    wanted = set(published(folder))
    assert len(found) == len(set(found)) == len(wanted)
    assert set(found) == wanted
    for (title, *_), (graph, _) in zip(ROWS, found, strict=True):
        assert title.startswith(f"{graph}, ")


def test_figures_are_those_of_the_pages():
    pages = "".join(
        (DOCS / "results" / name).read_text() for name in ("kge_results.md", "kge_defaults.md")
    )
    for title, figure, _, _ in ROWS:
        graph = title.split(", ")[0]
        row = rf"^\| {graph} .*\b{figure}\b"
        table = rf"^{graph}:\n\n(?:\|.*\n)*\|.*\b{figure}\b"  # a table of this graph alone
        assert re.search(f"{row}|{table}", pages, re.MULTILINE), title
