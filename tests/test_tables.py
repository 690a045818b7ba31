"""Every table of the terminal: numbers are whole at any width, however long the names are."""

from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.cells import cell_len
from rich.console import Console

from jorth.cli import demo, main
from jorth.kge import NamedModel, Ranking, explain, save_model
from jorth.kge.display import ranking_table
from jorth.kge.tables import explanation_table
from jorth.tables import NumberTable, shortened
from tests.kge.models import random_triples, scattered

LONG = [f"/film/director_{'x' * 90}_{n}/film./film/performance/actor" for n in range(3)]


def lines(table, width):
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        console.print(table, crop=False)
    return capture.get().splitlines()


def ranked():
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 99_999, size=(50, 2))
    triples = random_triples(50, 9, 3).numpy()
    return Ranking(triples, ranks, ranks)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_figures_of_a_ranking(width):
    ranking = ranked()
    found = lines(ranking_table(ranking, LONG, "test triples"), width)
    for name, part in ranking.by_relation(LONG).items():
        figures = part.metrics()
        wanted = [f"{figures[key]:.3f}" for key in ("mrr", "hits@1", "hits@3", "hits@10")]
        wanted += [f"{figures['mean_rank']:.1f}", str(len(part.triples))]
        (line,) = (line for line in found if line.split()[1:] == wanted)
        assert "…" in line
        assert line.split()[0] == shortened(name, cell_len(line.split()[0]))
    assert max(map(len, found)) <= max(width, 56)  # below it the numbers alone have no room


@pytest.mark.parametrize("width", [60, 80, 120])
def test_figures_of_explanations(width):
    explanations = explain(NamedModel(scattered(9, 3), tuple("abcdefghi"), LONG))
    found = lines(explanation_table(explanations), width)
    assert max(map(len, found)) <= width
    for one in explanations:
        shares = (one.from_identity, one.from_involution, one.from_inverse)
        wanted = [f"{one.translation:.3f}", *(f"{share:.2f}" for share in shares)]
        assert any(wanted == [line.split()[k] for k in (2, 4, 5, 6)] for line in found[2:5])


@pytest.mark.parametrize("command", ["predict", "nearest"])
def test_answers_have_whole_numbers_and_whole_names(command, tmp_path):
    names = tuple(f"{name}{'y' * 120}" for name in "abcdefghi")
    save_model(tmp_path, NamedModel(scattered(9, 3), names, LONG))
    asked = [names[0], LONG[0]] if command == "predict" else [names[0]]
    result = CliRunner().invoke(main, ["kge", command, *asked, "-m", str(tmp_path), "-k", "3"])
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.output.splitlines()][command == "predict" :]
    assert len(rows) == 3
    assert all(row[-1] in names and np.isfinite(float(row[0])) for row in rows)


@pytest.mark.parametrize("width", [60, 80])
def test_figures_of_the_demo(width):
    status = SimpleNamespace(name="MAX_ITERATIONS")
    evaluations = SimpleNamespace(pair_updates=123_456_789)
    result = SimpleNamespace(
        value=-123456.0, gradient_norm=1e-9, residual=1e-16, time=6.01, status=status,
        evaluations=evaluations,
    )  # fmt: skip
    problem = SimpleNamespace(name="a problem", gaps=lambda result: [1e-12])
    found = lines(demo._table(problem, {"a-method-with-a-long-name": result}), width)
    assert max(map(len, found)) <= max(width, 70)
    figures = ["-1.23e+05", "1.0e-12", "1.0e-09", "1.0e-16", "6.01", "20.54"]
    assert found[-1].split()[1:7] == figures


@pytest.mark.parametrize("width", [60, 80])
def test_figures_of_the_speed(width):
    heads = ("n, p", "cond.", "best peer, s", *(f"a group {k}" for k in range(4)))
    table = NumberTable(heads)
    cells = ["1000, 500", "1e+06", "123.4", *["12.3/45.6"] * 4]
    table.add(*cells)
    assert lines(table, width)[-1].split("  ")[-4:] == cells[3:]


def test_headings_are_broken_before_names_are_shortened():
    table = NumberTable(("name", "mean rank"), title="a title", caption="a caption")
    table.add("x" * 12, "1234.5")
    assert table.widths(80) == [12, 9]
    assert table.widths(20) == [12, 6]
    assert table.widths(18) == [10, 6]
    assert table.widths(5) == [6, 6]
    assert lines(table, 18)[-1] == "a caption"


def test_room_is_shared_by_names():
    table = NumberTable(("a", "n", "b"), names=(0, 2))
    table.add("short", "12", "z" * 50)
    assert table.widths(40) == [5, 2, 29]
    table.add("y" * 50, "3", "")
    assert table.widths(40) == [17, 2, 17]


@pytest.mark.parametrize("name", ["abcdefghij", "中文名字很长的实体", "e\u0301" * 12])
@pytest.mark.parametrize("width", [1, 4, 7, 9])
def test_shortened_names_fit(name, width):
    short = shortened(name, width)
    assert cell_len(short) <= width
    assert "…" in short
    assert name.startswith(short.split("…")[0])
    assert name.endswith(short.split("…")[1])
    assert shortened(name, 40) == name


def test_markup_and_control_characters_are_shown_as_they_are():
    table = NumberTable(("name", "number"), title="[red]title\x1b[0m")
    table.add("[bold]x[/bold]\x1b[2J", "1")
    text = "\n".join(lines(table, 60))
    assert "[bold]x[/bold]\\x1b[2J" in text
    assert "[red]title\\x1b[0m" in text
