"""Every table of the terminal: numbers are whole at any width, however long the names are."""

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from jorth.cli import main
from jorth.kge import NamedModel, Ranking, explain, save_model
from jorth.kge.tables import explanation_table, ranking_table
from tests.kge.models import random_triples, scattered

LONG = [f"/film/director_{'x' * 90}_{n}/film./film/performance/actor" for n in range(3)]


def lines(table, width):
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        console.print(table)
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [80, 120])
def test_figures_of_a_ranking(width):
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 99_999, size=(50, 2))
    ranking = Ranking(random_triples(50, 9, 3).numpy(), ranks, ranks)
    baseline = Ranking(ranking.triples, ranks + 1, ranks + 1)
    found = lines(ranking_table(ranking, baseline, LONG, "test triples"), width)
    assert max(map(len, found)) <= width
    for name, part in ranking.by_relation(LONG).items():
        figures = part.metrics()
        wanted = [f"{figures[key]:.3f}" for key in ("mrr", "hits@1", "hits@3", "hits@10")]
        wanted += [f"{figures['mean_rank']:.1f}", str(len(part.triples))]
        wanted += [f"{baseline.by_relation(LONG)[name].mrr:.3f}"]
        assert any(line.split()[-7:] == wanted for line in found)


@pytest.mark.parametrize("width", [80, 120])
def test_figures_of_explanations(width):
    explanations = explain(NamedModel(scattered(9, 3), tuple("abcdefghi"), LONG))
    found = lines(explanation_table(explanations), width)
    assert max(map(len, found)) <= width
    for one in explanations:
        shares = (one.from_identity, one.from_involution, one.from_inverse)
        wanted = [f"{one.translation:.3f}", *(f"{share:.2f}" for share in shares)]
        assert any(set(wanted) <= set(line.split()) for line in found)


@pytest.mark.parametrize("command", ["predict", "nearest"])
def test_answers_keep_their_numbers(tmp_path, command):
    names = [f"{'entity' * 30}{n}" for n in range(9)]
    save_model(tmp_path, NamedModel(scattered(9, 3), names, LONG))
    words = [names[0], LONG[0]] if command == "predict" else [names[0]]
    result = CliRunner().invoke(main, ["kge", command, *words, "-m", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert all(name in result.output for name in names[1:3])
