"""The page: complete, alone in the world, and right about who is first."""

import base64
import re
from html.parser import HTMLParser
from itertools import combinations, pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from jorth.bench import read_rows, write_report
from jorth.bench.core.records import append_row
from jorth.bench.matrices import figures
from jorth.bench.matrices.cells import MatrixCell
from jorth.bench.matrices.groups import group_rows, has_diverged, is_improved
from jorth.bench.matrices.paper import PAPER_METHODS
from jorth.bench.matrices.tables import comparisons


class Page(HTMLParser):
    """Every start tag with its attributes, and the tables as text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.tables = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data


def tables_in(text):
    """The tables of a part of a page."""
    return Page(text[: text.index("</main>")]).tables


@pytest.fixture(scope="session")
def page(written):
    found = Page(written.read_text(encoding="utf-8"))
    assert found.open == []
    return found


def test_every_cell_is_on_the_page(quick_run, page):
    rows = read_rows(quick_run)
    heads = {tuple(table[0]): table for table in page.tables}
    results = [
        table for head, table in heads.items() if head[0] == "data (m-n-p)" and "UMCM" in head
    ]
    assert len(results) == 3
    for problem, table in zip(("trace", "race", "procrustes"), results, strict=True):
        for group in group_rows(rows, problem):
            theta = "" if group.theta is None else f"θ = {group.theta:g}"
            (line,) = (
                r for r in table if r[0].startswith(group.name + theta) and "paper" not in r[0]
            )
            for name, row in group.rows.items():
                if row["outcome"] == "missing":
                    assert "data set gisette is not at hand" in line[1]
                    continue
                text = line[table[0].index(name)]
                if row["outcome"] == "failed":
                    assert "failed: ValueError: n must be at most" in text
                else:
                    assert f"{row['value']:.2e}({row['violation']:.1e})" in text


def test_failed_and_missing_are_listed(page):
    (table,) = (table for table in page.tables if table[0] == ["run", "outcome", "why"])
    assert [line[:2] for line in table[1:]] == [
        ["gisette(3000-1000-500)", "missing"],
        ["digits(20-70-35), trace, UMCM", "failed"],
    ]


def test_the_papers_rows_stand_beside_ours(page):
    table = next(table for table in page.tables if tuple(table[0][1:]) == PAPER_METHODS)
    papers = [line for line in table if line[0].startswith("paper")]
    assert papers[-1][4:6] == ["3" + "-9.49e+06(1.2e-09)", "1" + "-1.36e+07(2.6e-08)"]


def test_it_needs_nothing_from_outside(written, page):
    text = written.read_text(encoding="utf-8")
    for tag, attributes in page.tags:
        assert tag not in ("script", "iframe", "object", "embed")
        for name in ("src", "href", "srcset", "data"):
            assert attributes.get(name, "data:").startswith(("data:", "#")), (
                tag,
                attributes[name][:80],
            )
    assert not re.search(r"https?://|url\(|@import", text)


def test_figures_are_embedded_and_beside_the_page(written, page):
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    beside = {path.read_bytes() for path in written.parent.glob("*.png")}
    embedded = {base64.b64decode(image["src"].split(",", 1)[1]) for image in images}
    assert embedded == beside
    assert len(images) == len(beside) == 2 + 2 + 2 + 1  # race, theta, trace, procrustes
    for path in written.parent.glob("*.png"):
        assert path.stat().st_size < 150_000
        with Image.open(path) as picture:
            assert min(picture.size) >= 300
            assert picture.convert("L").getextrema() == (0, 255)


@pytest.fixture
def drawn(quick_run, monkeypatch):
    """The figures of the quick run as matplotlib has them."""
    found = []
    monkeypatch.setattr(figures, "png", lambda figure: found.append(figure) or b"")
    rows = read_rows(quick_run)
    for problem in ("race", "trace", "procrustes"):
        for group in group_rows(rows, problem):
            figures.convergence(group)
    figures.against_theta([g for g in group_rows(rows, "race") if g.cell.data == "digits"])
    for figure in found:
        FigureCanvasAgg(figure).draw()
    return found


def test_nothing_of_a_figure_is_cut_off_and_no_ticks_overlap(drawn):
    """Labels of the axes of θ were longer than the axes; ticks between powers of ten met."""
    assert len(drawn) >= 6
    for figure in drawn:
        panels = figure.axes
        texts = [text for axes in panels for text in (axes.xaxis.label, axes.yaxis.label)]
        boxes = [text.get_window_extent() for text in texts if text.get_text()]
        boxes += [legend.get_window_extent() for legend in figure.legends]
        for box in boxes:
            assert 0 <= box.x0 < box.x1 <= figure.bbox.width
            assert 0 <= box.y0 < box.y1 <= figure.bbox.height
        for axis in (axis for axes in panels for axis in (axes.xaxis, axes.yaxis)):
            low, high = sorted(axis.get_view_interval())
            ticks = axis.get_major_ticks() + axis.get_minor_ticks()
            within = [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
            labels = [label for label in within if label.get_visible() and label.get_text()]
            for one, other in combinations(labels, 2):
                boxes = one.get_window_extent(), other.get_window_extent()
                assert not boxes[0].overlaps(boxes[1]), (one.get_text(), other.get_text())


def test_it_can_be_read_by_machines(page):
    for tag, attributes in page.tags:
        if tag == "img":
            assert len(attributes["alt"]) > 40
        if tag == "th":
            assert attributes["scope"] in ("col", "row")
        if tag == "html":
            assert attributes["lang"] == "en"
    tags = [tag for tag, _ in page.tags]
    assert tags.count("caption") == tags.count("table")
    assert tags.count("h1") == tags.count("main") == 1


def test_headings_are_in_order(page):
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_contents_and_results_come_first(written, page):
    """The page began with notes on the first problem, and the winner was far to the right."""
    text = written.read_text(encoding="utf-8")
    order = ["Contents</h2>", "Results in brief</h2>", "Who came first.", '<h2 id="trace">']
    assert sorted(order, key=text.index) == order
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    links = [attributes["href"][1:] for tag, attributes in page.tags if tag == "a"]
    assert len(links) == len(set(links)) >= 6
    assert set(links) <= ids
    brief = text[text.index("Results in brief</h2>") : text.index('<h2 id="trace">')]
    for words in ("The well-posed problem: ", "so nobody wins: ", "Noisy Procrustes: "):
        assert words in brief


def test_wide_tables_are_in_the_appendix(written):
    """A table of more than eight columns may stand in the appendix alone."""
    text = written.read_text(encoding="utf-8")
    body, appendix = text.split('<h2 id="appendix">Appendix: all numbers</h2>')
    widths = [len(table[0]) for table in Page(body).tables]
    assert len(widths) >= 5
    assert max(widths) <= 8
    assert max(len(table[0]) for table in tables_in(appendix)) > 8
    assert appendix.count("<details>") == appendix.count("<summary>") >= 5


def test_the_winner_stands_beside_its_problem(quick_run, page):
    podiums = [table for table in page.tables if table[0][1:] == ["first", "second", "third"]]
    groups = group_rows(read_rows(quick_run), "trace")
    for group in groups:
        (line,) = (line for line in podiums[0] if line[0].startswith(group.name))
        winners = [name for name, place in group.places.items() if place == 1]
        assert all(name in line[1] for name in winners)
        if not winners:
            assert "missing: " in line[1] or "failed: " in line[1]


def test_counts_are_a_sentence(written, quick_run, tmp_path):
    text = written.read_text(encoding="utf-8")
    assert re.search(
        r"<p>\d+ runs finished, \d+ lacked their data or a library and 1 failed\.</p>", text
    )
    done = next(row for row in read_rows(quick_run) if row["outcome"] == "done")
    append_row(tmp_path / "runs.jsonl", done)
    one = write_report(tmp_path, tmp_path / "page").read_text(encoding="utf-8")
    assert "<p>1 run finished.</p>" in one
    assert "no other method has a result" in one or "nobody wins" in one


def test_it_says_what_must_be_known(written):
    text = re.sub(r"<[^>]+>", "", written.read_text(encoding="utf-8"))
    for words in (
        "This problem is unbounded below",
        "θ alone decides how fast they go",
        "compares step rules, not optimisers",
        "The well-posed problem",
        "He, Yuan, Wang and Xu",
        "Machine:",
        "torch 2.",
    ):
        assert words in text


def test_partial_runs_render(quick_run, tmp_path):
    """Any part of the rows is a page, and a torn line at the end does no harm."""
    rows = read_rows(quick_run)
    for count in (1, 8):
        path = tmp_path / str(count) / "runs.jsonl"
        for row in rows[:count]:
            append_row(path, row)
        with path.open("a") as file:
            file.write('{"torn')
        found = Page(write_report(path, tmp_path / str(count) / "page").read_text(encoding="utf-8"))
        assert found.open == []
    only_missing = [row for row in rows if row["outcome"] == "missing"]
    append_row(tmp_path / "missing.jsonl", only_missing[0])
    assert "is not at hand" in write_report(tmp_path / "missing.jsonl", tmp_path / "m").read_text(
        encoding="utf-8"
    )
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(ValueError, match="nothing to report yet"):
        write_report(tmp_path / "empty.jsonl", tmp_path / "e")


def test_errors_are_escaped(quick_run, tmp_path):
    row = next(r for r in read_rows(quick_run) if r["outcome"] == "failed")
    append_row(tmp_path / "runs.jsonl", row | {"error": "<script>alert(1)</script>"})
    assert "<script" not in write_report(tmp_path, tmp_path / "page").read_text(encoding="utf-8")


def made(cell, method, **fields):
    cell = {**cell.__dict__, "method": method, "theta": None}
    usual = dict(
        outcome="done",
        status="MAX_TIME",
        value=-1.0,
        start_value=-1.0,
        gap=None,
        time=1.0,
        stages=[],
    )
    return {"key": method, "cell": cell, **usual, **fields}


@pytest.fixture
def race(quick_run):
    return next(
        MatrixCell.from_json(row["cell"])
        for row in read_rows(quick_run)
        if row["cell"]["problem"] == "race"
    )


def test_ranks_of_a_race(race):
    """By value; those that are away are equal; what failed or is not finite has no place."""
    rows = [
        made(race, "UMCM", value=-5.0),
        made(race, "ADMM", value=-3e9, status="UNBOUNDED"),
        made(race, "CSDM", value=-9.0),
        made(race, "GS-JOBCD", value=-1e18, status="UNBOUNDED"),
        made(race, "J-JOBCD", value=None),
        made(race, "CSDM+GS-JOBCD", outcome="failed", error="no"),
    ]
    (group,) = group_rows(rows, "race")
    assert group.places == {"ADMM": 1, "GS-JOBCD": 1, "CSDM": 3}
    assert has_diverged(rows[1])
    assert not has_diverged(rows[0])
    # unbounded by the iterates alone: the polished point has not gone anywhere
    assert not has_diverged(made(race, "ADMM", value=-2.0, status="UNBOUNDED"))


def test_ranks_by_gap_and_then_by_time(race):
    rows = [
        made(race, "UMCM", gap=1e-3, time=0.1),
        made(race, "ADMM", gap=-1e-15, time=3.0),
        made(race, "CSDM", gap=1e-13, time=2.0),
        made(race, "GS-JOBCD", gap=1e-6, time=1.0),
    ]
    (group,) = group_rows(rows, "race")
    assert group.places == {"CSDM": 1, "ADMM": 2, "GS-JOBCD": 3}


def test_improved_warm_starts(race):
    def chain(first, last):
        return made(race, "CSDM+GS-JOBCD", value=last, stages=[{"value": first}, {"value": last}])

    assert is_improved(chain(-100.0, -101.0))
    assert not is_improved(chain(-100.0, -100.01))
    assert is_improved(chain(100.0, 50.0))
    assert not is_improved(chain(50.0, 100.0))
    assert not is_improved(made(race, "CSDM", value=-5.0, stages=[{"value": -1.0}]))


def test_orders_leave_out_the_impossible_row(quick_run):
    """randn(10-10-5) is the paper's only size in the quick run, and its values cannot be."""
    assert comparisons(group_rows(read_rows(quick_run), "race")) == []


def test_ratios(race):
    def run(name, **times):
        return made(
            race, name, gap=0.1, reached={gap: {"time": time} for gap, time in times.items()}
        )

    rows = [
        run("UMCM", **{"0.01": 3.0}),
        run("ADMM", **{"0.01": 1.5, "1e-08": 4.0}),
        made(race, "CSDM", reached={}),
    ]
    (group,) = group_rows(rows, "race")
    assert group.speeds(1e-2) == (1.5, {"UMCM": 2.0, "ADMM": 1.0, "CSDM": None})
    assert group.speeds(1e-4) == (None, {"UMCM": None, "ADMM": None, "CSDM": None})
    assert group.speeds(1e-8) == (4.0, {"UMCM": None, "ADMM": 1.0, "CSDM": None})
