"""The example in the docs is the page of the rows beside it."""

import gzip
import re
from pathlib import Path

import pytest

from jorth.bench import write_report

FOLDER = Path(__file__).parents[2] / "docs" / "report"
DOCS = FOLDER.parent


@pytest.fixture(scope="module")
def remade(tmp_path_factory):
    """The page of the rows, without its figures."""
    folder = tmp_path_factory.mktemp("example")
    (folder / "runs.jsonl").write_bytes(gzip.decompress((FOLDER / "example.jsonl.gz").read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("matrices", "graphs", "speed"):
            patch.setattr(f"jorth.bench.{kind}.section.place_figure", lambda *_: "")
        return write_report(folder, folder / "page").read_text(encoding="utf-8")


def without_figures(text):
    return re.sub(r"<figure.*?</figure>\s*|<h3>(Convergence|The value against θ)</h3>", "", text)


def test_the_page_is_that_of_its_rows(remade):
    shown = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert "".join(without_figures(shown).split()) == "".join(without_figures(remade).split())
    assert shown.count("<figure") == 13


def test_the_docs_name_its_winners(remade):
    brief = remade[remade.index("Who came first.") : remade.index('<h2 id="trace">')]
    page = (DOCS / "results" / "report.md").read_text(encoding="utf-8")
    winners = re.findall(r'<td class="winner">(.*?)</td>', brief)
    assert winners == re.findall(r"^\| [A-Z][^|]+: [^|]+ \| ([^|]+) \|", page, re.M)
