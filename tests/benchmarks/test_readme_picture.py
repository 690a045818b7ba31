"""The picture of the README shows few bars, large letters and the times of its rows."""

import re
from pathlib import Path

import pytest

from benchmarks import readme_picture
from jorth.bench import read_rows
from jorth.bench.speed.table import entries

README = (Path(__file__).parents[2] / "README.md").read_text()


@pytest.fixture(scope="module")
def found():
    rows = read_rows(readme_picture.ROWS)
    assert {row["key"] for row in rows} == {cell.key for cell in readme_picture.plan().cells()}
    assert {row["outcome"] for row in rows} == {"done"}
    return [entry for entry in entries(rows) if entry.clock == "reached"]


def test_the_readme_shows_it_and_says_what_the_rows_say(found):
    """It showed 23 curves in four panels."""
    assert re.findall(r"docs/images/(\w+\.png)", README) == ["faster.png"]
    for entry in found:
        for time in readme_picture.milliseconds(entry).values():
            assert re.search(rf"\b{time:.0f}\b[^)]* ms", README)


def test_few_bars_large_letters_and_nothing_cut_off(found, tmp_path, monkeypatch):
    made = []
    real = readme_picture.new_figure
    monkeypatch.setattr(
        readme_picture, "new_figure", lambda *size: made.append(real(*size)) or made[0]
    )
    readme_picture.draw(found, tmp_path / "faster.png")
    (figure,) = made
    assert len(readme_picture.BARS) <= 4
    assert len(figure.axes) == 2
    shown = [figure._suptitle]
    for panel in figure.axes:
        shown += [*panel.texts, panel.title]
    shown += figure.axes[0].get_yticklabels()
    shown = [text for text in shown if text.get_text()]
    assert min(text.get_fontsize() for text in shown) >= 13
    for text in shown:
        box = text.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width, text.get_text()
