"""Rows are text from somewhere: what stands in them is shown as text, or refused by an error that
names the file."""

import ast
import copy
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from jorth import bench
from jorth.bench import read_rows, write_report
from jorth.bench.core.html import html
from jorth.bench.graphs.cells import GRAPH_METHODS, GraphCell
from jorth.bench.speed.cells import SPEED_METHODS, SpeedCell
from tests.bench.test_browser import BROWSER, browse

HOSTILE = (
    "\"'><img src=x onerror=\"window.pwned=1;document.title='pwned'\">"
    "<script>window.pwned=1</script>$\\x{{7*7}}"
)


def graph_rows(common):
    """A trial and a test of every method."""
    history = {name: [1.0, 0.5] for name in ("loss", "mrr", "hits@10", "passes", "time")}
    figures = dict.fromkeys(("mrr", "hits@1", "hits@3", "hits@10"), 0.5)
    result = dict(
        loss=0.5, valid=figures, test=figures, norm=1.0, residual=1e-15, time=1.0, history=history
    )
    for method in GRAPH_METHODS:
        for stage in ("trial", "test"):
            cell = GraphCell(
                graph="g",
                method=method,
                stage=stage,
                seed=0,
                relation_lr=1e-3,
                options=(("a", "b"),),
            )
            fields = json.loads(cell.key)
            yield (
                common
                | result
                | {"key": cell.key, "cell": fields, "notes": {}, "message": "", "outcome": "done"}
            )


def speed_rows(common):
    for method in SPEED_METHODS:
        cell = SpeedCell(n=8, p=4, condition=3.0, threads=1, method=method, seed=0, max_time=1.0)
        result = dict(
            reached={"0.01": 0.1, "0.0001": 0.2, "1e-08": 0.3},
            time=0.4,
            gap=1e-9,
            status="MAX_TIME",
        )
        yield common | result | {"key": cell.key, "cell": json.loads(cell.key), "outcome": "done"}


def probe_rows(rows):
    for row in rows:
        if (
            row["cell"]["problem"] == "race"
            and row["outcome"] == "done"
            and row["cell"]["theta"] != 20.0
        ):
            changes = {"problem": "probe", "theta": None, "alpha": 1.0, "scale": 1.0, "ridge": 0.0}
            cell = row["cell"] | changes
            yield row | {"cell": cell, "key": json.dumps(cell, sort_keys=True)}


@pytest.fixture(scope="module")
def all_rows(quick_run):
    """Rows of every kind: matrices, probes, graphs, times."""
    rows = read_rows(quick_run)
    common = {name: rows[0][name] for name in ("date", "versions", "hardware", "commit")}
    return [*rows, *probe_rows(rows), *graph_rows(common), *speed_rows(common)]


def places(value, path=()):
    """The way to every value in a row that is no container, and to no more than the first two of a
    list."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from places(item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value[:2]):
            yield from places(item, (*path, number))
    else:
        yield path


def put(row, path, value):
    changed = copy.deepcopy(row)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


SHOWN = [
    ("outcome",),
    ("status",),
    ("error",),
    ("cell", "seed"),
    ("cell", "data"),
    ("cell", "graph"),
    ("date",),
]
SHOWN += [("cell", "options", 0, 0), ("cell", "options", 0, 1), ("commit",), ("hardware", "cpu")]
SHOWN += [
    ("hardware", "system"),
    ("hardware", "gpu"),
    ("versions", "torch"),
    ("notes", "subset"),
    ("notes", "optimum_by"),
    ("cell", "scale"),
]


def one_bad_each(rows):
    """Of every place in SHOWN a row of every kind and outcome with the hostile text there."""
    for number, path in enumerate(SHOWN):
        seen = set()
        for row in rows:
            kind = row["cell"]["problem"], row["outcome"]
            if kind not in seen and path in set(places(row)):
                seen.add(kind)
                yield put(row, path, HOSTILE) | {"key": f"{number} {kind}"}


class Tags(HTMLParser):
    """Every tag, every attribute's name, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def hostile_page(all_rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    return write_report(write_rows(folder / "runs.jsonl", one_bad_each(all_rows)), folder / "page")


def test_hostile_text_is_text(hostile_page):
    found = Tags(hostile_page.read_text(encoding="utf-8"))
    assert "script" not in found.tags
    assert not {name for name in found.attributes if name.startswith("on")}
    assert found.text.count(HOSTILE) >= len(SHOWN)
    assert HOSTILE.lower() in found.text  # a status


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: ".".join(map(str, path)))
def test_it_is_shown_from_every_place(path, all_rows, tmp_path, monkeypatch):
    """One by one, so that a place that is not shown does not hide behind another."""
    without_drawing(monkeypatch)
    row = next(row for row in all_rows if path in set(places(row)) and path_is_shown(path, row))
    changed = put(row, path, HOSTILE)
    text = Tags(
        write_report(write_rows(tmp_path / "runs.jsonl", [changed]), tmp_path).read_text(
            encoding="utf-8"
        )
    ).text
    assert HOSTILE in text or HOSTILE.lower() in text


def path_is_shown(path, row):
    """Seeds of matrices are named where there are several; sets of problems where the problem was
    prepared."""
    if path == ("cell", "seed"):
        return row["cell"]["problem"] in ("probe", "kge")
    return path != ("cell", "scale") or row["cell"]["problem"] == "probe"


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_no_script_runs(hostile_page, tmp_path):
    copy_of_it = tmp_path / "page.html"
    eyes = (
        '<pre id="probe"></pre><script>window.addEventListener("load", () => '
        'document.getElementById("probe").textContent = `${document.title} ${window.pwned} '
        "${document.querySelectorAll('[onerror]').length}`)</script></body>"
    )
    text = hostile_page.read_text(encoding="utf-8")
    copy_of_it.write_text(text.replace("</body>", eyes), encoding="utf-8")
    dom, log = browse(tmp_path, "--dump-dom", copy_of_it.as_uri())
    assert '<pre id="probe">jorth benchmark undefined 0</pre>' in dom, log[-2000:]
    assert "CONSOLE" not in log
    copy_of_it.write_text(f"<title>bad</title>{HOSTILE}<body>{eyes}", encoding="utf-8")
    dom, _ = browse(tmp_path, "--dump-dom", copy_of_it.as_uri())
    assert '<pre id="probe">pwned 1 1</pre>' in dom, "these eyes must see a script that runs"


def without_drawing(monkeypatch):
    """Figures are put together, not drawn."""
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda figure, stream, **options: stream.write(b"x")
    )


WRONG = [HOSTILE, None, [], {}, True, -1, 1e999]


@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.slow)])
def test_a_wrong_value_anywhere_is_a_page_or_one_clear_error(
    stride, all_rows, tmp_path, monkeypatch
):
    """The values of every kind of row in turn, by ``stride``; figures are not drawn."""
    without_drawing(monkeypatch)
    kinds = {(row["cell"]["problem"], row["outcome"]): row for row in all_rows}
    source = tmp_path / "runs.jsonl"
    outcomes = []
    for number, (kind, row) in enumerate(kinds.items()):
        for place, path in list(enumerate(places(row)))[number % stride :: stride]:
            write_rows(source, [put(row, path, WRONG[(number + place) % len(WRONG)])])
            outcomes.append(page_or_error(source, tmp_path / "page"))
            assert outcomes[-1] in ("page", "error"), (kind, path, outcomes[-1])
    assert set(outcomes) == {"page", "error"}


def page_or_error(source, folder):
    """The word "page" for one without scripts, "error" that names the file, or what else there
    was."""
    try:
        tags = Tags(write_report(source, folder).read_text(encoding="utf-8")).tags
    except ValueError as error:
        return "error" if str(source) in str(error) else str(error)
    return "a script" if "script" in tags else "page"


def test_templates_are_constants_and_markup_is_made_in_one_place():
    """No f-string with a tag in it, no text that is told to be safe, no template that is put
    together from values."""
    for path in Path(bench.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                literal = "".join(
                    str(part.value) for part in node.values if isinstance(part, ast.Constant)
                )
                assert not re.search(r"</?[a-z]", literal), f"{path.name}, line {node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "Markup" or path.name == "html.py"
                if node.func.id == "html":
                    template = node.args[0]
                    named = isinstance(template, ast.Name) and template.id in constants
                    assert named or isinstance(template, ast.Constant), (
                        f"{path.name}, line {node.lineno}"
                    )
        assert "| safe" not in path.read_text(encoding="utf-8")


def test_the_engine_escapes():
    assert html("{{ x }}", x="<b>&\"'") == "&lt;b&gt;&amp;&#34;&#39;"
    assert html("{{ x }}", x=html("<b>")) == "<b>"
    assert html("{{ x | join }}", x=["<", html("<b>")]) == "&lt;<b>"
